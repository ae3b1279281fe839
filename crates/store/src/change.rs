//! What a writer decides, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::Doc;

use crate::Entry;

/// What a writer decides on the newest state of an object.
#[derive(Clone, Debug)]
pub enum Change {
    /// Create or replace the object. The store stamps `metadata.resourceVersion`; a document that
    /// differs from the current one in nothing else is not written.
    Put {
        /// The object.
        doc: Doc,
        /// How long the object lives unless it is written again; for ever if absent.
        ttl: Option<Duration>,
    },
    /// As `Put`, with a document that is known to differ from the state on which this is decided:
    /// the two are not compared again under the lock of all writers.
    Replace {
        /// The object.
        doc: Doc,
        /// How long the object lives unless it is written again; for ever if absent.
        ttl: Option<Duration>,
    },
    /// Remove the object. Nothing happens if there is none.
    Delete,
    /// Leave everything as it is.
    Keep,
}

impl Change {
    /// Create or replace the object.
    #[must_use]
    pub fn put(doc: Doc) -> Self {
        Self::Put { doc, ttl: None }
    }

    /// The same change, compared with the state on which it is decided, outside of any lock.
    #[must_use]
    pub fn compared(self, current: Option<&Arc<Entry>>) -> Self {
        match self {
            Self::Put { doc, .. } if current.is_some_and(|it| it.is_same_content(&doc)) => {
                Self::Keep
            }
            Self::Put { doc, ttl } => Self::Replace { doc, ttl },
            change => change,
        }
    }

    /// Create or replace an object that goes after a while.
    #[must_use]
    pub fn put_for(doc: Doc, ttl: Duration) -> Self {
        Self::Put {
            doc,
            ttl: Some(ttl),
        }
    }
}

/// What came of a write. Everything in it is durable and visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was no object; this one was made.
    Created(Arc<Entry>),
    /// The object was replaced.
    Updated {
        /// The new state.
        entry: Arc<Entry>,
        /// The state before.
        previous: Arc<Entry>,
    },
    /// The object was removed. This is its last state, stamped with the revision of the deletion.
    Deleted(Arc<Entry>),
    /// Nothing was written. This is the state on which that was decided.
    Unchanged(Option<Arc<Entry>>),
}

impl Outcome {
    /// The state after the write; for a deletion the last state.
    #[must_use]
    pub fn entry(&self) -> Option<&Arc<Entry>> {
        match self {
            Self::Created(entry) | Self::Updated { entry, .. } | Self::Deleted(entry) => {
                Some(entry)
            }
            Self::Unchanged(entry) => entry.as_ref(),
        }
    }
}

//! What watchers receive.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use windlass_core::Key;

use crate::Entry;

/// Bytes of an event without its documents, and of the state that it made.
const EVENT_BYTES: u64 = 256;

/// One write to one object, shared by all watchers.
pub struct Event {
    /// The new state; for a deletion the last state, stamped with the revision of the deletion.
    pub entry: Arc<Entry>,
    /// The state before the write, unless the object was new.
    pub previous: Option<Arc<Entry>>,
    /// What happened.
    pub kind: EventKind,
    /// What the watchers of this event share, such as its encoded form.
    attachment: Mutex<Attachment>,
}

/// What an [`Event`] did to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The object was created or changed.
    Put,
    /// The object was removed.
    Delete,
}

/// A value that outlives one watcher but not the interest in the event.
enum Attachment {
    Empty,
    Kept(Arc<dyn Any + Send + Sync>),
    /// The event is old: what a late watcher makes of it is its own.
    Retired,
}

impl Event {
    pub(crate) fn new(
        kind: EventKind,
        entry: Arc<Entry>,
        previous: Option<Arc<Entry>>,
    ) -> Arc<Self> {
        let attachment = Mutex::new(Attachment::Empty);
        Arc::new(Self {
            entry,
            previous,
            kind,
            attachment,
        })
    }

    /// The revision of the write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.entry.revision
    }

    /// The object it was about.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.entry.key
    }

    /// A value that all watchers of this event share, made empty on first use: a place to cache
    /// the encoded event, so that it is encoded once however many watch.
    ///
    /// The newest events of a resource keep the value, older ones forget it and every call makes a
    /// fresh one; so cached bytes are bounded by a number of events, not by the whole history.
    /// The same holds when different types are asked for: the first one is kept.
    #[must_use]
    pub fn attachment<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut attachment = self.attachment.lock();
        match &*attachment {
            Attachment::Empty => {
                let fresh = Arc::new(T::default());
                *attachment = Attachment::Kept(fresh.clone());
                fresh
            }
            Attachment::Kept(kept) => kept.clone().downcast().unwrap_or_default(),
            Attachment::Retired => Arc::default(),
        }
    }

    /// Bytes of memory that are held for this event alone: an upper bound. A history of events
    /// whose states replace each other holds no more than their sum.
    pub(crate) fn held_bytes(&self) -> u64 {
        let next = (self.kind == EventKind::Put).then_some(&*self.entry);
        let previous = self.previous.as_ref();
        let held = previous.map_or(0, |previous| previous.bytes_beyond(next));
        EVENT_BYTES + held as u64
    }

    /// Forgets the attachment for good.
    pub(crate) fn retire(&self) {
        *self.attachment.lock() = Attachment::Retired;
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("kind", &self.kind)
            .field("entry", &self.entry)
            .field(
                "previous",
                &self.previous.as_ref().map(|entry| entry.revision),
            )
            .finish_non_exhaustive()
    }
}

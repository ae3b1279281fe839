//! The events of a watch, and why one is missing.

use std::time::Duration;

use windlass_core::{Doc, Prune};

use crate::{BoxError, DecodeError, Status, Undecodable};

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "/metadata/annotations/k8s.io~1initial-events-end";

/// One event of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent<T = Doc> {
    /// An object came to be, or came to match the selector.
    Added(T),
    /// An object changed.
    Modified(T),
    /// An object is gone, or no longer matches the selector; this is its last state.
    Deleted(T),
    /// Nothing happened up to the resource version of this document, which holds nothing else.
    Bookmark(Doc),
}

impl WatchEvent {
    /// The event with the paths of a set taken out of its object.
    #[must_use]
    pub fn pruned(self, prune: &Prune) -> Self {
        match self {
            Self::Bookmark(doc) => Self::Bookmark(doc),
            event => event.map(|doc| prune.apply(&doc)),
        }
    }

    /// The event with its object in another form.
    #[must_use]
    pub fn map(self, form: impl FnOnce(Doc) -> Doc) -> Self {
        match self {
            Self::Added(doc) => Self::Added(form(doc)),
            Self::Modified(doc) => Self::Modified(form(doc)),
            Self::Deleted(doc) => Self::Deleted(form(doc)),
            Self::Bookmark(doc) => Self::Bookmark(form(doc)),
        }
    }
}

/// The reason why an event is missing, or why the watch ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The server ended the watch; most often because the state asked for is too old.
    #[error("{0}")]
    Status(Box<Status>),
    /// One object could not be decoded. The watch goes on.
    #[error("{0}")]
    Undecodable(Undecodable),
    /// The body makes no sense, or a line is too long. The watch ends.
    #[error("{0}")]
    Decode(DecodeError),
    /// The connection broke. The watch ends.
    #[error("{0}")]
    Connection(BoxError),
    /// The server was silent in the middle of an event, or has not ended the watch when it should
    /// have. The watch ends.
    #[error("nothing came within {0:?}")]
    Timeout(Duration),
}

impl WatchEvent {
    /// The object of the event.
    #[must_use]
    pub fn object(&self) -> &Doc {
        match self {
            Self::Added(doc) | Self::Modified(doc) | Self::Deleted(doc) | Self::Bookmark(doc) => {
                doc
            }
        }
    }

    /// The state of the server at this event.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.object().str_at("/metadata/resourceVersion")
    }

    /// Returns true if this bookmark ends the initial events of a streaming list.
    #[must_use]
    pub fn is_initial_events_end(&self) -> bool {
        matches!(self, Self::Bookmark(doc) if doc.str_at(INITIAL_EVENTS_END) == "true")
    }
}

impl WatchError {
    /// Returns true if the watch ends with this error.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Undecodable(_))
    }

    /// The status with which the server ended the watch, if it did.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }

    /// The state asked for is too old: list again.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.status().is_some_and(Status::is_gone)
    }

    /// The server asks for fewer requests.
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.status().is_some_and(Status::is_too_many_requests)
    }

    /// The connection ended in the middle of an event.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::Decode(DecodeError::Cut { .. }))
    }
}

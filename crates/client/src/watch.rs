//! A watch: what happens to objects, as it happens.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_atlas::ProtobufError;
use windlass_core::{Doc, Gvr, Prune};

use crate::decode::{DecodeError, FrameDecoder, Undecodable, WatchDecoder};
use crate::rest::{ReadError, Reader};
use crate::transport::{BoxError, Events};
use crate::{Cause, Error, Status};

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
    fn pruned(self, prune: &Prune) -> Self {
        match self {
            Self::Added(doc) => Self::Added(prune.apply(&doc)),
            Self::Modified(doc) => Self::Modified(prune.apply(&doc)),
            Self::Deleted(doc) => Self::Deleted(prune.apply(&doc)),
            Self::Bookmark(doc) => Self::Bookmark(doc),
        }
    }
}

/// Why an event is missing, or why the watch ended.
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

/// The events of a watch, in the order in which they happened.
///
/// Dropping it ends the watch.
#[derive(Debug)]
pub struct WatchStream {
    source: Source,
    is_over: bool,
}

#[derive(Debug)]
enum Source {
    Wire(Box<Wire>),
    Local { events: Events, prune: Prune },
}

#[derive(Debug)]
struct Wire {
    decoder: Decoder,
    reader: Reader,
    /// How long one event may take from its first byte to its last.
    event_timeout: Duration,
    /// When the event that has begun must be complete.
    event_deadline: Option<Instant>,
}

/// How events are written.
#[derive(Debug)]
pub(crate) enum Decoder {
    /// As JSON, each in a line.
    Lines(WatchDecoder),
    /// As protobuf, each in a frame. That one could not be read is noted, so that the next watch of
    /// the resource asks for JSON.
    Frames(FrameDecoder, Unreadable),
}

/// Where a watch in protobuf notes that it could not read an event.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) resource: Gvr,
    pub(crate) resources: Arc<Mutex<HashSet<Gvr>>>,
}

impl Unreadable {
    fn note(&self, error: &ProtobufError) {
        let resource = self.resource.to_string();
        tracing::info!(%error, resource, "Watching in JSON from now on");
        self.resources.lock().insert(self.resource.clone());
    }
}

impl Decoder {
    fn push(&mut self, chunk: Bytes) {
        match self {
            Self::Lines(lines) => lines.push(chunk),
            Self::Frames(frames, _) => frames.push(chunk),
        }
    }

    fn is_inside_event(&self) -> bool {
        match self {
            Self::Lines(lines) => lines.is_inside_line(),
            Self::Frames(frames, _) => frames.is_inside_frame(),
        }
    }

    fn next_event(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        match self {
            Self::Lines(lines) => lines.next_event(),
            Self::Frames(frames, unreadable) => {
                let event = frames.next_event();
                if let Some(Err(WatchError::Decode(DecodeError::Protobuf(error)))) = &event {
                    unreadable.note(error);
                }
                event
            }
        }
    }

    fn finish(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        match self {
            Self::Lines(lines) => lines.finish(),
            Self::Frames(frames, _) => frames.finish(),
        }
    }
}

impl WatchStream {
    pub(crate) fn wire(decoder: Decoder, reader: Reader, event_timeout: Duration) -> Self {
        let wire = Wire {
            decoder,
            reader,
            event_timeout,
            event_deadline: None,
        };
        Self {
            source: Source::Wire(Box::new(wire)),
            is_over: false,
        }
    }

    pub(crate) fn local(events: Events, prune: Prune) -> Self {
        Self {
            source: Source::Local { events, prune },
            is_over: false,
        }
    }

    /// The next event; `None` when the server has ended the watch, and after any error other than
    /// [`WatchError::Undecodable`]. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        if self.is_over {
            return None;
        }
        let event = match &mut self.source {
            Source::Wire(wire) => wire.next().await,
            Source::Local { events, prune } => {
                let event = events.next().await;
                event.map(|event| event.map(|event| event.pruned(prune)))
            }
        };
        self.is_over = match &event {
            None => true,
            Some(Err(error)) => error.is_final(),
            Some(Ok(_)) => false,
        };
        event
    }
}

impl Wire {
    async fn next(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        loop {
            if let Some(event) = self.decoder.next_event() {
                self.event_deadline = None;
                return Some(event);
            }
            let deadline = self.deadline();
            match self.reader.chunk(deadline).await {
                None => return self.decoder.finish(),
                Some(Ok(chunk)) => self.decoder.push(chunk),
                Some(Err(error)) => return Some(Err(error.into())),
            }
        }
    }

    /// A watch may be silent for as long as nothing happens, but not in the middle of an event.
    fn deadline(&mut self) -> Option<(Instant, Duration)> {
        if !self.decoder.is_inside_event() {
            self.event_deadline = None;
            return None;
        }
        let fresh = || Instant::now() + self.event_timeout;
        Some((
            *self.event_deadline.get_or_insert_with(fresh),
            self.event_timeout,
        ))
    }
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

    /// Whether this bookmark ends the initial events of a watch that asked for them.
    #[must_use]
    pub fn is_initial_events_end(&self) -> bool {
        matches!(self, Self::Bookmark(doc) if doc.str_at(INITIAL_EVENTS_END) == "true")
    }
}

impl WatchError {
    /// Whether the watch ends with this error.
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

impl From<ReadError> for WatchError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Timeout(all) => Self::Timeout(all),
            ReadError::Connection(source) => Self::Connection(source),
        }
    }
}

impl From<Error> for WatchError {
    fn from(error: Error) -> Self {
        match error.cause() {
            Cause::Status(status) => Self::Status(Box::new(status.clone())),
            _ => Self::Connection(error.into()),
        }
    }
}

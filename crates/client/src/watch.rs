//! A watch: what happens to objects, as it happens.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_atlas::ProtobufError;
use windlass_core::{Gvr, Prune};

use crate::decode::{DecodeError, FrameDecoder, WatchDecoder, WatchError, WatchEvent};
use crate::reader::{ReadError, Reader};
use crate::transport::Events;
use crate::{Cause, Error};

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
    /// The time limit of one event, from its first byte to its last.
    event_timeout: Duration,
    /// When the event that has begun must be complete.
    event_deadline: Option<Instant>,
}

/// The decoder of events.
#[derive(Debug)]
pub(crate) enum Decoder {
    /// As JSON, each in a line.
    Lines(WatchDecoder),
    /// As protobuf, each in a frame. That one could not be read is noted, so that the next watch of
    /// the resource asks for JSON.
    Frames(FrameDecoder, Unreadable),
}

/// The record of a list or watch in protobuf that could not decode an object.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) resource: Gvr,
    pub(crate) resources: Arc<Mutex<HashSet<Gvr>>>,
}

impl Unreadable {
    pub(crate) fn note(&self, error: &ProtobufError) {
        let resource = self.resource.to_string();
        tracing::info!(%error, resource, "Listing and watching in JSON from now on");
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

//! The frames of a watch in protobuf.

use bytes::Bytes;
use windlass_atlas::{ProtobufDecoder, ProtobufError, decode_protobuf, protobuf_event};
use windlass_core::{Doc, Prune};

use super::watch::{maker, unreadable_status};
use super::{DecodeError, WatchError, WatchEvent};
use crate::Status;

/// Bytes in front of each frame that say how long it is.
const HEAD: usize = 4;

/// Cuts the body of a watch in protobuf into frames and decodes each into an event.
///
/// A frame that lies in one chunk is read where it is; only a frame cut in two is copied. An object
/// that cannot be read completely ends the watch: as JSON it can.
#[derive(Debug)]
pub(crate) struct FrameDecoder {
    decoder: ProtobufDecoder,
    /// The bytes that were not looked at yet.
    chunk: Bytes,
    /// The start of a frame whose end has not come yet. Bounded by `bytes_limit`.
    carry: Vec<u8>,
    bytes_limit: usize,
    /// Bytes pushed so far, for messages.
    bytes: u64,
}

impl FrameDecoder {
    /// A decoder that skips these paths in each object, for frames of at most so many bytes.
    pub(crate) fn with_limit(prune: Prune, bytes_limit: usize) -> Self {
        Self {
            decoder: ProtobufDecoder::new(prune).strict(),
            chunk: Bytes::new(),
            carry: Vec::new(),
            bytes_limit,
            bytes: 0,
        }
    }

    /// Takes the next bytes of the body. The bytes before must have been used up: that is when
    /// [`Self::next_event`] returns `None`.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the chunk before is used up");
        self.bytes += chunk.len() as u64;
        self.chunk = chunk;
    }

    /// Returns true if a frame has begun that is not complete.
    pub(crate) fn is_inside_frame(&self) -> bool {
        !self.carry.is_empty()
    }

    /// The next event among the bytes pushed so far; `None` when more bytes are needed.
    pub(crate) fn next_event(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        if self.carry.is_empty()
            && let Some(end) = frame_end(&self.chunk)
            && end <= self.chunk.len().min(HEAD + self.bytes_limit)
        {
            let frame = self.chunk.split_to(end);
            return Some(event(&mut self.decoder, &frame[HEAD..]));
        }
        self.carry_to(HEAD);
        let end = frame_end(&self.carry)?;
        if end > HEAD + self.bytes_limit {
            return Some(Err(self.too_long()));
        }
        self.carry_to(end);
        if self.carry.len() < end {
            return None;
        }
        let event = event(&mut self.decoder, &self.carry[HEAD..]);
        self.carry.clear();
        Some(event)
    }

    /// Checks that the body ended where a frame did.
    pub(crate) fn finish(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        let bytes = self.bytes;
        let is_cut = !std::mem::take(&mut self.carry).is_empty();
        is_cut.then_some(Err(WatchError::Decode(DecodeError::Cut { bytes })))
    }

    /// Moves bytes of the chunk until so many are carried, or the chunk is used up.
    fn carry_to(&mut self, length: usize) {
        let missing = length.saturating_sub(self.carry.len());
        let part = self.chunk.split_to(missing.min(self.chunk.len()));
        self.carry.extend_from_slice(&part);
    }

    fn too_long(&mut self) -> WatchError {
        self.chunk.clear();
        self.carry.clear();
        WatchError::Decode(DecodeError::TooLong {
            limit: self.bytes_limit,
        })
    }
}

/// The end of the first frame in these bytes; `None` if its length has not arrived.
fn frame_end(bytes: &[u8]) -> Option<usize> {
    let head = bytes.first_chunk::<HEAD>()?;
    Some((u32::from_be_bytes(*head) as usize).saturating_add(HEAD))
}

fn event(decoder: &mut ProtobufDecoder, frame: &[u8]) -> Result<WatchEvent, WatchError> {
    let (sort, object) = protobuf_event(frame).map_err(failed)?;
    if sort == b"ERROR" {
        // It is not written back, and has to be understood whatever else it says.
        let status = decode_protobuf(object).ok();
        let status = status.and_then(|it| it.doc.decode::<Status>().ok());
        return Err(status.map_or_else(unreadable_status, |status| {
            WatchError::Status(Box::new(status))
        }));
    }
    let make: fn(Doc) -> WatchEvent = maker(sort)?;
    decoder.decode(object).map(make).map_err(failed)
}

fn failed(error: ProtobufError) -> WatchError {
    WatchError::Decode(DecodeError::Protobuf(error))
}

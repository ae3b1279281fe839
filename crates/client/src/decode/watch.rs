//! The lines of a watch.

use bytes::{Buf, Bytes};
use memchr::memchr;
use windlass_core::{Doc, ParseOptions, Parser, Prune};

use super::key::key_of;
use super::scan::{fields, trim};
use super::{DecodeError, ITEM_BYTES_LIMIT, Undecodable, WatchError, WatchEvent};
use crate::Status;

/// Cuts the body of a watch into lines and decodes each into an event.
///
/// A line that lies in one chunk is parsed where it is; only a line cut in two is copied.
#[derive(Debug)]
pub struct WatchDecoder {
    parser: Parser,
    /// The bytes that were not looked at yet.
    chunk: Bytes,
    /// The start of a line whose end has not come yet. Bounded by `bytes_limit`.
    carry: Vec<u8>,
    bytes_limit: usize,
    /// Bytes pushed so far, for messages.
    bytes: u64,
}

impl WatchDecoder {
    /// A decoder that skips these paths in each object.
    #[must_use]
    pub fn new(prune: Prune) -> Self {
        Self::with_limit(prune, ITEM_BYTES_LIMIT)
    }

    /// A decoder with its own limit on the length of a line.
    #[must_use]
    pub fn with_limit(prune: Prune, bytes_limit: usize) -> Self {
        Self {
            parser: Parser::new(ParseOptions::pruning(prune)),
            chunk: Bytes::new(),
            carry: Vec::new(),
            bytes_limit,
            bytes: 0,
        }
    }

    /// Takes the next bytes of the body. The bytes before must have been used up: that is when
    /// [`Self::next_event`] returns `None`.
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the chunk before is used up");
        self.bytes += chunk.len() as u64;
        self.chunk = chunk;
    }

    /// Returns true if a line has begun that is not complete.
    #[must_use]
    pub fn is_inside_line(&self) -> bool {
        !self.carry.is_empty()
    }

    /// The next event among the bytes pushed so far; `None` when more bytes are needed.
    pub fn next_event(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        while let Some(end) = memchr(b'\n', &self.chunk) {
            let head = self.chunk.split_to(end);
            self.chunk.advance(1);
            if self.carry.len() + head.len() > self.bytes_limit {
                return Some(Err(self.too_long()));
            }
            let line = if self.carry.is_empty() {
                event(&mut self.parser, &head)
            } else {
                self.carry.extend_from_slice(&head);
                event(&mut self.parser, &self.carry)
            };
            self.carry.clear();
            if line.is_some() {
                return line;
            }
        }
        if self.carry.len() + self.chunk.len() > self.bytes_limit {
            return Some(Err(self.too_long()));
        }
        self.carry.extend_from_slice(&self.chunk);
        self.chunk.clear();
        None
    }

    /// Checks that the body ended where a line did, and decodes a last line without its newline.
    pub fn finish(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        let rest = std::mem::take(&mut self.carry);
        match event(&mut self.parser, &rest)? {
            Err(WatchError::Undecodable(_) | WatchError::Decode(_)) => {
                Some(Err(WatchError::Decode(DecodeError::Cut {
                    bytes: self.bytes,
                })))
            }
            line => Some(line),
        }
    }

    fn too_long(&mut self) -> WatchError {
        self.chunk.clear();
        self.carry.clear();
        WatchError::Decode(DecodeError::TooLong {
            limit: self.bytes_limit,
        })
    }
}

/// Decodes one line; `None` if it is blank.
fn event(parser: &mut Parser, line: &[u8]) -> Option<Result<WatchEvent, WatchError>> {
    let line = trim(line);
    if line.is_empty() {
        return None;
    }
    let Some((sort, object)) = split(line) else {
        return Some(Err(WatchError::Decode(DecodeError::Unexpected {
            expected: "a watch event with a type and an object",
            at: 0,
        })));
    };
    if sort == b"ERROR" {
        return Some(Err(status(object)));
    }
    let make = match maker(sort) {
        Ok(make) => make,
        Err(error) => return Some(Err(error)),
    };
    Some(match parser.parse(object) {
        Ok(parsed) => Ok(make(parsed.doc)),
        Err(error) => {
            let (key, error) = (key_of(object), error.into());
            Err(WatchError::Undecodable(Undecodable { key, error }))
        }
    })
}

fn status(object: &[u8]) -> WatchError {
    match Doc::parse(object).map(|doc| doc.decode::<Status>()) {
        Ok(Ok(status)) => WatchError::Status(Box::new(status)),
        _ => unreadable_status(),
    }
}

/// The constructor of an event, by the type of the event.
pub(super) fn maker(sort: &[u8]) -> Result<fn(Doc) -> WatchEvent, WatchError> {
    Ok(match sort {
        b"ADDED" => WatchEvent::Added,
        b"MODIFIED" => WatchEvent::Modified,
        b"DELETED" => WatchEvent::Deleted,
        b"BOOKMARK" => WatchEvent::Bookmark,
        _ => {
            return Err(WatchError::Decode(DecodeError::Unexpected {
                expected: "ADDED, MODIFIED, DELETED, BOOKMARK or ERROR",
                at: 0,
            }));
        }
    })
}

pub(super) fn unreadable_status() -> WatchError {
    let status = Status::failure(500, "InternalError", "unreadable error event");
    WatchError::Status(Box::new(status))
}

/// The type and the object of an event.
///
/// The API server writes the type first and without spaces, and so the object can be cut out
/// without being walked over. Anything else is found the slow way.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    quick_split(line).or_else(|| {
        let find = |wanted: &[u8]| fields(line).find(|(key, _)| *key == wanted).map(|it| it.1);
        let sort = find(b"\"type\"")?
            .strip_prefix(b"\"")?
            .strip_suffix(b"\"")?;
        Some((sort, find(b"\"object\"")?))
    })
}

fn quick_split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let (sort, rest) = rest.split_at(memchr(b'"', rest)?);
    let object = rest.strip_prefix(b"\",\"object\":")?.strip_suffix(b"}")?;
    Some((sort, object))
}

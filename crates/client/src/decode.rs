//! From bytes to documents, without I/O: bytes are pushed in as they arrive, documents come out.
//!
//! The decoders hold at most the chunk at hand and the start of one value that the chunk before
//! it cut off. How the bytes are cut into chunks never shows in what comes out.

mod event;
mod frames;
mod key;
mod list;
mod scan;
mod watch;

#[cfg(test)]
mod tests;

use std::fmt;

use windlass_atlas::ProtobufError;
use windlass_core::{DecodeError as TypeError, Key, ParseError};

pub use event::{WatchError, WatchEvent};
pub(crate) use frames::FrameDecoder;
pub use list::{ListDecoder, ListHead};
pub use watch::WatchDecoder;

use crate::Status;

/// Longest list item or watch line that is read. etcd stores objects of at most 1.5 MiB unless it
/// is told otherwise; JSON is longer than what is stored.
pub const ITEM_BYTES_LIMIT: usize = 16 << 20;

/// An object that could not be decoded. What came before and after it is not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {error}", Named(.key.as_ref()))]
pub struct Undecodable {
    /// The name of the object, where it can be made out.
    pub key: Option<Key>,
    /// The problem.
    pub error: ObjectError,
}

/// The problem with an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// It is not JSON.
    #[error("{0}")]
    Parse(#[from] ParseError),
    /// It does not fit the type that it was to be decoded as.
    #[error("{0}")]
    Decode(#[from] TypeError),
}

struct Named<'a>(Option<&'a Key>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            self.0
                .map_or("an object without a readable name", Key::as_str),
        )
    }
}

/// The reason why decoding ended before the bytes did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// One item or line is longer than the limit.
    #[error("an object is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The bytes are not what they should be.
    #[error("byte {at}: expected {expected}")]
    Unexpected {
        /// The expected token.
        expected: &'static str,
        /// The offset from the first byte of the body.
        at: u64,
    },
    /// A part of the body that is not an object of the list could not be read.
    #[error("{0}")]
    Parse(ParseError),
    /// An object in protobuf could not be read, or not completely.
    #[error("{0}")]
    Protobuf(ProtobufError),
    /// The body ended too early.
    #[error("the body ended after {bytes} bytes, in the middle")]
    Cut {
        /// The number of bytes that came.
        bytes: u64,
    },
    /// A server answered with a status in place of the body that was asked for.
    #[error("{0}")]
    Status(Box<Status>),
}

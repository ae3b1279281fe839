//! Objects and bodies that cannot be decoded.

use std::fmt;

use windlass_atlas::ProtobufError;
use windlass_core::{DecodeError as TypeError, Key, ParseError};

use crate::Status;

/// An object that could not be decoded. What came before and after it is not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {error}", Named(.key.as_ref()))]
pub struct Undecodable {
    /// The name of the object, where it can be made out.
    pub key: Option<Key>,
    /// The fault.
    pub error: ObjectError,
}

/// A fault of an object.
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
        /// The expected text.
        expected: &'static str,
        /// The place, counted from the first byte of the body.
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

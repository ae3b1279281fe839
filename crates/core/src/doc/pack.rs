//! A compact binary form of documents that share parts, for keeping many of them on disk.
//!
//! A document is a run of bytes in which a part that was written before stands as a number. The
//! parts themselves are runs of bytes as well, kept beside the documents under their numbers; a
//! part refers only to parts with smaller numbers. The pods of one template are a few hundred
//! bytes each this way, and reading one back builds only what it does not share.
//!
//! Every value begins with a tag:
//!
//! | tag | what follows |
//! |---|---|
//! | null, false, true | nothing |
//! | int | a zigzag varint |
//! | uint | a varint |
//! | float | eight bytes, little endian |
//! | string | a varint length and the bytes |
//! | array | a varint length and the items |
//! | object | the keys, as a string each behind a varint length, then the values |
//! | shaped | the number of the part that holds the keys, then the values |
//! | part | the number of the part |

mod bytes;
mod checker;
mod packer;
mod unpacker;

pub use checker::{Checker, part_numbers};
pub use packer::{NewPart, Packer};
pub use unpacker::{UnpackError, Unpacker};

use bytes::Reader;

use super::Doc;
use super::node::Shape;

/// Deeper than any document that was parsed, because patches can nest what was nested.
const DEPTH_LIMIT: usize = 4 * super::DEPTH_LIMIT;

/// A part that was written once: a value, or the keys that objects share.
#[derive(Clone)]
enum Part {
    Value(Doc),
    Keys(Shape),
}

/// The first byte of a value.
mod tag {
    pub(super) const NULL: u8 = 0;
    pub(super) const FALSE: u8 = 1;
    pub(super) const TRUE: u8 = 2;
    pub(super) const INT: u8 = 3;
    pub(super) const UINT: u8 = 4;
    pub(super) const FLOAT: u8 = 5;
    pub(super) const STRING: u8 = 6;
    pub(super) const ARRAY: u8 = 7;
    pub(super) const OBJECT: u8 = 8;
    pub(super) const SHAPED: u8 = 9;
    pub(super) const PART: u8 = 10;
    /// Only at the beginning of a part: it is the keys of objects.
    pub(super) const KEYS: u8 = 11;
}

/// Makes sure that nothing is left to read.
fn end(reader: &Reader<'_>) -> Result<(), UnpackError> {
    if reader.0.is_empty() {
        return Ok(());
    }
    Err(UnpackError::Long)
}

#[cfg(test)]
mod tests;

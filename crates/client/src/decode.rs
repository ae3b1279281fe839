//! From bytes to documents, without I/O: bytes are pushed in as they arrive, documents come out.
//!
//! The decoders hold at most the chunk at hand and the start of one value that the chunk before
//! it cut off. How the bytes are cut into chunks never shows in what comes out.

mod frames;
mod key;
mod list;
mod protobuf_list;
mod scan;
mod watch;

#[cfg(test)]
mod tests;

pub use windlass_wire::{DecodeError, ObjectError, Undecodable, WatchError, WatchEvent};

pub(crate) use frames::FrameDecoder;
pub use list::{ListDecoder, ListHead};
pub(crate) use protobuf_list::ProtobufListDecoder;
pub use watch::WatchDecoder;

/// Longest list item or watch line that is read. etcd stores objects of at most 1.5 MiB unless it
/// is told otherwise; JSON is longer than what is stored.
pub const ITEM_BYTES_LIMIT: usize = 16 << 20;

//! A long list, compressed on its way.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::ListBody;

/// Upstream's choice between speed and size.
pub(crate) const LEVEL: u32 = 1;
/// Compressed bytes that are sent at a time.
const PIECE_BYTES: usize = 32 << 10;

/// Compresses a list piece by piece.
#[derive(Debug)]
pub(crate) struct Packer {
    list: Box<ListBody>,
    /// Piece that was encoded before it was known that the list is long.
    first: Option<Bytes>,
    /// `None` when everything was sent.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Packer {
    pub(crate) fn new(first: Bytes, list: Box<ListBody>) -> Self {
        Self {
            list,
            first: Some(first),
            encoder: Some(GzEncoder::new(Vec::new(), Compression::new(LEVEL))),
        }
    }

    /// The next bytes; nothing at the end.
    pub(crate) fn next_piece(&mut self) -> Option<Bytes> {
        let encoder = self.encoder.as_mut()?;
        while encoder.get_ref().len() < PIECE_BYTES {
            let Some(plain) = self.first.take().or_else(|| self.list.next_piece()) else {
                let packed = self.encoder.take()?.finish();
                return packed.ok().map(Bytes::from);
            };
            encoder
                .write_all(&plain)
                .expect("invariant: writing to memory does not fail");
        }
        Some(std::mem::take(encoder.get_mut()).into())
    }
}

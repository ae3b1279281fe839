//! Files that are read and never written: what the engine writes stays in memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::io;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use redb::StorageBackend;

/// Bytes that are copied together.
const BLOCK: usize = 4096;

/// A file of which the changes are in memory. It grows with what is written: the commits of a log,
/// which is bounded, and what the engine notes for itself.
pub(super) struct Overlay<B> {
    below: B,
    /// The length of the file below, as far as it is still part of this one.
    below_len: Mutex<u64>,
    written: Mutex<Written>,
}

struct Written {
    len: u64,
    blocks: HashMap<u64, Box<[u8; BLOCK]>, RandomState>,
}

impl<B: StorageBackend> Overlay<B> {
    pub(super) fn new(below: B) -> io::Result<Self> {
        let len = below.len()?;
        Ok(Self {
            below,
            below_len: Mutex::new(len),
            written: Mutex::new(Written {
                len,
                blocks: HashMap::default(),
            }),
        })
    }

    /// A block as it is below.
    fn read_below(&self, number: u64) -> io::Result<Box<[u8; BLOCK]>> {
        let mut block = Box::new([0; BLOCK]);
        let start = number * BLOCK as u64;
        let left = self.below_len.lock().saturating_sub(start);
        let count = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
        if count > 0 {
            self.below.read(start, &mut block[..count])?;
        }
        Ok(block)
    }
}

/// The pieces of a range, each within a block: number of the block, range in it, length before.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let start = usize::try_from(at % BLOCK as u64).expect("invariant: less than a block");
        let end = BLOCK.min(start + len - done);
        let piece = (at / BLOCK as u64, start..end, done);
        done += end - start;
        Some(piece)
    })
}

impl<B: StorageBackend> StorageBackend for Overlay<B> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written.lock();
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > written.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, range, done) in pieces(offset, out.len()) {
            let target = &mut out[done..done + range.len()];
            match written.blocks.get(&number) {
                Some(block) => target.copy_from_slice(&block[range]),
                None => target.copy_from_slice(&self.read_below(number)?[range]),
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written.lock();
        written.len = len;
        // What is cut off and grown again is zero.
        let mut below = self.below_len.lock();
        *below = len.min(*below);
        drop(below);
        let last = len / BLOCK as u64;
        written.blocks.retain(|number, _| *number <= last);
        if let Some(block) = written.blocks.get_mut(&last) {
            let kept = usize::try_from(len % BLOCK as u64).unwrap_or_default();
            block[kept..].fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        for (number, range, done) in pieces(offset, data.len()) {
            let mut written = self.written.lock();
            let source = &data[done..done + range.len()];
            let block = match written.blocks.entry(number) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(free) => free.insert(self.read_below(number)?),
            };
            block[range].copy_from_slice(source);
        }
        let mut written = self.written.lock();
        written.len = written.len.max(offset + data.len() as u64);
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.below.close()
    }
}

impl<B> fmt::Debug for Overlay<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Overlay(..)")
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    #[test]
    fn writes_are_read_back_and_the_file_below_stays_as_it_was() {
        let below = InMemoryBackend::new();
        below.set_len(10_000).unwrap();
        below.write(0, &[7; 10_000]).unwrap();
        let overlay = Overlay::new(below).unwrap();
        overlay.write(4_000, &[1; 200]).unwrap();
        overlay.write(12_000, &[2; 10]).unwrap();
        let mut bytes = vec![0; 12_010];
        overlay.read(0, &mut bytes).unwrap();
        let mut expected = vec![7; 10_000];
        expected.resize(12_010, 0);
        expected[4_000..4_200].fill(1);
        expected[12_000..].fill(2);
        assert_eq!(bytes, expected);
        overlay.set_len(4_100).unwrap();
        overlay.set_len(9_000).unwrap();
        let mut bytes = vec![9; 9_000];
        overlay.read(0, &mut bytes).unwrap();
        expected.truncate(4_100);
        expected.resize(9_000, 0);
        assert_eq!(bytes, expected);
        assert!(overlay.read(8_999, &mut [0; 2]).is_err());
        let mut below = vec![0; 10_000];
        overlay.below.read(0, &mut below).unwrap();
        assert_eq!(below, vec![7; 10_000]);
    }
}

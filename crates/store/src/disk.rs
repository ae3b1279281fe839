//! The disk as a seam: everything that the store asks of one file.

use std::fmt::Debug;
use std::io;

/// One file. Simulations put a disk of their own here that fails or forgets on purpose.
///
/// Calls come from one thread at a time, but not always from the same one.
pub trait Disk: Debug + Send + Sync + 'static {
    /// The length in bytes.
    ///
    /// # Errors
    /// When the disk fails.
    fn len(&self) -> io::Result<u64>;

    /// Whether nothing was ever written.
    ///
    /// # Errors
    /// When the disk fails.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// When the disk fails, or the file ends before.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes `bytes` from `offset` on. They may be lost until [`Disk::sync`] returns.
    ///
    /// # Errors
    /// When the disk fails.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or lengthens it with zeros.
    ///
    /// # Errors
    /// When the disk fails.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns when everything written so far is there for good.
    ///
    /// # Errors
    /// When the disk fails; what was written since the last success may be lost.
    fn sync(&self) -> io::Result<()>;
}

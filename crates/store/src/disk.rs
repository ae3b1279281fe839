//! The disk as a seam: everything that the store asks of its files.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// The files of one store. Simulations put a disk of their own here that fails or forgets on
/// purpose.
pub trait Disk: Debug + Send + Sync + 'static {
    /// The file of this name, which is empty if it was never written. Every call returns the same
    /// file.
    ///
    /// # Errors
    /// When the disk fails.
    fn file(&self, name: &'static str) -> io::Result<Arc<dyn DiskFile>>;
}

/// One file.
///
/// Calls come from one thread at a time, but not always from the same one.
pub trait DiskFile: Debug + Send + Sync + 'static {
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

    /// Writes `bytes` from `offset` on. They may be lost until [`DiskFile::sync`] returns.
    ///
    /// # Errors
    /// When the disk fails.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or lengthens it with zeros.
    ///
    /// # Errors
    /// When the disk fails.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns when everything written to this file so far is there for good.
    ///
    /// # Errors
    /// When the disk fails; what was written since the last success may be lost.
    fn sync(&self) -> io::Result<()>;
}

/// A file of the operating system.
impl DiskFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Self::set_len(self, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

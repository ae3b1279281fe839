//! The files that the log and the tables live in.

use std::io;
use std::sync::Arc;

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::directory::Directory;
use super::log::FILES;
use super::tables::engine;
use crate::{DiskFile, OpenError, Place};

/// The name of the file of the tables.
pub(super) const TABLES_FILE: &str = "store.redb";

/// Measures the file of the tables.
pub(super) type Length = Box<dyn Fn() -> io::Result<u64> + Send>;

/// Everything of a place that is on the disk.
pub(super) struct Files {
    pub(super) tables: Storage,
    pub(super) tables_len: Length,
    pub(super) log: [Arc<dyn DiskFile>; 2],
    /// Held as long as the files.
    pub(super) directory: Option<Directory>,
}

impl Files {
    pub(super) fn open(place: &Place) -> Result<Self, OpenError> {
        match place {
            Place::Memory => unreachable!("memory needs no disk"),
            Place::Directory(dir) => {
                let directory = Directory::open(dir)?;
                let fail = |source| OpenError::Directory {
                    dir: dir.clone(),
                    source,
                };
                let tables = directory.file(TABLES_FILE).map_err(fail)?;
                let measured = tables.try_clone().map_err(fail)?;
                let log = [
                    directory.file(FILES[0]).map_err(fail)?,
                    directory.file(FILES[1]).map_err(fail)?,
                ];
                directory.sync().map_err(fail)?;
                Ok(Self {
                    tables: Storage::File(FileBackend::new(tables).map_err(engine)?),
                    tables_len: Box::new(move || DiskFile::len(&measured)),
                    log: log.map(|file| Arc::new(file) as Arc<dyn DiskFile>),
                    directory: Some(directory),
                })
            }
            Place::Disk(disk) => {
                let file = |name| {
                    let file = disk.file(name);
                    file.map_err(|error| OpenError::Disk(engine(redb::Error::Io(error))))
                };
                let (tables, measured) = (file(TABLES_FILE)?, file(TABLES_FILE)?);
                Ok(Self {
                    tables: Storage::Disk(tables),
                    tables_len: Box::new(move || measured.len()),
                    log: [file(FILES[0])?, file(FILES[1])?],
                    directory: None,
                })
            }
        }
    }
}

/// What the engine writes to.
#[derive(Debug)]
pub(super) enum Storage {
    File(FileBackend),
    Disk(Arc<dyn DiskFile>),
}

impl StorageBackend for Storage {
    fn len(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => file.len(),
            Self::Disk(disk) => disk.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.read(offset, out),
            Self::Disk(disk) => disk.read(offset, out),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.set_len(len),
            Self::Disk(disk) => disk.set_len(len),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::File(file) => file.sync_data(),
            Self::Disk(disk) => disk.sync(),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write(offset, data),
            Self::Disk(disk) => disk.write(offset, data),
        }
    }

    fn close(&self) -> io::Result<()> {
        match self {
            Self::File(file) => file.close(),
            Self::Disk(_) => Ok(()),
        }
    }
}

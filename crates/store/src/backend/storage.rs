//! The files that the log and the tables live in.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::directory::Directory;
use super::log::FILES;
use super::state::{STATE_FILE, State};
use super::tables::engine;
use crate::{Disk, DiskError, DiskFile, OpenError, Place};

/// The name of the file of the tables.
pub(super) const TABLES_FILE: &str = "store.redb";

/// Measures the file of the tables.
pub(super) type Length = Box<dyn Fn() -> io::Result<u64> + Send>;

/// Everything of a place that is on the disk.
pub(super) struct Files {
    pub(super) tables: Storage,
    pub(super) tables_len: Length,
    pub(super) log: [Arc<dyn DiskFile>; 2],
    pub(super) state: Arc<dyn DiskFile>,
    /// Held as long as the files.
    pub(super) directory: Option<Directory>,
}

impl Files {
    pub(super) fn open(place: &Place) -> Result<Self, OpenError> {
        match place {
            Place::Memory => unreachable!("memory needs no disk"),
            Place::Directory(dir) => Self::in_directory(Directory::open(dir)?),
            Place::Disk(disk) => Self::on_disk(disk.as_ref()),
        }
    }

    fn in_directory(directory: Directory) -> Result<Self, OpenError> {
        let dir = directory.path().to_owned();
        let fail = |source| OpenError::Directory {
            dir: dir.clone(),
            source,
        };
        Found::in_directory(&directory)?.check()?;
        let files = Self::raw(&directory)?;
        directory.sync().map_err(fail)?;
        Ok(Self {
            directory: Some(directory),
            ..files
        })
    }

    /// The files of a directory, whatever they hold.
    pub(super) fn raw(directory: &Directory) -> Result<Self, OpenError> {
        let fail = |source| OpenError::Directory {
            dir: directory.path().to_owned(),
            source,
        };
        let tables = directory.file(TABLES_FILE).map_err(fail)?;
        let measured = tables.try_clone().map_err(fail)?;
        let log = [
            directory.file(FILES[0]).map_err(fail)?,
            directory.file(FILES[1]).map_err(fail)?,
        ];
        let state = directory.file(STATE_FILE).map_err(fail)?;
        Ok(Self {
            tables: Storage::File(FileBackend::new(tables).map_err(engine)?),
            tables_len: Box::new(move || DiskFile::len(&measured)),
            log: log.map(|file| Arc::new(file) as Arc<dyn DiskFile>),
            state: Arc::new(state),
            directory: None,
        })
    }

    fn on_disk(disk: &dyn Disk) -> Result<Self, OpenError> {
        let file = |name| {
            let file = disk.file(name);
            file.map_err(|error| OpenError::Disk(error.into()))
        };
        let (tables, measured) = (file(TABLES_FILE)?, file(TABLES_FILE)?);
        let files = Self {
            tables: Storage::Disk(tables),
            tables_len: Box::new(move || measured.len()),
            log: [file(FILES[0])?, file(FILES[1])?],
            state: file(STATE_FILE)?,
            directory: None,
        };
        let len = |file: &dyn DiskFile| file.len().map(Some).map_err(DiskError::from);
        let found = Found {
            dir: None,
            tables: (files.tables_len)().map(Some).map_err(DiskError::from)?,
            log: [len(files.log[0].as_ref())?, len(files.log[1].as_ref())?],
            state: State::read(files.state.as_ref())?,
        };
        found.check()?;
        Ok(files)
    }
}

/// Makes sure that a directory holds a store or is a place for a new one, and makes an empty file
/// of tables for a new one. Files named `companions` are made after this, never before: one of
/// them without tables means that the tables are missing.
pub(super) fn prepare(dir: &Path, companions: &[&str]) -> Result<(), OpenError> {
    let directory = Directory::open(dir)?;
    let fail = |source| OpenError::Directory {
        dir: dir.to_owned(),
        source,
    };
    let found = Found::in_directory(&directory)?;
    found.check()?;
    if found.tables.is_some() {
        return Ok(());
    }
    for name in companions {
        if directory.len_of(name).map_err(fail)?.is_some() {
            return Err(found.missing(TABLES_FILE, name));
        }
    }
    directory.file(TABLES_FILE).map_err(fail)?;
    directory.sync().map_err(fail)
}

/// The files of a store before any is made. `None` is a file that does not exist.
struct Found {
    dir: Option<PathBuf>,
    tables: Option<u64>,
    log: [Option<u64>; 2],
    state: Option<State>,
}

impl Found {
    fn in_directory(directory: &Directory) -> Result<Self, OpenError> {
        let fail = |source| OpenError::Directory {
            dir: directory.path().to_owned(),
            source,
        };
        let len = |name| directory.len_of(name).map_err(fail);
        let state = match len(STATE_FILE)? {
            Some(_) => State::read(&directory.file(STATE_FILE).map_err(fail)?)?,
            None => None,
        };
        Ok(Self {
            dir: Some(directory.path().to_owned()),
            tables: len(TABLES_FILE)?,
            log: [len(FILES[0])?, len(FILES[1])?],
            state,
        })
    }

    /// An error if a file is missing.
    fn check(&self) -> Result<(), OpenError> {
        let is_empty = |len: Option<u64>| len.unwrap_or(0) == 0;
        if is_empty(self.tables) {
            if self.state.is_some() {
                return Err(self.missing(TABLES_FILE, STATE_FILE));
            }
            // Empty files are left when the first start of a store was cut short.
            let log = self.log.iter().position(|len| !is_empty(*len));
            return log.map_or(Ok(()), |index| Err(self.missing(TABLES_FILE, FILES[index])));
        }
        let needed = self.state.as_ref().map_or([false; 2], |state| state.logs);
        let is_lost = |index: &usize| needed[*index] && is_empty(self.log[*index]);
        let lost = (0..FILES.len()).find(is_lost);
        lost.map_or(Ok(()), |index| Err(self.missing(FILES[index], TABLES_FILE)))
    }

    fn missing(&self, file: &str, beside: &str) -> OpenError {
        let file = match &self.dir {
            Some(dir) => dir.join(file).display().to_string(),
            None => file.to_owned(),
        };
        OpenError::MissingFile {
            file,
            beside: beside.to_owned(),
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

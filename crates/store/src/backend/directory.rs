//! The data directory and its lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::OpenError;

const LOCK_FILE: &str = "lock";

/// A directory that belongs to this store until the value is dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    dir: PathBuf,
    /// Locked as long as it is open; the operating system frees it when the process dies.
    _lock: File,
}

impl Directory {
    /// Takes the directory, which is made if it does not exist.
    pub(crate) fn open(dir: &Path) -> Result<Self, OpenError> {
        let fail = |source| OpenError::Directory {
            dir: dir.to_owned(),
            source,
        };
        create_private_dir(dir).map_err(fail)?;
        refuse_open_to_all(dir)?;
        let mut lock = open_private(&dir.join(LOCK_FILE)).map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Locked {
                    dir: dir.to_owned(),
                    holder: holder(&mut lock),
                });
            }
            Err(TryLockError::Error(source)) => return Err(fail(source)),
        }
        match sign(&mut lock) {
            // It only tells others who has the directory; a full disk can be read.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
            signed => signed.map_err(fail)?,
        }
        Ok(Self {
            dir: dir.to_owned(),
            _lock: lock,
        })
    }

    /// Opens a file, which is made if it does not exist.
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        open_private(&self.dir.join(name))
    }

    /// The length of a file; `None` if it does not exist.
    pub(super) fn len_of(&self, name: &str) -> io::Result<Option<u64>> {
        match fs::metadata(self.dir.join(name)) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// A new file is there for good only when its directory is synced.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if cfg!(unix) {
            File::open(&self.dir)?.sync_all()
        } else {
            Ok(())
        }
    }
}

/// Whoever may write to a directory may put other files in the place of these.
#[cfg(unix)]
fn refuse_open_to_all(dir: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = fs::metadata(dir).map_err(|source| OpenError::Directory {
        dir: dir.to_owned(),
        source,
    })?;
    let mode = metadata.permissions().mode() & 0o7777;
    match mode & 0o002 {
        0 => Ok(()),
        _ => Err(OpenError::WritableByAll {
            dir: dir.to_owned(),
            mode,
        }),
    }
}

#[cfg(not(unix))]
fn refuse_open_to_all(_: &Path) -> Result<(), OpenError> {
    Ok(())
}

/// Leaves the id of this process for whoever finds the directory locked.
fn sign(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    write!(lock, "{}", std::process::id())
}

/// The process id in the lock file. The holder may not have written it yet.
fn holder(lock: &mut File) -> String {
    let mut text = String::new();
    let read = lock
        .rewind()
        .and_then(|()| lock.take(20).read_to_string(&mut text));
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if read.is_ok() && is_number {
        text
    } else {
        "(unknown)".to_owned()
    }
}

/// Objects hold secrets: nobody else may read them.
fn create_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

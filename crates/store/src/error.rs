//! What can go wrong, per operation.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another store of this process, uses the data directory.
    #[error("data directory {} is in use by process {holder}", .dir.display())]
    Locked {
        /// The data directory.
        dir: PathBuf,
        /// The process id that the holder left, or a word that it left none.
        holder: String,
    },
    /// The data directory cannot be prepared.
    #[error("cannot use data directory {}", .dir.display())]
    Directory {
        /// The data directory.
        dir: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Every user of the machine may write to the data directory.
    #[error(
        "every user may write to data directory {dir} (mode {mode:o}); take that right away with \
         `chmod o-w {dir}`, or use another directory", dir = .dir.display()
    )]
    WritableByAll {
        /// The data directory.
        dir: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file is missing that must be there, because others of the same store are. Nothing was
    /// made in its place.
    #[error(
        "{file} is missing or empty, but {beside} is there: acknowledged writes would be lost; \
         put {file} back or restore a backup (`windlass restore`), or salvage what is left with \
         `windlass check --repair`; for a new cluster use an empty directory"
    )]
    MissingFile {
        /// The file, with its directory if it has one.
        file: String,
        /// The file that tells that it must have been there.
        beside: String,
    },
    /// An object is encrypted with a key that was not given.
    #[error(
        "{object} is encrypted with key {key}, which was not given: add it to the file of \
         --encryption-key; all keys there decrypt, the first encrypts"
    )]
    NoEncryptionKey {
        /// The resource and the name of the object.
        object: String,
        /// The id of the key: the beginning of its SHA-256.
        key: String,
    },
    /// Files of different stores are in one place.
    #[error(
        "{file} belongs to store {expected}, not to store {found}: put the files of one backup \
         back together"
    )]
    Foreign {
        /// The file that says so.
        file: String,
        /// The store that it names.
        expected: String,
        /// The store in the tables.
        found: String,
    },
    /// The data was written by a newer program.
    #[error("data has format {found}, this program reads formats up to {supported}")]
    Newer {
        /// The format on disk.
        found: u64,
        /// The newest format that this program reads.
        supported: u64,
    },
    /// The data was written by an older program.
    #[error("data has format {found}, this program reads formats from {supported} on")]
    Older {
        /// The format on disk.
        found: u64,
        /// The oldest format that this program reads.
        supported: u64,
    },
    /// The data is damaged. Nothing of it is served.
    #[error("data is damaged: {0}")]
    Damaged(String),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// The disk failed. A store that met this is read-only until it is opened again, unless the disk
/// was full before anything was written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("disk failed: {text}")]
pub struct DiskError {
    text: Arc<str>,
    is_full: bool,
}

impl DiskError {
    pub(crate) fn new(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut is_full = false;
        let mut cause = Some(error);
        while let Some(error) = cause {
            is_full |= error.downcast_ref::<io::Error>().is_some_and(is_full_kind);
            is_full |=
                matches!(error.downcast_ref(), Some(redb::Error::Io(io)) if is_full_kind(io));
            is_full |= error.downcast_ref::<Self>().is_some_and(Self::is_full);
            cause = error.source();
        }
        Self {
            text: error.to_string().into(),
            is_full,
        }
    }

    pub(crate) fn from_text(text: &str) -> Self {
        Self {
            text: text.into(),
            is_full: false,
        }
    }

    /// Returns true if there was no space left, which is the one failure that can pass.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full
    }
}

fn is_full_kind(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

impl From<std::io::Error> for DiskError {
    fn from(error: std::io::Error) -> Self {
        Self::new(&error)
    }
}

/// A write was not made, or is not known to be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError<E> {
    /// The caller's own decision refused the write; nothing happened.
    #[error("write refused")]
    Refused(E),
    /// The store had become read-only before this write; nothing happened.
    #[error("store is read-only")]
    ReadOnly(#[source] DiskError),
    /// There is no space left on the disk; nothing happened. Deletions are still taken.
    #[error("no space is left on the disk")]
    Full(#[source] DiskError),
    /// The store holds as much as it may; nothing happened. Deletions are still taken.
    #[error(
        "the store holds {used} bytes of the {quota} that it may; delete objects or raise the quota"
    )]
    Quota {
        /// Bytes that the store holds.
        used: u64,
        /// Bytes that it may hold.
        quota: u64,
    },
    /// The disk failed on this write. Nobody has seen it, but it may be there after a restart.
    #[error("write may be lost")]
    Unknown(#[source] DiskError),
    /// The store was closed; nothing happened.
    #[error("store is closed")]
    Closed,
}

impl<E> WriteError<E> {
    /// The same failure with another refusal in it.
    pub fn map_refusal<F>(self, map: impl FnOnce(E) -> F) -> WriteError<F> {
        match self {
            Self::Refused(refusal) => WriteError::Refused(map(refusal)),
            Self::ReadOnly(error) => WriteError::ReadOnly(error),
            Self::Full(error) => WriteError::Full(error),
            Self::Quota { used, quota } => WriteError::Quota { used, quota },
            Self::Unknown(error) => WriteError::Unknown(error),
            Self::Closed => WriteError::Closed,
        }
    }
}

/// The state of a revision cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RevisionError {
    /// The history no longer reaches back that far.
    #[error("revision {asked} is gone, the oldest is {oldest}")]
    Expired {
        /// The revision that was asked for.
        asked: u64,
        /// The oldest revision that can be asked for.
        oldest: u64,
    },
    /// The revision has not been reached.
    #[error("revision {asked} is in the future, the newest is {newest}")]
    Future {
        /// The revision that was asked for.
        asked: u64,
        /// The newest revision.
        newest: u64,
    },
}

/// A watch has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The watcher fell behind the history; it has to list again.
    #[error("watch fell behind the history at revision {at}")]
    Lagged {
        /// Everything up to this revision was delivered.
        at: u64,
    },
    /// The store was closed. Everything before was delivered.
    #[error("store is closed")]
    Closed,
}

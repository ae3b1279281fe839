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

/// The disk failed. A store that met this is read-only until it is opened again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("disk failed: {0}")]
pub struct DiskError(Arc<str>);

impl DiskError {
    pub(crate) fn new(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::from_text(&error.to_string())
    }

    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.into())
    }
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
    /// The disk failed on this write. Nobody has seen it, but it may be there after a restart.
    #[error("write may be lost")]
    Unknown(#[source] DiskError),
    /// The store was closed; nothing happened.
    #[error("store is closed")]
    Closed,
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

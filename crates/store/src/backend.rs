//! Where writes become durable.

mod ahead;
mod decode;
mod directory;
mod import;
mod load;
mod log;
mod maintenance;
mod mover;
mod open;
mod overlay;
mod parts;
mod record;
mod row;
mod salvage;
mod scan;
mod sealing;
mod state;
mod storage;
mod tables;
mod warm;

pub(crate) use directory::Directory;
pub(crate) use maintenance::STORE_FILES;
pub use maintenance::{Check, Repair, check, repair, rewrite};

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::{Env, Uid};

use crate::expiry::{Expiry, Lease};
use crate::{DiskError, Entry, Event, OpenError, Place, Resource, StoreOptions};

/// One decided write on its way to the disk.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) resource: Resource,
    pub(crate) event: Arc<Event>,
    pub(crate) expiry: Option<Expiry>,
}

/// Keeps writes. There is one caller at a time; an error is final, unless it says otherwise.
pub(crate) trait Backend: Send {
    /// Makes all of these writes durable, or none.
    fn commit(&mut self, writes: &[Write]) -> Result<(), CommitError>;

    /// Looks whether there is space again, after there was none.
    fn regain_space(&mut self) -> Result<(), DiskError> {
        Ok(())
    }

    /// Starts to give back what deletions have freed, instead of waiting for more to do.
    fn flush(&mut self) -> Result<(), DiskError> {
        Ok(())
    }

    /// Forgets how objects came to be what they were at revision `floor`.
    fn compact(&mut self, floor: u64) -> Result<(), DiskError>;

    /// Bytes taken on disk.
    fn bytes(&self) -> DiskBytes;
}

/// A commit was not made, or is not known to be.
#[derive(Clone, Debug)]
pub(crate) enum CommitError {
    /// There was no space, and nothing of it was written.
    NoSpace(DiskError),
    /// It failed half way.
    Failed(DiskError),
}

impl From<DiskError> for CommitError {
    fn from(error: DiskError) -> Self {
        Self::Failed(error)
    }
}

/// Bytes on disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiskBytes {
    /// Of all files.
    pub(crate) files: u64,
    /// Of the objects and the history in them.
    pub(crate) used: u64,
}

/// What a backend holds when it is opened.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The identity of the store, made once.
    pub(crate) uid: Uid,
    /// The revision to continue after.
    pub(crate) revision: u64,
    /// The events above this revision are complete.
    pub(crate) floor: u64,
    /// Objects per resource in the order of their keys.
    pub(crate) objects: BTreeMap<Resource, Vec<Arc<Entry>>>,
    /// Recent events, oldest first.
    pub(crate) events: Vec<(Resource, Arc<Event>)>,
    /// What has a time to live.
    pub(crate) leases: Vec<Lease>,
    /// Why nothing may be written.
    pub(crate) read_only: Option<DiskError>,
}

impl Loaded {
    /// Revisions start at one, as in etcd, so that the first write gets two.
    pub(crate) const FIRST_REVISION: u64 = 1;

    /// A new store.
    pub(crate) fn empty(env: &Env) -> Self {
        Self {
            uid: env.uid(),
            revision: Self::FIRST_REVISION,
            floor: Self::FIRST_REVISION,
            objects: BTreeMap::new(),
            events: Vec::new(),
            leases: Vec::new(),
            read_only: None,
        }
    }
}

/// Opens what the options name.
pub(crate) fn open(options: &StoreOptions) -> Result<(Box<dyn Backend>, Loaded), OpenError> {
    match &options.place {
        Place::Memory => Ok((Box::new(Memory), Loaded::empty(&options.env))),
        Place::Directory(_) | Place::Disk(_) => open::open(options),
    }
}

/// Makes sure that a place holds a store or can hold a new one.
pub(crate) fn prepare(options: &StoreOptions) -> Result<(), OpenError> {
    match &options.place {
        Place::Directory(dir) => storage::prepare(dir, options.companions),
        Place::Memory | Place::Disk(_) => Ok(()),
    }
}

/// Takes no writes, because the disk failed when the store was opened.
struct ReadOnly {
    error: DiskError,
    bytes: DiskBytes,
    /// Held as long as the files are open.
    _directory: Option<directory::Directory>,
}

impl Backend for ReadOnly {
    fn commit(&mut self, _: &[Write]) -> Result<(), CommitError> {
        Err(self.error.clone().into())
    }

    fn compact(&mut self, _: u64) -> Result<(), DiskError> {
        Err(self.error.clone())
    }

    fn bytes(&self) -> DiskBytes {
        self.bytes
    }
}

/// Keeps nothing beyond the process.
struct Memory;

impl Backend for Memory {
    fn commit(&mut self, _: &[Write]) -> Result<(), CommitError> {
        Ok(())
    }

    fn compact(&mut self, _: u64) -> Result<(), DiskError> {
        Ok(())
    }

    fn bytes(&self) -> DiskBytes {
        DiskBytes::default()
    }
}

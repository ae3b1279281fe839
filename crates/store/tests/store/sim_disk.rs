//! A disk in memory that fails, stalls and loses power when told to.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use windlass_store::{Disk, DiskFile};

/// What survives a power loss in one piece.
const SECTOR: usize = 512;
/// How long a test waits for a sync that should have come at once.
const SYNC_TIMEOUT: Duration = Duration::from_secs(60);

/// A disk. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimDisk {
    shared: Arc<Shared>,
}

/// A file of the disk.
#[derive(Clone, Debug)]
struct SimFile {
    disk: SimDisk,
    name: Name,
}

type Name = &'static str;

/// Files by their names.
pub(crate) type Files = BTreeMap<Name, Vec<u8>>;

/// As long as it lives, syncs wait.
#[must_use]
pub(crate) struct Hold(SimDisk);

impl Hold {
    /// Waiting syncs go on, and later ones do not wait.
    pub(crate) fn release(self) {
        drop(self);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.shared.state.lock().is_held = false;
        self.0.shared.changed.notify_all();
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What a read returns.
    files: Files,
    /// What the disk held at first.
    origin: Files,
    /// Everything that was done since.
    journal: Vec<(Name, Operation)>,
    /// The operation from which on all fail.
    fails_from: Option<usize>,
    /// The operation from which on no file grows any more.
    full_from: Option<usize>,
    /// Whether a sync waits.
    is_held: bool,
    /// Syncs that wait.
    waiting: usize,
}

#[derive(Clone, Debug)]
enum Operation {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

impl SimDisk {
    pub(crate) fn holding(files: Files) -> Self {
        let disk = Self::default();
        disk.shared.state.lock().origin.clone_from(&files);
        disk.shared.state.lock().files = files;
        disk
    }

    /// How many operations there were.
    pub(crate) fn operations(&self) -> usize {
        self.shared.state.lock().journal.len()
    }

    /// How often a file was synced.
    pub(crate) fn syncs(&self, file: &str) -> usize {
        let state = self.shared.state.lock();
        let is_one =
            |(name, done): &&(Name, Operation)| *name == file && matches!(done, Operation::Sync);
        state.journal.iter().filter(is_one).count()
    }

    pub(crate) fn content(&self) -> Files {
        self.shared.state.lock().files.clone()
    }

    /// All operations fail after so many more.
    pub(crate) fn fail_after(&self, operations: usize) {
        let mut state = self.shared.state.lock();
        state.fails_from = Some(state.journal.len() + operations);
    }

    /// There is no space for files to grow after so many more operations.
    pub(crate) fn fill_after(&self, operations: usize) {
        let mut state = self.shared.state.lock();
        state.full_from = Some(state.journal.len() + operations);
    }

    /// There is space again.
    pub(crate) fn free_space(&self) {
        self.shared.state.lock().full_from = None;
    }

    /// Syncs wait until the hold is released or dropped, so that a failing test ends.
    pub(crate) fn hold(&self) -> Hold {
        self.shared.state.lock().is_held = true;
        Hold(self.clone())
    }

    /// Returns when a sync waits.
    pub(crate) fn wait_until_held(&self) {
        let mut state = self.shared.state.lock();
        let is_idle = |state: &mut State| state.waiting == 0;
        let waited = self
            .shared
            .changed
            .wait_while_for(&mut state, is_idle, SYNC_TIMEOUT);
        assert!(!waited.timed_out(), "no sync came");
    }

    /// The disk as it is when power fails now and everything since the last sync is lost.
    pub(crate) fn after_power_loss(&self) -> Self {
        self.after_power_loss_at(self.operations(), |_| false)
    }

    /// The disk as it is when power fails after so many operations. Of what was not synced then,
    /// each sector is there if `survives` says so of its running number.
    pub(crate) fn after_power_loss_at(
        &self,
        operations: usize,
        mut survives: impl FnMut(usize) -> bool,
    ) -> Self {
        let state = self.shared.state.lock();
        let journal = &state.journal[..operations];
        let mut files = state.origin.clone();
        let names: std::collections::BTreeSet<Name> = journal.iter().map(|done| done.0).collect();
        let mut number = 0;
        for name in names {
            let done: Vec<&Operation> = journal
                .iter()
                .filter(|done| done.0 == name)
                .map(|done| &done.1)
                .collect();
            let last_sync = done
                .iter()
                .rposition(|done| matches!(done, Operation::Sync));
            let (synced, loose) = done.split_at(last_sync.map_or(0, |index| index + 1));
            let bytes = files.entry(name).or_default();
            synced.iter().for_each(|operation| operation.apply(bytes));
            for piece in loose.iter().flat_map(|operation| operation.pieces()) {
                if survives(number) {
                    piece.apply(bytes);
                }
                number += 1;
            }
        }
        Self::holding(files)
    }

    fn perform(&self, name: Name, operation: Operation) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        if state
            .fails_from
            .is_some_and(|from| state.journal.len() >= from)
        {
            return Err(io::Error::other("simulated failure"));
        }
        let is_full = state
            .full_from
            .is_some_and(|from| state.journal.len() >= from);
        let len = state.files.get(name).map_or(0, Vec::len);
        if is_full && operation.end() > len {
            return Err(io::ErrorKind::StorageFull.into());
        }
        operation.apply(state.files.entry(name).or_default());
        if matches!(operation, Operation::Sync) {
            state.waiting += 1;
            self.shared.changed.notify_all();
            while state.is_held {
                self.shared.changed.wait(&mut state);
            }
            state.waiting -= 1;
        }
        state.journal.push((name, operation));
        Ok(())
    }
}

impl Operation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(offset, data) => {
                let start = usize::try_from(*offset).unwrap();
                let end = start + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[start..end].copy_from_slice(data);
            }
            Self::SetLen(len) => bytes.resize(usize::try_from(*len).unwrap(), 0),
            Self::Sync => {}
        }
    }

    /// How long the file is afterwards, at least.
    fn end(&self) -> usize {
        match self {
            Self::Write(offset, data) => usize::try_from(*offset).unwrap() + data.len(),
            Self::SetLen(len) => usize::try_from(*len).unwrap(),
            Self::Sync => 0,
        }
    }

    /// The parts that survive a power loss or not, each by itself.
    fn pieces(&self) -> Vec<Self> {
        let Self::Write(offset, data) = self else {
            return vec![self.clone()];
        };
        let piece = |(index, data): (usize, &[u8])| {
            Self::Write(offset + (index * SECTOR) as u64, data.to_vec())
        };
        data.chunks(SECTOR).enumerate().map(piece).collect()
    }
}

impl Disk for SimDisk {
    fn file(&self, name: Name) -> io::Result<Arc<dyn DiskFile>> {
        let disk = self.clone();
        Ok(Arc::new(SimFile { disk, name }))
    }
}

impl SimFile {
    fn read_all<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        let state = self.disk.shared.state.lock();
        read(state.files.get(self.name).map_or(&[], Vec::as_slice))
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.read_all(|all| all.len() as u64))
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_all(|all| {
            let start = usize::try_from(offset).unwrap();
            let found = all.get(start..start + bytes.len());
            bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let operation = Operation::Write(offset, bytes.to_vec());
        self.disk.perform(self.name, operation)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.perform(self.name, Operation::SetLen(len))
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.perform(self.name, Operation::Sync)
    }
}

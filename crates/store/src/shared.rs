//! The state behind all handles of a store, and the way of a write through it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use windlass_core::{Key, Uid};

use crate::backend::{Backend, CommitError, Loaded, Write};
use crate::deciding::{Deciding, debug_assert_not_deciding};
use crate::sequencer::{Decision, Done, Failure, Sequencer, Status, Task, Work};
use crate::visible::{Garbage, Visible};
use crate::{Change, DiskError, Entry, EventKind, Outcome, Resource, StoreOptions, WriteError};

/// One part in so many of the quota that changes of objects on their way out may take beyond it.
const QUOTA_RESERVE: u64 = 8;

/// Everything that handles, watches and the committer share.
///
/// Lock order: `sequencer` before `visible`. Readers take `visible` alone and are never behind a
/// disk access; nobody waits for the disk with `visible` locked.
pub(crate) struct Shared {
    pub(crate) options: StoreOptions,
    /// The identity of the store.
    pub(crate) uid: Uid,
    /// What readers see. Written when a batch is durable.
    pub(crate) visible: RwLock<Visible>,
    /// Where writes are decided.
    pub(crate) sequencer: Mutex<Sequencer>,
    /// Tells the committer that there is something in the queue, or that the store closes.
    pub(crate) work: Condvar,
    /// Room for writes on their way to the disk.
    pub(crate) room: Arc<Semaphore>,
    /// Told when the visible revision grew and when the store closes.
    pub(crate) published: Notify,
    /// Bytes on disk after the last commit. For metrics.
    pub(crate) disk_bytes: AtomicU64,
    /// Bytes of objects and history on disk after the last commit, which the quota limits.
    pub(crate) used_bytes: AtomicU64,
}

/// What a writer has to wait for before it may tell the outcome.
pub(crate) enum Staged {
    /// Nothing: it is durable and visible.
    Done(Outcome),
    /// The committer.
    Waiting(Done, Outcome),
}

/// A refused write, and what to wait for before telling so: a refusal that was decided on a state
/// that is not durable yet would reveal that state.
pub(crate) enum Refusal<E> {
    Now(WriteError<E>),
    After(Done, E),
}

impl Shared {
    pub(crate) fn new(
        options: StoreOptions,
        loaded: Loaded,
        inline: Option<Box<dyn Backend>>,
    ) -> Self {
        let sequencer = Sequencer {
            revision: loaded.revision,
            pending: Default::default(),
            queue: Default::default(),
            status: loaded
                .read_only
                .clone()
                .map_or(Status::Open, Status::ReadOnly),
            full: None,
            backend: inline,
        };
        Self {
            uid: loaded.uid.clone(),
            visible: RwLock::new(Visible::new(loaded, &options)),
            sequencer: Mutex::new(sequencer),
            work: Condvar::new(),
            room: Arc::new(Semaphore::new(options.pending_limit)),
            published: Notify::new(),
            disk_bytes: AtomicU64::new(0),
            used_bytes: AtomicU64::new(0),
            options,
        }
    }

    /// Decides one write on the newest state. Commits it too if writers do that here.
    pub(crate) fn stage<E>(
        &self,
        resource: &Resource,
        key: &Key,
        permit: OwnedSemaphorePermit,
        decide: impl FnOnce(Option<&Arc<Entry>>) -> Result<Change, E>,
    ) -> Result<Staged, Refusal<E>> {
        debug_assert_not_deciding("a write");
        let mut sequencer = self.sequencer.lock();
        match &sequencer.status {
            Status::Open => {}
            Status::ReadOnly(error) => {
                return Err(Refusal::Now(WriteError::ReadOnly(error.clone())));
            }
            Status::Closed => return Err(Refusal::Now(WriteError::Closed)),
        }
        let pending = sequencer.pending_entry(resource, key);
        let is_pending = pending.is_some();
        let current = pending.unwrap_or_else(|| self.visible.read().get(resource, key).cloned());
        let deciding = Deciding::begin();
        let decided = decide(current.as_ref());
        drop(deciding);
        let decision = decided
            .map(|change| sequencer.decide(&self.options.env, (resource, key), current, change));
        if let Ok(Decision::Write(write, _)) = &decision {
            self.admit(&sequencer, write).map_err(Refusal::Now)?;
        }
        match decision {
            Ok(Decision::Write(write, outcome)) if sequencer.backend.is_some() => {
                self.commit_inline(&mut sequencer, write)
                    .map_err(Refusal::Now)?;
                Ok(Staged::Done(outcome))
            }
            Ok(Decision::Write(write, outcome)) => {
                let done = sequencer.queue_write(write, permit);
                self.work.notify_one();
                Ok(Staged::Waiting(done, outcome))
            }
            Ok(Decision::Nothing(outcome)) if !is_pending => Ok(Staged::Done(outcome)),
            Ok(Decision::Nothing(outcome)) => Ok(Staged::Waiting(
                self.barrier(&mut sequencer, permit),
                outcome,
            )),
            Err(refusal) if !is_pending => Err(Refusal::Now(WriteError::Refused(refusal))),
            Err(refusal) => Err(Refusal::After(
                self.barrier(&mut sequencer, permit),
                refusal,
            )),
        }
    }

    /// Refuses what would take space when there is none. Deletions free some.
    fn admit<E>(&self, sequencer: &Sequencer, write: &Write) -> Result<(), WriteError<E>> {
        if write.event.kind == EventKind::Delete {
            return Ok(());
        }
        if let Some(error) = &sequencer.full {
            return Err(WriteError::Full(error.clone()));
        }
        let (used, quota) = (
            self.used_bytes.load(Ordering::Relaxed),
            self.options.quota_bytes,
        );
        if used < quota {
            return Ok(());
        }
        // An object on its way out has to be changed before it can go.
        let is_going = !write
            .event
            .entry
            .doc()
            .str_at("/metadata/deletionTimestamp")
            .is_empty();
        match is_going && used < quota.saturating_add(quota / QUOTA_RESERVE) {
            true => Ok(()),
            false => Err(WriteError::Quota { used, quota }),
        }
    }

    /// The newest state of an object, durable or not.
    pub(crate) fn latest(&self, resource: &Resource, key: &Key) -> Option<Arc<Entry>> {
        debug_assert_not_deciding("a read of the newest state");
        let sequencer = self.sequencer.lock();
        let pending = sequencer.pending_entry(resource, key);
        pending.unwrap_or_else(|| self.visible.read().get(resource, key).cloned())
    }

    fn barrier(&self, sequencer: &mut Sequencer, permit: OwnedSemaphorePermit) -> Done {
        let done = sequencer.queue(Work::Barrier, Some(permit));
        self.work.notify_one();
        done
    }

    /// Commits and publishes one write while the sequencer is held.
    fn commit_inline<E>(
        &self,
        sequencer: &mut Sequencer,
        write: Write,
    ) -> Result<(), WriteError<E>> {
        let backend = sequencer
            .backend
            .as_mut()
            .expect("invariant: the caller saw a backend");
        let writes = [write];
        match self.make_durable(backend.as_mut(), &writes) {
            Ok(()) => {}
            Err(CommitError::NoSpace(error)) => {
                sequencer.full = Some(error.clone());
                return Err(WriteError::Full(error));
            }
            Err(CommitError::Failed(error)) => {
                sequencer.status = Status::ReadOnly(error.clone());
                return Err(WriteError::Unknown(error));
            }
        }
        sequencer.revision = writes[0].event.revision();
        self.publish(&writes);
        Ok(())
    }

    /// Commits a batch of tasks and answers them. After a failure nothing is taken any more,
    /// unless the disk was full and nothing was written.
    pub(crate) fn commit_batch(&self, backend: &mut dyn Backend, tasks: Vec<Task>) {
        let writes: Vec<Write> = tasks.iter().filter_map(Task::write).cloned().collect();
        match self.make_durable(backend, &writes) {
            Ok(()) => {}
            Err(CommitError::NoSpace(error)) => return self.refuse(tasks, &error),
            Err(CommitError::Failed(error)) => return self.fail(tasks, &error),
        }
        let floor = tasks.iter().filter_map(Task::floor).max();
        let compacted = floor.map_or(Ok(()), |floor| self.compact(backend, floor));
        if let Err(error) = compacted {
            return self.fail(tasks, &error);
        }
        self.publish(&writes);
        let mut sequencer = self.sequencer.lock();
        writes.iter().for_each(|write| sequencer.settle(write));
        if tasks
            .iter()
            .any(|task| matches!(task.work, Work::RegainSpace))
        {
            self.regain(&mut sequencer, backend);
        }
        drop(sequencer);
        for task in tasks {
            task.finish(Ok(()));
        }
    }

    fn make_durable(&self, backend: &mut dyn Backend, writes: &[Write]) -> Result<(), CommitError> {
        if !writes.is_empty() {
            backend.commit(writes)?;
            self.note_bytes(backend);
        }
        Ok(())
    }

    /// Notes how much is on the disk.
    pub(crate) fn note_bytes(&self, backend: &dyn Backend) {
        let bytes = backend.bytes();
        self.disk_bytes.store(bytes.files, Ordering::Relaxed);
        self.used_bytes.store(bytes.used, Ordering::Relaxed);
    }

    /// Answers everybody who waits for a write that there is no space. The store goes on: nobody
    /// has seen any of these writes, and nothing of them is on the disk.
    fn refuse(&self, tried: Vec<Task>, error: &DiskError) {
        let mut sequencer = self.sequencer.lock();
        sequencer.full = Some(error.clone());
        sequencer.pending.clear();
        let queued = std::mem::take(&mut sequencer.queue);
        sequencer.revision = self.visible.read().revision();
        drop(sequencer);
        for task in tried.into_iter().chain(queued) {
            task.finish(Err(Failure::NoSpace(error.clone())));
        }
    }

    /// Looks whether the disk has space again if it had none, and frees what was deleted if the
    /// quota is reached, sooner or later.
    pub(crate) fn regain_space(&self) {
        let mut sequencer = self.sequencer.lock();
        let is_needed = sequencer.full.is_some() || self.is_quota_reached();
        if !is_needed || !matches!(sequencer.status, Status::Open) {
            return;
        }
        let Some(mut backend) = sequencer.backend.take() else {
            drop(sequencer.queue(Work::RegainSpace, None));
            self.work.notify_one();
            return;
        };
        self.regain(&mut sequencer, backend.as_mut());
        sequencer.backend = Some(backend);
    }

    fn regain(&self, sequencer: &mut Sequencer, backend: &mut dyn Backend) {
        let regained = match sequencer.full {
            // A move needs space of its own.
            Some(_) => backend.regain_space(),
            None => backend.flush(),
        };
        self.note_bytes(backend);
        match regained {
            Ok(()) => sequencer.full = None,
            Err(error) if error.is_full() && sequencer.full.is_some() => {
                sequencer.full = Some(error);
            }
            Err(error) => sequencer.status = Status::ReadOnly(error),
        }
    }

    fn is_quota_reached(&self) -> bool {
        self.used_bytes.load(Ordering::Relaxed) >= self.options.quota_bytes
    }

    /// Forgets old rows on the disk, sooner or later.
    pub(crate) fn forget(&self, floor: u64) {
        let mut sequencer = self.sequencer.lock();
        if !matches!(sequencer.status, Status::Open) {
            return;
        }
        let Some(mut backend) = sequencer.backend.take() else {
            // Nobody waits for the answer: the rows only take room.
            drop(sequencer.queue(Work::Compact(floor), None));
            self.work.notify_one();
            return;
        };
        if let Err(error) = self.compact(backend.as_mut(), floor) {
            sequencer.status = Status::ReadOnly(error);
        }
        sequencer.backend = Some(backend);
    }

    fn compact(&self, backend: &mut dyn Backend, floor: u64) -> Result<(), DiskError> {
        backend.compact(floor)?;
        self.note_bytes(backend);
        Ok(())
    }

    /// Makes durable writes visible, then wakes who waits for them.
    fn publish(&self, writes: &[Write]) {
        let mut garbage = Garbage::new();
        let mut wakes: Vec<Arc<Notify>> = Vec::new();
        // Before the lock is taken: large objects take a while.
        let held: Vec<u64> = writes
            .iter()
            .map(|write| write.event.held_bytes())
            .collect();
        let mut visible = self.visible.write();
        for (write, bytes) in writes.iter().zip(held) {
            let wake = visible.publish(write, bytes, &mut garbage);
            if !wakes.iter().any(|known| Arc::ptr_eq(known, wake)) {
                wakes.push(wake.clone());
            }
        }
        drop(visible);
        wakes.iter().for_each(|wake| wake.notify_waiters());
        self.published.notify_waiters();
    }

    /// Turns the store read-only and answers everybody who waits for a write.
    pub(crate) fn fail(&self, tried: Vec<Task>, error: &DiskError) {
        let mut sequencer = self.sequencer.lock();
        if matches!(sequencer.status, Status::Open) {
            sequencer.status = Status::ReadOnly(error.clone());
        }
        sequencer.pending.clear();
        let queued = std::mem::take(&mut sequencer.queue);
        drop(sequencer);
        for task in tried {
            let is_write = task.write().is_some();
            let failure = if is_write {
                Failure::Unknown
            } else {
                Failure::NotTried
            };
            task.finish(Err(failure(error.clone())));
        }
        for task in queued {
            task.finish(Err(Failure::NotTried(error.clone())));
        }
    }
}

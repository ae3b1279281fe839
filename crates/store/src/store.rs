//! The store as its users see it.

use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use windlass_core::{Key, Uid};

use crate::backend::{self, Backend};
use crate::expiry::Lease;
use crate::sequencer::{Failure, Status};
use crate::shared::{Refusal, Shared, Staged};
use crate::visible::{Garbage, Shelf};
use crate::{
    Change, Commit, DiskError, Entry, OpenError, Outcome, Place, Resource, ResourceStats,
    RevisionError, Snapshot, Stats, StoreOptions, Watch, WriteError, committer,
};

/// Expired objects that are deleted together.
const EXPIRED_LIMIT: usize = 256;

/// Revisioned objects of any number of resources. Clones are handles of the same store; it closes
/// with the last one.
#[derive(Clone)]
pub struct Store {
    handle: Arc<Handle>,
}

/// The one owner of the committer.
struct Handle {
    shared: Arc<Shared>,
    /// Taken when the store closes.
    committer: Mutex<Option<JoinHandle<()>>>,
}

/// What a sweep removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Objects whose time to live had ended.
    pub expired: usize,
    /// The revision up to which history was forgotten, if any was.
    pub compacted: Option<u64>,
}

impl StoreOptions {
    /// Makes sure that the place holds a store or can hold a new one, before anything is put
    /// beside it. Whoever keeps [companions](Self::companions) there calls this first.
    ///
    /// # Errors
    /// When the place is in use or cannot be used, or a file of its store is missing.
    pub fn prepare(&self) -> Result<(), OpenError> {
        crate::backend::prepare(self)
    }
}

impl Store {
    /// Opens a store and checks everything it holds. Blocks while it does. Documents are put
    /// together later, by whoever asks first or by a thread.
    ///
    /// # Errors
    /// When the place is in use, damaged, of a newer format, or the disk fails.
    pub fn open(options: StoreOptions) -> Result<Self, OpenError> {
        let (backend, loaded) = backend::open(&options)?;
        let is_inline = options.commit == Commit::Inline || matches!(options.place, Place::Memory);
        let bytes = backend.bytes();
        let (inline, threaded) = if is_inline {
            (Some(backend), None)
        } else {
            (None, Some(backend))
        };
        let shared = Arc::new(Shared::new(options, loaded, inline));
        shared.disk_bytes.store(bytes.files, Ordering::Relaxed);
        shared.used_bytes.store(bytes.used, Ordering::Relaxed);
        let start = |backend| committer::start(shared.clone(), backend);
        let committer = threaded.map(start).transpose();
        let committer = committer.map_err(DiskError::from)?;
        let handle = Handle {
            shared,
            committer: Mutex::new(committer),
        };
        Ok(Self {
            handle: Arc::new(handle),
        })
    }

    /// The identity of the store, made with it.
    #[must_use]
    pub fn uid(&self) -> &Uid {
        &self.shared().uid
    }

    /// The newest visible revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.shared().visible.read().revision()
    }

    /// Whether writes are taken; if not, why the store is read-only.
    ///
    /// # Errors
    /// The failure of the disk that made the store read-only.
    pub fn health(&self) -> Result<(), DiskError> {
        match &self.shared().sequencer.lock().status {
            Status::ReadOnly(error) => Err(error.clone()),
            Status::Open | Status::Closed => Ok(()),
        }
    }

    /// Returns Ok if the disk has space. If not, objects can be deleted, but not written, until
    /// there is space again.
    ///
    /// # Errors
    /// What the disk said when a write did not fit.
    pub fn space(&self) -> Result<(), DiskError> {
        let sequencer = self.shared().sequencer.lock();
        match (&sequencer.full, &sequencer.status) {
            (Some(error), _) => Err(error.clone()),
            (None, Status::ReadOnly(error)) if error.is_full() => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// The newest visible state of an object.
    #[must_use]
    pub fn get(&self, resource: &Resource, key: &Key) -> Option<Arc<Entry>> {
        self.shared().visible.read().get(resource, key).cloned()
    }

    /// All objects of a resource as they are now.
    #[must_use]
    pub fn snapshot(&self, resource: &Resource) -> Snapshot {
        self.shared().visible.read().snapshot(resource)
    }

    /// All objects of a resource as they were at a revision.
    ///
    /// # Errors
    /// When the revision is too old or not reached yet.
    pub fn snapshot_at(
        &self,
        resource: &Resource,
        revision: u64,
    ) -> Result<Snapshot, RevisionError> {
        let (later, events) = self
            .shared()
            .visible
            .read()
            .snapshot_after(resource, revision)?;
        Ok(later.before(&events, revision))
    }

    /// Keeps a snapshot of this resource for [`Store::snapshot_at`], even when the history has
    /// moved on: to be called when a list ends a page. Bounded by number and age; the age counts
    /// from the first call, so that a client that asks for the same page again and again is told
    /// one day that it is too old.
    pub fn keep(&self, resource: &Resource, snapshot: &Snapshot) {
        let options = &self.shared().options;
        let now = options.env.elapsed();
        let mut visible = self.shared().visible.write();
        let Shelf { kept, history, .. } = visible.shelf_mut(resource);
        let gone = kept.keep(snapshot.clone(), now, options.snapshot_limit, history);
        drop(visible);
        drop(gone);
    }

    /// Returns when the visible revision has reached `revision`, or the store is closed.
    pub async fn reached(&self, revision: u64) {
        loop {
            let mut published = pin!(self.shared().published.notified());
            // Listen first, look second: what is published in between wakes us.
            published.as_mut().enable();
            {
                let visible = self.shared().visible.read();
                if visible.revision() >= revision || visible.is_closed {
                    return;
                }
            }
            published.await;
        }
    }

    /// The events of a resource after a revision. A revision in the future is fine: events up to
    /// it are passed over.
    ///
    /// # Errors
    /// When the history no longer reaches back that far.
    pub fn watch(&self, resource: &Resource, from: u64) -> Result<Watch, RevisionError> {
        let mut visible = self.shared().visible.write();
        let shelf = visible.shelf_mut(resource);
        let oldest = shelf.history.floor();
        if from < oldest {
            return Err(RevisionError::Expired {
                asked: from,
                oldest,
            });
        }
        let position = shelf.history.position_after(from);
        Ok(Watch::new(
            self.shared(),
            resource,
            shelf.wake.clone(),
            position,
            from,
        ))
    }

    /// The newest state of an object, which may not be durable yet: for a writer that decides
    /// outside of the lock of all writers. Nobody may be told what follows from it before
    /// [`Store::update`] has answered, with a decision that holds for the same revision only: by
    /// then it is durable.
    #[must_use]
    pub fn latest(&self, resource: &Resource, key: &Key) -> Option<Arc<Entry>> {
        self.shared().latest(resource, key)
    }

    /// Writes one object: `decide` is called once with its newest state and says what to do.
    ///
    /// No other write comes between the decision and the write, and nobody, the caller included,
    /// sees the result before it is durable. `decide` may be shown a state that is not durable
    /// yet; whatever it decides on it is held back until that state is. It runs under the lock of
    /// all writers: all it may do is compare revisions and hand over what was made before. It must
    /// not call the store. What takes longer is decided outside, on [`Store::latest`]; see
    /// [`debug_assert_not_deciding`](crate::debug_assert_not_deciding).
    ///
    /// When the future is dropped while it waits, the write is made all the same.
    ///
    /// # Errors
    /// When `decide` refuses, or the store is closed, read-only, or failing on this write.
    pub async fn update<E>(
        &self,
        resource: &Resource,
        key: &Key,
        decide: impl FnOnce(Option<&Arc<Entry>>) -> Result<Change, E>,
    ) -> Result<Outcome, WriteError<E>> {
        settle(self.stage(resource, key, decide).await).await
    }

    /// Deletes what has outlived its time and forgets old history. To be called every few seconds
    /// by whoever owns the store.
    pub async fn sweep(&self) -> Sweep {
        let expired = self.expire().await;
        let compacted = self.compact();
        self.shared().regain_space();
        Sweep { expired, compacted }
    }

    /// Figures for metrics.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let queued = self.shared().sequencer.lock().queue.len();
        let visible = self.shared().visible.read();
        let resources = visible
            .shelves()
            .iter()
            .map(|(resource, shelf)| ResourceStats {
                resource: resource.clone(),
                objects: shelf.map.len(),
                events: shelf.history.len(),
                history_bytes: shelf.history.bytes(),
                oldest: shelf.history.floor(),
                snapshots: shelf.kept.len(),
            });
        Stats {
            revision: visible.revision(),
            compacted: visible.floor(),
            queued,
            history_bytes: visible.history_bytes(),
            leases: visible.leases.len(),
            disk_bytes: self.shared().disk_bytes.load(Ordering::Relaxed),
            used_bytes: self.shared().used_bytes.load(Ordering::Relaxed),
            quota_bytes: self.shared().options.quota_bytes,
            resources: resources.collect(),
        }
    }

    /// Takes no more writes, makes the queued ones durable, ends all watches and releases the
    /// place. Blocks until that is done. Reads still work.
    pub fn close(&self) {
        self.handle.close();
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    async fn expire(&self) -> usize {
        let mut expired = 0;
        loop {
            let now = self.shared().options.env.elapsed();
            let due = self.shared().visible.read().leases.due(now, EXPIRED_LIMIT);
            if due.is_empty() {
                return expired;
            }
            let mut staged = Vec::with_capacity(due.len());
            for lease in &due {
                staged.push(self.stage(&lease.resource, &lease.key, end(lease)).await);
            }
            for (lease, staged) in due.iter().zip(staged) {
                match settle(staged).await {
                    Ok(Outcome::Deleted(_)) => expired += 1,
                    Ok(_) => {}
                    Err(_) => return expired,
                }
                self.shared().visible.write().leases.end(lease.revision);
            }
        }
    }

    /// Decides a write as soon as there is room for it.
    async fn stage<E>(
        &self,
        resource: &Resource,
        key: &Key,
        decide: impl FnOnce(Option<&Arc<Entry>>) -> Result<Change, E>,
    ) -> Result<Staged, Refusal<E>> {
        let permit = self.shared().room.clone().acquire_owned().await;
        let permit = permit.map_err(|_| Refusal::Now(WriteError::Closed))?;
        self.shared().stage(resource, key, permit, decide)
    }

    fn compact(&self) -> Option<u64> {
        let options = &self.shared().options;
        let mut garbage = Garbage::new();
        let now = options.env.elapsed();
        let floor = self
            .shared()
            .visible
            .write()
            .compact(now, options.history_age, &mut garbage);
        drop(garbage);
        self.shared().forget(floor?);
        floor
    }
}

impl Handle {
    fn close(&self) {
        let inline: Option<Box<dyn Backend>> = {
            let mut sequencer = self.shared.sequencer.lock();
            sequencer.status = Status::Closed;
            sequencer.backend.take()
        };
        drop(inline);
        self.shared.work.notify_all();
        if let Some(committer) = self.committer.lock().take() {
            // The committer answers its writers even when it panics; there is nothing to add.
            let _ = committer.join();
        }
        let mut visible = self.shared.visible.write();
        visible.is_closed = true;
        let wakes: Vec<_> = visible
            .shelves()
            .values()
            .map(|shelf| shelf.wake.clone())
            .collect();
        drop(visible);
        wakes.iter().for_each(|wake| wake.notify_waiters());
        self.shared.published.notify_waiters();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

/// The decision to delete the object of a lease, unless it was written since.
fn end(lease: &Lease) -> impl FnOnce(Option<&Arc<Entry>>) -> Result<Change, Infallible> {
    |current| match current {
        Some(entry) if entry.revision == lease.revision => Ok(Change::Delete),
        _ => Ok(Change::Keep),
    }
}

/// Waits until the outcome of a decided write may be told.
async fn settle<E>(staged: Result<Staged, Refusal<E>>) -> Result<Outcome, WriteError<E>> {
    match staged {
        Ok(Staged::Done(outcome)) => Ok(outcome),
        Ok(Staged::Waiting(done, outcome)) => {
            answer(done.await.ok())?;
            Ok(outcome)
        }
        Err(Refusal::Now(error)) => Err(error),
        Err(Refusal::After(done, refusal)) => {
            answer(done.await.ok())?;
            Err(WriteError::Refused(refusal))
        }
    }
}

/// What the committer's answer means to a writer; it died if there is none.
fn answer<E>(answer: Option<Result<(), Failure>>) -> Result<(), WriteError<E>> {
    match answer {
        Some(Ok(())) => Ok(()),
        Some(Err(Failure::NotTried(error))) => Err(WriteError::ReadOnly(error)),
        Some(Err(Failure::NoSpace(error))) => Err(WriteError::Full(error)),
        Some(Err(Failure::Unknown(error))) => Err(WriteError::Unknown(error)),
        None => Err(WriteError::Unknown(DiskError::from_text(
            "the committer died",
        ))),
    }
}

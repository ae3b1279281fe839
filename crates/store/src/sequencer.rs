//! The one place where writes are decided and numbered.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use windlass_core::{Doc, Env, Key};

use crate::backend::{Backend, Write};
use crate::expiry::Expiry;
use crate::{Change, DiskError, Entry, Event, EventKind, Outcome, Resource};

/// Decides writes one at a time on the newest state, durable or not, and queues them for the
/// committer in the order of their revisions.
pub(crate) struct Sequencer {
    /// The newest revision that was given out, durable or not.
    pub(crate) revision: u64,
    /// The newest write of every object that has one on its way to the disk. Writers add, the
    /// committer removes; bounded by the room for pending writes.
    pub(crate) pending: HashMap<(Resource, Key), Arc<Event>>,
    /// What the committer has not taken yet. Bounded by the room for pending writes.
    pub(crate) queue: VecDeque<Task>,
    /// Whether writes are taken.
    pub(crate) status: Status,
    /// Set while there is no space on the disk: objects can only be deleted.
    pub(crate) full: Option<DiskError>,
    /// The backend, if writers commit by themselves; otherwise the committer has it.
    pub(crate) backend: Option<Box<dyn Backend>>,
}

/// Whether writes are taken. It only ever moves downwards.
#[derive(Clone, Debug)]
pub(crate) enum Status {
    Open,
    ReadOnly(DiskError),
    Closed,
}

/// Something for the committer to do.
pub(crate) struct Task {
    pub(crate) work: Work,
    /// Told when the work is durable and visible, or has failed. Nobody may be listening.
    pub(crate) reply: Option<oneshot::Sender<Result<(), Failure>>>,
    /// Room that the task takes until it is done.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// What the committer does.
pub(crate) enum Work {
    /// Make a write durable, then visible.
    Write(Write),
    /// Nothing: the task is done when everything before it is.
    Barrier,
    /// Forget old rows on the disk.
    Compact(u64),
    /// Look whether the disk has space again, or free some.
    RegainSpace,
}

/// Why a task was not done.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// It was never tried.
    NotTried(DiskError),
    /// There was no space, and nothing of it was written.
    NoSpace(DiskError),
    /// It failed half way.
    Unknown(DiskError),
}

/// What a change comes to on the current state.
pub(crate) enum Decision {
    Write(Write, Outcome),
    Nothing(Outcome),
}

impl Sequencer {
    /// The newest state of an object if it is not visible yet: `Some(None)` is a pending deletion.
    pub(crate) fn pending_entry(
        &self,
        resource: &Resource,
        key: &Key,
    ) -> Option<Option<Arc<Entry>>> {
        if self.pending.is_empty() {
            return None;
        }
        let event = self.pending.get(&(resource.clone(), key.clone()))?;
        Some((event.kind == EventKind::Put).then(|| event.entry.clone()))
    }

    /// Turns a change into a write with the next revision, which is not given out yet.
    pub(crate) fn decide(
        &self,
        env: &Env,
        (resource, key): (&Resource, &Key),
        current: Option<Arc<Entry>>,
        change: Change,
    ) -> Decision {
        let revision = self.revision + 1;
        let (event, outcome, ttl) = match (change, current) {
            (Change::Put { doc, ttl }, current) => match put(key, &doc, revision, current) {
                Ok((event, outcome)) => (event, outcome, ttl),
                Err(same) => return Decision::Nothing(Outcome::Unchanged(Some(same))),
            },
            (Change::Replace { doc, ttl }, current) => {
                let (event, outcome) = replace(key, &doc, revision, current);
                (event, outcome, ttl)
            }
            (Change::Delete, Some(current)) => {
                let last = Entry::stamped(key, current.doc(), revision);
                let event = Event::new(EventKind::Delete, last.clone(), Some(current));
                (event, Outcome::Deleted(last), None)
            }
            (Change::Delete, None) => return Decision::Nothing(Outcome::Unchanged(None)),
            (Change::Keep, current) => return Decision::Nothing(Outcome::Unchanged(current)),
        };
        let expiry = ttl.map(|ttl| Expiry::after(env, ttl));
        Decision::Write(
            Write {
                resource: resource.clone(),
                event,
                expiry,
            },
            outcome,
        )
    }

    /// Gives out the revision of a write and queues it.
    pub(crate) fn queue_write(&mut self, write: Write, permit: OwnedSemaphorePermit) -> Done {
        debug_assert_eq!(
            write.event.revision(),
            self.revision + 1,
            "revisions have no gaps"
        );
        self.revision = write.event.revision();
        let id = (write.resource.clone(), write.event.key().clone());
        self.pending.insert(id, write.event.clone());
        self.queue(Work::Write(write), Some(permit))
    }

    /// Queues anything else.
    pub(crate) fn queue(&mut self, work: Work, permit: Option<OwnedSemaphorePermit>) -> Done {
        let (sender, receiver) = oneshot::channel();
        self.queue.push_back(Task {
            work,
            reply: Some(sender),
            permit,
        });
        receiver
    }

    /// Forgets pending writes that have become visible.
    pub(crate) fn settle(&mut self, write: &Write) {
        let id = (write.resource.clone(), write.event.key().clone());
        if let Some(newest) = self.pending.get(&id)
            && newest.revision() == write.event.revision()
        {
            self.pending.remove(&id);
        }
    }
}

/// Answers when a task is done.
pub(crate) type Done = oneshot::Receiver<Result<(), Failure>>;

impl Task {
    /// The write to make durable, if that is the work.
    pub(crate) fn write(&self) -> Option<&Write> {
        match &self.work {
            Work::Write(write) => Some(write),
            Work::Barrier | Work::Compact(_) | Work::RegainSpace => None,
        }
    }

    /// The revision up to which to forget, if that is the work.
    pub(crate) fn floor(&self) -> Option<u64> {
        match self.work {
            Work::Compact(floor) => Some(floor),
            Work::Write(_) | Work::Barrier | Work::RegainSpace => None,
        }
    }

    /// Answers whoever waits and frees the room.
    pub(crate) fn finish(self, result: Result<(), Failure>) {
        if let Some(reply) = self.reply {
            // The writer may have gone away; its write was made all the same.
            let _ = reply.send(result);
        }
        drop(self.permit);
    }
}

/// The event of a put, or the current state if the put would change nothing.
fn put(
    key: &Key,
    doc: &Doc,
    revision: u64,
    current: Option<Arc<Entry>>,
) -> Result<(Arc<Event>, Outcome), Arc<Entry>> {
    match current {
        Some(current) if current.is_same_content(doc) => Err(current),
        current => Ok(replace(key, doc, revision, current)),
    }
}

/// The event of a put that changes something.
fn replace(
    key: &Key,
    doc: &Doc,
    revision: u64,
    current: Option<Arc<Entry>>,
) -> (Arc<Event>, Outcome) {
    let entry = Entry::stamped(key, doc, revision);
    let event = Event::new(EventKind::Put, entry.clone(), current.clone());
    match current {
        Some(previous) => (event, Outcome::Updated { entry, previous }),
        None => (event, Outcome::Created(entry)),
    }
}

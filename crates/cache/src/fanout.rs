//! The handlers of an informer, and the one lock that keeps them in step with its store.

use std::{mem::take, pin::Pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{runtime::Handle, task::JoinHandle, time::Instant};

use crate::{
    fifo::Batch,
    indexer::Indexer,
    listener::{Listener, Purpose},
    process::{apply_deltas, apply_list, notes_of},
    resync::ResyncPeriods,
};

/// A handler's task before it is spawned.
pub(crate) type Delivery = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Applies batches and passes the changes to the listeners.
///
/// A batch is applied and passed on under one lock, and a listener is added under the same lock
/// together with a snapshot of the store. So a listener that is added late misses nothing and gets
/// nothing twice. Nobody waits under the lock: passing on only fills buffers.
pub(crate) struct Fanout {
    store: Arc<Indexer>,
    /// Lock order: this, then the store's, then a listener's.
    members: Mutex<Members>,
}

struct Members {
    list: Vec<Member>,
    resync: ResyncPeriods,
    stage: Stage,
    /// True if a complete state has been applied.
    has_listed: bool,
    /// The tasks of handlers, of removed ones too until they have ended.
    tasks: Vec<JoinHandle<()>>,
}

struct Member {
    listener: Arc<Listener>,
    /// The resync period that the handler asked for; zero for never.
    requested: Duration,
    next_resync: Instant,
    /// True if the next resync is for this handler.
    is_due: bool,
}

enum Stage {
    /// Handlers are collected, with their tasks.
    New(Vec<Delivery>),
    Running(Handle),
    Stopped,
}

/// The informer has stopped.
#[derive(Debug)]
pub(crate) struct Stopped;

impl Fanout {
    pub(crate) fn new(store: Arc<Indexer>, resync: Duration) -> Self {
        let members = Members {
            list: Vec::new(),
            resync: ResyncPeriods::new(resync),
            stage: Stage::New(Vec::new()),
            has_listed: false,
            tasks: Vec::new(),
        };
        Self {
            store,
            members: Mutex::new(members),
        }
    }

    /// Adds a listener whose task is `delivery`.
    pub(crate) fn add(
        &self,
        listener: &Arc<Listener>,
        delivery: Delivery,
        resync: Option<Duration>,
    ) -> Result<(), Stopped> {
        let mut members = self.members.lock();
        let is_running = match &mut members.stage {
            Stage::Stopped => return Err(Stopped),
            Stage::New(deliveries) => {
                deliveries.push(delivery);
                false
            }
            Stage::Running(runtime) => {
                let task = runtime.spawn(delivery);
                members.tasks.retain(|task| !task.is_finished());
                members.tasks.push(task);
                true
            }
        };
        let requested = members.resync.request(resync, is_running);
        let next_resync = Instant::now() + members.resync.effective(requested);
        if members.has_listed {
            listener.sweep(self.store.snapshot(), Purpose::Initial);
        }
        let listener = listener.clone();
        members.list.push(Member {
            listener,
            requested,
            next_resync,
            is_due: false,
        });
        Ok(())
    }

    /// Removes a listener; whether it was one of these.
    pub(crate) fn remove(&self, listener: &Arc<Listener>) -> bool {
        let mut members = self.members.lock();
        let before = members.list.len();
        members
            .list
            .retain(|member| !Arc::ptr_eq(&member.listener, listener));
        let is_removed = members.list.len() < before;
        if is_removed {
            listener.close();
        }
        is_removed
    }

    pub(crate) fn len(&self) -> usize {
        self.members.lock().list.len()
    }

    /// Spawns the tasks of all handlers. Returns the period of resyncs.
    pub(crate) fn start(&self) -> Result<Duration, Stopped> {
        let mut members = self.members.lock();
        let Stage::New(deliveries) = &mut members.stage else {
            return Err(Stopped);
        };
        let deliveries = take(deliveries);
        let runtime = Handle::current();
        members.tasks = deliveries
            .into_iter()
            .map(|task| runtime.spawn(task))
            .collect();
        members.stage = Stage::Running(runtime);
        let now = Instant::now();
        let Members { list, resync, .. } = &mut *members;
        for member in list {
            member.next_resync = now + resync.effective(member.requested);
        }
        Ok(resync.check())
    }

    /// Closes all listeners. Returns their tasks, which end after the call in progress.
    pub(crate) fn stop(&self) -> Vec<JoinHandle<()>> {
        let mut members = self.members.lock();
        members.stage = Stage::Stopped;
        members
            .list
            .iter()
            .for_each(|member| member.listener.close());
        take(&mut members.tasks)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.members.lock().stage, Stage::Stopped)
    }

    /// Finds out for whom a resync is due; whether there is anyone.
    pub(crate) fn should_resync(&self) -> bool {
        let now = Instant::now();
        let mut members = self.members.lock();
        let Members { list, resync, .. } = &mut *members;
        for member in list.iter_mut() {
            let period = resync.effective(member.requested);
            if !period.is_zero() && member.next_resync <= now {
                member.is_due = true;
                member.next_resync = now + period;
            }
        }
        list.iter().any(|member| member.is_due)
    }

    /// Applies a batch and tells everyone.
    pub(crate) fn apply(&self, batch: &mut Batch) {
        let mut members = self.members.lock();
        match batch {
            Batch::Deltas(deltas) => {
                let notes = apply_deltas(&self.store, deltas);
                members
                    .list
                    .iter()
                    .for_each(|member| member.listener.push(&notes));
            }
            Batch::ReplacedAll(listing) => {
                let changes = apply_list(&self.store, take(listing));
                if members.has_listed {
                    let notes = notes_of(changes);
                    members
                        .list
                        .iter()
                        .for_each(|member| member.listener.push(&notes));
                } else {
                    members.has_listed = true;
                    let snapshot = self.store.snapshot();
                    let start = |member: &Member| {
                        member.listener.sweep(snapshot.clone(), Purpose::Initial);
                    };
                    members.list.iter().for_each(start);
                }
            }
            Batch::SyncAll => {
                let snapshot = self.store.snapshot();
                let due = members.list.iter_mut().filter(|member| member.is_due);
                for member in due {
                    member.is_due = false;
                    member.listener.sweep(snapshot.clone(), Purpose::Resync);
                }
            }
            Batch::Bookmark(revision) => {
                self.store
                    .write(|transaction| transaction.advance(Some(revision.clone())));
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! The writes of one reconcile.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use http::Method;
use parking_lot::Mutex;
use tokio::sync::Notify;
use windlass_client::RequestTarget;
use windlass_core::{GroupResource, Key, Uid};

use super::{OwnWrites, Write};

/// The most writes of one reconcile in the journal; all of them count for freshness.
const WRITES_LIMIT: usize = 32;

/// A write that may or may not have been carried out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Doubt {
    /// The resource that was written.
    pub(crate) resource: GroupResource,
    /// The namespace; `None` outside of any.
    pub(crate) namespace: Option<String>,
    /// True if an object was to go: no object tells of that.
    pub(crate) is_deletion: bool,
}

/// Writes that may or may not have been carried out.
pub(crate) type Doubts = BTreeSet<Doubt>;

impl Doubt {
    pub(super) fn of(target: &RequestTarget, method: &Method) -> Self {
        Self {
            resource: target.resource.group_resource(),
            namespace: target.namespace.clone(),
            is_deletion: *method == Method::DELETE,
        }
    }
}

/// The handle by which the writes of one reconcile are known. Requests carry it.
pub(crate) struct WriteScope {
    pub(super) key: Key,
    /// The life of the object that is reconciled.
    pub(super) uid: Uid,
    own: Arc<OwnWrites>,
    state: Mutex<State>,
    /// Told when no write is on its way any more.
    all_landed: Notify,
}

#[derive(Default)]
struct State {
    writes: Writes,
    /// The number of writes of each sort that are on their way.
    in_flight: BTreeMap<Doubt, usize>,
    /// The resources that were written, of those with a cache: no more than the controller reads.
    written: BTreeSet<GroupResource>,
    /// True if the reconcile has returned.
    is_closed: bool,
}

/// The writes of one reconcile, for the journal.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// The first ones.
    pub(crate) list: Vec<Write>,
    /// The number of writes.
    pub(crate) count: usize,
}

impl WriteScope {
    pub(super) fn new(own: Arc<OwnWrites>, key: Key, uid: Uid) -> Self {
        Self {
            key,
            uid,
            own,
            state: Mutex::default(),
            all_landed: Notify::new(),
        }
    }

    /// Notes that a write is sent.
    pub(super) fn begin(self: Arc<Self>, doubt: Option<Doubt>) -> InFlight {
        let doubt = doubt.filter(|doubt| self.own.is_read(&doubt.resource));
        if let Some(doubt) = &doubt {
            let mut state = self.state.lock();
            if state.is_closed {
                self.own.hold(&self);
            }
            *state.in_flight.entry(doubt.clone()).or_default() += 1;
            state.written.insert(doubt.resource.clone());
        }
        InFlight { scope: self, doubt }
    }

    /// Returns true if the reconcile has written objects of a resource that it reads.
    pub(crate) fn has_written(&self, resource: &GroupResource) -> bool {
        self.state.lock().written.contains(resource)
    }

    /// Ends the reconcile. Writes that tasks of it have sent and that have not been answered keep
    /// the key back until they are.
    pub(crate) fn close(self: &Arc<Self>) -> Writes {
        let mut state = self.state.lock();
        state.is_closed = true;
        if !state.in_flight.is_empty() {
            self.own.hold(self);
        }
        std::mem::take(&mut state.writes)
    }

    /// Waits until no write is on its way.
    pub(crate) async fn landed(&self) {
        loop {
            let landed = self.all_landed.notified();
            if self.state.lock().in_flight.is_empty() {
                return;
            }
            landed.await;
        }
    }

    /// The writes that are on their way.
    pub(crate) fn in_flight(&self) -> Doubts {
        self.state.lock().in_flight.keys().cloned().collect()
    }

    fn note(&self, write: Write) {
        let mut state = self.state.lock();
        if state.is_closed {
            tracing::debug!(key = %self.key, ?write, "a write was answered after its reconcile");
            return;
        }
        state.writes.count += 1;
        if state.writes.list.len() < WRITES_LIMIT {
            state.writes.list.push(write);
        }
    }

    /// Forgets one write that was on its way.
    fn end(self: &Arc<Self>, doubt: &Doubt) {
        let mut state = self.state.lock();
        if let Some(count) = state.in_flight.get_mut(doubt) {
            *count -= 1;
            if *count == 0 {
                state.in_flight.remove(doubt);
            }
        }
        if state.in_flight.is_empty() {
            if state.is_closed {
                self.own.release(self);
            }
            self.all_landed.notify_waiters();
        }
    }

    /// Returns true if the reconcile has returned.
    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }
}

impl fmt::Debug for WriteScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteScope")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// A write that is on its way. One that is given up before its answer is a doubt.
pub(super) struct InFlight {
    scope: Arc<WriteScope>,
    /// The doubt that it is without an answer; `None` if no cache would show the write.
    doubt: Option<Doubt>,
}

impl InFlight {
    /// Notes the answer.
    pub(super) fn landed(&mut self, is_certain: bool, write: Write) {
        let scope = &self.scope;
        if let (Some(doubt), true) = (&self.doubt, is_certain) {
            if let Some(revision) = &write.revision {
                scope.own.wrote(scope, &doubt.resource, revision);
            }
            // Only now: whoever waits for the write has to find its revision.
            scope.end(doubt);
            self.doubt = None;
        }
        scope.note(write);
        self.tidy_up();
    }

    /// Nobody will look at what a late write of an object left behind that is gone.
    fn tidy_up(&self) {
        if self.scope.is_closed() {
            self.scope.own.forget_if_gone(&self.scope);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(doubt) = self.doubt.take() {
            self.scope.own.doubt(&self.scope.key, [doubt.clone()]);
            self.scope.end(&doubt);
            self.tidy_up();
        }
    }
}

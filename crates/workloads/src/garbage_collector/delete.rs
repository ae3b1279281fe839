//! Looks at an object that may have to go, and deletes it if it does.

use std::sync::Arc;

use windlass_client::{DeleteOptions, Propagation};
use windlass_core::{Doc, Str};
use windlass_runtime::Shutdown;

use super::{
    NAME,
    collector::{self, Collector, Failure, is_missing},
    graph::Node,
    identity::{Deletion, FOREGROUND, Identity},
    references::References,
};

/// How many dependents of one owner are queued at a time. All of them were queued when the owner
/// began to wait; this is for those that were missed.
const BLOCKING_LIMIT: usize = 256;

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It is forgotten until something happens.
    Forget,
    /// It is looked at again, ever less often.
    Retry,
    /// The graph has decided about it.
    Decided,
}

/// What an attempt has found.
enum Found {
    /// Nothing more to do.
    Done,
    /// There is no such object.
    Absent,
}

/// What an attempt must know of a node.
struct Item {
    identity: Identity,
    has_dependents: bool,
    is_virtual: bool,
    is_being_deleted: bool,
    is_deleting_dependents: bool,
}

impl Item {
    fn of(node: &Node) -> Self {
        Self {
            identity: node.identity.clone(),
            has_dependents: node.has_dependents(),
            is_virtual: node.is_virtual,
            is_being_deleted: node.is_being_deleted,
            is_deleting_dependents: node.is_deleting_dependents,
        }
    }
}

impl Collector {
    /// Looks at queued nodes until the signal to stop.
    pub(super) async fn delete_worker(self: Arc<Self>, shutdown: &Shutdown) {
        while let Some(uid) = collector::next(&self.to_delete, shutdown).await {
            match self.check(&uid).await {
                Next::Forget => self.to_delete.forget(&uid),
                Next::Retry => self.to_delete.add_rate_limited(uid.key().clone()),
                Next::Decided => {}
            }
        }
    }

    async fn check(&self, uid: &Str) -> Next {
        let item = {
            let mut graph = self.graph.lock();
            let is_suspect = graph.clear_suspicion(uid);
            // An owner that was only to be verified, and that a watch has shown since, is verified.
            let item = graph.node(uid).map(Item::of);
            item.filter(|item| item.is_virtual || is_suspect)
        };
        let Some(item) = item else {
            return Next::Forget;
        };
        match collector::contained(self.attempt(&item)).await {
            Ok(Found::Done) => {
                // As long as no watch has shown it, only asking again tells when it is gone.
                let graph = self.graph.lock();
                match graph.node(uid).is_some_and(|node| node.is_virtual) {
                    true => Next::Retry,
                    false => Next::Forget,
                }
            }
            Ok(Found::Absent) => {
                self.change(|graph| graph.absent(&item.identity));
                Next::Decided
            }
            Err(Failure::NamespacedOwner) => Next::Forget,
            Err(failure) => {
                report(&item.identity, &failure);
                self.graph.lock().suspect(uid);
                Next::Retry
            }
        }
    }

    async fn attempt(&self, item: &Item) -> Result<Found, Failure> {
        if item.is_being_deleted && !item.is_deleting_dependents {
            return Ok(Found::Done);
        }
        if item.is_deleting_dependents && self.queue_blocking(&item.identity.uid) {
            return Ok(Found::Done);
        }
        let Some(live) = self.live(&item.identity).await? else {
            return Ok(Found::Absent);
        };
        if item.is_deleting_dependents {
            self.require_settled(&item.identity, &live, true).await?;
            self.remove_finalizer(&item.identity, FOREGROUND).await?;
            return Ok(Found::Done);
        }
        // What is on its way out already goes without us; the watch will show how.
        if live.meta().is_deleting() || live.meta().owner_refs().next().is_none() {
            return Ok(Found::Done);
        }
        let references = self.classify(&item.identity, &live).await?;
        self.act(item, &live, &references).await
    }

    /// Queues the dependents that an owner waits for. Returns whether there are any.
    fn queue_blocking(&self, uid: &Str) -> bool {
        let mut has_blocking = false;
        self.change(|graph| {
            let mut open = Vec::new();
            for dependent in graph.blocking(uid).take(BLOCKING_LIMIT) {
                has_blocking = true;
                if !dependent.is_being_deleted {
                    open.push(dependent.identity.uid.clone());
                }
            }
            open.iter().for_each(|uid| graph.check(uid));
        });
        has_blocking
    }

    async fn act(
        &self,
        item: &Item,
        live: &Doc,
        references: &References,
    ) -> Result<Found, Failure> {
        let identity = &item.identity;
        if !references.solid.is_empty() {
            let weak = references.weak_uids();
            if !weak.is_empty() {
                tracing::debug!(%identity, ?weak, "dropping owners that do not keep the object");
                self.drop_owners(identity, &weak).await?;
            }
            return Ok(Found::Done);
        }
        let may_have_dependents = || item.has_dependents || self.is_partly_unknown(identity);
        if !references.waiting.is_empty() && may_have_dependents() {
            if self.may_be_cycle(&identity.uid) {
                self.unblock_owners(identity, live).await?;
                // The version has changed with that, and what was decided has not.
                return self
                    .delete(identity, live, None, Propagation::Foreground)
                    .await;
            }
            let version = Some(live.meta().resource_version());
            return self
                .delete(identity, live, version, Propagation::Foreground)
                .await;
        }
        let version = Some(live.meta().resource_version());
        self.delete(identity, live, version, propagation(live))
            .await
    }

    /// Whether a dependent waits for its own dependents, of which this may be one.
    fn may_be_cycle(&self, uid: &Str) -> bool {
        let graph = self.graph.lock();
        let mut dependents = graph.dependents(uid);
        dependents.any(|dependent| dependent.is_deleting_dependents)
    }

    /// Deletes the very object that was looked at. If it has changed since, but its owners have
    /// not, what was decided still holds.
    async fn delete(
        &self,
        identity: &Identity,
        looked_at: &Doc,
        version: Option<&str>,
        propagation: Propagation,
    ) -> Result<Found, Failure> {
        tracing::debug!(controller = NAME, %identity, ?propagation, "deleting");
        let mut options = DeleteOptions::uid(&*identity.uid).propagate(propagation);
        options.resource_version = version.map(str::to_owned);
        let api = self.api(identity)?;
        let error = match api.delete(&identity.name, &options).await {
            Ok(_) => return Ok(Found::Done),
            Err(error) if is_missing(&error) => return Ok(Found::Absent),
            Err(error) if error.is_conflict() && version.is_some() => error,
            Err(error) => return Err(error.into()),
        };
        let Some(live) = self.live(identity).await? else {
            return Ok(Found::Absent);
        };
        let owners = "/metadata/ownerReferences";
        if live.at(owners) != looked_at.at(owners) {
            return Err(error.into());
        }
        options.resource_version = None;
        match api.delete(&identity.name, &options).await {
            Ok(_) => Ok(Found::Done),
            Err(error) if is_missing(&error) => Ok(Found::Absent),
            Err(error) => Err(error.into()),
        }
    }
}

/// How the dependents of an object go: as a finalizer on it says, else afterwards.
fn propagation(live: &Doc) -> Propagation {
    let deletion = Deletion::of(live.meta());
    if deletion.has_orphan {
        Propagation::Orphan
    } else if deletion.has_foreground {
        Propagation::Foreground
    } else {
        Propagation::Background
    }
}

fn report(identity: &Identity, failure: &Failure) {
    match failure {
        // Both pass by themselves, or never.
        Failure::Unmapped { .. } | Failure::Unsettled(_) => {
            tracing::debug!(controller = NAME, %identity, %failure, "error syncing item");
        }
        _ => tracing::warn!(controller = NAME, %identity, %failure, "error syncing item"),
    }
}

//! Makes dependents forget an owner that goes alone.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use windlass_core::Str;
use windlass_runtime::Shutdown;

use super::{
    NAME,
    collector::{self, Collector, Failure, is_missing},
    identity::{Identity, ORPHAN},
};

/// How many dependents of one owner are changed at the same time.
const PARALLEL_LIMIT: usize = 64;

impl Collector {
    /// Orphans the dependents of queued owners until the signal to stop.
    pub(super) async fn orphan_worker(self: Arc<Self>, shutdown: &Shutdown) {
        while let Some(uid) = collector::next(&self.to_orphan, shutdown).await {
            match collector::contained(self.orphan(&uid)).await {
                Ok(()) => self.to_orphan.forget(&uid),
                Err(failure) => {
                    tracing::warn!(controller = NAME, uid = %*uid, %failure, "orphaning failed");
                    self.to_orphan.add_rate_limited(uid.key().clone());
                }
            }
        }
    }

    async fn orphan(&self, uid: &Str) -> Result<(), Failure> {
        let (owner, dependents) = {
            let graph = self.graph.lock();
            let Some(node) = graph.node(uid) else {
                return Ok(());
            };
            let dependents = graph.dependents(uid).map(|it| it.identity.clone());
            (node.identity.clone(), dependents.collect::<Vec<_>>())
        };
        self.orphan_dependents(&owner, dependents).await?;
        let Some(live) = self.live(&owner).await? else {
            return Ok(());
        };
        if !live.meta().has_finalizer(ORPHAN) {
            return Ok(());
        }
        self.require_settled(&owner, &live, false).await?;
        self.remove_finalizer(&owner, ORPHAN).await
    }

    async fn orphan_dependents(
        &self,
        owner: &Identity,
        dependents: Vec<Identity>,
    ) -> Result<(), Failure> {
        let uids = [&*owner.uid];
        let uids = uids.as_slice();
        let attempts = stream::iter(dependents).map(|dependent| async move {
            match self.drop_owners(&dependent, uids).await {
                Ok(()) => None,
                Err(Failure::Request(error)) if is_missing(&error) => None,
                Err(failure) => Some(format!("orphaning {dependent} failed, {failure}")),
            }
        });
        let errors: Vec<Option<String>> = attempts.buffer_unordered(PARALLEL_LIMIT).collect().await;
        let mut errors: Vec<String> = errors.into_iter().flatten().collect();
        if errors.is_empty() {
            return Ok(());
        }
        errors.sort();
        errors.truncate(ERRORS_LIMIT);
        Err(Failure::Orphan {
            owner: owner.clone(),
            errors: errors.join(", "),
        })
    }
}

/// How many errors are told of.
const ERRORS_LIMIT: usize = 10;

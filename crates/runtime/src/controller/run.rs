//! The life of a controller: wait for the caches, work, drain.

use std::{collections::HashSet, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use windlass_cache::{SharedInformer, SyncError};
use windlass_core::Key;
use windlass_queue::WorkQueue;

use super::{ControllerOptions, bind::Registrations, limiter::Verdict, reconcile::ReconcileFn};
use crate::{
    context::Shared,
    freshness::Stale,
    journal::{Cause, Journal},
    metrics::CacheSize,
    metrics::ControllerMetrics,
    shutdown::Shutdown,
    writes::OwnWrites,
};

/// The wait before a cache that the server refuses is looked at again.
const REFUSED_WAIT: Duration = Duration::from_secs(1);

/// A controller did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A cache was not complete in time.
    #[error("failed to wait for {controller} caches to sync: {resource} was not there after {after:?}{}",
        .reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}")))]
    Sync {
        /// The controller.
        controller: String,
        /// The resource whose cache is not complete.
        resource: String,
        /// The time that it waited.
        after: Duration,
        /// The informer's reason.
        reason: Option<SyncError>,
    },
}

/// A controller with its caches and its queue. Clones are the same controller.
#[derive(Clone)]
pub(crate) struct BoundController(Arc<Parts>);

pub(super) struct Parts {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: WorkQueue<Key>,
    pub(super) journal: Arc<Journal>,
    pub(super) own_writes: Arc<OwnWrites>,
    pub(super) registrations: Registrations,
    pub(super) metrics: ControllerMetrics,
    pub(super) reconcile: ReconcileFn,
    pub(super) options: ControllerOptions,
    pub(super) verdict: Verdict,
}

impl BoundController {
    pub(super) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.shared.name
    }

    pub(crate) fn queue(&self) -> &WorkQueue<Key> {
        &self.0.queue
    }

    /// The sizes of what the controller remembers.
    pub(crate) fn cache_sizes(&self) -> Vec<CacheSize> {
        let mut sizes = self.0.own_writes.sizes().to_vec();
        sizes.push(("journal", self.0.journal.len()));
        sizes
    }

    pub(crate) fn why(&self, key: &Key) -> Option<String> {
        self.0.journal.why(key)
    }

    /// Waits for the caches, then reconciles until `stop`; reconciles in progress are finished.
    pub(crate) async fn run(&self, stop: &Shutdown) -> Result<(), StartError> {
        let name = self.name();
        tokio::select! {
            biased;
            () = stop.requested() => return Ok(()),
            synced = self.0.wait_for_caches() => synced?,
        }
        tracing::info!(
            controller = name,
            workers = self.0.options.workers,
            "Starting workers"
        );
        let waiting = Arc::new(Waiting::default());
        let mut workers = JoinSet::new();
        for _ in 0..self.0.options.workers {
            let (parts, stop, waiting) = (self.0.clone(), stop.clone(), waiting.clone());
            workers.spawn(async move { parts.work(&stop, &waiting).await });
        }
        while let Some(ended) = workers.join_next().await {
            if let Err(error) = ended {
                tracing::error!(controller = name, %error, "a worker did not end well");
            }
        }
        self.0.queue.shut_down();
        tracing::info!(controller = name, "All workers finished");
        Ok(())
    }
}

impl Parts {
    /// Waits until every cache is complete and every handler has seen it.
    async fn wait_for_caches(&self) -> Result<(), StartError> {
        let after = self.options.sync_timeout;
        for (kind, informer) in &self.shared.kinds {
            let resource = kind.gvr().group_resource().to_string();
            let mut refusal = None;
            if timeout(after, synced(informer, &mut refusal))
                .await
                .is_err()
            {
                let (controller, reason) = (self.shared.name.clone(), refusal);
                return Err(StartError::Sync {
                    controller,
                    resource,
                    after,
                    reason,
                });
            }
        }
        for registration in &self.registrations {
            registration.wait_for_sync().await;
        }
        Ok(())
    }

    /// Queues a key again after a wait. One wait per key is enough.
    pub(super) fn wait<F>(self: &Arc<Self>, waiting: &Arc<Waiting>, key: &Key, wait: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut tasks = waiting.0.lock();
        while tasks.running.try_join_next().is_some() {}
        if !tasks.keys.insert(key.clone()) {
            return;
        }
        let (parts, waiting, key) = (self.clone(), waiting.clone(), key.clone());
        tasks.running.spawn(async move {
            wait.await;
            waiting.0.lock().keys.remove(&key);
            parts.journal.caused(&key, || Cause::Fresh);
            parts.queue.add(key);
        });
    }

    /// Waits until the caches have caught up.
    pub(super) async fn reach_all(self: Arc<Self>, stale: Vec<Stale>) {
        for stale in stale {
            self.reach(&stale).await;
        }
    }

    async fn reach(&self, stale: &Stale) {
        for informer in self.informers_of(stale) {
            // An informer that has stopped will not move; the controller stops with it.
            let _ = informer.wait_for_revision(&stale.written).await;
        }
    }

    fn informers_of<'a>(&'a self, stale: &'a Stale) -> impl Iterator<Item = &'a SharedInformer> {
        let kinds = self.shared.kinds.iter();
        let of = kinds.filter(|(kind, _)| kind.gvr().group_resource() == stale.resource);
        of.map(|(_, informer)| informer)
    }
}

/// The keys that wait for their caches. Dropping it ends the waits.
#[derive(Default)]
pub(super) struct Waiting(Mutex<Waits>);

impl Waiting {
    /// Returns true if a wait is under way that will queue the key again.
    pub(super) fn holds(&self, key: &Key) -> bool {
        self.0.lock().keys.contains(key)
    }
}

#[derive(Default)]
struct Waits {
    keys: HashSet<Key>,
    running: JoinSet<()>,
}

/// Waits for a cache. What the server refuses now it may grant later, as when a kind is installed.
/// A reason is logged once, not with every attempt.
pub(crate) async fn synced(informer: &SharedInformer, refusal: &mut Option<SyncError>) {
    while let Err(error) = informer.wait_for_sync().await {
        if refusal.as_ref() != Some(&error) {
            tracing::warn!(%error, "a cache cannot sync yet");
        }
        *refusal = Some(error);
        sleep(REFUSED_WAIT).await;
    }
    *refusal = None;
}

impl fmt::Debug for BoundController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoundController({})", self.name())
    }
}

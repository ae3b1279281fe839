//! Keeps as many pods running as a ReplicaSet asks for.
//!
//! Handlers queue the sets that a change of a pod concerns; a worker claims the pods of a set,
//! creates or deletes what is too few or too many, and writes the status. The freshness guard of
//! the runtime is the only guard: a set is not looked at before the caches show what was written
//! for it, so that a slow watch never makes it create or delete twice. Deletions count as well:
//! the server answers the deletion of a pod with the pod, at the revision of the deletion.

mod claim;
pub(crate) mod handlers;
mod manage;
mod metrics;
pub(crate) mod status;
mod tally;
mod victims;

use std::sync::Arc;

use windlass_cache::{Obj, SharedInformer};
use windlass_core::{Key, Selector};
use windlass_runtime::{Action, Context, Controller, Manager, ResourceKind, Result};

use crate::owned::{self, SelectorFn, apps_kind, core_kind};
pub(crate) use claim::together;
use handlers::Handlers;
use manage::Managed;
use metrics::Metrics;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "replicaset-controller";

/// How many sets are synced at the same time, as in kube-controller-manager.
pub const WORKERS: usize = 5;
/// How many pods one sync creates or deletes at most, as upstream does.
pub const BURST: usize = 500;

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many sets are synced at the same time.
    pub workers: usize,
    /// How many pods one sync creates or deletes at most.
    pub burst: usize,
    /// Whether a set waits until the caches show what was written for it. Without that a watch
    /// that lags makes too many pods.
    pub waits_for_caches: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: WORKERS,
            burst: BURST,
            waits_for_caches: true,
        }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let variant = Variant {
        name: NAME,
        component: NAME,
        queue: "replicaset",
        metrics: "replicaset_controller",
        kind: apps_kind("ReplicaSet", "replicasets"),
        selector: owned::label_selector,
        counts_terminating: true,
    };
    Engine::add_to(variant, manager, options);
}

/// What differs between the two kinds that keep a number of pods.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    /// Who tells of events.
    pub(crate) component: &'static str,
    pub(crate) queue: &'static str,
    /// What the names of the metrics start with.
    pub(crate) metrics: &'static str,
    pub(crate) kind: ResourceKind,
    pub(crate) selector: SelectorFn,
    /// Whether the status says how many pods are being deleted.
    pub(crate) counts_terminating: bool,
}

/// The controller of one kind.
pub(crate) struct Engine {
    variant: Variant,
    options: Options,
    sets: SharedInformer,
    pods: SharedInformer,
    pod_kind: ResourceKind,
    metrics: Metrics,
}

impl Engine {
    pub(crate) fn add_to(variant: Variant, manager: &Manager, options: &Options) {
        let pod_kind = core_kind("Pod", "pods");
        let (sets, pods) = (
            manager.factory().dynamic(variant.kind.gvr().clone()),
            manager.factory().dynamic(pod_kind.gvr().clone()),
        );
        owned::index_children(&pods);
        owned::index_owners(&sets, variant.selector);
        let metrics = Metrics::default();
        manager.add_metrics(metrics.registration(variant.metrics));
        let engine = Arc::new(Self {
            variant,
            options: options.clone(),
            sets,
            pods,
            pod_kind,
            metrics,
        });
        manager.add(engine.controller());
    }

    fn controller(self: Arc<Self>) -> Controller {
        let (kind, pods) = (self.variant.kind.clone(), self.pod_kind.clone());
        let (name, queue) = (self.variant.name, self.variant.queue);
        let (component, workers) = (self.variant.component, self.options.workers);
        let waits_for_caches = self.options.waits_for_caches;
        let handlers = Handlers::of(&self);
        let sync = move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        };
        let controller = Controller::of_kind(kind, sync)
            .named(name)
            .queue_named(queue)
            .component(component)
            .workers(workers)
            .reacts_to_kind(pods, move |change| handlers.on_pod(change));
        match waits_for_caches {
            true => controller,
            false => controller.without_freshness(),
        }
    }

    /// Brings one set closer to what it says.
    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(set) = self.sets.lister().get(key) else {
            return Ok(Action::done());
        };
        let selector = match (self.variant.selector)(set.doc()) {
            Ok(selector) => selector,
            Err(error) => {
                // Only a change of the set can help, and that comes as an event.
                tracing::error!(%error, "error converting pod selector to selector");
                return Ok(Action::done());
            }
        };
        self.sync_set(cx, &set, &selector).await
    }

    async fn sync_set(&self, cx: &Context, set: &Obj, selector: &Selector) -> Result<Action> {
        let claimed = self.claim(cx, set, selector).await?;
        let managed = match set.meta().is_deleting() {
            false => self.manage(cx, set, &claimed).await,
            true => Managed::NotTried,
        };
        let now = cx.env().now_micro();
        let min_ready = status::min_ready(set.doc());
        let counts = claimed.counts(min_ready, now);
        let written = self.write_status(cx, set, &counts, &managed, now).await;
        if let Managed::Failed { error, .. } = managed {
            return Err(error.into());
        }
        written?;
        let next = counts.next_check(min_ready, now, cx.env().now_micro());
        Ok(next.map_or_else(Action::done, Action::requeue_after))
    }
}

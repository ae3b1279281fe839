//! Keeps as many pods running as a ReplicaSet asks for.
//!
//! Handlers note what was seen of pods and queue the sets they concern; a worker claims the pods
//! of a set, creates or deletes what is too few or too many, and writes the status. A set is not
//! looked at before the caches show what was written for it, so that a slow watch never makes it
//! create twice.

mod claim;
mod handlers;
mod manage;
mod metrics;
mod status;
mod tally;
mod victims;

use std::{sync::Arc, time::Duration};

use windlass_cache::{Obj, SharedInformer};
use windlass_core::{Key, Selector};
use windlass_runtime::{Action, Context, Controller, Manager, ResourceKind, Result};

use crate::owned::{self, SelectorFn, apps_kind, core_kind};
use crate::{EXPECTATIONS_TIMEOUT, UidExpectations};
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
    /// that lags for longer than expectations last makes too many pods.
    pub waits_for_caches: bool,
    /// Whether a set waits until the pods it created or deleted were seen to come and go.
    pub has_expectations: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: WORKERS,
            burst: BURST,
            waits_for_caches: true,
            has_expectations: true,
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
    /// Written by syncs, which expect, and by handlers, which see. Bounded by the sets that exist.
    expectations: Arc<UidExpectations>,
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
            expectations: Arc::default(),
            metrics,
        });
        manager.add(engine.controller());
    }

    fn controller(self: Arc<Self>) -> Controller {
        let (kind, pods) = (self.variant.kind.clone(), self.pod_kind.clone());
        let (name, queue) = (self.variant.name, self.variant.queue);
        let (component, workers) = (self.variant.component, self.options.workers);
        let waits_for_caches = self.options.waits_for_caches;
        let handlers = Arc::new(Handlers::of(&self));
        let of_sets = handlers.clone();
        let sync = move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        };
        let controller = Controller::of_kind(kind.clone(), sync)
            .named(name)
            .queue_named(queue)
            .component(component)
            .workers(workers)
            .reacts_to_kind(kind, move |change| of_sets.on_set(change))
            .reacts_to_kind(pods, move |change| handlers.on_pod(change));
        match waits_for_caches {
            true => controller,
            false => controller.without_freshness(),
        }
    }

    /// Brings one set closer to what it says.
    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(set) = self.sets.lister().get(key) else {
            self.expectations.forget(key);
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
        self.sync_set(key, cx, &set, &selector).await
    }

    async fn sync_set(
        &self,
        key: &Key,
        cx: &Context,
        set: &Obj,
        selector: &Selector,
    ) -> Result<Action> {
        // Asked before the pods are read: a pod that comes in between must not be missed.
        let is_satisfied = !self.options.has_expectations || self.expectations.is_satisfied(key);
        let claimed = self.claim(cx, set, selector).await?;
        let managed = if is_satisfied && !set.meta().is_deleting() {
            self.manage(key, cx, set, &claimed).await
        } else {
            Managed::NotTried
        };
        let now = cx.env().now_micro();
        let min_ready = status::min_ready(set.doc());
        let counts = claimed.counts(min_ready, now);
        let written = self.write_status(cx, set, &counts, &managed, now).await;
        if let Managed::Failed { error, .. } = managed {
            return Err(error.into());
        }
        written?;
        Ok(
            match counts.next_check(min_ready, now, cx.env().now_micro()) {
                Some(delay) => Action::requeue_after(delay),
                None => self.once_expired(key),
            },
        )
    }

    /// Expectations that are never met end some time; nothing else would bring the key back then.
    fn once_expired(&self, key: &Key) -> Action {
        match self.expectations.is_satisfied(key) {
            true => Action::done(),
            false => Action::requeue_after(EXPECTATIONS_TIMEOUT + Duration::from_secs(1)),
        }
    }
}

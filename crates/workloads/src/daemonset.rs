//! Runs one pod of a DaemonSet on each node that it may run on.
//!
//! A sync records the template as a ControllerRevision, creates the pods that nodes lack, deletes
//! those that should not be there, and replaces pods of older templates as the update strategy
//! allows. A pod names its node in its node affinity, and the scheduler binds it there. The freshness
//! guard of the runtime keeps a sync from acting on caches that do not show its own writes.

mod back_off;
mod eligibility;
mod handlers;
mod manage;
mod pods;
mod revisions;
mod rolling;
mod status;
mod template;

use std::{sync::Arc, time::Duration};

use windlass_cache::{Obj, SharedInformer, functions};
use windlass_core::{Doc, GroupVersion, Key};
use windlass_runtime::{Action, Context, Controller, EventType, Manager, ResourceKind, Result};

use crate::{
    RefManager,
    history::History,
    owned::{self, apps_kind, core_kind},
    replicaset,
};
use back_off::FailedPods;
pub use back_off::{BACK_OFF_MAX, BACK_OFF_MIN};
use eligibility::Placement;
use handlers::DaemonHandlers;
use manage::Work;
use pods::{DaemonPods, NodePods};
use revisions::SetHistory;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "daemonset-controller";

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = &["affinity", "nodeName"];

/// DaemonSets that are synced at the same time, as in kube-controller-manager.
pub const WORKERS: usize = 2;
/// The most pods that one sync creates, and the most that it deletes, as upstream.
pub const BURST: usize = 250;

/// The index of pods by the node that they are bound to.
const BY_NODE: &str = "podNode";

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// DaemonSets that are synced at the same time.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { workers: WORKERS }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let kinds = Kinds {
        sets: apps_kind("DaemonSet", "daemonsets"),
        pods: core_kind("Pod", "pods"),
        nodes: ResourceKind::cluster(GroupVersion::constant("", "v1"), "Node", "nodes"),
    };
    let informer = |kind: &ResourceKind| manager.factory().dynamic(kind.gvr().clone());
    let engine = Arc::new(Engine {
        history: History::new(manager, &kinds.sets),
        sets: informer(&kinds.sets),
        pods: informer(&kinds.pods),
        nodes: informer(&kinds.nodes),
        failed_pods: FailedPods::default(),
        kinds,
    });
    owned::index_children(&engine.pods);
    owned::accept(
        engine
            .pods
            .add_index(BY_NODE, functions::field("/spec/nodeName")),
    );
    owned::index_owners(&engine.sets, owned::label_selector);
    manager.add(engine.controller(options.workers));
}

/// The kinds that the controller reads and writes.
struct Kinds {
    sets: ResourceKind,
    pods: ResourceKind,
    nodes: ResourceKind,
}

/// The controller.
struct Engine {
    kinds: Kinds,
    history: History,
    sets: SharedInformer,
    pods: SharedInformer,
    nodes: SharedInformer,
    failed_pods: FailedPods,
}

/// One sync of a DaemonSet.
struct Sync<'a> {
    engine: &'a Engine,
    cx: &'a Context,
    set: &'a Doc,
    placement: Placement,
    /// The nodes by name, in that order.
    nodes: Vec<Obj>,
    pods: NodePods,
    /// The hash of the current template.
    hash: String,
    min_ready: Duration,
    now: windlass_core::Time,
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let (sets, pods) = (self.kinds.sets.clone(), self.kinds.pods.clone());
        let (nodes, revisions) = (self.kinds.nodes.clone(), self.history.kind.clone());
        let handlers = Arc::new(DaemonHandlers::of(&self));
        let (of_pods, of_revisions) = (handlers.clone(), handlers.clone());
        let sync = move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        };
        Controller::of_kind(sets, sync)
            .named(NAME)
            .queue_named("daemonset")
            .workers(workers)
            .reacts_to_kind(pods, move |change| of_pods.on_pod(change))
            .reacts_to_kind(revisions, move |change| of_revisions.on_revision(change))
            .reacts_to_kind(nodes, move |change| handlers.on_node(change))
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(set) = self.sets.lister().get(key) else {
            return Ok(Action::done());
        };
        let selector = owned::label_selector(set.doc())?;
        if selector.is_everything() {
            let text = "This daemon set is selecting all pods. A non-empty selector is required.";
            cx.event(&set, EventType::Warning, "SelectingAll", text);
            return Ok(Action::done());
        }
        // The revisions of a set that goes may be gone already, so its status cannot be told.
        if set.meta().is_deleting() {
            return Ok(Action::done());
        }
        let pods = self.claim(cx, set.doc(), &selector).await?;
        let known = self.history.claim(cx, set.doc(), &selector).await?;
        let history = self.history_of(cx, set.doc(), known, &pods).await?;
        let mut nodes: Vec<Obj> = self.nodes.lister().snapshot().iter().collect();
        nodes.sort_by(|a, b| a.name().cmp(b.name()));
        let sync = Sync {
            engine: self,
            cx,
            set: set.doc(),
            placement: Placement::of(set.doc()),
            nodes,
            pods: pods.by_node(),
            hash: history.hash().to_owned(),
            min_ready: replicaset::status::min_ready(set.doc()),
            now: cx.env().now(),
        };
        let updated = sync.update(&history, &pods).await;
        let written = sync.write_status().await;
        let after_failures = updated?;
        let after_ready = written?;
        let next = [after_failures, after_ready].into_iter().flatten().min();
        Ok(next.map_or_else(Action::done, Action::requeue_after))
    }

    /// The pods of a set, after adopting and releasing.
    async fn claim(
        &self,
        cx: &Context,
        set: &Doc,
        selector: &windlass_core::Selector,
    ) -> Result<DaemonPods> {
        let pods = self.pods.lister().snapshot();
        let mut candidates = owned::children_of(&pods, set);
        candidates.extend(owned::orphans(&pods, set.meta().namespace(), selector));
        let manager = RefManager::new(cx, set, &self.kinds.sets, &self.kinds.pods, selector);
        let claimed = manager.claim(candidates).await;
        if !claimed.errors.is_empty() {
            return Err(replicaset::together(&claimed.errors));
        }
        let pods = claimed.objects.iter().map(|pod| pod.doc().clone());
        Ok(DaemonPods::new(pods))
    }
}

impl Sync<'_> {
    /// Manages pods, then replaces old ones, then forgets old revisions. Returns the time until
    /// pods that have failed may be deleted.
    async fn update(&self, history: &SetHistory, pods: &DaemonPods) -> Result<Option<Duration>> {
        let (work, again) = self.missing_and_surplus();
        let is_managed = work.is_empty();
        self.carry_out(work).await?;
        // Whoever has just created or deleted pods does not know yet how many are available.
        if is_managed {
            let work: Work = self.rolling_update()?;
            self.carry_out(work).await?;
        }
        let cleaned = self.engine.clean_up(self.cx, self.set, history, pods).await;
        cleaned.map_err(|it| it.context("failed to clean up revisions of DaemonSet"))?;
        Ok(again)
    }
}

//! Taint eviction: deletes pods from nodes whose `NoExecute` taints they do not tolerate, at once
//! or when the time is over for which they do.
//!
//! The time runs from when this controller saw pod and taint together first. A timer that runs is
//! changed by nothing but the end of the taints, as upstream.

mod evict;
mod metrics;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_cache::{Obj, SharedInformer};
use windlass_core::{Doc, Key, Str, Uid};
use windlass_runtime::{
    Action, Change, Context, Controller, Manager, ResourceKind, Result, Trigger,
};

use crate::{
    owned::{self, core_kind},
    tolerations::{evicting, matching},
};
use metrics::Metrics;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "taint-eviction-controller";

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = &["nodeName", "tolerations"];

/// The index of pods by node.
const PODS_BY_NODE: &str = "spec.nodeName";

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Pods that are looked at at the same time.
    pub workers: usize,
}

impl Default for Options {
    /// Upstream's: eight workers.
    fn default() -> Self {
        Self { workers: 8 }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let informer = |kind: ResourceKind| manager.factory().dynamic(kind.gvr().clone());
    let metrics = Metrics::default();
    let registered = metrics.clone();
    manager.add_metrics(move |registry| registered.register(registry));
    let engine = Arc::new(Engine {
        pods: informer(core_kind("Pod", "pods")),
        nodes: informer(nodes()),
        timers: Mutex::default(),
        metrics,
    });
    index_by_node(&engine.pods);
    manager.add(engine.controller(options.workers));
}

pub(crate) fn nodes() -> ResourceKind {
    let group_version = windlass_core::GroupVersion::constant("", "v1");
    ResourceKind::cluster(group_version, "Node", "nodes")
}

/// Indexes pods by the node that they are on. Several controllers may ask for that.
pub(crate) fn index_by_node(pods: &SharedInformer) {
    let node = |pod: &Obj| match pod.doc().str_at("/spec/nodeName") {
        "" => Vec::new(),
        node => vec![Str::new(node)],
    };
    owned::accept(pods.add_index(PODS_BY_NODE, node));
}

/// The pods on a node.
pub(crate) fn pods_on(pods: &SharedInformer, node: &str) -> Vec<Obj> {
    let found = pods.lister().by_index(PODS_BY_NODE, node);
    found.expect("invariant: the index was added with the controller")
}

/// The controller.
struct Engine {
    pods: SharedInformer,
    nodes: SharedInformer,
    /// The pods whose time runs, and those that were evicted and are not gone yet. Written by
    /// syncs; bounded by the pods that exist.
    timers: Mutex<BTreeMap<Key, Timer>>,
    metrics: Metrics,
}

/// The eviction of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Timer {
    uid: Uid,
    due: Instant,
    /// True when the pod was told of its eviction.
    is_told: bool,
    /// True when it was deleted, so that it is not deleted again.
    is_done: bool,
}

/// The time for which a pod may stay on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    /// As long as it likes.
    Forever,
    /// So long from the first look.
    For(Duration),
    /// Not all taints are tolerated.
    No,
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let on_node = self.clone();
        Controller::of_kind(core_kind("Pod", "pods"), move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        })
        .filter(is_pod_relevant)
        .named(NAME)
        .queue_named("noexec_taint_pod")
        .workers(workers)
        .reacts_to_kind(nodes(), move |change| on_node.on_node(change))
    }

    /// A node whose taints change concerns all its pods.
    fn on_node(&self, change: &Change<'_>) -> Vec<Trigger> {
        let taints = |node: &Obj| {
            evicting(node.doc())
                .into_iter()
                .cloned()
                .collect::<Vec<_>>()
        };
        let (old, new) = (change.old.map(taints), change.new.map(taints));
        // A node that is gone leaves its pods alone, and a new one without taints has nothing to say.
        let is_same = match (&old, &new) {
            (_, None) => true,
            (None, Some(new)) => new.is_empty(),
            (old, new) => old == new,
        };
        let Some(node) = change.new.filter(|_| !is_same) else {
            return Vec::new();
        };
        let pods = pods_on(&self.pods, node.name());
        pods.iter().map(|pod| Trigger::now(pod.key())).collect()
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(pod) = self.pods.lister().get(key) else {
            self.cancel(cx, key);
            return Ok(Action::done());
        };
        let Some(node) = self.node_of(pod.doc()) else {
            return self.wait_or_evict(cx, &pod).await;
        };
        let taints = evicting(node.doc());
        if taints.is_empty() {
            self.cancel(cx, key);
            return Ok(Action::done());
        }
        match stay(&taints, pod.doc().at("/spec/tolerations").items()) {
            Stay::Forever => {
                self.cancel(cx, key);
                return Ok(Action::done());
            }
            Stay::No => self.start_now(cx, &pod),
            Stay::For(time) => self.start(&pod, time),
        }
        self.wait_or_evict(cx, &pod).await
    }

    fn node_of(&self, pod: &Doc) -> Option<Obj> {
        let node = pod.str_at("/spec/nodeName");
        self.nodes.lister().get(&Key::cluster(node))
    }

    /// Starts the timer of a pod, unless it runs already.
    fn start(&self, pod: &Obj, time: Duration) {
        let due = Instant::now() + time;
        let mut timers = self.timers.lock();
        let timer = timers
            .entry(pod.key())
            .or_insert_with(|| Timer::new(pod, due));
        if timer.uid != pod.uid() {
            *timer = Timer::new(pod, due);
        }
    }

    /// A pod that does not tolerate a taint goes now, however long it had before.
    fn start_now(&self, cx: &Context, pod: &Obj) {
        let (key, now) = (pod.key(), Instant::now());
        let is_waiting = {
            let timers = self.timers.lock();
            let timer = timers.get(&key).filter(|timer| timer.uid == pod.uid());
            timer.map(|timer| !timer.is_told && timer.due > now)
        };
        match is_waiting {
            Some(false) => return,
            Some(true) => self.cancel(cx, &key),
            None => {}
        }
        self.timers.lock().insert(key, Timer::new(pod, now));
    }

    /// Stops the timer of a pod that may stay, and says so if it was not evicted yet.
    fn cancel(&self, cx: &Context, key: &Key) {
        let timer = self.timers.lock().remove(key);
        if timer.is_some_and(|timer| !timer.is_told) {
            evict::tell(cx, key, "Cancelling deletion of Pod");
        }
    }

    /// Evicts a pod whose time is over.
    async fn wait_or_evict(&self, cx: &Context, pod: &Obj) -> Result<Action> {
        let (key, now) = (pod.key(), Instant::now());
        let timer = {
            let mut timers = self.timers.lock();
            let Some(timer) = timers.get_mut(&key).filter(|it| it.uid == pod.uid()) else {
                return Ok(Action::done());
            };
            if timer.is_done {
                return Ok(Action::done());
            }
            if timer.due > now {
                return Ok(Action::requeue_after(timer.due - now));
            }
            let before = timer.clone();
            timer.is_told = true;
            before
        };
        if !timer.is_told {
            evict::tell(cx, &key, "Marking for deletion Pod");
        }
        if evict::evict(cx, pod).await? {
            self.metrics.deleted(now.duration_since(timer.due));
        }
        if let Some(timer) = self.timers.lock().get_mut(&key) {
            timer.is_done = true;
        }
        Ok(Action::done())
    }
}

impl Timer {
    fn new(pod: &Obj, due: Instant) -> Self {
        Self {
            uid: pod.uid(),
            due,
            is_told: false,
            is_done: false,
        }
    }
}

/// Changes of pods that say something new: that they are on a node, what they tolerate, that they
/// are gone.
fn is_pod_relevant(change: &Change<'_>) -> bool {
    let (Some(old), Some(new)) = (change.old, change.new) else {
        return true;
    };
    let differs = |at: &str| old.doc().at(at) != new.doc().at(at);
    old.uid() != new.uid() || differs("/spec/nodeName") || differs("/spec/tolerations")
}

/// The time for which tolerations cover taints: the shortest of those that are used.
fn stay(taints: &[&Doc], tolerations: &[Doc]) -> Stay {
    let Some(used) = matching(taints, tolerations) else {
        return Stay::No;
    };
    let seconds = used
        .iter()
        .filter_map(|it| it.at("/tolerationSeconds").as_i64());
    match seconds.min() {
        None => Stay::Forever,
        Some(seconds) => Stay::For(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))),
    }
}

//! Device taint eviction: deletes pods whose devices have a `NoExecute` taint that their claim does
//! not tolerate, at once or when the time is over for which it does.
//!
//! Taints come from ResourceSlices. DeviceTaintRules, which are off by default in Kubernetes 1.36,
//! are not known here.

mod evict;
mod taints;

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use windlass_cache::{Obj, SharedInformer};
use windlass_core::{Doc, GroupVersion, Key, MicroTime, Uid};
use windlass_runtime::{
    Action, Change, Context, Controller, Manager, ResourceKind, Result, Trigger,
};

use crate::owned::core_kind;
use taints::{Slices, claim_names, is_reserved_for, uses_pool};

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "device-taint-eviction-controller";

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = &["nodeName", "resourceClaims"];

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
    let engine = Arc::new(Engine {
        pods: informer(core_kind("Pod", "pods")),
        claims: informer(claims()),
        slices: informer(slices()),
        marked: Mutex::default(),
    });
    manager.add(engine.controller(options.workers));
}

fn claims() -> ResourceKind {
    let group_version = GroupVersion::constant("resource.k8s.io", "v1");
    ResourceKind::namespaced(group_version, "ResourceClaim", "resourceclaims")
}

fn slices() -> ResourceKind {
    let group_version = GroupVersion::constant("resource.k8s.io", "v1");
    ResourceKind::cluster(group_version, "ResourceSlice", "resourceslices")
}

/// The controller.
struct Engine {
    pods: SharedInformer,
    claims: SharedInformer,
    slices: SharedInformer,
    /// Pods that are to be evicted, and whether they were. Written by syncs; bounded by the pods.
    marked: Mutex<BTreeMap<Key, Mark>>,
}

/// A pod that is to be evicted.
struct Mark {
    uid: Uid,
    is_evicted: bool,
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let of_slices = self.clone();
        Controller::of_kind(core_kind("Pod", "pods"), move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        })
        .filter(is_relevant)
        .reacts_to_kind(claims(), |change| {
            let claims = [change.old, change.new].into_iter().flatten();
            claims.flat_map(pods_of).map(Trigger::now).collect()
        })
        .reacts_to_kind(slices(), move |change| of_slices.pods_after(change))
        .named(NAME)
        .queue_named("device_taint_eviction")
        .workers(workers)
    }

    /// The pods that use a device of a slice's pool.
    fn pods_after(&self, change: &Change<'_>) -> Vec<Trigger> {
        let Some(slice) = change.object() else {
            return Vec::new();
        };
        let claims = self.claims.lister().snapshot();
        let using = claims
            .iter()
            .filter(|claim| uses_pool(claim.doc(), slice.doc()));
        let pods: Vec<Key> = using.flat_map(|claim| pods_of(&claim)).collect();
        pods.into_iter().map(Trigger::now).collect()
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(pod) = self.pods.lister().get(key) else {
            self.marked.lock().remove(key);
            return Ok(Action::done());
        };
        let Some(when) = self.eviction_time(pod.doc()) else {
            let mark = self.marked.lock().remove(key);
            if mark.is_some_and(|mark| mark.uid == pod.uid() && !mark.is_evicted) {
                evict::tell(cx, pod.doc(), "Cancelling deletion");
            }
            return Ok(Action::done());
        };
        {
            let mut marked = self.marked.lock();
            let new = || Mark {
                uid: pod.uid(),
                is_evicted: false,
            };
            let mark = marked.entry(key.clone()).or_insert_with(new);
            if mark.uid != pod.uid() {
                *mark = new();
            }
            if mark.is_evicted {
                return Ok(Action::done());
            }
        }
        let left = when.since(cx.env().now_micro());
        if !left.is_zero() {
            return Ok(Action::requeue_after(left));
        }
        evict::evict(cx, &pod).await?;
        if let Some(mark) = self.marked.lock().get_mut(key) {
            mark.is_evicted = true;
        }
        Ok(Action::done())
    }

    /// The time at which a pod has to go: that of the claim whose time is over first.
    fn eviction_time(&self, pod: &Doc) -> Option<MicroTime> {
        if pod.str_at("/spec/nodeName").is_empty() {
            return None;
        }
        let slices = Slices::new(self.slices.lister().snapshot().iter().collect());
        let claims = claim_names(pod).into_iter().filter_map(|(name, is_own)| {
            let key = Key::new(pod.meta().namespace(), &name);
            let claim = self.claims.lister().get(&key)?;
            let is_meant = !is_own || claim.meta().is_controlled_by(&pod.meta().uid());
            (is_meant && is_reserved_for(claim.doc(), pod)).then_some(claim)
        });
        let times = claims.filter_map(|claim| slices.eviction_time(claim.doc()));
        times.min()
    }
}

/// Changes of pods that say something new: that they are on a node, which claims are theirs, that
/// they are gone.
fn is_relevant(change: &Change<'_>) -> bool {
    let (Some(old), Some(new)) = (change.old, change.new) else {
        return true;
    };
    let differs = |at: &str| old.doc().at(at) != new.doc().at(at);
    old.uid() != new.uid() || differs("/spec/nodeName") || differs("/status/resourceClaimStatuses")
}

/// The pods for which a claim is reserved.
fn pods_of(claim: &Obj) -> Vec<Key> {
    let users = claim.doc().at("/status/reservedFor").items().iter();
    let pods =
        users.filter(|it| it.str_at("/resource") == "pods" && it.str_at("/apiGroup").is_empty());
    pods.map(|it| Key::new(claim.namespace(), it.str_at("/name")))
        .collect()
}

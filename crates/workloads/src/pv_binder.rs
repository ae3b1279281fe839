//! The binder of persistent volumes: gives each claim a volume, and says what becomes of a volume
//! whose claim is gone.
//!
//! A claim and its volume name each other. The binder writes the volume first, with the claim's
//! UID, then the claim; each write fails if somebody else was faster, so that a volume never
//! belongs to two claims, and a process that stops in between is continued by the next one. Volumes
//! for claims without one are made by provisioners, which are other programs; the binder only notes
//! in the claim who should.

mod bind;
mod claim;
pub(crate) mod facts;
mod matching;
mod provision;
mod volume;

use std::{sync::Arc, time::Duration};

use windlass_cache::{Obj, SharedInformer};
use windlass_core::{GroupVersion, Key};
use windlass_runtime::{
    Action, Change, Context, Controller, Manager, ResourceKind, Result, Trigger,
};

use crate::owned::core_kind;
use facts::{BIND_COMPLETED, claim_of, has_annotation};

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "persistentvolume-binder-controller";

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = &["nodeName", "volumes"];

/// The component of the events.
const COMPONENT: &str = "persistentvolume-controller";

/// The time between two looks at a claim that waits, as upstream's look at everything.
pub const RESYNC: Duration = Duration::from_secs(15);

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The time between two looks at a claim that waits.
    pub resync: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { resync: RESYNC }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let informer = |kind: ResourceKind| manager.factory().dynamic(kind.gvr().clone());
    let engine = Arc::new(Engine {
        claims: informer(claims()),
        volumes: informer(volumes()),
        classes: informer(classes()),
        pods: informer(core_kind("Pod", "pods")),
        resync: options.resync,
    });
    manager.add(engine.clone().claim_controller());
    manager.add(engine.volume_controller());
}

pub(crate) fn claims() -> ResourceKind {
    core_kind("PersistentVolumeClaim", "persistentvolumeclaims")
}

pub(crate) fn volumes() -> ResourceKind {
    let group_version = GroupVersion::constant("", "v1");
    ResourceKind::cluster(group_version, "PersistentVolume", "persistentvolumes")
}

pub(crate) fn classes() -> ResourceKind {
    let group_version = GroupVersion::constant("storage.k8s.io", "v1");
    ResourceKind::cluster(group_version, "StorageClass", "storageclasses")
}

/// The controller.
struct Engine {
    claims: SharedInformer,
    volumes: SharedInformer,
    classes: SharedInformer,
    pods: SharedInformer,
    resync: Duration,
}

impl Engine {
    fn claim_controller(self: Arc<Self>) -> Controller {
        let of_volumes = self.clone();
        Controller::of_kind(claims(), move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync_claim(&key, &cx).await }
        })
        .filter(|change| change.new.is_some())
        .reacts_to_kind(volumes(), move |change| of_volumes.claims_after(change))
        .reads_kind(classes())
        .reads_kind(core_kind("Pod", "pods"))
        .named(NAME)
        .queue_named("claims")
        .component(COMPONENT)
    }

    fn volume_controller(self: Arc<Self>) -> Controller {
        Controller::of_kind(volumes(), move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync_volume(&key, &cx).await }
        })
        .filter(|change| change.new.is_some())
        .reacts_to_kind(claims(), volume_after)
        .named("persistentvolume-binder-controller-volumes")
        .queue_named("volumes")
        .component(COMPONENT)
    }

    /// A volume concerns the claim that it names; one that is free concerns all that wait.
    fn claims_after(&self, change: &Change<'_>) -> Vec<Trigger> {
        let Some(volume) = change.object() else {
            return Vec::new();
        };
        if let Some(claim) = claim_of(volume.doc()) {
            return vec![Trigger::now(claim)];
        }
        let claims = self.claims.lister().snapshot();
        let is_waiting = |claim: &Obj| !has_annotation(claim.doc(), BIND_COMPLETED);
        let is_lost = |claim: &Obj| claim.doc().str_at("/spec/volumeName") == volume.name();
        let concerned = claims.iter().filter(|it| is_waiting(it) || is_lost(it));
        concerned.map(|claim| Trigger::now(claim.key())).collect()
    }

    async fn sync_claim(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(claim) = self.claims.lister().get(key) else {
            return Ok(Action::done());
        };
        let is_waiting = match has_annotation(claim.doc(), BIND_COMPLETED) {
            true => self.sync_bound(cx, claim.doc()).await?,
            false => self.sync_unbound(cx, claim.doc()).await?,
        };
        // Classes and pods are looked at again from time to time, as upstream does.
        Ok(match is_waiting {
            true => Action::requeue_after(self.resync),
            false => Action::done(),
        })
    }

    async fn sync_volume(&self, key: &Key, cx: &Context) -> Result<Action> {
        match self.volumes.lister().get(key) {
            Some(volume) => self.follow_claim(cx, volume.doc()).await?,
            None => tracing::trace!(volume = %key, "gone"),
        }
        Ok(Action::done())
    }
}

/// The volume that a claim names: it hears of the claim's end, and of a claim that names another.
fn volume_after(change: &Change<'_>) -> Vec<Trigger> {
    let name = |claim: &Obj| claim.doc().str_at("/spec/volumeName").to_owned();
    let mut names: Vec<String> = [change.old, change.new]
        .into_iter()
        .flatten()
        .map(name)
        .filter(|name| !name.is_empty())
        .collect();
    names.dedup();
    names
        .iter()
        .map(|name| Trigger::now(Key::cluster(name)))
        .collect()
}

//! The scheduler plug-in for PersistentVolumeClaims: a pod goes where its volumes are or can be.
//!
//! Claims that are bound restrict the nodes by the node affinity of their volumes. Claims of a
//! StorageClass with `WaitForFirstConsumer` get a volume that suits the chosen node, or the
//! annotation `volume.kubernetes.io/selected-node`, which asks for one to be provisioned there; the
//! pod is bound when its claims are. A claim with `ReadWriteOncePod` is for one pod at a time.
//!
//! Deliberately absent: free space that CSI drivers publish, and limits of volumes per node.

mod claims;
mod cycle;
mod matching;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use windlass_cache::{AddError, HandlerFns, Lister, Registration};
use windlass_client::DynamicClient;
use windlass_core::{Doc, Gvr, Key, Selector};
use windlass_runtime::Manager;

use crate::{
    pod::is_pod_terminal,
    scheduler::{ClusterEvent, Plugin, PluginFuture, PodCycle, Reach, Refusal, Waker},
};
use claims::{PodClaims, claim_names};
use cycle::Cycle;

/// The name of the plug-in.
pub const NAME: &str = "VolumeBinding";

const CLAIMS: Gvr = Gvr::constant("", "v1", "persistentvolumeclaims");
const VOLUMES: Gvr = Gvr::constant("", "v1", "persistentvolumes");
const CLASSES: Gvr = Gvr::constant("storage.k8s.io", "v1", "storageclasses");
const PODS: Gvr = Gvr::constant("", "v1", "pods");

/// The plug-in.
pub struct VolumeBinding(Arc<Shared>, Vec<Registration>);

struct Shared {
    claims: Lister,
    volumes: Lister,
    classes: Lister,
    pods: Lister,
    client: DynamicClient,
    /// The volumes that were chosen and are not seen bound yet, with the UID of their claim.
    /// Written by cycles; bounded by the pods that are being bound.
    assumed: Mutex<BTreeMap<String, String>>,
    /// Given when a claim or a volume has changed.
    news: Notify,
    waker: OnceLock<Waker>,
}

impl VolumeBinding {
    /// A plug-in that reads and writes through a manager. Its caches start with the manager.
    #[must_use]
    pub fn new(manager: &Manager) -> Self {
        let factory = manager.factory();
        let shared = Arc::new(Shared {
            claims: factory.dynamic(CLAIMS).lister(),
            volumes: factory.dynamic(VOLUMES).lister(),
            classes: factory.dynamic(CLASSES).lister(),
            pods: factory.dynamic(PODS).lister(),
            client: manager.dynamic(),
            assumed: Mutex::default(),
            news: Notify::new(),
            waker: OnceLock::new(),
        });
        let added: [Result<Registration, AddError>; 3] = [
            (CLAIMS, "persistentvolumeclaims"),
            (VOLUMES, "persistentvolumes"),
            (CLASSES, "storageclasses"),
        ]
        .map(|(kind, name)| factory.dynamic(kind).add_handler(shared.on_any(name)));
        let added = added.into_iter().filter_map(|added| {
            added
                .inspect_err(|failure| tracing::error!(%failure, "volumes are not followed"))
                .ok()
        });
        Self(shared, added.collect())
    }
}

impl Shared {
    fn on_any(self: &Arc<Self>, resource: &'static str) -> HandlerFns<Doc> {
        let (add, update, delete) = (self.clone(), self.clone(), self.clone());
        let doc = |object: &windlass_cache::Obj| Some(object.doc().clone());
        HandlerFns::new()
            .on_add(move |new, _| add.tell(resource, None, doc(&new)))
            .on_update(move |old, new| update.tell(resource, doc(&old), doc(&new)))
            .on_delete(move |deleted| delete.tell(resource, doc(deleted.object()), None))
    }

    fn tell(&self, resource: &'static str, old: Option<Doc>, new: Option<Doc>) {
        self.news.notify_waiters();
        if let Some(waker) = self.waker.get() {
            waker.wake(ClusterEvent::Other { resource, old, new });
        }
    }

    fn class(&self, name: &str) -> Option<Doc> {
        let class = self.classes.get(&Key::cluster(name))?;
        Some(class.doc().clone())
    }

    fn volume(&self, name: &str) -> Option<Doc> {
        let volume = self.volumes.get(&Key::cluster(name))?;
        Some(volume.doc().clone())
    }

    /// Returns true if another pod with a node uses a claim that is for one pod at a time.
    fn is_used_by_another(&self, pod: &Doc, claim: &str) -> bool {
        let meta = pod.meta();
        let others = self.pods.list_in(meta.namespace(), &Selector::everything());
        others.iter().any(|other| {
            let other = other.doc();
            other.meta().uid_str() != meta.uid_str()
                && !other.str_at("/spec/nodeName").is_empty()
                && !is_pod_terminal(other)
                && claim_names(other).any(|(name, _)| name == claim)
        })
    }
}

impl Plugin for VolumeBinding {
    fn name(&self) -> &'static str {
        NAME
    }

    fn attach(&self, waker: Waker) {
        if self.0.waker.set(waker).is_err() {
            tracing::error!("the volume plug-in belongs to one scheduler");
        }
    }

    fn wait_for_sync(&self) -> PluginFuture<'_, ()> {
        Box::pin(async {
            for registration in &self.1 {
                registration.wait_for_sync().await;
            }
        })
    }

    fn pre_filter(&self, pod: &Doc) -> Result<Option<Box<dyn PodCycle>>, Refusal> {
        let Some(claims) = PodClaims::of(&self.0, pod)? else {
            return Ok(None);
        };
        let cycle = Cycle::new(self.0.clone(), claims);
        Ok(Some(Box::new(cycle)))
    }

    fn wakes(&self, pod: &Doc, event: &ClusterEvent) -> bool {
        match event {
            ClusterEvent::Other { new, .. } => new.is_some(),
            ClusterEvent::NodeAdded(_) => true,
            ClusterEvent::NodeChanged { old, new } => {
                old.at("/metadata/labels") != new.at("/metadata/labels")
            }
            ClusterEvent::AssignedPodDeleted(gone) => {
                let mut own = claim_names(pod);
                gone.meta().namespace() == pod.meta().namespace()
                    && own.any(|(name, _)| claim_names(gone).any(|(other, _)| other == name))
            }
            _ => false,
        }
    }

    fn reach(&self, event: &ClusterEvent) -> Reach {
        match event {
            ClusterEvent::Other {
                resource: "persistentvolumeclaims",
                new: Some(claim),
                ..
            } => Reach::Dependents(claim.meta().key()),
            ClusterEvent::Other {
                resource: "persistentvolumes" | "storageclasses",
                new: Some(_),
                ..
            }
            | ClusterEvent::NodeAdded(_)
            | ClusterEvent::NodeChanged { .. }
            | ClusterEvent::AssignedPodDeleted(_) => Reach::Tried(None),
            _ => Reach::Nobody,
        }
    }

    fn depends_on(&self, pod: &Doc) -> Vec<Key> {
        let namespace = pod.meta().namespace();
        claim_names(pod)
            .map(|(name, _)| Key::new(namespace, &name))
            .collect()
    }
}

impl fmt::Debug for VolumeBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VolumeBinding(..)")
    }
}

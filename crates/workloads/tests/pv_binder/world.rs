//! A cluster with the binder, and with the pretend provisioner if the test asks for it.

use std::time::Duration;

use windlass_core::{Doc, Gvr, doc, merge_patch};
use windlass_testing::Cluster;
use windlass_workloads::{pretend_provisioner, pv_binder};

pub(crate) const CLAIMS: Gvr = Gvr::constant("", "v1", "persistentvolumeclaims");
pub(crate) const VOLUMES: Gvr = Gvr::constant("", "v1", "persistentvolumes");
pub(crate) const CLASSES: Gvr = Gvr::constant("storage.k8s.io", "v1", "storageclasses");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");

const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) struct World {
    pub(crate) cluster: Cluster,
}

impl World {
    /// The binder alone.
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::start().await;
        cluster.run_with("binder", |manager| {
            pv_binder::add_to(manager, &pv_binder::Options::default());
        });
        Self { cluster }
    }

    /// With the provisioner, whose class is the default one if `has_class`.
    pub(crate) async fn provisioning(has_class: bool) -> Self {
        let world = Self::new().await;
        world.cluster.run_with("provisioner", |manager| {
            let options = pretend_provisioner::Options { has_class };
            pretend_provisioner::add_to(manager, &options);
        });
        world
    }

    pub(crate) async fn create(&self, object: &Doc) -> Doc {
        self.cluster.create_doc(object).await
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        self.cluster.pass(Duration::from_secs(seconds)).await;
    }

    pub(crate) async fn claim(&self, name: &str) -> Doc {
        let key = format!("default/{name}");
        self.cluster.find(&CLAIMS, &key).await.unwrap()
    }

    pub(crate) async fn volume(&self, name: &str) -> Doc {
        self.cluster.find(&VOLUMES, name).await.unwrap()
    }

    /// Waits until a claim is in a phase.
    pub(crate) async fn until_claim(&self, name: &str, phase: &str) -> Doc {
        let holds = async |_: &Cluster| self.claim(name).await.str_at("/status/phase") == phase;
        self.cluster.until_within(PATIENCE, holds).await;
        self.claim(name).await
    }

    pub(crate) async fn until_volume(&self, name: &str, phase: &str) -> Doc {
        let holds = async |_: &Cluster| self.volume(name).await.str_at("/status/phase") == phase;
        self.cluster.until_within(PATIENCE, holds).await;
        self.volume(name).await
    }

    /// Makes sure that a claim stays unbound.
    pub(crate) async fn stays_pending(&self, name: &str) {
        self.pass(60).await;
        let claim = self.claim(name).await;
        assert_eq!(claim.str_at("/status/phase"), "Pending");
        assert_eq!(claim.str_at("/spec/volumeName"), "");
    }

    /// The volume of a claim once it is bound, and that each names the other.
    pub(crate) async fn bound(&self, name: &str) -> String {
        let claim = self.until_claim(name, "Bound").await;
        let volume = claim.str_at("/spec/volumeName").to_owned();
        let found = self.until_volume(&volume, "Bound").await;
        let holder = found.str_at("/spec/claimRef/uid");
        assert_eq!(holder, claim.meta().uid_str());
        volume
    }

    /// The events of an object: type, reason and message.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        self.pass(2).await;
        let events = self.cluster.list_docs(&EVENTS, "default", "").await;
        let of = events
            .iter()
            .filter(|event| event.str_at("/involvedObject/name") == name);
        let text =
            |event: &Doc| ["/type", "/reason", "/message"].map(|at| event.str_at(at).to_owned());
        of.map(|event| text(event).join(" ")).collect()
    }
}

pub(crate) fn claim(name: &str, spec: Doc) -> Doc {
    let base = doc!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "storageClassName": "", "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "6Gi" } }
        }
    });
    merge_patch(&base, &doc!({ "spec": spec }))
}

pub(crate) fn volume(name: &str, size: &str, spec: Doc) -> Doc {
    let base = doc!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": size }, "accessModes": ["ReadWriteOnce"],
            "hostPath": { "path": "/tmp/x" }
        }
    });
    merge_patch(&base, &doc!({ "spec": spec }))
}

pub(crate) fn class(name: &str, fields: &Doc) -> Doc {
    let base = doc!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": name },
        "provisioner": "example.com/disk"
    });
    merge_patch(&base, fields)
}

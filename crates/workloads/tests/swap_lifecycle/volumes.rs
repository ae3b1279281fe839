//! Claims and volumes.

use windlass_client::Propagation;
use windlass_core::{Doc, Gvr, doc, merge_patch};
use windlass_workloads::pv_binder;

use crate::scene::{EVENTS, Picture, Scene, end_alike, scripts};

const CLAIMS: Gvr = Gvr::constant("", "v1", "persistentvolumeclaims");
const VOLUMES: Gvr = Gvr::constant("", "v1", "persistentvolumes");

impl Scene {
    /// A claim for a volume of this scene.
    async fn claim(&self, name: &str, spec: Doc) -> Doc {
        let base = doc!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name },
            "spec": {
                "storageClassName": (&self.name), "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "6Gi" } }
            }
        });
        self.create(merge_patch(&base, &doc!({ "spec": spec })))
            .await
    }

    async fn volume(&self, name: &str, size: &str, spec: Doc) -> Doc {
        let base = doc!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
            "spec": {
                "storageClassName": (&self.name), "capacity": { "storage": size },
                "accessModes": ["ReadWriteOnce"], "nfs": { "server": "s", "path": "/" }
            }
        });
        let volume = merge_patch(&base, &doc!({ "spec": spec }));
        self.create_outside(volume).await
    }

    async fn until_claim(&self, name: &str, phase: &str) {
        self.until("the claim is in its phase", async || {
            let found = self.find(&CLAIMS, name).await.unwrap();
            found.str_at("/status/phase") == phase
        })
        .await;
    }

    async fn until_volume(&self, name: &str, phase: &str) {
        self.until("the volume is in its phase", async || {
            let found = self.find_outside(&VOLUMES, name).await.unwrap();
            found.str_at("/status/phase") == phase
        })
        .await;
    }

    async fn class(&self, fields: Doc) {
        let base = doc!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": { "name": (&self.name) }, "provisioner": "example.com/disk"
        });
        self.cluster.create_doc(&merge_patch(&base, &fields)).await;
    }
}

scripts! {
    binds_the_smallest |scene| {
        scene.volume("a", "20Gi", doc!({})).await;
        scene.volume("b", "10Gi", doc!({})).await;
        scene.until_volume("a", "Available").await;
        scene.until_volume("b", "Available").await;
        scene.claim("data", doc!({})).await;
        scene.until_claim("data", "Bound").await;
    }
    binds_what_comes_later |scene| {
        scene.class(doc!({ "provisioner": "kubernetes.io/no-provisioner" })).await;
        scene.claim("data", doc!({})).await;
        // Whether the controller sees the claim before the volume must not be left to chance.
        let is_told = async || {
            let events = scene.cluster.list_docs(&EVENTS, &scene.name, "").await;
            events.iter().any(|event| event.str_at("/reason") == "ProvisioningFailed")
        };
        scene.until("the claim waits", is_told).await;
        scene.volume("a", "10Gi", doc!({})).await;
        scene.until_claim("data", "Bound").await;
    }
    binds_what_names_the_claim |scene| {
        let reference = doc!({ "claimRef": { "namespace": (&scene.name), "name": "data" } });
        scene.volume("a", "10Gi", reference).await;
        scene.until_volume("a", "Available").await;
        scene.claim("data", doc!({})).await;
        scene.until_claim("data", "Bound").await;
    }
    binds_what_the_claim_names |scene| {
        scene.volume("a", "10Gi", doc!({})).await;
        scene.until_volume("a", "Available").await;
        let name = scene.own("a");
        scene.claim("data", doc!({ "volumeName": name })).await;
        scene.until_claim("data", "Bound").await;
    }
    refuses_what_is_too_small |scene| {
        scene.volume("a", "5Gi", doc!({})).await;
        scene.until_volume("a", "Available").await;
        let name = scene.own("a");
        scene.claim("data", doc!({ "volumeName": name })).await;
        scene.cluster.pass(std::time::Duration::from_secs(3)).await;
    }
    waits_without_a_class |scene| {
        scene.claim("data", doc!({ "storageClassName": "" })).await;
        scene.cluster.pass(std::time::Duration::from_secs(3)).await;
    }
    waits_for_a_provisioner |scene| {
        scene.class(doc!({})).await;
        scene.claim("data", doc!({})).await;
        scene.until("the provisioner is noted", async || {
            let found = scene.find(&CLAIMS, "data").await.unwrap();
            found.meta().annotation("volume.kubernetes.io/storage-provisioner").is_some()
        }).await;
    }
    waits_for_a_consumer |scene| {
        scene.class(doc!({ "volumeBindingMode": "WaitForFirstConsumer" })).await;
        scene.volume("a", "10Gi", doc!({})).await;
        scene.until_volume("a", "Available").await;
        scene.claim("data", doc!({})).await;
        scene.cluster.pass(std::time::Duration::from_secs(3)).await;
    }
    releases_what_is_retained |scene| {
        scene.volume("a", "10Gi", doc!({})).await;
        scene.until_volume("a", "Available").await;
        let claim = scene.claim("data", doc!({})).await;
        scene.until_claim("data", "Bound").await;
        let patch = doc!({ "metadata": { "finalizers": null } });
        scene.cluster.patch(&claim, patch).await;
        scene.cluster.delete(&claim, Propagation::Background).await;
        scene.until_volume("a", "Released").await;
    }
    loses_a_volume |scene| {
        let volume = scene.volume("a", "10Gi", doc!({})).await;
        scene.until_volume("a", "Available").await;
        scene.claim("data", doc!({})).await;
        scene.until_claim("data", "Bound").await;
        let patch = doc!({ "metadata": { "finalizers": null } });
        scene.cluster.patch(&volume, patch).await;
        scene.cluster.delete(&volume, Propagation::Background).await;
        scene.until_claim("data", "Lost").await;
    }
}

#[tokio::test]
async fn volumes_end_alike_with_their_controller_and_with_ours() {
    let picture = Picture {
        namespaced: vec![CLAIMS],
        cluster: vec![VOLUMES],
        // The protection of volumes and claims is another controller's.
        // The UID of a claim that is gone means nothing.
        ignored: &["finalizers", "generation", "uid"],
    };
    end_alike(SCRIPTS, picture, &[pv_binder::NAME], |manager| {
        pv_binder::add_to(manager, &pv_binder::Options::default());
    })
    .await;
}

//! Scripts of a StatefulSet `web`.

use windlass_core::{Doc, doc, merge_patch};

use crate::scene::{CLAIMS, PODS, STATEFUL_SETS, Scene, scripts};

impl Scene {
    async fn web(&self, spec: Doc) {
        let base = doc!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "web" },
            "spec": {
                "serviceName": "svc", "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "a" }] }
                }
            }
        });
        self.create(merge_patch(&base, &doc!({ "spec": spec })))
            .await;
    }

    async fn change_web(&self, spec: Doc) {
        self.patch(&STATEFUL_SETS, "web", doc!({ "spec": spec }))
            .await;
    }

    async fn roll_web(&self, image: &str) {
        let containers = doc!([{ "name": "c", "image": image }]);
        self.change_web(doc!({ "template": { "spec": { "containers": containers } } }))
            .await;
    }

    /// Serves until the set has so many available pods and nothing else, and has seen its spec.
    async fn complete(&self, replicas: usize) {
        self.serve_until(async || self.is_complete(replicas).await)
            .await;
    }

    async fn is_complete(&self, replicas: usize) -> bool {
        let web = self.get(&STATEFUL_SETS, "web").await;
        self.list(&PODS).await.len() == replicas && has_available(&web, replicas)
    }

    /// Serves until the update has gone as far as it goes.
    async fn updated(&self, count: u64) {
        self.serve_until(async || {
            let web = self.get(&STATEFUL_SETS, "web").await;
            let updated = web.at("/status/updatedReplicas").as_u64().unwrap_or(0);
            let replicas = web.at("/spec/replicas").as_u64().unwrap();
            let replicas = usize::try_from(replicas).unwrap();
            let pods = self.list(&PODS).await;
            let is_quiet = pods.iter().all(|pod| !pod.meta().is_deleting());
            updated == count && has_available(&web, replicas) && is_quiet && pods.len() == replicas
        })
        .await;
    }

    /// Deletes a pod, and serves until another one has its name.
    async fn replace(&self, name: &str) {
        let before = self.get(&PODS, name).await.meta().uid();
        self.delete(&PODS, name).await;
        self.serve_until(async || {
            let pod = self.find(&PODS, name).await;
            pod.is_some_and(|pod| pod.meta().uid() != before)
        })
        .await;
    }
}

/// Returns true if a set has seen its spec, and has so many pods, all available.
fn has_available(web: &Doc, replicas: usize) -> bool {
    let number = |at: &str| web.at(at).as_u64().unwrap_or(0);
    let wanted = u64::try_from(replicas).unwrap();
    number("/status/availableReplicas") == wanted
        && number("/status/replicas") == wanted
        && web.at("/status/observedGeneration") == web.at("/metadata/generation")
}

fn with_claims(spec: &Doc) -> Doc {
    let claim = doc!({
        "metadata": { "name": "data", "labels": { "x": "y" } },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } }
        }
    });
    merge_patch(&doc!({ "volumeClaimTemplates": [claim] }), spec)
}

fn retention(deleted: &str, scaled: &str) -> Doc {
    let policy = doc!({ "whenDeleted": deleted, "whenScaled": scaled });
    doc!({ "persistentVolumeClaimRetentionPolicy": policy })
}

fn stray(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "web" } },
        "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] }
    })
}

scripts! {
    comes_in_order |scene| {
        scene.web(doc!({ "replicas": 3 })).await;
        scene.complete(3).await;
    }
    waits_for_a_pod_that_is_not_ready |scene| {
        scene.web(doc!({ "replicas": 3 })).await;
        scene.until(async || scene.find(&PODS, "web-0").await.is_some()).await;
        scene.show("web-0", "Running", true).await;
        scene.until(async || scene.find(&PODS, "web-1").await.is_some()).await;
        scene.show("web-1", "Running", false).await;
    }
    comes_all_at_once |scene| {
        scene.web(doc!({ "replicas": 3, "podManagementPolicy": "Parallel" })).await;
        scene.complete(3).await;
    }
    is_scaled_down |scene| {
        scene.web(doc!({ "replicas": 3 })).await;
        scene.complete(3).await;
        scene.change_web(doc!({ "replicas": 1 })).await;
        scene.complete(1).await;
    }
    is_scaled_down_at_once |scene| {
        scene.web(doc!({ "replicas": 3, "podManagementPolicy": "Parallel" })).await;
        scene.complete(3).await;
        scene.change_web(doc!({ "replicas": 0 })).await;
        scene.complete(0).await;
    }
    rolls_out |scene| {
        scene.web(doc!({ "replicas": 3 })).await;
        scene.complete(3).await;
        scene.roll_web("b").await;
        scene.updated(3).await;
    }
    rolls_out_with_characters_that_html_knows |scene| {
        let args = doc!([{ "name": "c", "image": "a", "args": ["a < b && c > d"] }]);
        scene.web(doc!({ "template": { "spec": { "containers": args } } })).await;
        scene.complete(1).await;
    }
    stops_at_the_partition |scene| {
        let strategy = doc!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 2 } });
        scene.web(doc!({ "replicas": 3, "updateStrategy": strategy })).await;
        scene.complete(3).await;
        scene.roll_web("b").await;
        scene.updated(1).await;
        scene.replace("web-0").await;
        scene.updated(1).await;
    }
    is_updated_on_delete |scene| {
        scene.web(doc!({ "replicas": 2, "updateStrategy": { "type": "OnDelete" } })).await;
        scene.complete(2).await;
        scene.roll_web("b").await;
        scene.updated(0).await;
        scene.replace("web-1").await;
        scene.updated(1).await;
    }
    rolls_back |scene| {
        scene.web(doc!({ "replicas": 1 })).await;
        scene.complete(1).await;
        for image in ["b", "a"] {
            scene.roll_web(image).await;
            scene.updated(1).await;
        }
    }
    forgets_old_revisions |scene| {
        scene.web(doc!({ "replicas": 1, "revisionHistoryLimit": 1 })).await;
        scene.complete(1).await;
        for image in ["b", "c", "d"] {
            scene.roll_web(image).await;
            scene.updated(1).await;
        }
    }
    replaces_a_failed_pod |scene| {
        scene.web(doc!({ "replicas": 2 })).await;
        scene.complete(2).await;
        let before = scene.get(&PODS, "web-1").await.meta().uid();
        scene.show("web-1", "Failed", false).await;
        scene.serve_until(async || {
            let pod = scene.find(&PODS, "web-1").await;
            pod.is_some_and(|pod| pod.meta().uid() != before) && scene.is_complete(2).await
        }).await;
    }
    starts_at_five |scene| {
        scene.web(with_claims(&doc!({ "replicas": 2, "ordinals": { "start": 5 } }))).await;
        scene.complete(2).await;
    }
    moves_its_start |scene| {
        scene.web(doc!({ "replicas": 2 })).await;
        scene.complete(2).await;
        scene.change_web(doc!({ "ordinals": { "start": 1 } })).await;
        scene.serve_until(async || {
            scene.find(&PODS, "web-0").await.is_none() && scene.is_complete(2).await
        }).await;
    }
    keeps_claims |scene| {
        scene.web(with_claims(&doc!({ "replicas": 2 }))).await;
        scene.complete(2).await;
        scene.change_web(doc!({ "replicas": 1 })).await;
        scene.complete(1).await;
    }
    gives_claims_to_pods_that_go |scene| {
        let spec = merge_patch(&doc!({ "replicas": 2 }), &retention("Retain", "Delete"));
        scene.web(with_claims(&spec)).await;
        scene.complete(2).await;
        scene.change_web(doc!({ "replicas": 1 })).await;
        scene.complete(1).await;
    }
    gives_claims_to_the_set_and_takes_them_back |scene| {
        let spec = merge_patch(&doc!({ "replicas": 2 }), &retention("Delete", "Retain"));
        scene.web(with_claims(&spec)).await;
        scene.complete(2).await;
        let owned = async |count: usize| {
            let claims = scene.list(&CLAIMS).await;
            claims.iter().filter(|it| it.meta().controller().is_some()).count() == count
        };
        scene.until(async || owned(2).await).await;
        scene.change_web(retention("Retain", "Retain")).await;
        scene.until(async || owned(0).await).await;
    }
    adopts_orphans_of_its_name |scene| {
        scene.create(stray("web-1")).await;
        scene.create(stray("other-1")).await;
        scene.web(doc!({ "replicas": 1 })).await;
        scene.serve_until(async || scene.find(&PODS, "web-1").await.is_none()).await;
    }
    puts_labels_back |scene| {
        scene.web(doc!({ "replicas": 1 })).await;
        scene.complete(1).await;
        let label = "statefulset.kubernetes.io/pod-name";
        scene.patch(&PODS, "web-0", doc!({ "metadata": { "labels": { label: null } } })).await;
        scene.until(async || {
            let pod = scene.get(&PODS, "web-0").await;
            pod.meta().label(label).is_some()
        }).await;
    }
}

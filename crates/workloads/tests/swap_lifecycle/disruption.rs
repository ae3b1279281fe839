//! Disruption budgets.

use windlass_client::{Propagation, WriteOptions};
use windlass_core::{Doc, Gvr, doc, merge_patch};
use windlass_workloads::disruption;

use crate::scene::{PODS, Picture, Scene, end_alike, scripts};

const BUDGETS: Gvr = Gvr::constant("policy", "v1", "poddisruptionbudgets");

impl Scene {
    async fn budget(&self, spec: Doc) -> Doc {
        let base = doc!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": "web" },
            "spec": { "selector": { "matchLabels": { "app": "web" } } }
        });
        self.create(merge_patch(&base, &doc!({ "spec": spec })))
            .await
    }

    async fn owner(&self, kind: &str, replicas: i64) -> Doc {
        self.create(doc!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": "web" },
            "spec": {
                "replicas": replicas, "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "c", "image": "i" }] }
                }
            }
        }))
        .await
    }

    async fn web_pods(&self, owner: Option<&Doc>, count: usize) -> Vec<Doc> {
        let mut pods = Vec::new();
        for number in 0..count {
            let owners = owner.map(|owner| {
                doc!({
                    "apiVersion": (owner.str_at("/apiVersion")), "kind": (owner.str_at("/kind")),
                    "name": (owner.meta().name()), "uid": (owner.meta().uid_str()),
                    "controller": true
                })
            });
            let owners: Vec<Doc> = owners.into_iter().collect();
            let pod = doc!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": (format!("web-{number}")), "labels": { "app": "web" },
                    "ownerReferences": owners
                },
                "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] }
            });
            let pod = self.create(pod).await;
            self.ready(&pod, "True").await;
            pods.push(pod);
        }
        pods
    }

    async fn ready(&self, pod: &Doc, status: &str) {
        let now = self.cluster.env().now().to_string();
        let ready = doc!({ "type": "Ready", "status": status, "lastTransitionTime": now });
        let status = doc!({ "phase": "Running", "conditions": [ready] });
        self.post(&PODS, pod, status).await;
    }

    /// Waits until the budget says: healthy, desired, expected, allowed.
    async fn until_counts(&self, numbers: [i64; 4]) {
        let fields = [
            "/status/currentHealthy",
            "/status/desiredHealthy",
            "/status/expectedPods",
            "/status/disruptionsAllowed",
        ];
        self.until("the budget says so", async || {
            let found = self.find(&BUDGETS, "web").await.unwrap();
            fields.map(|at| found.at(at).as_i64().unwrap_or(-1)) == numbers
        })
        .await;
    }

    async fn evict(&self, pod: &Doc) {
        let name = pod.meta().name();
        let eviction = doc!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name }
        });
        let api = self.cluster.api(&PODS, &self.name);
        api.create_part(name, "eviction", &eviction, &WriteOptions::default())
            .await
            .unwrap();
    }
}

scripts! {
    min_available |scene| {
        let set = scene.owner("ReplicaSet", 3).await;
        scene.web_pods(Some(&set), 3).await;
        scene.budget(doc!({ "minAvailable": 2 })).await;
        scene.until_counts([3, 2, 3, 1]).await;
    }
    max_unavailable_in_percent |scene| {
        let set = scene.owner("ReplicaSet", 7).await;
        scene.web_pods(Some(&set), 5).await;
        scene.budget(doc!({ "maxUnavailable": "30%" })).await;
        scene.until_counts([5, 4, 7, 1]).await;
    }
    min_available_in_percent |scene| {
        let set = scene.owner("ReplicaSet", 5).await;
        scene.web_pods(Some(&set), 5).await;
        scene.budget(doc!({ "minAvailable": "50%" })).await;
        scene.until_counts([5, 3, 5, 2]).await;
    }
    without_pods |scene| {
        scene.budget(doc!({ "maxUnavailable": 1 })).await;
        scene.until_counts([0, 0, 0, 0]).await;
    }
    bare_pods |scene| {
        scene.web_pods(None, 2).await;
        scene.budget(doc!({ "minAvailable": 1 })).await;
        scene.until_counts([2, 1, 2, 1]).await;
    }
    bare_pods_with_a_share |scene| {
        scene.web_pods(None, 2).await;
        scene.budget(doc!({ "maxUnavailable": "50%" })).await;
        scene.until_counts([2, 0, 0, 0]).await;
    }
    an_owner_without_scale |scene| {
        let job = scene.create(doc!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "web" },
            "spec": { "template": { "spec": {
                "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }]
            } } }
        })).await;
        scene.web_pods(Some(&job), 1).await;
        scene.budget(doc!({ "maxUnavailable": 1 })).await;
        scene.until("the sync fails", async || {
            let found = scene.find(&BUDGETS, "web").await.unwrap();
            found.str_at("/status/conditions/0/reason") == "SyncFailed"
        }).await;
    }
    unready_and_deleted_pods |scene| {
        let set = scene.owner("ReplicaSet", 3).await;
        let pods = scene.web_pods(Some(&set), 3).await;
        scene.budget(doc!({ "minAvailable": 1 })).await;
        scene.until_counts([3, 1, 3, 2]).await;
        scene.ready(&pods[0], "False").await;
        scene.until_counts([2, 1, 3, 1]).await;
        scene.cluster.delete(&pods[1], Propagation::Background).await;
        scene.until_counts([1, 1, 3, 0]).await;
    }
    an_eviction |scene| {
        let set = scene.owner("ReplicaSet", 3).await;
        let pods = scene.web_pods(Some(&set), 3).await;
        scene.budget(doc!({ "minAvailable": 2 })).await;
        scene.until_counts([3, 2, 3, 1]).await;
        scene.evict(&pods[0]).await;
        scene.until_counts([2, 2, 3, 0]).await;
    }
    an_edited_budget |scene| {
        let set = scene.owner("ReplicaSet", 3).await;
        scene.web_pods(Some(&set), 3).await;
        let budget = scene.budget(doc!({ "minAvailable": 2 })).await;
        scene.until_counts([3, 2, 3, 1]).await;
        let edit = doc!({ "spec": { "minAvailable": null, "maxUnavailable": 0 } });
        scene.cluster.patch(&budget, edit).await;
        scene.until_counts([3, 3, 3, 0]).await;
    }
}

#[tokio::test]
async fn budgets_end_alike_with_their_controller_and_with_ours() {
    let picture = Picture {
        namespaced: vec![BUDGETS, PODS],
        cluster: vec![],
        // The owners are not in the picture, so that their UIDs mean nothing.
        ignored: &["ownerReferences"],
    };
    end_alike(SCRIPTS, picture, &[disruption::NAME], |manager| {
        disruption::add_to(manager, &disruption::Options::default());
    })
    .await;
}

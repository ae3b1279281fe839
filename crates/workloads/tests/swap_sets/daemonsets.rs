//! Scripts of a DaemonSet `agent` on nodes of its own.

use windlass_core::{Doc, doc, merge_patch};

use crate::scene::{DAEMON_SETS, PODS, Scene, node_of, scripts};

impl Scene {
    async fn agent(&self, spec: Doc) {
        let selector = doc!({ "script": (self.namespace.as_str()) });
        let base = doc!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "agent" },
            "spec": {
                "selector": { "matchLabels": { "app": "agent" } },
                "template": {
                    "metadata": { "labels": { "app": "agent" } },
                    "spec": {
                        "nodeSelector": selector, "containers": [{ "name": "c", "image": "a" }]
                    }
                }
            }
        });
        self.create(merge_patch(&base, &doc!({ "spec": spec })))
            .await;
    }

    /// So many nodes, and a set whose pods are available on all of them.
    async fn agents(&self, nodes: usize, spec: Doc) {
        for number in 1..=nodes {
            self.node(number).await;
        }
        self.agent(spec).await;
        self.all(nodes, nodes).await;
    }

    async fn change_agent(&self, spec: Doc) {
        self.patch(&DAEMON_SETS, "agent", doc!({ "spec": spec }))
            .await;
    }

    async fn roll_agent(&self, image: &str) {
        let containers = doc!([{ "name": "c", "image": image }]);
        self.change_agent(doc!({ "template": { "spec": { "containers": containers } } }))
            .await;
    }

    /// Serves until so many pods are available, so many of them new, and there are no others.
    async fn all(&self, pods: usize, updated: usize) {
        self.serve_until(async || {
            let agent = self.get(&DAEMON_SETS, "agent").await;
            let number = |at: &str| agent.at(at).as_u64().unwrap_or(0);
            let [pods_wanted, updated] = [pods, updated].map(|it| u64::try_from(it).unwrap());
            let found = self.list(&PODS).await;
            let is_quiet = found.iter().all(|pod| !pod.meta().is_deleting());
            found.len() == pods
                && is_quiet
                && number("/status/numberAvailable") == pods_wanted
                && number("/status/desiredNumberScheduled") == pods_wanted
                && number("/status/updatedNumberScheduled") == updated
                && agent.at("/status/observedGeneration") == agent.at("/metadata/generation")
        })
        .await;
    }

    async fn pod_on(&self, number: usize) -> Doc {
        let pods = self.list(&PODS).await;
        let name = self.node_name(number);
        let found = pods.into_iter().find(|pod| node_of(pod) == name);
        found.unwrap_or_else(|| panic!("no pod on {name}"))
    }

    /// Ends the pod of a node, and serves until another one is there.
    async fn end_on(&self, number: usize, phase: &str) {
        let before = self.pod_on(number).await;
        self.show(before.meta().name(), phase, false).await;
        self.serve_until(async || self.find(&PODS, before.meta().name()).await.is_none())
            .await;
    }
}

fn taint(effect: &str) -> Doc {
    doc!({ "spec": { "taints": [{ "key": "x", "effect": effect }] } })
}

fn rolling(unavailable: Doc, surge: Doc) -> Doc {
    let limits = doc!({ "maxUnavailable": unavailable, "maxSurge": surge });
    doc!({ "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": limits } })
}

scripts! {
    runs_on_each_node |scene| {
        scene.agents(3, doc!({})).await;
    }
    runs_on_a_new_node |scene| {
        scene.agents(1, doc!({})).await;
        scene.node(2).await;
        scene.all(2, 2).await;
    }
    leaves_a_node_with_other_labels |scene| {
        scene.agents(2, doc!({})).await;
        scene.patch_node(2, doc!({ "metadata": { "labels": { "script": "none" } } })).await;
        scene.all(1, 1).await;
    }
    stays_in_spite_of_a_taint_and_does_not_return |scene| {
        scene.agents(2, doc!({})).await;
        scene.patch_node(2, taint("NoSchedule")).await;
        let pod = scene.pod_on(2).await;
        scene.delete(&PODS, pod.meta().name()).await;
        scene.all(1, 1).await;
    }
    is_misscheduled |scene| {
        scene.agents(2, doc!({})).await;
        scene.patch_node(2, taint("NoSchedule")).await;
        scene.settle().await;
        scene.change_agent(doc!({ "revisionHistoryLimit": 3 })).await;
        scene.until(async || {
            let agent = scene.get(&DAEMON_SETS, "agent").await;
            *agent.at("/status/numberMisscheduled") == 1
        }).await;
    }
    flees_from_a_taint |scene| {
        scene.agents(2, doc!({})).await;
        scene.patch_node(2, taint("NoExecute")).await;
        scene.all(1, 1).await;
    }
    tolerates_a_taint |scene| {
        scene.node(1).await;
        scene.patch_node(1, taint("NoExecute")).await;
        let toleration = doc!({ "key": "x", "operator": "Exists" });
        let spec = doc!({ "hostNetwork": true, "tolerations": [toleration] });
        scene.agent(doc!({ "template": { "spec": spec } })).await;
        scene.all(1, 1).await;
    }
    rolls_out_by_node |scene| {
        scene.agents(3, doc!({})).await;
        scene.roll_agent("b").await;
        scene.all(3, 3).await;
    }
    rolls_out_by_percentage |scene| {
        scene.agents(4, rolling("50%".into(), 0.into())).await;
        scene.roll_agent("b").await;
        scene.all(4, 4).await;
    }
    surges |scene| {
        scene.agents(2, rolling(0.into(), 1.into())).await;
        scene.roll_agent("b").await;
        scene.all(2, 2).await;
    }
    waits_while_it_surges |scene| {
        scene.agents(1, rolling(0.into(), 1.into())).await;
        scene.roll_agent("b").await;
        scene.until(async || scene.list(&PODS).await.len() == 2).await;
    }
    changes_on_delete |scene| {
        scene.agents(2, doc!({ "updateStrategy": { "type": "OnDelete" } })).await;
        scene.roll_agent("b").await;
        scene.all(2, 0).await;
        let pod = scene.pod_on(1).await;
        scene.delete(&PODS, pod.meta().name()).await;
        scene.all(2, 1).await;
    }
    returns_to_an_earlier_template |scene| {
        scene.agents(1, doc!({})).await;
        for image in ["b", "a"] {
            scene.roll_agent(image).await;
            scene.all(1, 1).await;
        }
    }
    forgets_old_templates |scene| {
        scene.agents(1, doc!({ "revisionHistoryLimit": 1 })).await;
        for image in ["b", "c", "d"] {
            scene.roll_agent(image).await;
            scene.all(1, 1).await;
        }
    }
    replaces_failed_pods |scene| {
        scene.agents(2, doc!({})).await;
        scene.end_on(1, "Failed").await;
        scene.all(2, 2).await;
    }
    replaces_succeeded_pods |scene| {
        scene.agents(1, doc!({})).await;
        scene.end_on(1, "Succeeded").await;
        scene.all(1, 1).await;
    }
    adopts_an_orphan |scene| {
        scene.node(1).await;
        let node = scene.node_name(1);
        scene.create(doc!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "stray", "labels": { "app": "agent" } },
            "spec": { "nodeName": node, "containers": [{ "name": "c", "image": "i" }] }
        })).await;
        scene.agent(doc!({ "updateStrategy": { "type": "OnDelete" } })).await;
        scene.all(1, 0).await;
    }
    becomes_available_late |scene| {
        scene.agents(1, doc!({ "minReadySeconds": 3 })).await;
    }
}

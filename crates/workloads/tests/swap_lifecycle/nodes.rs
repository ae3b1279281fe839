//! Nodes, their taints, and the pods that these evict.

use windlass_client::Propagation;
use windlass_core::{Doc, Gvr, doc, merge_patch};
use windlass_workloads::{node_lifecycle, taint_eviction};

use crate::scene::{PODS, Picture, Scene, end_alike, scripts};

const NODES: Gvr = Gvr::constant("", "v1", "nodes");

impl Scene {
    /// A node of a zone of its own scene, which is ready.
    async fn node(&self, name: &str) -> Doc {
        let node = self
            .create_outside(doc!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {
                        "topology.kubernetes.io/zone": (&self.name), "kubernetes.io/os": "linux"
                    }
                }
            }))
            .await;
        self.set(&node, "Ready", "True").await;
        self.until("the node is known", async || {
            let node = self.find_outside(&NODES, name).await.unwrap();
            let label = node.meta().label("beta.kubernetes.io/os");
            label == Some("linux") && node.at("/spec/taints").items().is_empty()
        })
        .await;
        // It is registered by the next look at all nodes.
        self.cluster.pass(std::time::Duration::from_secs(6)).await;
        node
    }

    async fn set(&self, node: &Doc, kind: &str, status: &str) {
        let now = self.cluster.env().now().to_string();
        let condition = doc!({
            "type": kind, "status": status, "reason": "Kubelet", "message": "posted",
            "lastHeartbeatTime": (&now), "lastTransitionTime": (&now)
        });
        self.post(&NODES, node, doc!({ "conditions": [condition] }))
            .await;
    }

    async fn until_taints(&self, name: &str, count: usize) {
        self.until("the taints are there", async || {
            let node = self.find_outside(&NODES, name).await.unwrap();
            node.at("/spec/taints").items().len() == count
        })
        .await;
    }

    async fn pod_on(&self, node: &Doc, name: &str, spec: Doc) -> Doc {
        let pod = doc!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
            "spec": {
                "nodeName": (node.meta().name()), "containers": [{ "name": "c", "image": "i" }]
            }
        });
        let pod = self
            .create(merge_patch(&pod, &doc!({ "spec": spec })))
            .await;
        let now = self.cluster.env().now().to_string();
        let ready = doc!({ "type": "Ready", "status": "True", "lastTransitionTime": now });
        let status = doc!({ "phase": "Running", "conditions": [ready] });
        self.post(&PODS, &pod, status).await;
        pod
    }

    async fn taint(&self, name: &str, taints: Doc) {
        let node = self.find_outside(&NODES, name).await.unwrap();
        let patch = doc!({ "spec": { "taints": taints } });
        self.cluster.patch(&node, patch).await;
    }

    async fn until_evicted(&self, name: &str) {
        self.until("the pod is evicted", async || {
            let pod = self.find(&PODS, name).await;
            pod.is_none_or(|pod| pod.meta().is_deleting())
        })
        .await;
    }
}

fn gone() -> Doc {
    doc!([{ "key": "gone", "value": "x", "effect": "NoExecute" }])
}

fn tolerates(seconds: i64) -> Doc {
    doc!({ "tolerations": [
        { "key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds }
    ] })
}

scripts! {
    is_not_ready |scene| {
        let node = scene.node("a").await;
        scene.node("b").await;
        scene.pod_on(&node, "stays", doc!({ "tolerations": [{ "operator": "Exists" }] })).await;
        scene.set(&node, "Ready", "False").await;
        scene.until_taints("a", 2).await;
    }
    is_ready_again |scene| {
        let node = scene.node("a").await;
        scene.node("b").await;
        scene.set(&node, "Ready", "False").await;
        scene.until_taints("a", 2).await;
        scene.set(&node, "Ready", "True").await;
        scene.until_taints("a", 0).await;
    }
    is_silent |scene| {
        let node = scene.node("a").await;
        scene.pod_on(&node, "stays", doc!({ "tolerations": [{ "operator": "Exists" }] })).await;
        scene.until_taints("a", 2).await;
    }
    is_cordoned |scene| {
        let node = scene.node("a").await;
        scene.cluster.patch(&node, doc!({ "spec": { "unschedulable": true } })).await;
        scene.until_taints("a", 1).await;
    }
    has_pressure |scene| {
        let node = scene.node("a").await;
        let kinds = ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"];
        for (number, kind) in kinds.iter().enumerate() {
            scene.set(&node, kind, "True").await;
            scene.until_taints("a", number + 1).await;
        }
        scene.set(&node, "DiskPressure", "False").await;
        scene.until_taints("a", 3).await;
    }
    goes_away |scene| {
        let node = scene.node("a").await;
        scene.cluster.delete(&node, Propagation::Background).await;
        scene.cluster.pass(std::time::Duration::from_secs(10)).await;
    }
    evicts_what_does_not_tolerate |scene| {
        let node = scene.node("a").await;
        scene.pod_on(&node, "goes", doc!({})).await;
        scene.pod_on(&node, "stays", doc!({ "tolerations": [{ "operator": "Exists" }] })).await;
        scene.taint("a", gone()).await;
        scene.until_evicted("goes").await;
    }
    evicts_after_a_while |scene| {
        let node = scene.node("a").await;
        scene.pod_on(&node, "goes", tolerates(3)).await;
        scene.taint("a", gone()).await;
        scene.until_evicted("goes").await;
    }
    cancels_an_eviction |scene| {
        let node = scene.node("a").await;
        scene.pod_on(&node, "stays", tolerates(20)).await;
        scene.taint("a", gone()).await;
        scene.cluster.pass(std::time::Duration::from_secs(3)).await;
        scene.taint("a", Doc::NULL).await;
        scene.cluster.pass(std::time::Duration::from_secs(3)).await;
    }
    evicts_what_comes_later |scene| {
        let node = scene.node("a").await;
        scene.taint("a", gone()).await;
        scene.cluster.pass(std::time::Duration::from_secs(2)).await;
        scene.pod_on(&node, "goes", tolerates(1)).await;
        scene.until_evicted("goes").await;
    }
}

#[tokio::test]
async fn nodes_end_alike_with_their_controllers_and_with_ours() {
    let picture = Picture {
        namespaced: vec![PODS],
        cluster: vec![NODES],
        ignored: &["generation", "observedGeneration"],
    };
    let theirs = [node_lifecycle::NAME, taint_eviction::NAME];
    end_alike(SCRIPTS, picture, &theirs, |manager| {
        node_lifecycle::add_to(manager, &node_lifecycle::Options::default());
        taint_eviction::add_to(manager, &taint_eviction::Options::default());
    })
    .await;
}

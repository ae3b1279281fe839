//! Nodes and pods that the test plays, and both controllers.

use std::time::Duration;

use windlass_client::{DeleteOptions, Patch, WriteOptions};
use windlass_core::{Doc, Gvr, condition, doc, merge_patch};
use windlass_testing::{Cluster, Running};
use windlass_workloads::{node_lifecycle, taint_eviction};

pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const NODES: Gvr = Gvr::constant("", "v1", "nodes");
pub(crate) const LEASES: Gvr = Gvr::constant("coordination.k8s.io", "v1", "leases");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");

pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) running: Running,
}

impl World {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::start().await;
        let running = cluster.run_with("nodes", |manager| {
            node_lifecycle::add_to(manager, &node_lifecycle::Options::default());
            taint_eviction::add_to(manager, &taint_eviction::Options::default());
        });
        let namespace = doc!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "kube-node-lease" }
        });
        if cluster
            .find(&Gvr::constant("", "v1", "namespaces"), "kube-node-lease")
            .await
            .is_none()
        {
            cluster.create_doc(&namespace).await;
        }
        Self { cluster, running }
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        self.cluster.pass(Duration::from_secs(seconds)).await;
    }

    /// A node that is ready.
    pub(crate) async fn node(&self, name: &str) -> Doc {
        self.node_with(name, doc!({})).await
    }

    pub(crate) async fn node_with(&self, name: &str, metadata: Doc) -> Doc {
        let node = doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
        let node = merge_patch(&node, &doc!({ "metadata": metadata }));
        self.cluster.create_doc(&node).await;
        self.post(name, "Ready", "True").await;
        self.get(name).await
    }

    pub(crate) async fn get(&self, name: &str) -> Doc {
        self.cluster.find(&NODES, name).await.unwrap()
    }

    /// Posts a condition, as a kubelet does.
    pub(crate) async fn post(&self, name: &str, kind: &str, status: &str) {
        let now = self.cluster.env().now().to_string();
        let posted = doc!({
            "type": kind, "status": status, "reason": "Kubelet", "message": "posted",
            "lastHeartbeatTime": (&now), "lastTransitionTime": (&now)
        });
        let patch = doc!({ "status": { "conditions": [posted] } });
        let api = self.cluster.resource(NODES);
        api.patch_status(name, &Patch::Strategic(patch), &WriteOptions::default())
            .await
            .unwrap();
    }

    /// Renews the Lease of a node, as a kubelet does.
    pub(crate) async fn renew(&self, name: &str) {
        let now = self.cluster.env().now_micro().to_string();
        let key = format!("kube-node-lease/{name}");
        let lease = doc!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": name, "namespace": "kube-node-lease" },
            "spec": { "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": (&now) }
        });
        match self.cluster.find(&LEASES, &key).await {
            None => drop(self.cluster.create_doc(&lease).await),
            Some(found) => {
                let patch = doc!({ "spec": { "renewTime": now } });
                self.cluster.patch(&found, patch).await;
            }
        }
    }

    /// Lets some nodes live for so many seconds, by their Leases.
    pub(crate) async fn live(&self, names: &[&str], seconds: u64) {
        for _ in 0..seconds.div_ceil(10) {
            for name in names {
                self.renew(name).await;
            }
            self.pass(10).await;
        }
    }

    pub(crate) async fn pod(&self, name: &str, spec: Doc) -> Doc {
        let pod = doc!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] }
        });
        let pod = merge_patch(&pod, &doc!({ "spec": spec }));
        let created = self.cluster.create_doc(&pod).await;
        let now = self.cluster.env().now().to_string();
        let ready = doc!({ "type": "Ready", "status": "True", "lastTransitionTime": now });
        let status = doc!({ "phase": "Running", "conditions": [ready] });
        self.cluster.patch_status(&created, status).await
    }

    pub(crate) async fn find_pod(&self, name: &str) -> Option<Doc> {
        self.cluster.find(&PODS, &format!("default/{name}")).await
    }

    /// Returns true if a pod is gone or going.
    pub(crate) async fn is_evicted(&self, name: &str) -> bool {
        let pod = self.find_pod(name).await;
        pod.is_none_or(|pod| {
            let is_target = condition(&pod, "DisruptionTarget").is_some_and(|it| it.is_true());
            assert_eq!(pod.meta().is_deleting(), is_target, "{pod}");
            pod.meta().is_deleting()
        })
    }

    pub(crate) async fn remove_pod(&self, name: &str) {
        let options = DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..DeleteOptions::default()
        };
        let api = self.cluster.api(&PODS, "default");
        api.delete(name, &options).await.unwrap();
    }

    /// The taints of a node: key and effect.
    pub(crate) async fn taints(&self, name: &str) -> Vec<String> {
        let node = self.get(name).await;
        let taints = node.at("/spec/taints").items().iter();
        let text = |it: &Doc| format!("{}:{}", it.str_at("/key"), it.str_at("/effect"));
        let mut taints: Vec<String> = taints.map(text).collect();
        taints.sort();
        taints
    }

    pub(crate) async fn has_taint(&self, name: &str, key: &str, effect: &str) -> bool {
        self.taints(name).await.contains(&format!("{key}:{effect}"))
    }

    /// Taints a node, as an administrator does.
    pub(crate) async fn taint(&self, name: &str, taints: Vec<Doc>) {
        let node = self.get(name).await;
        self.cluster
            .patch(&node, doc!({ "spec": { "taints": taints } }))
            .await;
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

/// The status of a condition.
pub(crate) fn status(object: &Doc, kind: &str) -> Option<String> {
    condition(object, kind).map(|it| it.status)
}

pub(crate) fn no_execute(key: &str) -> Doc {
    doc!({ "key": key, "value": "x", "effect": "NoExecute" })
}

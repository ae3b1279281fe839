//! A namespace with the disruption controller in it. Owners and pods are made by the test.

use std::time::Duration;

use windlass_client::{DeleteOptions, Error, WriteOptions};
use windlass_core::{Doc, Gvr, condition, doc, merge_patch};
use windlass_testing::{Cluster, Running};
use windlass_workloads::disruption;

pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const BUDGETS: Gvr = Gvr::constant("policy", "v1", "poddisruptionbudgets");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");
pub(crate) const DEPLOYMENTS: Gvr = Gvr::constant("apps", "v1", "deployments");

/// How long something may take at most.
const PATIENCE: Duration = Duration::from_secs(3600);

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) running: Running,
}

impl World {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::start().await;
        let running = run(&cluster);
        Self { cluster, running }
    }

    pub(crate) async fn create(&self, object: &Doc) -> Doc {
        self.cluster.create_doc(object).await
    }

    /// A Deployment and its ReplicaSet, which want so many pods.
    pub(crate) async fn deployment(&self, name: &str, replicas: i64) -> (Doc, Doc) {
        let deployment = self.create(&owner("Deployment", name, replicas)).await;
        let set = owner("ReplicaSet", &format!("{name}-1"), replicas);
        let set = set
            .with("/metadata/ownerReferences", vec![owned_by(&deployment)])
            .unwrap();
        (deployment, self.create(&set).await)
    }

    /// Pods `PREFIX-0`, `PREFIX-1` and so on of an owner, which are ready.
    pub(crate) async fn pods(&self, prefix: &str, owner: Option<&Doc>, count: usize) -> Vec<Doc> {
        let mut pods = Vec::new();
        for number in 0..count {
            let pod = self.pod(&format!("{prefix}-{number}"), owner).await;
            pods.push(self.ready(&pod, true).await);
        }
        pods
    }

    /// A pod that has not started.
    pub(crate) async fn pod(&self, name: &str, owner: Option<&Doc>) -> Doc {
        self.create(&pod(name, owner)).await
    }

    /// Runs a pod, as its node does.
    pub(crate) async fn ready(&self, pod: &Doc, is_ready: bool) -> Doc {
        let now = self.cluster.env().now().to_string();
        let status = if is_ready { "True" } else { "False" };
        let ready = doc!({ "type": "Ready", "status": status, "lastTransitionTime": now });
        let status = doc!({ "phase": "Running", "conditions": [ready] });
        self.cluster.patch_status(pod, status).await
    }

    pub(crate) async fn budget(&self, spec: Doc) -> Doc {
        self.create(&budget("web", spec)).await
    }

    pub(crate) async fn status(&self) -> Doc {
        let found = self.cluster.find(&BUDGETS, "default/web").await.unwrap();
        found.at("/status").clone()
    }

    /// Waits until the budget says: healthy, desired, expected, allowed.
    pub(crate) async fn until(&self, numbers: [i64; 4]) {
        let holds = async |_: &Cluster| counts(&self.status().await) == numbers;
        self.cluster.until_within(PATIENCE, holds).await;
        self.settle().await;
        assert_eq!(counts(&self.status().await), numbers);
    }

    /// Lets the controller finish what it is at.
    pub(crate) async fn settle(&self) {
        self.cluster.pass(Duration::from_secs(5)).await;
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        self.cluster.pass(Duration::from_secs(seconds)).await;
    }

    pub(crate) async fn find_pod(&self, name: &str) -> Option<Doc> {
        self.cluster.find(&PODS, &format!("default/{name}")).await
    }

    /// Evicts a pod.
    pub(crate) async fn evict(&self, name: &str) -> Result<Doc, Error> {
        self.evict_with(name, doc!({})).await
    }

    pub(crate) async fn evict_with(&self, name: &str, options: Doc) -> Result<Doc, Error> {
        let eviction = doc!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": { "name": name, "namespace": "default" },
            "deleteOptions": options,
        });
        let api = self.cluster.api(&PODS, "default");
        api.create_part(name, "eviction", &eviction, &WriteOptions::default())
            .await
    }

    /// Removes pods that are being deleted, as their node does.
    pub(crate) async fn remove_deleted(&self) {
        for pod in self.cluster.list_docs(&PODS, "default", "").await {
            if pod.meta().is_deleting() {
                self.remove(&pod).await;
            }
        }
    }

    pub(crate) async fn remove(&self, pod: &Doc) {
        let options = DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..DeleteOptions::uid(pod.meta().uid_str())
        };
        let api = self.cluster.api(&PODS, "default");
        api.delete(pod.meta().name(), &options).await.unwrap();
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

/// Runs the controller.
pub(crate) fn run(cluster: &Cluster) -> Running {
    cluster.run_with("disruption", |manager| {
        disruption::add_to(manager, &disruption::Options::default());
    })
}

/// Healthy, desired, expected and allowed.
pub(crate) fn counts(status: &Doc) -> [i64; 4] {
    let fields = [
        "/currentHealthy",
        "/desiredHealthy",
        "/expectedPods",
        "/disruptionsAllowed",
    ];
    fields.map(|at| status.at(at).as_i64().unwrap_or(-1))
}

/// The condition of a budget: status, reason and message.
pub(crate) fn allowed(status: &Doc) -> [String; 3] {
    let object = doc!({ "status": (status.clone()) });
    let found = condition(&object, "DisruptionAllowed").unwrap();
    [found.status, found.reason, found.message]
}

pub(crate) fn budget(name: &str, spec: Doc) -> Doc {
    let base = doc!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "selector": { "matchLabels": { "app": "web" } } }
    });
    merge_patch(&base, &doc!({ "spec": spec }))
}

pub(crate) fn pod(name: &str, owner: Option<&Doc>) -> Doc {
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": "web" } },
        "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] }
    });
    match owner {
        Some(owner) => pod
            .with("/metadata/ownerReferences", vec![owned_by(owner)])
            .unwrap(),
        None => pod,
    }
}

pub(crate) fn owner(kind: &str, name: &str, replicas: i64) -> Doc {
    let base = doc!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] }
            }
        }
    });
    match kind {
        "StatefulSet" => base.with("/spec/serviceName", "web").unwrap(),
        "ReplicationController" => base
            .with("/apiVersion", "v1")
            .unwrap()
            .with("/spec/selector", doc!({ "app": "web" }))
            .unwrap(),
        _ => base,
    }
}

pub(crate) fn owned_by(owner: &Doc) -> Doc {
    doc!({
        "apiVersion": (owner.str_at("/apiVersion")), "kind": (owner.str_at("/kind")),
        "name": (owner.meta().name()), "uid": (owner.meta().uid_str()), "controller": true
    })
}

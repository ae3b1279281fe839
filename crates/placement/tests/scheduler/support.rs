//! Pods, nodes, and questions about them.

use std::time::Duration;

use windlass_client::{DeleteOptions, WriteOptions};
use windlass_core::{Doc, Gvr, condition, doc};
use windlass_placement::scheduler;
use windlass_testing::{Cluster, Running};

pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const NODES: Gvr = Gvr::constant("", "v1", "nodes");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");

/// A pod that asks for nothing.
pub(crate) fn pod(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
    })
}

/// A pod that asks for processor and memory.
pub(crate) fn pod_with(name: &str, cpu: &str, memory: &str) -> Doc {
    let requests = doc!({ "requests": { "cpu": cpu, "memory": memory } });
    set(&pod(name), "/spec/containers/0/resources", requests)
}

/// A node of four processors and eight gibibytes, for ten pods.
pub(crate) fn node(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "status": { "allocatable": {
            "cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi", "pods": "10",
        } },
    })
}

/// A node with one more label.
pub(crate) fn labelled(name: &str, key: &str, value: &str) -> Doc {
    let labels = doc!({ "kubernetes.io/hostname": name });
    let labels = Doc::from(
        labels
            .as_object()
            .expect("labels are an object")
            .with(key, value.into()),
    );
    set(&node(name), "/metadata/labels", labels)
}

pub(crate) fn set(object: &Doc, pointer: &str, value: impl Into<Doc>) -> Doc {
    object
        .with(pointer, value)
        .expect("the pointer leads somewhere")
}

/// A cluster with nodes and a scheduler.
pub(crate) async fn cluster(nodes: &[Doc]) -> Cluster {
    let cluster = bare_cluster(nodes).await;
    run(&cluster, &scheduler::Options::default());
    cluster
}

/// A cluster with nodes and nobody to place pods.
pub(crate) async fn bare_cluster(nodes: &[Doc]) -> Cluster {
    let cluster = Cluster::start().await;
    for node in nodes {
        add_node(&cluster, node).await;
    }
    cluster
}

pub(crate) fn run(cluster: &Cluster, options: &scheduler::Options) -> Running {
    cluster.run_with("scheduler", |manager| scheduler::add_to(manager, options))
}

/// Creates a node with its status, whatever the server does to the status of new nodes.
pub(crate) async fn add_node(cluster: &Cluster, node: &Doc) -> Doc {
    let created = cluster.create_doc(node).await;
    let status = node.at("/status").clone();
    cluster.patch_status(&created, status).await
}

pub(crate) async fn find(cluster: &Cluster, name: &str) -> Doc {
    let found = cluster.find(&PODS, &format!("default/{name}")).await;
    found.unwrap_or_else(|| panic!("pod {name} is there"))
}

/// Waits until a pod has a node, and returns its name.
pub(crate) async fn node_of(cluster: &Cluster, name: &str) -> String {
    let is_bound = async |c: &Cluster| !find(c, name).await.str_at("/spec/nodeName").is_empty();
    cluster.until(is_bound).await;
    let pod = find(cluster, name).await;
    pod.str_at("/spec/nodeName").to_owned()
}

/// Waits until a pod was refused, and returns reason and message.
pub(crate) async fn refusal_of(cluster: &Cluster, name: &str) -> (String, String) {
    let refused = async |c: &Cluster| {
        let pod = find(c, name).await;
        condition(&pod, "PodScheduled").filter(|found| !found.is_true())
    };
    cluster.until(async |c| refused(c).await.is_some()).await;
    let found = refused(cluster).await.expect("it was refused");
    (found.reason, found.message)
}

/// Waits until a pod was refused, and returns what is said of the nodes, without preemption.
pub(crate) async fn reasons_of(cluster: &Cluster, name: &str) -> String {
    let (reason, message) = refusal_of(cluster, name).await;
    assert_eq!(reason, "Unschedulable");
    let (reasons, _) = message
        .split_once(" preemption: ")
        .expect("preemption is told of");
    let (_, reasons) = reasons
        .split_once(" nodes are available: ")
        .expect("the nodes are told of");
    reasons.to_owned()
}

/// Lets much time pass and checks that a pod has no node then.
pub(crate) async fn assert_waits(cluster: &Cluster, name: &str) {
    cluster.pass(Duration::from_secs(60)).await;
    let pod = find(cluster, name).await;
    assert_eq!(pod.str_at("/spec/nodeName"), "", "{name} still waits");
}

/// Deletes a pod without waiting for anybody.
pub(crate) async fn force_delete(cluster: &Cluster, name: &str) {
    let options = DeleteOptions {
        grace_period: Some(Duration::ZERO),
        ..DeleteOptions::default()
    };
    let api = cluster.api(&PODS, "default");
    let deleted = api.delete(name, &options).await;
    deleted.expect("the pod is deleted");
}

/// Puts a pod on a node without the scheduler.
pub(crate) async fn bind(cluster: &Cluster, name: &str, node: &str) {
    let binding = doc!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
        "target": { "kind": "Node", "name": node },
    });
    let api = cluster.api(&PODS, "default");
    let options = WriteOptions::default();
    let bound = api.create_part(name, "binding", &binding, &options).await;
    bound.expect("the pod is bound");
}

/// The events about a pod, as reason and message, oldest first.
pub(crate) async fn events_of(cluster: &Cluster, name: &str) -> Vec<(String, String)> {
    let events = cluster.list_docs(&EVENTS, "default", "").await;
    let about = events
        .iter()
        .filter(|event| event.str_at("/involvedObject/name") == name);
    about
        .map(|event| {
            (
                event.str_at("/reason").to_owned(),
                event.str_at("/message").to_owned(),
            )
        })
        .collect()
}

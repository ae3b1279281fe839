//! Pods that nobody else removes.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::time::Duration;

use windlass_client::{DeleteOptions, Propagation, WatchEvent, WatchOptions};
use windlass_core::{Doc, Gvr, condition, doc, merge_patch};
use windlass_testing::{Cluster, Fault, Faults};
use windlass_workloads::pod_gc::{self, Options};

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const NODES: Gvr = Gvr::constant("", "v1", "nodes");

async fn cluster_with(options: Options) -> Cluster {
    let cluster = Cluster::start().await;
    cluster.create_doc(&node("n1")).await;
    cluster.run_with("pod-gc", |manager| pod_gc::add_to(manager, &options));
    cluster
}

async fn cluster() -> Cluster {
    cluster_with(Options::default()).await
}

fn node(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } })
}

fn pod(name: &str, spec: Doc) -> Doc {
    let base = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] }
    });
    merge_patch(&base, &doc!({ "spec": spec }))
}

async fn find(cluster: &Cluster, name: &str) -> Option<Doc> {
    cluster.find(&PODS, &format!("default/{name}")).await
}

async fn names(cluster: &Cluster) -> Vec<String> {
    let pods = cluster.list_docs(&PODS, "default", "").await;
    pods.iter()
        .map(|pod| pod.meta().name().to_owned())
        .collect()
}

async fn remove_node(cluster: &Cluster) {
    let node = cluster.find(&NODES, "n1").await.unwrap();
    cluster.delete(&node, Propagation::Background).await;
}

async fn pass(cluster: &Cluster, seconds: u64) {
    cluster.pass(Duration::from_secs(seconds)).await;
}

/// The last state of a pod before it is gone.
async fn end_of(cluster: &Cluster, created: &Doc) -> Doc {
    let options = WatchOptions::from(created.meta().resource_version());
    let mut watch = cluster.api(&PODS, "default").watch(&options).await.unwrap();
    let mut last = created.clone();
    while let Some(Ok(event)) = watch.next().await {
        match event {
            WatchEvent::Modified(pod) => last = pod,
            WatchEvent::Deleted(_) => break,
            _ => {}
        }
    }
    last
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_is_gone_fail_and_go() {
    let cluster = cluster().await;
    let created = cluster
        .create_doc(&pod("p", doc!({ "nodeName": "n1" })))
        .await;
    remove_node(&cluster).await;
    pass(&cluster, 35).await;
    assert!(
        find(&cluster, "p").await.is_some(),
        "the node may come back"
    );
    let last = end_of(&cluster, &created).await;
    assert_eq!(last.str_at("/status/phase"), "Failed");
    let target = condition(&last, "DisruptionTarget").unwrap();
    assert_eq!(target.reason, "DeletionByPodGC");
    assert_eq!(target.message, "PodGC: node no longer exists");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_in_time_keeps_its_pods() {
    let cluster = cluster().await;
    cluster
        .create_doc(&pod("p", doc!({ "nodeName": "n1" })))
        .await;
    remove_node(&cluster).await;
    pass(&cluster, 30).await;
    cluster.create_doc(&node("n1")).await;
    pass(&cluster, 200).await;
    let kept = find(&cluster, "p").await.unwrap();
    assert_ne!(kept.str_at("/status/phase"), "Failed");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_asked_for_keeps_its_pods() {
    let cluster = Cluster::start().await;
    let faults = Faults::new(|call| match call.path.contains("/nodes/") {
        true => Fault::Refuse(500, "InternalError"),
        false => Fault::None,
    });
    let transport = cluster.transport().layer(&faults);
    let manager = cluster.manager_on("pod-gc", transport).build().unwrap();
    pod_gc::add_to(&manager, &Options::default());
    cluster.run_manager(manager);
    cluster
        .create_doc(&pod("p", doc!({ "nodeName": "lost" })))
        .await;
    pass(&cluster, 300).await;
    assert!(find(&cluster, "p").await.is_some());
    faults.set(|_| Fault::None);
    pass(&cluster, 120).await;
    assert!(find(&cluster, "p").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn of_pods_that_have_ended_the_evicted_and_the_oldest_go() {
    let cluster = cluster_with(Options {
        terminated_limit: 2,
    })
    .await;
    for name in ["a", "b", "c", "d", "e"] {
        let created = cluster
            .create_doc(&pod(name, doc!({ "nodeName": "n1" })))
            .await;
        let reason = if name == "d" { "Evicted" } else { "Error" };
        let status = doc!({ "phase": "Failed", "reason": reason });
        cluster.patch_status(&created, status).await;
        pass(&cluster, 1).await;
    }
    cluster
        .create_doc(&pod("runs", doc!({ "nodeName": "n1" })))
        .await;
    pass(&cluster, 25).await;
    assert_eq!(names(&cluster).await, ["c", "e", "runs"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_before_it_has_a_node_goes() {
    let cluster = cluster().await;
    let held = pod("p", doc!({})).with_finalizer("example.com/hold");
    let created = cluster.create_doc(&held).await;
    let api = cluster.api(&PODS, "default");
    api.delete("p", &DeleteOptions::default()).await.unwrap();
    pass(&cluster, 25).await;
    let failed = find(&cluster, "p").await.unwrap();
    assert_eq!(failed.str_at("/status/phase"), "Failed");
    cluster
        .patch(&created, doc!({ "metadata": { "finalizers": null } }))
        .await;
    assert!(find(&cluster, "p").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn only_a_node_that_is_not_ready_is_out_of_service() {
    let cluster = cluster().await;
    let taint = doc!({ "key": "node.kubernetes.io/out-of-service", "effect": "NoExecute" });
    let n1 = cluster.find(&NODES, "n1").await.unwrap();
    cluster
        .patch(&n1, doc!({ "spec": { "taints": [taint] } }))
        .await;
    let ready = |status: &str| doc!({ "conditions": [{ "type": "Ready", "status": status }] });
    cluster.patch_status(&n1, ready("True")).await;
    cluster
        .create_doc(&pod("p", doc!({ "nodeName": "n1" })))
        .await;
    let api = cluster.api(&PODS, "default");
    api.delete("p", &DeleteOptions::default()).await.unwrap();
    pass(&cluster, 60).await;
    assert!(find(&cluster, "p").await.is_some());
    cluster.patch_status(&n1, ready("Unknown")).await;
    pass(&cluster, 25).await;
    assert!(find(&cluster, "p").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_has_ended_goes_as_it_is() {
    let cluster = cluster().await;
    let created = cluster
        .create_doc(&pod("p", doc!({ "nodeName": "lost" })))
        .await;
    let ended = cluster
        .patch_status(&created, doc!({ "phase": "Succeeded" }))
        .await;
    let last = end_of(&cluster, &ended).await;
    assert_eq!(last.str_at("/status/phase"), "Succeeded");
    assert!(condition(&last, "DisruptionTarget").is_none());
}

//! What wakes a pod that waits, and what does not.

use std::time::Duration;

use windlass_core::{Doc, doc};
use windlass_testing::{Cluster, Running};

use crate::support::*;

/// How many attempts were made and failed.
fn failures(running: &Running) -> usize {
    let text = running.metrics();
    let prefix = "scheduler_schedule_attempts_total{result=\"unschedulable\"";
    let line = text.lines().find(|line| line.starts_with(prefix));
    let count = line.and_then(|line| line.rsplit(' ').next());
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

async fn started(nodes: &[Doc]) -> (Cluster, Running) {
    let cluster = bare_cluster(nodes).await;
    let running = run(&cluster, &windlass_placement::scheduler::Options::default());
    (cluster, running)
}

async fn change_node(cluster: &Cluster, name: &str, patch: Doc) {
    let node = cluster.find(&NODES, name).await;
    let node = node.expect("the node is there");
    cluster.patch(&node, patch).await;
}

#[tokio::test(start_paused = true)]
async fn room_on_a_node_wakes_pods_that_lack_it() {
    let (cluster, running) = started(&[node("a")]).await;
    cluster.create_doc(&pod_with("first", "3", "1Gi")).await;
    node_of(&cluster, "first").await;
    cluster.create_doc(&pod_with("p", "2", "1Gi")).await;
    refusal_of(&cluster, "p").await;
    // Heartbeats, labels and taints of nodes do not help.
    change_node(
        &cluster,
        "a",
        doc!({ "metadata": { "labels": { "x": "y" } } }),
    )
    .await;
    let node = cluster.find(&NODES, "a").await.unwrap();
    cluster
        .patch_status(&node, doc!({ "nodeInfo": { "bootID": "b" } }))
        .await;
    // Nor does a node that would be too small even if it were empty.
    add_node(
        &cluster,
        &set(&crate::support::node("b"), "/status/allocatable/cpu", "1"),
    )
    .await;
    cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(failures(&running), 1);
    force_delete(&cluster, "first").await;
    assert_eq!(node_of(&cluster, "p").await, "a");
    assert_eq!(failures(&running), 1);
}

#[tokio::test(start_paused = true)]
async fn growing_node_wakes_pods_that_lack_room() {
    let (cluster, _) = started(&[node("a")]).await;
    cluster.create_doc(&pod_with("p", "5", "1Gi")).await;
    refusal_of(&cluster, "p").await;
    let node = cluster.find(&NODES, "a").await.unwrap();
    cluster
        .patch_status(&node, doc!({ "allocatable": { "cpu": "8" } }))
        .await;
    assert_eq!(node_of(&cluster, "p").await, "a");
}

#[tokio::test(start_paused = true)]
async fn changes_of_a_node_wake_only_whom_they_concern() {
    let tainted = set(
        &node("a"),
        "/spec/taints",
        doc!([{ "key": "k", "effect": "NoSchedule" }]),
    );
    let (cluster, running) = started(&[tainted]).await;
    cluster.create_doc(&pod("p")).await;
    refusal_of(&cluster, "p").await;
    change_node(
        &cluster,
        "a",
        doc!({ "metadata": { "labels": { "x": "y" } } }),
    )
    .await;
    let other = doc!({ "spec": { "taints": [{ "key": "k2", "effect": "NoSchedule" }] } });
    change_node(&cluster, "a", other).await;
    cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(failures(&running), 1);
    change_node(&cluster, "a", doc!({ "spec": { "taints": null } })).await;
    assert_eq!(node_of(&cluster, "p").await, "a");
}

#[tokio::test(start_paused = true)]
async fn label_wakes_pods_that_select_it() {
    let (cluster, running) = started(&[node("a")]).await;
    let picky = set(&pod("p"), "/spec/nodeSelector", doc!({ "disk": "ssd" }));
    cluster.create_doc(&picky).await;
    refusal_of(&cluster, "p").await;
    change_node(
        &cluster,
        "a",
        doc!({ "metadata": { "labels": { "disk": "hdd" } } }),
    )
    .await;
    cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(failures(&running), 1);
    change_node(
        &cluster,
        "a",
        doc!({ "metadata": { "labels": { "disk": "ssd" } } }),
    )
    .await;
    assert_eq!(node_of(&cluster, "p").await, "a");
}

#[tokio::test(start_paused = true)]
async fn opened_node_wakes_pods() {
    let (cluster, _) = started(&[set(&node("a"), "/spec/unschedulable", true)]).await;
    cluster.create_doc(&pod("p")).await;
    refusal_of(&cluster, "p").await;
    change_node(&cluster, "a", doc!({ "spec": { "unschedulable": null } })).await;
    assert_eq!(node_of(&cluster, "p").await, "a");
}

#[tokio::test(start_paused = true)]
async fn freed_port_wakes_pods_that_want_it() {
    let (cluster, _) = started(&[node("a")]).await;
    let ports = doc!([{ "containerPort": 80, "hostPort": 80 }]);
    cluster
        .create_doc(&set(
            &pod("first"),
            "/spec/containers/0/ports",
            ports.clone(),
        ))
        .await;
    node_of(&cluster, "first").await;
    cluster
        .create_doc(&set(&pod("p"), "/spec/containers/0/ports", ports))
        .await;
    refusal_of(&cluster, "p").await;
    force_delete(&cluster, "first").await;
    assert_eq!(node_of(&cluster, "p").await, "a");
}

#[tokio::test(start_paused = true)]
async fn toleration_added_to_a_waiting_pod_wakes_it() {
    let tainted = set(
        &node("a"),
        "/spec/taints",
        doc!([{ "key": "k", "effect": "NoSchedule" }]),
    );
    let (cluster, _) = started(&[tainted]).await;
    let waiting = cluster.create_doc(&pod("p")).await;
    refusal_of(&cluster, "p").await;
    let current = find(&cluster, "p").await;
    let mut tolerations = current.at("/spec/tolerations").items().to_vec();
    tolerations.push(doc!({ "key": "k", "operator": "Exists", "effect": "NoSchedule" }));
    cluster
        .patch(&waiting, doc!({ "spec": { "tolerations": tolerations } }))
        .await;
    assert_eq!(node_of(&cluster, "p").await, "a");
}

#[tokio::test(start_paused = true)]
async fn pod_that_no_event_helps_is_tried_again_after_five_minutes() {
    let (cluster, running) = started(&[node("a")]).await;
    cluster.create_doc(&pod_with("p", "5", "1Gi")).await;
    refusal_of(&cluster, "p").await;
    cluster.pass(Duration::from_secs(290)).await;
    assert_eq!(failures(&running), 1);
    cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(failures(&running), 2);
}

#[tokio::test(start_paused = true)]
async fn condition_is_written_only_when_it_changes() {
    let (cluster, running) = started(&[node("a")]).await;
    cluster.create_doc(&pod_with("p", "5", "1Gi")).await;
    refusal_of(&cluster, "p").await;
    let before = find(&cluster, "p").await;
    cluster.pass(Duration::from_secs(400)).await;
    assert_eq!(failures(&running), 2);
    let after = find(&cluster, "p").await;
    assert_eq!(
        before.meta().resource_version(),
        after.meta().resource_version()
    );
    add_node(&cluster, &set(&node("b"), "/spec/unschedulable", true)).await;
    let since = |pod: &Doc| {
        windlass_core::condition(pod, "PodScheduled")
            .unwrap()
            .last_transition_time
    };
    cluster.pass(Duration::from_secs(400)).await;
    let last = find(&cluster, "p").await;
    assert_ne!(
        last.meta().resource_version(),
        after.meta().resource_version()
    );
    assert_eq!(since(&last), since(&before), "the status did not change");
}

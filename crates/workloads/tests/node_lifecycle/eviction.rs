//! Pods on tainted nodes.

use windlass_client::{Propagation, WriteOptions};
use windlass_core::{Doc, doc};

use crate::world::{PODS, UNREACHABLE, World, no_execute};

fn tolerates(seconds: Option<i64>) -> Doc {
    let base = doc!({ "key": "gone", "operator": "Exists", "effect": "NoExecute" });
    let toleration = match seconds {
        Some(seconds) => base.with("/tolerationSeconds", seconds).unwrap(),
        None => base,
    };
    doc!({ "tolerations": [toleration] })
}

const MARKED: &str = "Normal TaintManagerEviction Marking for deletion Pod default/a";
const CANCELLED: &str = "Normal TaintManagerEviction Cancelling deletion of Pod default/a";

/// N3 and N4
#[tokio::test(start_paused = true)]
async fn default_tolerations_last_five_minutes() {
    let world = World::new().await;
    world.node("n1").await;
    world.node("n2").await;
    let tolerations = ["not-ready", "unreachable"].map(|key| {
        doc!({
            "key": (format!("node.kubernetes.io/{key}")), "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": 300
        })
    });
    let spec = doc!({ "tolerations": (tolerations.to_vec()) });
    world.pod("a", spec).await;
    world.live(&["n1", "n2"], 20).await;
    world.live(&["n2"], 70).await;
    assert!(world.has_taint("n1", UNREACHABLE, "NoExecute").await);
    world.live(&["n2"], 200).await;
    assert!(!world.is_evicted("a").await);
    // Back in time.
    world.post("n1", "Ready", "True").await;
    world.live(&["n1", "n2"], 200).await;
    assert!(!world.is_evicted("a").await);
    assert!(world.events("a").await.iter().any(|it| it == CANCELLED));
    // Not in time.
    world.live(&["n2"], 300).await;
    assert!(!world.is_evicted("a").await);
    world.live(&["n2"], 100).await;
    assert!(world.is_evicted("a").await);
    assert!(world.events("a").await.iter().any(|it| it == MARKED));
}

/// N5
#[tokio::test(start_paused = true)]
async fn a_pod_that_tolerates_nothing_goes_at_once() {
    let world = World::new().await;
    world.node("n1").await;
    world.pod("a", doc!({})).await;
    world.pod("b", doc!({ "nodeName": "elsewhere" })).await;
    world.taint("n1", vec![no_execute("gone")]).await;
    world.pass(1).await;
    assert!(world.is_evicted("a").await);
    let pod = world.find_pod("a").await.unwrap();
    let target = windlass_core::condition(&pod, "DisruptionTarget").unwrap();
    assert_eq!(target.reason, "DeletionByTaintManager");
    assert_eq!(
        target.message,
        "Taint manager: deleting due to NoExecute taint"
    );
    assert!(!world.is_evicted("b").await);
    assert_eq!(world.events("a").await, [MARKED]);
    let metrics = world.running.metrics();
    assert!(metrics.contains("taint_eviction_controller_pod_deletions_total 1"));
}

/// N6 and N7: DaemonSet pods tolerate these taints without a limit.
#[tokio::test(start_paused = true)]
async fn a_pod_that_tolerates_for_ever_stays() {
    let world = World::new().await;
    world.node("n1").await;
    world.pod("a", tolerates(None)).await;
    world.taint("n1", vec![no_execute("gone")]).await;
    world.live(&["n1"], 1000).await;
    assert!(!world.is_evicted("a").await);
    world
        .taint("n1", vec![no_execute("gone"), no_execute("other")])
        .await;
    world.pass(1).await;
    assert!(world.is_evicted("a").await);
}

/// N8
#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_to_a_tainted_node_is_looked_at_then() {
    let world = World::new().await;
    world.node("n1").await;
    world.taint("n1", vec![no_execute("gone")]).await;
    world.pass(5).await;
    let unbound = doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "default" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] }
    });
    world.cluster.create_doc(&unbound).await;
    world.pass(5).await;
    assert!(!world.is_evicted("a").await);
    let binding = doc!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "a" },
        "target": { "apiVersion": "v1", "kind": "Node", "name": "n1" }
    });
    let api = world.cluster.api(&PODS, "default");
    api.create_part("a", "binding", &binding, &WriteOptions::default())
        .await
        .unwrap();
    world.pass(1).await;
    assert!(world.is_evicted("a").await);
}

/// N20
#[tokio::test(start_paused = true)]
async fn a_toleration_of_no_seconds_lasts_none() {
    let world = World::new().await;
    world.node("n1").await;
    world.pod("a", tolerates(Some(0))).await;
    world.taint("n1", vec![no_execute("gone")]).await;
    world.pass(1).await;
    assert!(world.is_evicted("a").await);
}

/// A timer that runs is neither shortened nor prolonged.
#[tokio::test(start_paused = true)]
async fn another_taint_does_not_change_the_time() {
    let world = World::new().await;
    world.node("n1").await;
    let toleration = |key: &str, seconds: i64| doc!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds });
    let both = vec![toleration("gone", 100), toleration("later", 10)];
    world.pod("a", doc!({ "tolerations": both })).await;
    world.taint("n1", vec![no_execute("gone")]).await;
    world.live(&["n1"], 50).await;
    world
        .taint("n1", vec![no_execute("gone"), no_execute("later")])
        .await;
    world.live(&["n1"], 40).await;
    assert!(!world.is_evicted("a").await);
    world.live(&["n1"], 20).await;
    assert!(world.is_evicted("a").await);
}

/// N18
#[tokio::test(start_paused = true)]
async fn the_time_of_a_pod_runs_on_without_its_node() {
    let world = World::new().await;
    let node = world.node("n1").await;
    world.pod("a", tolerates(Some(60))).await;
    world.taint("n1", vec![no_execute("gone")]).await;
    world.pass(10).await;
    world.cluster.delete(&node, Propagation::Background).await;
    world.pass(40).await;
    assert!(!world.is_evicted("a").await);
    world.pass(20).await;
    assert!(world.is_evicted("a").await);
}

/// Another pod of the same name has its own time.
#[tokio::test(start_paused = true)]
async fn a_new_pod_of_the_same_name_is_not_taken_for_the_old_one() {
    let world = World::new().await;
    world.node("n1").await;
    world.pod("a", tolerates(Some(60))).await;
    world.taint("n1", vec![no_execute("gone")]).await;
    world.live(&["n1"], 50).await;
    world.remove_pod("a").await;
    world.pod("a", tolerates(Some(60))).await;
    world.live(&["n1"], 50).await;
    assert!(!world.is_evicted("a").await);
    world.live(&["n1"], 20).await;
    assert!(world.is_evicted("a").await);
}

//! Nodes that are silent.

use windlass_client::Propagation;
use windlass_core::{condition, doc};

use crate::world::{UNREACHABLE, World, status};

/// N1
#[tokio::test(start_paused = true)]
async fn a_node_whose_lease_stops_is_unknown_after_fifty_seconds() {
    let world = World::new().await;
    world.node("n1").await;
    world.node("n2").await;
    world.live(&["n1", "n2"], 120).await;
    assert_eq!(status(&world.get("n1").await, "Ready").unwrap(), "True");
    assert!(world.taints("n1").await.is_empty());
    world.live(&["n2"], 40).await;
    assert_eq!(status(&world.get("n1").await, "Ready").unwrap(), "True");
    world.live(&["n2"], 40).await;
    let node = world.get("n1").await;
    let ready = condition(&node, "Ready").unwrap();
    assert_eq!(ready.status, "Unknown");
    assert_eq!(ready.reason, "NodeStatusUnknown");
    assert_eq!(ready.message, "Kubelet stopped posting node status.");
    let pressure = condition(&node, "MemoryPressure").unwrap();
    assert_eq!(pressure.reason, "NodeStatusNeverUpdated");
    assert!(world.has_taint("n1", UNREACHABLE, "NoSchedule").await);
    assert!(world.has_taint("n1", UNREACHABLE, "NoExecute").await);
    assert!(world.taints("n2").await.is_empty());
    let events = world.events("n1").await;
    let expected = "Normal NodeNotReady Node n1 status is now: NodeNotReady";
    assert!(events.iter().any(|it| it == expected), "{events:?}");
}

/// A node that posts its status without a Lease is alive as well.
#[tokio::test(start_paused = true)]
async fn a_posted_status_is_a_sign_of_life() {
    let world = World::new().await;
    world.node("n1").await;
    for _ in 0..10 {
        world.pass(30).await;
        world.post("n1", "Ready", "True").await;
    }
    assert_eq!(status(&world.get("n1").await, "Ready").unwrap(), "True");
    assert!(world.taints("n1").await.is_empty());
}

/// N15
#[tokio::test(start_paused = true)]
async fn a_node_that_never_reports_is_unknown_after_a_minute() {
    let world = World::new().await;
    let node = doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" } });
    world.cluster.create_doc(&node).await;
    world.pass(55).await;
    assert_eq!(status(&world.get("n1").await, "Ready"), None);
    world.pass(15).await;
    let ready = condition(&world.get("n1").await, "Ready").unwrap();
    assert_eq!(ready.status, "Unknown");
    assert_eq!(ready.reason, "NodeStatusNeverUpdated");
    assert_eq!(ready.message, "Kubelet never posted node status.");
}

/// N18
#[tokio::test(start_paused = true)]
async fn nodes_that_come_and_go_are_told_of() {
    let world = World::new().await;
    let node = world.node("n1").await;
    world.pass(10).await;
    let expected = "Normal RegisteredNode Node n1 event: Registered Node n1 in Controller";
    assert_eq!(world.events("n1").await, [expected]);
    world.cluster.delete(&node, Propagation::Background).await;
    world.pass(10).await;
    let expected = "Normal RemovingNode Node n1 event: Removing Node n1 from Controller";
    assert!(world.events("n1").await.iter().any(|it| it == expected));
}

/// N19
#[tokio::test(start_paused = true)]
async fn pods_of_a_silent_node_are_not_ready() {
    let world = World::new().await;
    world.node("n1").await;
    world.node("n2").await;
    let tolerant = doc!({ "tolerations": [{ "operator": "Exists" }] });
    world.pod("a", tolerant.clone()).await;
    world.live(&["n2"], 70).await;
    let pod = world.find_pod("a").await.unwrap();
    assert_eq!(status(&pod, "Ready").unwrap(), "False");
    assert_eq!(
        world.events("a").await,
        ["Warning NodeNotReady Node is not ready"]
    );
    // One that comes later is as well, once its node has been seen to be silent.
    let late = world.pod("b", tolerant).await;
    assert_eq!(status(&late, "Ready").unwrap(), "True");
}

/// The labels of old versions follow the new ones.
#[tokio::test(start_paused = true)]
async fn old_labels_follow_the_new_ones() {
    let world = World::new().await;
    let labels = doc!({ "labels": {
        "kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64",
        "beta.kubernetes.io/arch": "amd64"
    } });
    world.node_with("n1", labels).await;
    world.pass(5).await;
    let node = world.get("n1").await;
    let label = |key: &str| node.meta().label(key).unwrap().to_owned();
    assert_eq!(label("beta.kubernetes.io/os"), "linux");
    assert_eq!(label("beta.kubernetes.io/arch"), "arm64");
}

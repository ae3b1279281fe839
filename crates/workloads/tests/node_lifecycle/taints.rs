//! Taints follow conditions.

use windlass_core::doc;

use crate::world::{NOT_READY, UNREACHABLE, World};

/// N2
#[tokio::test(start_paused = true)]
async fn a_node_that_says_so_is_not_ready() {
    let world = World::new().await;
    world.node("n1").await;
    world.node("n2").await;
    world.post("n1", "Ready", "False").await;
    world.live(&["n1", "n2"], 10).await;
    let expected = [
        format!("{NOT_READY}:NoExecute"),
        format!("{NOT_READY}:NoSchedule"),
    ];
    assert_eq!(world.taints("n1").await, expected);
    let node = world.get("n1").await;
    let taints = node.at("/spec/taints").items();
    assert!(taints.iter().all(|it| !it.str_at("/timeAdded").is_empty()));
    world.post("n1", "Ready", "True").await;
    world.live(&["n1", "n2"], 10).await;
    assert!(world.taints("n1").await.is_empty());
}

/// N9
#[tokio::test(start_paused = true)]
async fn a_cordoned_node_is_tainted() {
    let world = World::new().await;
    let node = world.node("n1").await;
    let cordon = |is_on: bool| doc!({ "spec": { "unschedulable": is_on } });
    world.cluster.patch(&node, cordon(true)).await;
    world.pass(2).await;
    let expected = ["node.kubernetes.io/unschedulable:NoSchedule"];
    assert_eq!(world.taints("n1").await, expected);
    world.cluster.patch(&node, cordon(false)).await;
    world.pass(2).await;
    assert!(world.taints("n1").await.is_empty());
}

/// N10
#[tokio::test(start_paused = true)]
async fn pressure_taints() {
    let cases = [
        ("MemoryPressure", "memory-pressure"),
        ("DiskPressure", "disk-pressure"),
        ("PIDPressure", "pid-pressure"),
        ("NetworkUnavailable", "network-unavailable"),
    ];
    let world = World::new().await;
    world.node("n1").await;
    for (kind, key) in cases {
        world.post("n1", kind, "True").await;
        world.pass(2).await;
        let expected = format!("node.kubernetes.io/{key}:NoSchedule");
        assert_eq!(world.taints("n1").await, [expected]);
        world.post("n1", kind, "False").await;
        world.pass(2).await;
        assert!(world.taints("n1").await.is_empty());
    }
}

/// N16
#[tokio::test(start_paused = true)]
async fn taints_of_users_stay() {
    let world = World::new().await;
    world.node("n1").await;
    world.node("n2").await;
    let own = doc!({ "key": "mine", "value": "yes", "effect": "NoSchedule" });
    world.taint("n1", vec![own.clone()]).await;
    world.post("n1", "Ready", "False").await;
    world.live(&["n1", "n2"], 10).await;
    assert_eq!(world.taints("n1").await.len(), 3);
    world.post("n1", "Ready", "True").await;
    world.live(&["n1", "n2"], 10).await;
    assert_eq!(*world.get("n1").await.at("/spec/taints"), doc!([own]));
}

/// N17
#[tokio::test(start_paused = true)]
async fn one_taint_is_swapped_for_the_other_at_once() {
    let world = World::new().await;
    world.node("n1").await;
    world.node("n2").await;
    world.live(&["n2"], 70).await;
    assert!(world.has_taint("n1", UNREACHABLE, "NoExecute").await);
    world.post("n1", "Ready", "False").await;
    world.live(&["n1", "n2"], 10).await;
    let expected = [
        format!("{NOT_READY}:NoExecute"),
        format!("{NOT_READY}:NoSchedule"),
    ];
    assert_eq!(world.taints("n1").await, expected);
}

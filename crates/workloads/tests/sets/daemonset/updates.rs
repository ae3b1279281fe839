//! New templates and their revisions.

use windlass_core::doc;

use super::{rolling, set};
use crate::world::{REVISIONS, World, image, node_of};

#[tokio::test(start_paused = true)]
async fn an_update_takes_one_node_at_a_time() {
    let world = World::with_agents(3, doc!({})).await;
    world.roll_agent("b").await;
    assert_eq!(world.live().await.len(), 2);
    world.remove_deleted().await;
    assert_eq!(world.placed().await, ["n1:b", "n2:a", "n3:a"]);
    world.pass(60).await;
    assert_eq!(world.live().await.len(), 3, "the new pod is not ready");
    world.bind().await;
    let pod = world.pod_on("n1").await;
    world.show(&pod, true).await;
    world.settle().await;
    assert_eq!(world.live().await.len(), 2);
    world.serve_all().await;
    assert_eq!(world.placed().await, ["n1:b", "n2:b", "n3:b"]);
    assert_eq!(world.numbers().await, [3, 3, 0, 3, 3, 3]);
}

#[tokio::test(start_paused = true)]
async fn percentages_are_rounded_up() {
    let world = World::with_agents(5, rolling("50%".into(), 0.into())).await;
    world.roll_agent("b").await;
    assert_eq!(world.live().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn old_pods_that_are_not_available_go_first_and_all_at_once() {
    let world = World::with_agents(4, doc!({})).await;
    for node in ["n2", "n4"] {
        let pod = world.pod_on(node).await;
        world.stop(pod.meta().name()).await;
    }
    world.roll_agent("b").await;
    assert_eq!(world.placed().await, ["n1:a", "n3:a"]);
    world.serve_all().await;
    assert_eq!(world.placed().await, ["n1:b", "n2:b", "n3:b", "n4:b"]);
}

#[tokio::test(start_paused = true)]
async fn a_surge_pod_is_ready_before_the_old_one_goes() {
    let world = World::with_agents(2, rolling(0.into(), 1.into())).await;
    world.roll_agent("b").await;
    assert_eq!(world.placed().await, ["n1:a", "n1:b", "n2:a"]);
    world.bind().await;
    world.pass(60).await;
    assert_eq!(world.live().await.len(), 3, "the new pod is not ready");
    let pods = world.live().await;
    let new = pods.iter().find(|pod| image(pod) == "b").unwrap();
    world.show(new, true).await;
    world.settle().await;
    assert_eq!(world.placed().await, ["n1:b", "n2:a", "n2:b"]);
    world.serve_all().await;
    assert_eq!(world.placed().await, ["n1:b", "n2:b"]);
}

#[tokio::test(start_paused = true)]
async fn a_surge_pod_stays_when_the_old_one_is_not_ready_any_more() {
    let world = World::with_agents(1, rolling(0.into(), 1.into())).await;
    world.roll_agent("b").await;
    world.bind().await;
    let pods = world.live().await;
    let old = pods.iter().find(|pod| image(pod) == "a").unwrap();
    world.show(old, false).await;
    world.settle().await;
    assert_eq!(world.placed().await, ["n1:b"]);
}

#[tokio::test(start_paused = true)]
async fn surge_replaces_a_pod_that_is_being_deleted_at_once() {
    let world = World::with_agents(1, rolling(0.into(), 1.into())).await;
    let pod = world.pod_on("n1").await;
    world.delete_pod(pod.meta().name()).await;
    assert_eq!(world.pods().await.len(), 2);
    assert_eq!(world.placed().await, ["n1:a"]);
}

#[tokio::test(start_paused = true)]
async fn on_delete_waits_for_somebody_to_delete_pods() {
    let on_delete = doc!({ "updateStrategy": { "type": "OnDelete" } });
    let world = World::with_agents(2, on_delete).await;
    world.roll_agent("b").await;
    world.serve_all().await;
    assert_eq!(world.placed().await, ["n1:a", "n2:a"]);
    let pod = world.pod_on("n2").await;
    world.delete_pod(pod.meta().name()).await;
    world.serve_all().await;
    assert_eq!(world.placed().await, ["n1:a", "n2:b"]);
    assert_eq!(world.numbers().await, [2, 2, 0, 2, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn an_earlier_template_gets_a_higher_number() {
    let world = World::with_agents(1, doc!({})).await;
    let hash = |pods: &[windlass_core::Doc]| {
        let label = pods[0].meta().label("controller-revision-hash");
        label.unwrap().to_owned()
    };
    let first = hash(&world.pods().await);
    for image in ["b", "a"] {
        world.roll_agent(image).await;
        world.serve_all().await;
    }
    let revisions = world.revisions().await;
    assert_eq!(revisions, [(2, "b".to_owned()), (3, "a".to_owned())]);
    assert_eq!(hash(&world.pods().await), first);
}

#[tokio::test(start_paused = true)]
async fn old_revisions_are_forgotten_beyond_the_limit() {
    let world = World::with_agents(1, doc!({ "revisionHistoryLimit": 1 })).await;
    for image in ["b", "c", "d"] {
        world.roll_agent(image).await;
        world.serve_all().await;
    }
    let revisions = world.revisions().await;
    assert_eq!(revisions, [(3, "c".to_owned()), (4, "d".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn equal_revisions_become_one() {
    let world = World::with_agents(1, doc!({})).await;
    let first = world.list(&REVISIONS).await.remove(0);
    let meta = doc!({
        "name": "agent-twin", "namespace": "default",
        "labels": { "app": "agent", "controller-revision-hash": "twin" },
        "ownerReferences": (first.at("/metadata/ownerReferences").clone())
    });
    let twin = doc!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta,
        "data": (first.at("/data").clone()), "revision": 7
    });
    world.create(twin).await;
    world.change_agent(doc!({ "minReadySeconds": 1 })).await;
    let revisions = world.list(&REVISIONS).await;
    assert_eq!(revisions.len(), 1);
    assert_eq!(revisions[0].meta().name(), "agent-twin");
    let pod = world.pod_on("n1").await;
    assert_eq!(pod.meta().label("controller-revision-hash"), Some("twin"));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_counts_as_a_collision() {
    let world = World::idle().await;
    world.nodes(1).await;
    world.create(set(doc!({}))).await;
    let running = world.run();
    world.settle().await;
    let first = world.list(&REVISIONS).await.remove(0);
    running.stop().await;
    world
        .cluster
        .delete(&first, windlass_client::Propagation::Background)
        .await;
    let taken = doc!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
        "metadata": { "name": (first.meta().name()), "namespace": "default" },
        "data": { "spec": {} }
    });
    world.create(taken).await;
    world.run();
    world.settle().await;
    assert_eq!(*world.agent().await.at("/status/collisionCount"), 1);
    assert_eq!(world.list(&REVISIONS).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn with_surge_pods_leave_nodes_only_when_enough_others_are_available() {
    let world = World::new().await;
    let label = |zone: &str| doc!({ "metadata": { "labels": { "zone": zone } } });
    world.node("n1", label("a")).await;
    world.node("n2", label("b")).await;
    let taint = doc!({ "spec": { "taints": [{ "key": "x", "effect": "NoSchedule" }] } });
    world.create(set(rolling(0.into(), 1.into()))).await;
    world.settle().await;
    world.serve_all().await;
    // The pod of n1 may stay but would not be created there any more.
    world.patch(&crate::world::NODES, "n1", taint).await;
    let pod = world.pod_on("n2").await;
    world.stop(pod.meta().name()).await;
    world.roll_agent("b").await;
    world.bind().await;
    assert!(world.live().await.iter().any(|it| node_of(it) == "n1"));
    world.serve_all().await;
    assert_eq!(world.placed().await, ["n2:b"]);
}

//! The order in which pods come and go.

use windlass_core::doc;

use super::set;
use crate::world::{STATEFUL_SETS, World, number};

#[tokio::test(start_paused = true)]
async fn a_pod_comes_when_the_one_before_it_is_ready() {
    let world = World::new().await;
    world.create(set(doc!({ "replicas": 3 }))).await;
    world.settle().await;
    assert_eq!(world.names().await, ["web-0"]);
    world.start("web-0").await;
    assert_eq!(world.names().await, ["web-0", "web-1"]);
    world.start("web-1").await;
    world.start("web-2").await;
    let web = world.web().await;
    let status = [
        "/status/replicas",
        "/status/readyReplicas",
        "/status/availableReplicas",
    ];
    assert_eq!(status.map(|at| number(&web, at)), [3, 3, 3]);
    let counts = ["/status/currentReplicas", "/status/updatedReplicas"];
    assert_eq!(counts.map(|at| number(&web, at)), [3, 3]);
    assert_eq!(number(&web, "/status/observedGeneration"), 1);
    let events = world.events("web").await;
    for name in ["web-0", "web-1", "web-2"] {
        let text =
            format!("Normal SuccessfulCreate Create Pod {name} in StatefulSet web successful");
        assert!(events.contains(&text), "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_have_an_identity() {
    let world = World::new().await;
    let created = world.create(set(doc!({ "replicas": 1 }))).await;
    world.settle().await;
    let pods = world.pods().await;
    let (pod, web) = (&pods[0], world.web().await);
    assert_eq!(pod.str_at("/spec/hostname"), "web-0");
    assert_eq!(pod.str_at("/spec/subdomain"), "svc");
    let labels = pod.meta().labels();
    assert_eq!(
        labels.value("statefulset.kubernetes.io/pod-name"),
        Some("web-0")
    );
    assert_eq!(labels.value("apps.kubernetes.io/pod-index"), Some("0"));
    let revision = labels.value("controller-revision-hash").unwrap();
    assert_eq!(revision, web.str_at("/status/updateRevision"));
    assert!(pod.meta().is_controlled_by(&created.meta().uid()));
}

#[tokio::test(start_paused = true)]
async fn parallel_pods_come_all_at_once() {
    let world = World::new().await;
    let spec = doc!({ "replicas": 3, "podManagementPolicy": "Parallel" });
    world.create(set(spec)).await;
    world.settle().await;
    assert_eq!(world.names().await, ["web-0", "web-1", "web-2"]);
}

#[tokio::test(start_paused = true)]
async fn more_parallel_pods_than_fit_into_one_sync_all_come() {
    let world = World::new().await;
    let spec = doc!({ "replicas": 520, "podManagementPolicy": "Parallel" });
    world.create(set(spec)).await;
    world.settle().await;
    assert_eq!(world.pods().await.len(), 520);
    let web = world.web().await;
    assert_eq!(number(&web, "/status/replicas"), 520);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_ready_holds_up_those_above_it() {
    let world = World::new().await;
    world.create(set(doc!({ "replicas": 3 }))).await;
    world.settle().await;
    world.start("web-0").await;
    world.stop("web-1").await;
    world.pass(600).await;
    assert_eq!(world.names().await, ["web-0", "web-1"]);
}

#[tokio::test(start_paused = true)]
async fn pods_go_one_after_the_other_from_the_top() {
    let world = World::new().await;
    world.running(doc!({ "replicas": 3 })).await;
    world.change_web(doc!({ "replicas": 1 })).await;
    assert_eq!(world.names().await, ["web-0", "web-1", "-web-2"]);
    world.remove_deleted().await;
    assert_eq!(world.names().await, ["web-0", "-web-1"]);
    world.remove_deleted().await;
    assert_eq!(world.names().await, ["web-0"]);
    let text = "Normal SuccessfulDelete Delete Pod web-2 in StatefulSet web successful";
    assert!(world.has_event("web", text).await);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_stays_and_is_not_ready_blocks_scaling_down_unless_parallel() {
    for (policy, left) in [("OrderedReady", 3), ("Parallel", 1)] {
        let world = World::new().await;
        let spec = doc!({ "replicas": 3, "podManagementPolicy": policy });
        world.running(spec).await;
        world.stop("web-0").await;
        world.change_web(doc!({ "replicas": 1 })).await;
        assert_eq!(world.live().await.len(), left, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_only_unhealthy_pod_may_go() {
    let world = World::new().await;
    world.running(doc!({ "replicas": 3 })).await;
    world.stop("web-2").await;
    world.change_web(doc!({ "replicas": 2 })).await;
    assert_eq!(world.names().await, ["web-0", "web-1", "-web-2"]);
}

#[tokio::test(start_paused = true)]
async fn an_unhealthy_pod_below_blocks_a_healthy_one_above() {
    let world = World::new().await;
    world.running(doc!({ "replicas": 4 })).await;
    world.stop("web-2").await;
    world.stop("web-3").await;
    world.change_web(doc!({ "replicas": 2 })).await;
    assert_eq!(
        world.live().await.len(),
        4,
        "web-2 is the first unhealthy one"
    );
}

#[tokio::test(start_paused = true)]
async fn pods_that_have_ended_are_replaced_under_the_same_name() {
    for phase in ["Failed", "Succeeded"] {
        let world = World::new().await;
        world.running(doc!({ "replicas": 2 })).await;
        let before = world.pods().await[1].meta().uid();
        world.end("web-1", phase).await;
        world.remove_deleted().await;
        let pods = world.pods().await;
        assert_eq!(world.names().await, ["web-0", "web-1"], "{phase}");
        assert_ne!(pods[1].meta().uid(), before, "{phase}");
    }
}

#[tokio::test(start_paused = true)]
async fn ordinals_start_where_the_set_says() {
    let world = World::new().await;
    let spec = doc!({ "replicas": 2, "ordinals": { "start": 5 } });
    world.running(super::with_claims(&spec)).await;
    assert_eq!(world.names().await, ["web-5", "web-6"]);
    let claims = world.list(&crate::world::CLAIMS).await;
    let claims: Vec<&str> = claims.iter().map(|it| it.meta().name()).collect();
    assert_eq!(claims, ["data-web-5", "data-web-6"]);
}

#[tokio::test(start_paused = true)]
async fn a_later_start_creates_before_it_removes() {
    let world = World::new().await;
    world.running(doc!({ "replicas": 2 })).await;
    world.change_web(doc!({ "ordinals": { "start": 1 } })).await;
    assert_eq!(world.names().await, ["web-0", "web-1", "web-2"]);
    world.start("web-2").await;
    assert_eq!(world.names().await, ["-web-0", "web-1", "web-2"]);
}

#[tokio::test(start_paused = true)]
async fn pods_must_be_ready_for_long_enough() {
    let world = World::new().await;
    world
        .create(set(doc!({ "replicas": 2, "minReadySeconds": 30 })))
        .await;
    world.settle().await;
    world.start("web-0").await;
    assert_eq!(world.names().await, ["web-0"]);
    assert_eq!(number(&world.web().await, "/status/availableReplicas"), 0);
    world.pass(30).await;
    assert_eq!(world.names().await, ["web-0", "web-1"]);
    world.start("web-1").await;
    world.pass(31).await;
    assert_eq!(number(&world.web().await, "/status/availableReplicas"), 2);
    // An update takes one pod, and the next when the first has been ready for long enough.
    world.roll_web("b").await;
    world.remove_deleted().await;
    world.start("web-1").await;
    world.pass(15).await;
    assert_eq!(world.images().await, "ab");
    world.pass(20).await;
    assert_eq!(world.names().await, ["-web-0", "web-1"]);
}

#[tokio::test(start_paused = true)]
async fn scaling_down_waits_until_pods_have_been_ready_for_long_enough() {
    let world = World::new().await;
    world
        .create(set(doc!({ "replicas": 2, "minReadySeconds": 30 })))
        .await;
    world.settle().await;
    world.start("web-0").await;
    world.pass(31).await;
    world.start("web-1").await;
    world.stop("web-0").await;
    world.start("web-0").await;
    world.change_web(doc!({ "replicas": 1 })).await;
    assert_eq!(world.live().await.len(), 2, "web-0 is not available yet");
    world.pass(31).await;
    assert_eq!(world.names().await, ["web-0", "-web-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_being_deleted_only_tells_its_status() {
    let world = World::new().await;
    let created = world.running(doc!({ "replicas": 2 })).await;
    let finalizers = doc!({ "metadata": { "finalizers": ["x.io/y"] } });
    world.patch(&STATEFUL_SETS, "web", finalizers).await;
    let api = world.cluster.api(&STATEFUL_SETS, "default");
    let options = windlass_client::DeleteOptions::uid(created.meta().uid_str());
    api.delete("web", &options).await.unwrap();
    world.settle().await;
    world.delete_pod("web-1").await;
    world.remove_deleted().await;
    assert_eq!(world.names().await, ["web-0"]);
    assert_eq!(number(&world.web().await, "/status/replicas"), 1);
}

//! New templates and their revisions.

use windlass_core::doc;

use super::set;
use crate::world::{REVISIONS, STATEFUL_SETS, World, number};

#[tokio::test(start_paused = true)]
async fn an_update_goes_from_the_top_one_at_a_time() {
    let world = World::new().await;
    world.running(doc!({ "replicas": 3 })).await;
    let before = world
        .web()
        .await
        .str_at("/status/currentRevision")
        .to_owned();
    world.roll_web("b").await;
    assert_eq!(world.names().await, ["web-0", "web-1", "-web-2"]);
    world.remove_deleted().await;
    assert_eq!(world.images().await, "aab");
    world.pass(60).await;
    assert_eq!(world.live().await.len(), 3, "the new pod is not ready");
    world.start("web-2").await;
    assert_eq!(world.names().await, ["web-0", "-web-1", "web-2"]);
    let during = world.web().await;
    assert_eq!(during.str_at("/status/currentRevision"), before);
    assert_eq!(number(&during, "/status/updatedReplicas"), 1);
    world.serve_all().await;
    assert_eq!(world.images().await, "bbb");
    let web = world.web().await;
    let update = web.str_at("/status/updateRevision");
    assert_eq!(web.str_at("/status/currentRevision"), update);
    assert_ne!(update, before);
    assert_eq!(number(&web, "/status/currentReplicas"), 3);
}

#[tokio::test(start_paused = true)]
async fn pods_below_the_partition_stay_as_they_are() {
    let world = World::new().await;
    world.running(doc!({ "replicas": 3 })).await;
    let before = world
        .web()
        .await
        .str_at("/status/currentRevision")
        .to_owned();
    let partition = doc!({ "updateStrategy": { "rollingUpdate": { "partition": 2 } } });
    world.change_web(partition).await;
    world.roll_web("b").await;
    world.serve_all().await;
    assert_eq!(world.images().await, "aab");
    let web = world.web().await;
    assert_eq!(web.str_at("/status/currentRevision"), before);
    assert_eq!(number(&web, "/status/currentReplicas"), 2);
    // One that is deleted comes back as it was.
    world.delete_pod("web-0").await;
    world.serve_all().await;
    assert_eq!(world.images().await, "aab");
}

#[tokio::test(start_paused = true)]
async fn a_partition_above_all_pods_updates_none() {
    let world = World::new().await;
    let partition = doc!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 9 } });
    world
        .running(doc!({ "replicas": 2, "updateStrategy": partition }))
        .await;
    world.roll_web("b").await;
    world.serve_all().await;
    assert_eq!(world.images().await, "aa");
}

#[tokio::test(start_paused = true)]
async fn on_delete_waits_for_somebody_to_delete_pods() {
    let world = World::new().await;
    let strategy = doc!({ "type": "OnDelete" });
    world
        .running(doc!({ "replicas": 2, "updateStrategy": strategy }))
        .await;
    let before = world
        .web()
        .await
        .str_at("/status/currentRevision")
        .to_owned();
    world.roll_web("b").await;
    world.serve_all().await;
    assert_eq!(world.images().await, "aa");
    for name in ["web-0", "web-1"] {
        world.delete_pod(name).await;
        world.serve_all().await;
    }
    assert_eq!(world.images().await, "bb");
    let web = world.web().await;
    assert_eq!(web.str_at("/status/currentRevision"), before);
}

#[tokio::test(start_paused = true)]
async fn an_earlier_template_gets_a_higher_number() {
    let world = World::new().await;
    world.running(doc!({ "replicas": 1 })).await;
    for image in ["b", "a"] {
        world.roll_web(image).await;
        world.serve_all().await;
    }
    let revisions = world.revisions().await;
    assert_eq!(revisions, [(2, "b".to_owned()), (3, "a".to_owned())]);
    assert_eq!(world.images().await, "a");
}

#[tokio::test(start_paused = true)]
async fn only_the_template_makes_a_revision() {
    let world = World::new().await;
    world.running(doc!({ "replicas": 1 })).await;
    let patch = doc!({ "metadata": { "annotations": { "x": "y" } } });
    world.patch(&STATEFUL_SETS, "web", patch).await;
    world.change_web(doc!({ "minReadySeconds": 1 })).await;
    world.pass(5).await;
    assert_eq!(world.revisions().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn old_revisions_are_forgotten_beyond_the_limit() {
    let world = World::new().await;
    world
        .running(doc!({ "replicas": 1, "revisionHistoryLimit": 1 }))
        .await;
    for image in ["b", "c", "d"] {
        world.roll_web(image).await;
        world.serve_all().await;
    }
    let revisions = world.revisions().await;
    assert_eq!(revisions, [(3, "c".to_owned()), (4, "d".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_counts_as_a_collision() {
    let world = World::idle().await;
    let created = world.create(set(doc!({ "replicas": 1 }))).await;
    let running = world.run();
    world.settle().await;
    let first = world.list(&REVISIONS).await.remove(0);
    running.stop().await;
    // Another revision of the same name, with other data, of another owner.
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
    let own = world.list(&REVISIONS).await;
    let own = own
        .iter()
        .find(|it| it.meta().is_controlled_by(&created.meta().uid()));
    let own = own.unwrap().meta().name().to_owned();
    assert_ne!(own, first.meta().name());
    let web = world.web().await;
    assert_eq!(web.str_at("/status/updateRevision"), own);
    assert_eq!(number(&web, "/status/collisionCount"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_broken_revision_stays_until_its_pod_is_deleted() {
    let world = World::new().await;
    world.running(doc!({ "replicas": 2 })).await;
    world.roll_web("broken").await;
    world.serve_all().await;
    assert_eq!(world.images().await, "abroken");
    world.roll_web("c").await;
    world.serve_all().await;
    assert_eq!(world.images().await, "abroken", "as upstream");
    world.delete_pod("web-1").await;
    world.serve_all().await;
    assert_eq!(world.images().await, "cc");
}

//! Jobs that go: their pods keep running, or go with them, and none is held back.

use windlass_client::Propagation;
use windlass_core::doc;

use crate::world::{World, count, is_tracked, job};

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_is_gone_lose_the_finalizer() {
    let world = World::new().await;
    world
        .create(job("pi", doc!({ "completions": 2, "parallelism": 2 })))
        .await;
    let pods = world.until_active(2).await;
    world.start(&pods[0]).await;
    world.delete_job("pi", Propagation::Background).await;
    world.settle().await;
    let pods = world.pods().await;
    assert_eq!(pods.len(), 2, "nobody deletes them here");
    assert!(pods.iter().all(|pod| !is_tracked(pod)));
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_orphaned_keep_running() {
    let world = World::new().await;
    world.cluster.run_with("garbage-collector", |manager| {
        let options = windlass_workloads::garbage_collector::Options::default();
        windlass_workloads::garbage_collector::add_to(manager, &options);
    });
    world.create(job("pi", doc!({}))).await;
    let pods = world.until_active(1).await;
    world.start(&pods[0]).await;
    world.delete_job("pi", Propagation::Orphan).await;
    world.settle().await;
    let left = world.active().await;
    assert_eq!(left.len(), 1);
    assert!(!is_tracked(&left[0]) && left[0].meta().controller().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_deleted_in_the_foreground_lets_its_pods_go() {
    let world = World::new().await;
    world.cluster.run_with("garbage-collector", |manager| {
        let options = windlass_workloads::garbage_collector::Options::default();
        windlass_workloads::garbage_collector::add_to(manager, &options);
    });
    world.create(job("pi", doc!({}))).await;
    let pods = world.until_active(1).await;
    world.start(&pods[0]).await;
    world.until("pi", |job| count(job, "ready") == 1).await;
    world.delete_job("pi", Propagation::Foreground).await;
    world.settle().await;
    let pods = world.pods().await;
    assert!(pods[0].meta().is_deleting() && !is_tracked(&pods[0]));
    world.remove_deleted().await;
    world.settle().await;
    assert!(
        world
            .cluster
            .find(&crate::world::JOBS, "default/pi")
            .await
            .is_none()
    );
}

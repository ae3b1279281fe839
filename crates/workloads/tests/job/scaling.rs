//! More pods, fewer, and none while a Job is suspended.

use std::time::Duration;

use tokio::time::Instant;
use windlass_core::doc;

use crate::world::{World, conditions, count, has, is_tracked, job};

#[tokio::test(start_paused = true)]
async fn fewer_pods_at_once_are_no_failures() {
    let world = World::new().await;
    world
        .create(job("pi", doc!({ "completions": 9, "parallelism": 5 })))
        .await;
    let pods = world.until_active(5).await;
    for pod in &pods[..2] {
        world.start(pod).await;
    }
    world.until("pi", |job| count(job, "ready") == 2).await;
    world.patch("pi", doc!({ "parallelism": 2 })).await;
    let left = world.until_active(2).await;
    let names = |pods: &[windlass_core::Doc]| -> Vec<String> {
        pods.iter()
            .map(|pod| pod.meta().name().to_owned())
            .collect()
    };
    assert_eq!(names(&left), names(&pods[..2]), "those that are ready stay");
    world.remove_deleted().await;
    world.settle().await;
    let job = world.job("pi").await;
    assert_eq!((count(&job, "failed"), count(&job, "active")), (0, 2));
    assert_eq!((count(&job, "ready"), count(&job, "terminating")), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_starts_suspended_has_no_pods() {
    let world = World::new().await;
    world.create(job("pi", doc!({ "suspend": true }))).await;
    let idle = world.until("pi", |job| has(job, "Suspended")).await;
    assert_eq!(conditions(&idle), ["Suspended=True JobSuspended"]);
    assert!(idle.at("/status/startTime").is_null());
    world.settle().await;
    assert!(world.pods().await.is_empty());
    assert!(
        world
            .has_event("pi", "Normal Suspended Job suspended")
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn suspending_deletes_pods_and_resuming_starts_the_clock_anew() {
    let world = World::new().await;
    let spec = doc!({ "completions": 4, "parallelism": 2, "activeDeadlineSeconds": 100 });
    world.create(job("pi", spec)).await;
    let pods = world.until_active(2).await;
    world.start(&pods[0]).await;
    world.until("pi", |job| count(job, "ready") == 1).await;
    assert!(
        conditions(&world.job("pi").await).is_empty(),
        "never suspended"
    );
    world.patch("pi", doc!({ "suspend": true })).await;
    let idle = world.until("pi", |job| has(job, "Suspended")).await;
    assert!(idle.at("/status/startTime").is_null());
    assert_eq!((count(&idle, "active"), count(&idle, "ready")), (0, 0));
    assert!(world.pods().await.iter().all(|pod| !is_tracked(pod)));
    world.remove_deleted().await;
    world.cluster.pass(Duration::from_secs(500)).await;
    let idle = world.job("pi").await;
    assert_eq!(count(&idle, "failed"), 0, "the deadline does not pass");
    world.patch("pi", doc!({ "suspend": false })).await;
    let began = Instant::now();
    world.until_active(2).await;
    let resumed = world.until("pi", |job| count(job, "active") == 2).await;
    assert_eq!(conditions(&resumed), ["Suspended=False JobResumed"]);
    assert!(world.has_event("pi", "Normal Resumed Job resumed").await);
    world.until("pi", |job| has(job, "FailureTarget")).await;
    assert!((99..103).contains(&began.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_a_failure_at_once_and_replaced_after_the_back_off() {
    let world = World::new().await;
    world.create(job("pi", doc!({}))).await;
    let pods = world.until_active(1).await;
    world.start(&pods[0]).await;
    world.delete_pod(&pods[0]).await;
    let began = Instant::now();
    world.until("pi", |job| count(job, "failed") == 1).await;
    assert!(began.elapsed() < Duration::from_secs(3));
    world.until_active(1).await;
    assert!((9..13).contains(&began.elapsed().as_secs()));
    let found = world.pods().await;
    assert_eq!(found.len(), 2, "the old one is still going");
}

#[tokio::test(start_paused = true)]
async fn with_the_policy_failed_a_deleted_pod_is_replaced_once_it_has_ended() {
    let world = World::new().await;
    world
        .create(job("pi", doc!({ "podReplacementPolicy": "Failed" })))
        .await;
    let pods = world.until_active(1).await;
    world.start(&pods[0]).await;
    world.delete_pod(&pods[0]).await;
    let going = world
        .until("pi", |job| count(job, "terminating") == 1)
        .await;
    assert_eq!((count(&going, "failed"), count(&going, "active")), (0, 0));
    world.cluster.pass(Duration::from_secs(60)).await;
    assert!(world.active().await.is_empty());
    world.exit(&pods[0], 143).await;
    let failed = world.until("pi", |job| count(job, "failed") == 1).await;
    assert_eq!(count(&failed, "terminating"), 0);
    world.until_active(1).await;
}

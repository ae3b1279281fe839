//! Failures: how many a Job may have, and how long it waits after each.

use std::time::Duration;

use tokio::time::Instant;
use windlass_core::{Doc, doc};

use crate::world::{World, conditions, count, has, is_settled, job};

/// Fails the only active pod, and says how many seconds later another one is there.
async fn replaced_after(world: &World) -> u64 {
    let pods = world.until_active(1).await;
    let began = Instant::now();
    world.exit(&pods[0], 1).await;
    world.until_active(0).await;
    world.until_active(1).await;
    began.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn replacements_wait_ten_seconds_and_then_twice_as_long() {
    let world = World::new().await;
    world.create(job("pi", doc!({ "completions": 2 }))).await;
    for delay in [10, 20, 40] {
        let took = replaced_after(&world).await;
        assert!(
            (delay..delay + 2).contains(&took),
            "{took} s, not {delay} s"
        );
    }
    let failed = world.until("pi", |job| count(job, "failed") == 3).await;
    assert!(conditions(&failed).is_empty());
    let pods = world.until_active(1).await;
    world.succeed(&pods[0]).await;
    world.until("pi", |job| count(job, "succeeded") == 1).await;
    let took = replaced_after(&world).await;
    assert!(
        (10..12).contains(&took),
        "a success starts anew, not {took} s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_controller_forgets_the_delay() {
    let world = World::idle().await;
    let running = world.run();
    world.create(job("pi", doc!({}))).await;
    for _ in 0..3 {
        replaced_after(&world).await;
    }
    let pods = world.until_active(1).await;
    world.exit(&pods[0], 1).await;
    world
        .until("pi", |job| count(job, "failed") == 4 && is_settled(job))
        .await;
    running.abort();
    world.run();
    let began = Instant::now();
    world.until_active(1).await;
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_that_is_allowed_ends_the_job() {
    let world = World::new().await;
    world.create(job("pi", doc!({ "backoffLimit": 0 }))).await;
    let pods = world.until_active(1).await;
    world.exit(&pods[0], 3).await;
    let failed = world.until("pi", |job| has(job, "Failed")).await;
    assert_eq!(
        conditions(&failed),
        [
            "FailureTarget=True BackoffLimitExceeded",
            "Failed=True BackoffLimitExceeded"
        ]
    );
    assert_eq!((count(&failed, "failed"), count(&failed, "active")), (1, 0));
    assert!(failed.str_at("/status/completionTime").is_empty());
    let text = "Warning BackoffLimitExceeded Job has reached the specified backoff limit";
    assert!(world.has_event("pi", text).await);
    world.cluster.pass(Duration::from_secs(900)).await;
    assert_eq!(world.pods().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_stops_its_other_pods_and_waits_for_them() {
    let world = World::new().await;
    let spec = doc!({ "backoffLimit": 0, "parallelism": 3, "completions": 3 });
    world.create(job("pi", spec)).await;
    let pods = world.until_active(3).await;
    world.exit(&pods[0], 1).await;
    let target = world.until("pi", |job| has(job, "FailureTarget")).await;
    assert!(!has(&target, "Failed"));
    assert_eq!(
        (count(&target, "terminating"), count(&target, "active")),
        (2, 0)
    );
    world.settle().await;
    assert!(
        !has(&world.job("pi").await, "Failed"),
        "two are still going"
    );
    world.remove_deleted().await;
    let failed = world.until("pi", |job| has(job, "Failed")).await;
    assert_eq!(
        (count(&failed, "failed"), count(&failed, "terminating")),
        (3, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn restarts_by_the_node_count_as_failures() {
    let world = World::new().await;
    let spec = doc!({
        "backoffLimit": 3, "parallelism": 2, "completions": 2,
        "template": { "spec": { "restartPolicy": "OnFailure" } }
    });
    world.create(job("pi", spec)).await;
    let pods = world.until_active(2).await;
    let restarted = |count: i64| -> Doc {
        let container = doc!({
            "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": count,
            "state": {}, "lastState": {}
        });
        doc!({ "phase": "Running", "containerStatuses": [container] })
    };
    world.cluster.patch_status(&pods[0], restarted(2)).await;
    world.settle().await;
    assert!(conditions(&world.job("pi").await).is_empty());
    world.cluster.patch_status(&pods[1], restarted(1)).await;
    world.until("pi", |job| has(job, "FailureTarget")).await;
    world.remove_deleted().await;
    let failed = world.until("pi", |job| has(job, "Failed")).await;
    assert!(conditions(&failed)[1].ends_with("BackoffLimitExceeded"));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_job() {
    let world = World::new().await;
    world
        .create(job("pi", doc!({ "activeDeadlineSeconds": 5 })))
        .await;
    world.until_active(1).await;
    world.cluster.pass(Duration::from_secs(4)).await;
    assert!(conditions(&world.job("pi").await).is_empty());
    world.until("pi", |job| has(job, "FailureTarget")).await;
    world.remove_deleted().await;
    let failed = world.until("pi", |job| has(job, "Failed")).await;
    assert!(conditions(&failed)[1].ends_with("DeadlineExceeded"));
    let text = "Warning DeadlineExceeded Job was active longer than specified deadline";
    assert!(world.has_event("pi", text).await);
}

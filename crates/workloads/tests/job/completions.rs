//! As many pods at once and in all as a Job asks for.

use std::time::Duration;

use windlass_core::doc;

use crate::world::{World, conditions, count, has, is_tracked, job};

#[tokio::test(start_paused = true)]
async fn completions_come_one_after_the_other() {
    let world = World::new().await;
    world
        .create(job("pi", doc!({ "completions": 2, "parallelism": 1 })))
        .await;
    for done in [0, 1] {
        let pods = world.until_active(1).await;
        assert!(is_tracked(&pods[0]), "every pod carries the finalizer");
        world.settle().await;
        assert_eq!(world.pods().await.len(), done + 1, "strictly one by one");
        world.start(&pods[0]).await;
        world.until("pi", |job| count(job, "ready") == 1).await;
        world.succeed(&pods[0]).await;
    }
    let done = world.until("pi", |job| has(job, "Complete")).await;
    assert_eq!(
        conditions(&done),
        [
            "SuccessCriteriaMet=True CompletionsReached",
            "Complete=True CompletionsReached"
        ]
    );
    assert_eq!((count(&done, "succeeded"), count(&done, "active")), (2, 0));
    assert!(!done.str_at("/status/startTime").is_empty());
    assert!(!done.str_at("/status/completionTime").is_empty());
    assert_eq!(done.at("/status/uncountedTerminatedPods"), &doc!({}));
    let pods = world.pods().await;
    assert!(pods.iter().all(|pod| !is_tracked(pod)));
    assert!(
        world
            .has_event("pi", "Normal Completed Job completed")
            .await
    );
    let created = world.events("pi").await;
    assert_eq!(
        created
            .iter()
            .filter(|it| it.contains("SuccessfulCreate"))
            .count(),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn parallelism_runs_pods_at_once_but_no_more_than_are_left() {
    let world = World::new().await;
    world
        .create(job("pi", doc!({ "completions": 5, "parallelism": 3 })))
        .await;
    let pods = world.until_active(3).await;
    for pod in &pods[..2] {
        world.succeed(pod).await;
    }
    world.until("pi", |job| count(job, "succeeded") == 2).await;
    assert_eq!(world.until_active(3).await.len(), 3);
    for pod in &world.active().await[..2] {
        world.succeed(pod).await;
    }
    world.until("pi", |job| count(job, "succeeded") == 4).await;
    world.settle().await;
    assert_eq!(world.active().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_completions_the_first_success_ends_the_creation() {
    let world = World::new().await;
    world.create(job("pi", doc!({ "parallelism": 3 }))).await;
    let pods = world.until_active(3).await;
    world.succeed(&pods[0]).await;
    world.until("pi", |job| count(job, "succeeded") == 1).await;
    world.settle().await;
    assert_eq!(world.active().await.len(), 2, "nobody replaces it");
    assert!(!has(&world.job("pi").await, "Complete"));
    world.succeed(&pods[1]).await;
    world.exit(&pods[2], 1).await;
    let done = world.until("pi", |job| has(job, "Complete")).await;
    assert_eq!((count(&done, "succeeded"), count(&done, "failed")), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn parallelism_of_zero_makes_no_pods_and_no_end() {
    let world = World::new().await;
    world
        .create(job("pi", doc!({ "completions": 1, "parallelism": 0 })))
        .await;
    let idle = world
        .until("pi", |job| !job.at("/status/ready").is_null())
        .await;
    world.cluster.pass(Duration::from_secs(600)).await;
    assert!(world.pods().await.is_empty());
    assert!(conditions(&world.job("pi").await).is_empty());
    assert!(!idle.str_at("/status/startTime").is_empty());
    world.patch("pi", doc!({ "parallelism": 2 })).await;
    assert_eq!(world.until_active(1).await.len(), 1, "one is left to do");
}

#[tokio::test(start_paused = true)]
async fn a_job_of_no_completions_is_complete_at_once() {
    let world = World::new().await;
    world.create(job("pi", doc!({ "completions": 0 }))).await;
    let done = world.until("pi", |job| has(job, "Complete")).await;
    assert_eq!(count(&done, "succeeded"), 0);
    assert!(world.pods().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_is_never_written_again() {
    let world = World::new().await;
    world.create(job("pi", doc!({}))).await;
    let pods = world.until_active(1).await;
    world.succeed(&pods[0]).await;
    let done = world.until("pi", |job| has(job, "Complete")).await;
    world.delete_pod(&pods[0]).await;
    world.remove_deleted().await;
    world
        .patch("pi", doc!({ "ttlSecondsAfterFinished": 1000 }))
        .await;
    world.cluster.pass(Duration::from_secs(600)).await;
    let after = world.job("pi").await;
    assert_eq!(after.at("/status"), done.at("/status"));
    assert!(world.active().await.is_empty());
}

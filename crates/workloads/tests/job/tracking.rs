//! Every pod is counted once, whatever happens.

use std::{sync::Arc, time::Duration};

use http::Method;
use parking_lot::Mutex;
use windlass_client::WatchOptions;
use windlass_core::{Doc, doc};
use windlass_testing::Fault;

use crate::world::{JOBS, NAMESPACE, World, count, has, is_settled, is_tracked, job};

/// The statuses that a Job had until something holds, in order.
async fn history(world: &World, name: &str, until: impl Fn(&Doc) -> bool) -> Vec<Doc> {
    let job = world.job(name).await;
    let options = WatchOptions::from(job.meta().resource_version());
    let api = world.cluster.api(&JOBS, NAMESPACE);
    let mut watch = api.watch(&options).await.unwrap();
    let mut seen = Vec::new();
    while let Some(Ok(event)) = watch.next().await {
        if let windlass_client::WatchEvent::Modified(job) = event {
            seen.push(job.at("/status").clone());
            if until(&job) {
                break;
            }
        }
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_named_before_it_is_counted() {
    let world = World::new().await;
    world.create(job("pi", doc!({ "completions": 2 }))).await;
    let pods = world.until_active(1).await;
    world.until("pi", |job| count(job, "active") == 1).await;
    world.succeed(&pods[0]).await;
    let seen = history(&world, "pi", |job| count(job, "succeeded") == 1).await;
    let uid = pods[0].meta().uid_str();
    let named = &seen[seen.len() - 2];
    assert_eq!(named.str_at("/uncountedTerminatedPods/succeeded/0"), uid);
    assert!(named.at("/succeeded").is_null());
    let counted = &seen[seen.len() - 1];
    assert_eq!(counted.at("/uncountedTerminatedPods"), &doc!({}));
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_the_two_writes_counts_a_pod_once() {
    let world = World::idle().await;
    let running = world.run();
    world.create(job("pi", doc!({ "completions": 2 }))).await;
    let pods = world.until_active(1).await;
    world.until("pi", |job| count(job, "active") == 1).await;
    // From the removal of the finalizer on nothing arrives any more.
    let is_cut = Arc::new(Mutex::new(false));
    world.fail(move |call| {
        let mut is_cut = is_cut.lock();
        *is_cut |= call.method == Method::PATCH;
        match *is_cut && call.method == Method::PUT {
            true => Fault::LostRequest,
            false => Fault::None,
        }
    });
    world.succeed(&pods[0]).await;
    let named = world.until("pi", |job| !is_settled(job)).await;
    assert_eq!(count(&named, "succeeded"), 0);
    world.settle().await;
    assert!(!is_tracked(&world.pods().await[0]));
    running.abort();
    world.fail(|_| Fault::None);
    world.run();
    let counted = world.until("pi", |job| count(job, "succeeded") > 0).await;
    assert!(is_settled(&counted));
    let pods = world.until_active(1).await;
    world.succeed(&pods[0]).await;
    let done = world.until("pi", |job| has(job, "Complete")).await;
    assert_eq!(count(&done, "succeeded"), 2);
}

#[tokio::test(start_paused = true)]
async fn many_pods_are_counted_in_parts() {
    let world = World::idle().await;
    let spec = doc!({ "completions": 1200, "parallelism": 1200 });
    let created = world.create(job("pi", spec)).await;
    let running = world.run();
    world.until_active(1200).await;
    running.stop().await;
    for pod in world.active().await {
        world.succeed(&pod).await;
    }
    let most = Arc::new(Mutex::new(0));
    let writes = world.writes();
    world.run();
    let noted = most.clone();
    let looked = move |job: &Doc| {
        let uncounted = job.at("/status/uncountedTerminatedPods/succeeded");
        let mut most = noted.lock();
        *most = (*most).max(uncounted.items().len());
        has(job, "Complete")
    };
    let done = world.until("pi", looked).await;
    assert_eq!(done.meta().uid(), created.meta().uid());
    assert_eq!(count(&done, "succeeded"), 1200);
    assert!(world.writes() - writes >= 6, "two for each of three syncs");
    assert!(*most.lock() <= 500);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_vanishes_after_it_ended_is_still_counted() {
    let world = World::idle().await;
    let running = world.run();
    world.create(job("pi", doc!({}))).await;
    let pods = world.until_active(1).await;
    running.stop().await;
    world.succeed(&pods[0]).await;
    world.delete_pod(&pods[0]).await;
    world.remove_deleted().await;
    assert_eq!(world.pods().await.len(), 1, "the finalizer holds it");
    world.run();
    let done = world.until("pi", |job| has(job, "Complete")).await;
    assert_eq!((count(&done, "succeeded"), count(&done, "failed")), (1, 0));
    world.remove_deleted().await;
    world.settle().await;
    assert!(world.pods().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn creations_that_are_refused_are_told_and_tried_again() {
    let world = World::new().await;
    world.fail(|call| match (&call.method, call.path.ends_with("/pods")) {
        (&Method::POST, true) => Fault::Refuse(403, "Forbidden"),
        _ => Fault::None,
    });
    let spec = doc!({ "completions": 4, "parallelism": 4 });
    world.create(job("pi", spec)).await;
    world.cluster.pass(Duration::from_secs(20)).await;
    let events = world.events("pi").await;
    assert!(
        events
            .iter()
            .any(|event| event.starts_with("Warning FailedCreate Error creating:"))
    );
    let job = world.job("pi").await;
    assert_eq!(count(&job, "active"), 0);
    world.fail(|_| Fault::None);
    world.until_active(4).await;
}

//! Indexed Jobs: one pod that succeeds for each index.

use tokio::time::Instant;
use windlass_core::{Doc, doc, merge_patch};

use crate::world::{World, conditions, count, has, index, is_tracked, job, of_index};

const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";

fn indexed(count: i64, spec: &Doc) -> Doc {
    let base = doc!({ "completionMode": "Indexed", "completions": count, "parallelism": count });
    job("pi", merge_patch(&base, spec))
}

#[tokio::test(start_paused = true)]
async fn pods_know_their_index_in_four_ways() {
    let world = World::new().await;
    world.create(indexed(3, &doc!({}))).await;
    let mut pods = world.until_active(3).await;
    pods.sort_by_key(index);
    for (at, pod) in pods.iter().enumerate() {
        let (meta, text) = (pod.meta(), at.to_string());
        let key = "batch.kubernetes.io/job-completion-index";
        assert_eq!(meta.label(key), Some(text.as_str()));
        assert_eq!(meta.annotation(key), Some(text.as_str()));
        assert_eq!(pod.str_at("/spec/hostname"), format!("pi-{at}"));
        assert!(meta.name().starts_with(&format!("pi-{at}-")));
        let variable = pod.at("/spec/containers/0/env/0");
        assert_eq!(variable.str_at("/name"), "JOB_COMPLETION_INDEX");
        let path = variable.str_at("/valueFrom/fieldRef/fieldPath");
        assert_eq!(
            path,
            "metadata.labels['batch.kubernetes.io/job-completion-index']"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn completed_indexes_are_listed_in_runs() {
    let world = World::new().await;
    world.create(indexed(9, &doc!({}))).await;
    let pods = world.until_active(9).await;
    for at in [7, 6, 4, 2, 1, 0] {
        world.succeed(of_index(&pods, at)).await;
    }
    let listed = world.until("pi", |job| count(job, "succeeded") == 6).await;
    assert_eq!(listed.str_at("/status/completedIndexes"), "0-2,4,6,7");
    for at in [3, 5, 8] {
        world.succeed(of_index(&pods, at)).await;
    }
    let done = world.until("pi", |job| has(job, "Complete")).await;
    assert_eq!(done.str_at("/status/completedIndexes"), "0-8");
    assert_eq!(world.pods().await.len(), 9, "no index ran twice");
}

#[tokio::test(start_paused = true)]
async fn of_two_pods_of_one_index_the_lesser_goes() {
    let world = World::idle().await;
    let running = world.run();
    world.create(indexed(2, &doc!({}))).await;
    let pods = world.until_active(2).await;
    for pod in &pods {
        world.start(pod).await;
    }
    world.until("pi", |job| count(job, "ready") == 2).await;
    running.stop().await;
    let first = of_index(&pods, 0);
    let twin = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generateName",
        "managedFields",
    ]
    .iter()
    .fold(first.without("/status").unwrap(), |pod, field| {
        pod.without(&format!("/metadata/{field}")).unwrap_or(pod)
    });
    let twin = twin.with("/metadata/name", "twin").unwrap();
    world.cluster.create_doc(&twin).await;
    world.run();
    world.until_active(2).await;
    let mut left: Vec<_> = world.active().await;
    left.sort_by_key(index);
    assert!(left.iter().all(|pod| pod.meta().name() != "twin"));
    assert_eq!(count(&world.job("pi").await, "failed"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_elastic_job_shrinks_with_its_indexes() {
    let world = World::new().await;
    world.create(indexed(5, &doc!({}))).await;
    let pods = world.until_active(5).await;
    for at in [1, 4] {
        world.succeed(of_index(&pods, at)).await;
    }
    world.until("pi", |job| count(job, "succeeded") == 2).await;
    world
        .patch("pi", doc!({ "completions": 3, "parallelism": 3 }))
        .await;
    let shrunk = world.until("pi", |job| count(job, "succeeded") == 1).await;
    assert_eq!(shrunk.str_at("/status/completedIndexes"), "1");
    world.until_active(2).await;
    let mut left: Vec<usize> = world.active().await.iter().map(index).collect();
    left.sort_unstable();
    assert_eq!(left, [0, 2]);
    assert_eq!(count(&world.job("pi").await, "failed"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_index_that_fails_too_often_fails_alone() {
    let world = World::new().await;
    world
        .create(indexed(3, &doc!({ "backoffLimitPerIndex": 1 })))
        .await;
    let pods = world.until_active(3).await;
    let first = of_index(&pods, 1).clone();
    assert_eq!(first.meta().annotation(FAILURES), Some("0"));
    let began = Instant::now();
    world.exit(&first, 1).await;
    world.until_active(2).await;
    world.settle().await;
    let key = format!("default/{}", first.meta().name());
    let held = world.cluster.find(&crate::world::PODS, &key).await.unwrap();
    assert!(is_tracked(&held), "its counts are still needed");
    let pods = world.until_active(3).await;
    assert!((10..12).contains(&began.elapsed().as_secs()));
    let second = of_index(&pods, 1);
    assert_eq!(second.meta().annotation(FAILURES), Some("1"));
    world.until("pi", |job| count(job, "failed") == 1).await;
    world.exit(second, 1).await;
    let listed = world.until("pi", |job| count(job, "failed") == 2).await;
    assert_eq!(listed.str_at("/status/failedIndexes"), "1");
    assert!(conditions(&listed).is_empty());
    for at in [0, 2] {
        world.succeed(of_index(&pods, at)).await;
    }
    let failed = world.until("pi", |job| has(job, "Failed")).await;
    assert!(conditions(&failed)[1].ends_with("FailedIndexes"));
    assert_eq!(failed.str_at("/status/completedIndexes"), "0,2");
    assert!(
        world
            .has_event("pi", "Warning FailedIndexes Job has failed indexes")
            .await
    );
    assert!(world.pods().await.iter().all(|pod| !is_tracked(pod)));
}

#[tokio::test(start_paused = true)]
async fn too_many_failed_indexes_end_the_job() {
    let world = World::new().await;
    let spec = doc!({ "backoffLimitPerIndex": 0, "maxFailedIndexes": 0 });
    world.create(indexed(3, &spec)).await;
    let pods = world.until_active(3).await;
    world.exit(of_index(&pods, 2), 1).await;
    world.until("pi", |job| has(job, "FailureTarget")).await;
    assert!(world.active().await.is_empty());
    world.remove_deleted().await;
    let failed = world.until("pi", |job| has(job, "Failed")).await;
    assert!(conditions(&failed)[1].ends_with("MaxFailedIndexesExceeded"));
    assert_eq!(failed.str_at("/status/failedIndexes"), "2");
}

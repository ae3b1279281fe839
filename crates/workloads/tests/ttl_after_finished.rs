//! Jobs that go some time after they have finished.

use std::time::Duration;

use tokio::time::Instant;
use windlass_client::Propagation;
use windlass_core::{Doc, Gvr, doc, merge_patch};
use windlass_testing::Cluster;
use windlass_workloads::{garbage_collector, job, ttl_after_finished};

const JOBS: Gvr = Gvr::constant("batch", "v1", "jobs");
const PODS: Gvr = Gvr::constant("", "v1", "pods");

async fn cluster() -> Cluster {
    let cluster = Cluster::start().await;
    cluster.run_with("jobs", |manager| {
        job::add_to(manager, &job::Options::default());
        ttl_after_finished::add_to(manager, &ttl_after_finished::Options::default());
        garbage_collector::add_to(manager, &garbage_collector::Options::default());
    });
    cluster
}

fn job(spec: Doc) -> Doc {
    let base = doc!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": "pi", "namespace": "default" },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }]
        } } }
    });
    merge_patch(&base, &doc!({ "spec": spec }))
}

async fn find(cluster: &Cluster) -> Option<Doc> {
    cluster.find(&JOBS, "default/pi").await
}

/// Runs a Job to an end, and returns the time at which it came.
async fn run(cluster: &Cluster, spec: Doc, phase: &str) -> Instant {
    cluster.create_doc(&job(spec)).await;
    let pods = async |c: &Cluster| c.list_docs(&PODS, "default", "").await;
    cluster.until(async |c| !pods(c).await.is_empty()).await;
    let pod = &pods(cluster).await[0];
    cluster.patch_status(pod, doc!({ "phase": phase })).await;
    let is_finished = |job: &Doc| {
        let conditions = job.at("/status/conditions").items().iter();
        let kinds = conditions.map(|it| it.str_at("/type").to_owned());
        kinds
            .into_iter()
            .any(|it| it == "Complete" || it == "Failed")
    };
    let ended = async |c: &Cluster| find(c).await.is_none_or(|job| is_finished(&job));
    cluster.until(ended).await;
    Instant::now()
}

async fn until_gone(cluster: &Cluster) {
    let hour = Duration::from_secs(3600);
    cluster
        .until_within(hour, async |c| find(c).await.is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_after_its_time_and_its_pods_before_it() {
    let cluster = cluster().await;
    let ended = run(
        &cluster,
        doc!({ "ttlSecondsAfterFinished": 10 }),
        "Succeeded",
    )
    .await;
    cluster.pass(Duration::from_secs(8)).await;
    assert!(find(&cluster).await.is_some());
    until_gone(&cluster).await;
    let took = ended.elapsed().as_secs();
    assert!((9..13).contains(&took), "{took} s");
    assert!(cluster.list_docs(&PODS, "default", "").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_time_of_zero_is_over_at_once_for_failed_jobs_too() {
    let cluster = cluster().await;
    let spec = doc!({ "ttlSecondsAfterFinished": 0, "backoffLimit": 0 });
    let ended = run(&cluster, spec, "Failed").await;
    until_gone(&cluster).await;
    assert!(ended.elapsed() < Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_time_that_is_raised_counts() {
    let cluster = cluster().await;
    let ended = run(
        &cluster,
        doc!({ "ttlSecondsAfterFinished": 10 }),
        "Succeeded",
    )
    .await;
    let raised = doc!({ "spec": { "ttlSecondsAfterFinished": 100 } });
    cluster.patch(&find(&cluster).await.unwrap(), raised).await;
    cluster.pass(Duration::from_secs(95)).await;
    assert!(find(&cluster).await.is_some());
    until_gone(&cluster).await;
    assert!((99..104).contains(&ended.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn a_job_without_a_time_stays() {
    let cluster = cluster().await;
    run(&cluster, doc!({}), "Succeeded").await;
    cluster.pass(Duration::from_secs(3600)).await;
    assert!(find(&cluster).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn another_job_of_the_name_is_not_deleted_by_the_timer_of_the_first() {
    let cluster = cluster().await;
    run(
        &cluster,
        doc!({ "ttlSecondsAfterFinished": 10 }),
        "Succeeded",
    )
    .await;
    let first = find(&cluster).await.unwrap();
    cluster.delete(&first, Propagation::Background).await;
    let second = cluster
        .create_doc(&job(doc!({ "ttlSecondsAfterFinished": 10 })))
        .await;
    cluster.pass(Duration::from_secs(60)).await;
    let found = find(&cluster).await.unwrap();
    assert_eq!(found.meta().uid(), second.meta().uid());
}

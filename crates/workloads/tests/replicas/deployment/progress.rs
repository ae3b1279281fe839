//! What a Deployment says about its rollout.

use std::time::Duration;

use http::Method;
use windlass_core::{condition, doc};
use windlass_testing::Fault;

use crate::deployment::{
    is_complete, recreating,
    stage::{DEPLOYMENTS, SETS, Stage, deployment, number, on_both, reason},
};

on_both!(
    a_rollout_that_stands_still_is_late_and_recovers,
    a_changed_history_limit_is_observed,
    a_status_that_somebody_changes_is_restored,
    pausing_and_resuming_is_told,
);

async fn progress(stage: &Stage) -> String {
    reason(&stage.get(&DEPLOYMENTS, "web").await, "Progressing")
}

async fn a_rollout_that_stands_still_is_late_and_recovers(stage: &Stage) {
    stage.run();
    stage
        .create(
            deployment("web", 2)
                .with("/spec/progressDeadlineSeconds", 3)
                .unwrap(),
        )
        .await;
    stage
        .until(async |s| progress(s).await == "ProgressDeadlineExceeded")
        .await;
    let late = condition(&stage.get(&DEPLOYMENTS, "web").await, "Progressing").unwrap();
    assert_eq!(late.status, "False");
    assert!(
        late.message.ends_with("has timed out progressing."),
        "{}",
        late.message
    );
    // Pausing does not hide that.
    stage
        .patch(&DEPLOYMENTS, "web", doc!({ "spec": { "paused": true } }))
        .await;
    stage.settle().await;
    assert_eq!(progress(stage).await, "ProgressDeadlineExceeded");
    stage
        .patch(&DEPLOYMENTS, "web", doc!({ "spec": { "paused": false } }))
        .await;
    stage.make_all_ready().await;
    stage.until_complete("web").await;
    let found = stage.get(&DEPLOYMENTS, "web").await;
    assert_eq!(reason(&found, "Available"), "MinimumReplicasAvailable");
}

async fn a_changed_history_limit_is_observed(stage: &Stage) {
    stage.run();
    stage.create(deployment("web", 1)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    let limit = doc!({ "spec": { "revisionHistoryLimit": 3 } });
    let changed = stage.patch(&DEPLOYMENTS, "web", limit).await;
    let generation = changed.meta().generation();
    assert!(generation > 1);
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            number(&found, "/status/observedGeneration") == generation
        })
        .await;
}

async fn a_status_that_somebody_changes_is_restored(stage: &Stage) {
    stage.run();
    stage.create(deployment("web", 2)).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    stage.make_all_ready().await;
    stage.until_complete("web").await;
    stage.settle().await;
    let wrong = doc!({ "readyReplicas": 0, "availableReplicas": 0 });
    stage.patch_status(&DEPLOYMENTS, "web", wrong).await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            number(&found, "/status/readyReplicas") == 2
        })
        .await;
}

async fn pausing_and_resuming_is_told(stage: &Stage) {
    stage.run();
    stage.create(deployment("web", 1)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage.settle().await;
    stage
        .patch(&DEPLOYMENTS, "web", doc!({ "spec": { "paused": true } }))
        .await;
    stage
        .until(async |s| progress(s).await == "DeploymentPaused")
        .await;
    let paused = condition(&stage.get(&DEPLOYMENTS, "web").await, "Progressing").unwrap();
    assert_eq!(
        (&*paused.status, &*paused.message),
        ("Unknown", "Deployment is paused")
    );
    stage
        .patch(&DEPLOYMENTS, "web", doc!({ "spec": { "paused": false } }))
        .await;
    stage
        .until(async |s| progress(s).await == "DeploymentResumed")
        .await;
    stage.make_all_ready().await;
    stage.until_complete("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_without_a_deadline_says_nothing_about_progress() {
    let stage = Stage::embedded("patient").await;
    stage.run();
    let patient = deployment("web", 1)
        .with("/spec/progressDeadlineSeconds", i32::MAX)
        .unwrap();
    stage
        .create(patient.with("/spec/paused", true).unwrap())
        .await;
    stage.settle().await;
    stage
        .patch(&DEPLOYMENTS, "web", doc!({ "spec": { "paused": false } }))
        .await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage.make_all_ready().await;
    stage
        .until(async |s| {
            number(
                &s.get(&DEPLOYMENTS, "web").await,
                "/status/availableReplicas",
            ) == 1
        })
        .await;
    stage.cluster.pass(Duration::from_secs(7200)).await;
    assert_eq!(progress(&stage).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_rollout_is_judged_a_second_after_its_deadline_and_once() {
    let stage = Stage::embedded("deadline").await;
    stage.run();
    stage
        .create(
            deployment("web", 1)
                .with("/spec/progressDeadlineSeconds", 60)
                .unwrap(),
        )
        .await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage.cluster.pass(Duration::from_secs(58)).await;
    assert_eq!(progress(&stage).await, "ReplicaSetUpdated");
    stage.cluster.pass(Duration::from_secs(5)).await;
    assert_eq!(progress(&stage).await, "ProgressDeadlineExceeded");
    stage.settle().await;
    stage.forget_calls();
    stage.cluster.pass(Duration::from_secs(7200)).await;
    assert!(
        stage
            .calls(&Method::PUT, "/deployments/web/status")
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn a_finished_rollout_is_not_judged_again() {
    let stage = Stage::embedded("finished").await;
    stage.run();
    stage
        .create(
            deployment("web", 1)
                .with("/spec/progressDeadlineSeconds", 10)
                .unwrap(),
        )
        .await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage.make_all_ready().await;
    stage.until_complete("web").await;
    let name = stage.pods().await[0].meta().name().to_owned();
    let lost = doc!({ "conditions": [{ "type": "Ready", "status": "False" }] });
    stage
        .patch_status(&crate::deployment::stage::PODS, &name, lost)
        .await;
    stage.cluster.pass(Duration::from_secs(120)).await;
    let found = stage.get(&DEPLOYMENTS, "web").await;
    assert_eq!(reason(&found, "Available"), "MinimumReplicasUnavailable");
    assert_eq!(reason(&found, "Progressing"), "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_a_set_is_that_of_its_deployment() {
    let stage = Stage::embedded("failure").await;
    stage.fail(
        |call| match call.path.ends_with("/pods") && call.is_write() {
            true => Fault::Refuse(403, "Forbidden"),
            false => Fault::None,
        },
    );
    stage.run();
    stage.create(deployment("web", 1)).await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            reason(&found, "ReplicaFailure") == "FailedCreate"
        })
        .await;
    stage.no_faults();
    stage.cluster.pass(Duration::from_secs(600)).await;
    stage
        .until(async |s| condition(&s.get(&DEPLOYMENTS, "web").await, "ReplicaFailure").is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_set_that_cannot_be_created_is_told() {
    let stage = Stage::embedded("refused").await;
    stage.fail(
        |call| match call.path.ends_with("/replicasets") && call.is_write() {
            true => Fault::Refuse(403, "Forbidden"),
            false => Fault::None,
        },
    );
    stage.run();
    stage.create(deployment("web", 1)).await;
    stage
        .until(async |s| progress(s).await == "ReplicaSetCreateError")
        .await;
    let told = condition(&stage.get(&DEPLOYMENTS, "web").await, "Progressing").unwrap();
    assert_eq!(told.status, "False");
    assert!(
        told.message
            .starts_with("Failed to create new replica set \"web-")
    );
    let warned = async |s: &Stage| s.has_event("web", "ReplicaSetCreateError").await;
    stage.until(warned).await;
    // After fifteen retries it is left until something changes.
    stage.cluster.pass(Duration::from_secs(3600)).await;
    // One more came with the event of the status that tells of the failure.
    assert_eq!(stage.calls(&Method::POST, "/replicasets").len(), 1 + 15 + 1);
    stage.cluster.pass(Duration::from_secs(3600)).await;
    assert_eq!(stage.calls(&Method::POST, "/replicasets").len(), 17);
    stage.no_faults();
    stage.scale(&DEPLOYMENTS, "web", 2).await;
    stage.until(async |s| s.sizes().await == [2]).await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_goes_is_not_insisted_on() {
    let stage = Stage::embedded("going").await;
    stage.run();
    let paused = deployment("web", 1).with("/spec/paused", true).unwrap();
    stage.create(paused).await;
    stage.settle().await;
    let namespaces = windlass_core::Gvr::constant("", "v1", "namespaces");
    let options = windlass_client::DeleteOptions::default();
    let namespaces = stage.cluster.resource(namespaces);
    namespaces.delete(&stage.namespace, &options).await.unwrap();
    stage
        .patch(&DEPLOYMENTS, "web", doc!({ "spec": { "paused": false } }))
        .await;
    stage
        .until(async |s| !s.calls(&Method::POST, "/replicasets").is_empty())
        .await;
    stage.settle().await;
    stage.forget_calls();
    stage.cluster.pass(Duration::from_secs(3600)).await;
    assert!(stage.calls(&Method::POST, "/replicasets").is_empty());
    assert!(!stage.has_event("web", "ReplicaSetCreateError").await);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_is_being_deleted_only_counts() {
    let stage = Stage::embedded("deleting").await;
    let finalizers = vec![windlass_core::Doc::from("example.com/stay")];
    let held = deployment("web", 1)
        .with("/metadata/finalizers", finalizers)
        .unwrap();
    stage.create(held).await;
    stage.delete(&DEPLOYMENTS, "web").await;
    stage.run();
    stage
        .until(async |s| {
            number(
                &s.get(&DEPLOYMENTS, "web").await,
                "/status/observedGeneration",
            ) == 2
        })
        .await;
    stage.settle().await;
    assert!(stage.sets().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_quiet_deployment_makes_no_calls() {
    for (name, deployment) in [
        ("rolled", deployment("web", 3)),
        ("recreated", recreating("web", 3)),
    ] {
        let stage = Stage::embedded(name).await;
        stage.run();
        stage.run_kubelet();
        stage.create(deployment).await;
        stage.until_complete("web").await;
        stage.settle().await;
        stage.forget_calls();
        stage.cluster.pass(Duration::from_secs(7200)).await;
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(stage.calls_with(&method, "/apis/apps/"), 0);
        }
        assert!(is_complete(&stage.get(&DEPLOYMENTS, "web").await));
    }
}

#[tokio::test(start_paused = true)]
async fn one_sync_does_not_conflict_with_itself() {
    let stage = Stage::embedded("carried").await;
    let running = stage.run().unwrap();
    stage.create(deployment("web", 3)).await;
    stage.until(async |s| s.pods().await.len() == 3).await;
    stage.settle().await;
    let metrics = running.metrics();
    let errors =
        "controller_runtime_reconcile_errors_total{controller=\"deployment-controller\"} 0";
    assert!(metrics.contains(errors), "{metrics}");
    assert_eq!(stage.list(&SETS).await.len(), 1);
}

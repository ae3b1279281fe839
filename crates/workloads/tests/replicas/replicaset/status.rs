//! What a set says about its pods.

use std::time::Duration;

use http::Method;
use windlass_core::{Gvr, condition, doc};
use windlass_testing::Fault;

use crate::replicaset::stage::{
    PODS, SETS, Stage, number, on_both, orphan, reason, replica_set, template,
};

const QUOTAS: Gvr = Gvr::constant("", "v1", "resourcequotas");

on_both!(
    pods_with_all_labels_of_the_template_are_counted,
    pods_being_deleted_are_counted_until_they_are_gone,
    a_deleted_set_gets_no_finalizer,
    a_failure_is_over_when_fewer_pods_are_asked_for,
);

/// Lets no more than two pods be created. The real server has a quota for that.
async fn allow_two_pods(stage: &Stage) {
    if !stage.is_real() {
        let mut left = 2;
        stage.fail(move |call| {
            let is_create = call.path.ends_with("/pods") && call.method == Method::POST;
            if !is_create || left > 0 {
                left -= usize::from(is_create);
                return Fault::None;
            }
            Fault::Refuse(403, "Forbidden")
        });
        return;
    }
    let quota = doc!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "two" },
        "spec": { "hard": { "pods": "2" } }
    });
    stage.create(quota).await;
    // Nobody counts here what is used, so the status is written by hand.
    let status = doc!({ "hard": { "pods": "2" }, "used": { "pods": "0" } });
    stage.patch_status(&QUOTAS, "two", status).await;
}

async fn a_failure_is_over_when_fewer_pods_are_asked_for(stage: &Stage) {
    allow_two_pods(stage).await;
    stage.run();
    stage.create(replica_set("web", 3)).await;
    stage
        .until(async |s| {
            let set = s.get(&SETS, "web").await;
            reason(&set, "ReplicaFailure") == "FailedCreate"
                && number(&set, "/status/replicas") == 2
        })
        .await;
    stage.scale(&SETS, "web", 2).await;
    stage
        .until(async |s| {
            let set = s.get(&SETS, "web").await;
            condition(&set, "ReplicaFailure").is_none() && number(&set, "/status/replicas") == 2
        })
        .await;
}

async fn pods_with_all_labels_of_the_template_are_counted(stage: &Stage) {
    stage.run();
    stage.create(replica_set("web", 2)).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    let more = doc!({ "spec": { "template": { "metadata": { "labels": { "more": "yes" } } } } });
    stage.patch(&SETS, "web", more).await;
    let pods = stage.pods().await;
    let label = doc!({ "metadata": { "labels": { "more": "yes", "extra": "x" } } });
    stage.patch(&PODS, pods[0].meta().name(), label).await;
    stage
        .until(async |s| {
            let set = s.get(&SETS, "web").await;
            number(&set, "/status/fullyLabeledReplicas") == 1
                && number(&set, "/status/replicas") == 2
        })
        .await;
}

async fn pods_being_deleted_are_counted_until_they_are_gone(stage: &Stage) {
    stage.run();
    let set = replica_set("web", 2);
    let template = template("web", "nginx", "node");
    let template = template
        .with("/spec/terminationGracePeriodSeconds", 300)
        .unwrap();
    stage
        .create(set.with("/spec/template", template).unwrap())
        .await;
    let is_counted = async |s: &Stage, expected: i64| {
        let set = s.get(&SETS, "web").await;
        set.at("/status/terminatingReplicas").as_i64() == Some(expected)
            && number(&set, "/status/replicas") == 2
    };
    stage.until(async |s| is_counted(s, 0).await).await;
    let name = stage.pods().await[0].meta().name().to_owned();
    stage.delete(&PODS, &name).await;
    stage.until(async |s| is_counted(s, 1).await).await;
    assert_eq!(stage.pods().await.len(), 3);
    stage.end_pod(&name).await;
    stage.until(async |s| is_counted(s, 0).await).await;
}

async fn a_deleted_set_gets_no_finalizer(stage: &Stage) {
    stage.run();
    let set = replica_set("web", 1);
    let finalizers = vec![windlass_core::Doc::from("example.com/stay")];
    stage
        .create(set.with("/metadata/finalizers", finalizers).unwrap())
        .await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    let options = windlass_client::DeleteOptions::default();
    stage.api(&SETS).delete("web", &options).await.unwrap();
    let set = stage.get(&SETS, "web").await;
    assert!(set.meta().is_deleting());
    assert_eq!(
        set.meta().finalizers().collect::<Vec<_>>(),
        ["example.com/stay"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_available_when_it_was_ready_for_long_enough() {
    let stage = Stage::embedded("available").await;
    stage.run();
    let set = replica_set("web", 2)
        .with("/spec/minReadySeconds", 30)
        .unwrap();
    stage.create(set).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    let counts = async |s: &Stage| {
        let set = s.get(&SETS, "web").await;
        (
            number(&set, "/status/readyReplicas"),
            number(&set, "/status/availableReplicas"),
        )
    };
    let pods = stage.pods().await;
    stage.make_ready(&pods[0]).await;
    stage.until(async |s| counts(s).await == (1, 0)).await;
    stage.cluster.pass(Duration::from_secs(15)).await;
    stage.make_ready(&pods[1]).await;
    stage.until(async |s| counts(s).await == (2, 0)).await;
    stage.cluster.pass(Duration::from_secs(14)).await;
    assert_eq!(counts(&stage).await, (2, 0));
    stage.cluster.pass(Duration::from_secs(2)).await;
    assert_eq!(counts(&stage).await, (2, 1), "without any event of a pod");
    stage.cluster.pass(Duration::from_secs(15)).await;
    assert_eq!(counts(&stage).await, (2, 2));
    stage.settle().await;
    stage.forget_calls();
    stage.cluster.pass(Duration::from_secs(600)).await;
    assert_eq!(stage.calls_with(&Method::PUT, "replicasets"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_conflicts_is_written_on_the_newer_set() {
    let stage = Stage::embedded("conflict").await;
    stage.run();
    stage.create(replica_set("web", 1)).await;
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/replicas") == 1)
        .await;
    stage.settle().await;
    stage.forget_calls();
    let mut conflicts = 1;
    stage.fail(move |call| {
        if conflicts > 0 && call.path.ends_with("/status") && call.is_write() {
            conflicts -= 1;
            return Fault::Refuse(409, "Conflict");
        }
        Fault::None
    });
    stage.make_all_ready().await;
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/readyReplicas") == 1)
        .await;
    stage.settle().await;
    assert_eq!(
        stage.calls(&Method::PUT, "/replicasets/web/status").len(),
        2
    );
    assert_eq!(stage.calls(&Method::GET, "/replicasets/web").len(), 1);
}

/// Each refusal names another pod. That is no news, and no reason to try again at once.
#[tokio::test(start_paused = true)]
async fn a_failure_that_lasts_is_told_once_and_retried_ever_more_slowly() {
    let stage = Stage::embedded("failure").await;
    let quota = doc!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "none" },
        "spec": { "hard": { "pods": "0" } }
    });
    stage.create(quota).await;
    let status = doc!({ "hard": { "pods": "0" }, "used": { "pods": "0" } });
    stage.patch_status(&QUOTAS, "none", status).await;
    stage.run();
    stage.create(replica_set("web", 1)).await;
    let failure = async |s: &Stage| condition(&s.get(&SETS, "web").await, "ReplicaFailure");
    stage.until(async |s| failure(s).await.is_some()).await;
    let first = failure(&stage).await.unwrap();
    assert!(first.message.contains("exceeded quota"), "{first:?}");
    stage.cluster.pass(Duration::from_secs(60)).await;
    let last = failure(&stage).await.unwrap();
    assert_eq!((&*last.status, &*last.reason), ("True", "FailedCreate"));
    assert_eq!(last.message, first.message);
    let attempts = stage.calls(&Method::POST, "/pods").len();
    assert!((5..20).contains(&attempts), "{attempts} attempts");
    let told = stage.calls(&Method::PUT, "/replicasets/web/status").len();
    assert!(told <= 2, "{told} writes");
}

#[tokio::test(start_paused = true)]
async fn pods_that_have_ended_are_neither_counted_nor_deleted() {
    let stage = Stage::embedded("ended").await;
    stage.run();
    stage.create(replica_set("web", 1)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    let name = stage.pods().await[0].meta().name().to_owned();
    stage
        .patch_status(&PODS, &name, doc!({ "phase": "Succeeded" }))
        .await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    stage.scale(&SETS, "web", 0).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage.settle().await;
    assert_eq!(
        stage.get(&PODS, &name).await.str_at("/status/phase"),
        "Succeeded"
    );
    // An orphan that has ended is not adopted either.
    stage.create(orphan("done", "web")).await;
    assert_eq!(
        number(&stage.get(&SETS, "web").await, "/status/replicas"),
        0
    );
}

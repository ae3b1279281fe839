//! What people do with sets and Deployments, step by step. Each step waits for its effect, so
//! that the end does not depend on how fast controllers are.

use std::pin::Pin;

use windlass_core::{Doc, Gvr, doc, merge_patch};

use crate::stage::{
    DEPLOYMENTS, PODS, SETS, Stage, deployment, number, orphan, reason, replica_set, revision,
    template,
};

pub(crate) type Playing<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Plays on a stage.
pub(crate) type Script = fn(&Stage) -> Playing<'_>;

const CONTROLLERS: Gvr = Gvr::constant("", "v1", "replicationcontrollers");
pub(crate) const QUOTAS: Gvr = Gvr::constant("", "v1", "resourcequotas");
pub(crate) const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(crate) const ROLLBACK: &str = "deprecated.deployment.rollback.to";

macro_rules! scripts {
    ($($name:ident),+ $(,)?) => {
        vec![$((stringify!($name), {
            fn play(stage: &Stage) -> $crate::scripts::Playing<'_> {
                Box::pin($name(stage))
            }
            play as Script
        })),+]
    };
}
pub(crate) use scripts;

/// The scripts by name.
pub(crate) fn all() -> Vec<(&'static str, Script)> {
    scripts![
        set_scaled,
        set_adopts,
        set_releases,
        set_replaces_what_ended,
        set_waits_for_availability,
        set_under_quota,
        set_spares_expensive_pods,
        sets_of_one_selector,
        controller_scaled,
        deployment_created,
        deployment_updated,
        deployment_undone,
        deployment_rolled_back,
        deployment_paused,
        deployment_scaled_in_the_middle,
        deployment_recreated,
        deployment_with_short_history,
        deployment_late,
        deployment_with_adopted_set,
        deployment_overtaken,
    ]
}

pub(crate) async fn until_set(stage: &Stage, name: &str, replicas: i64, ready: i64) {
    stage
        .until(async |s| {
            let set = s.get(&SETS, name).await;
            number(&set, "/status/replicas") == replicas
                && number(&set, "/status/readyReplicas") == ready
                && number(&set, "/status/observedGeneration") == set.meta().generation()
        })
        .await;
}

pub(crate) async fn until_complete(stage: &Stage) {
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            let wanted = number(&found, "/spec/replicas");
            let counts = ["replicas", "updatedReplicas", "availableReplicas"];
            let count = |name: &&str| number(&found, &format!("/status/{name}")) == wanted;
            number(&found, "/status/observedGeneration") == found.meta().generation()
                && counts.iter().all(count)
                && reason(&found, "Progressing") == "NewReplicaSetAvailable"
        })
        .await;
}

pub(crate) async fn set_image(stage: &Stage, image: &str) {
    let patch = doc!({
        "spec": { "template": { "spec": { "containers": [{ "name": "c", "image": image }] } } }
    });
    stage.patch(&DEPLOYMENTS, "web", patch).await;
}

pub(crate) fn rolling(replicas: i64, surge: i64, unavailable: i64) -> Doc {
    let strategy = doc!({
        "type": "RollingUpdate",
        "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable }
    });
    deployment("web", replicas)
        .with("/spec/strategy", strategy)
        .unwrap()
}

pub(crate) async fn sizes(stage: &Stage) -> Vec<i64> {
    let sets = stage.sets().await;
    sets.iter()
        .map(|set| number(set, "/spec/replicas"))
        .collect()
}

pub(crate) async fn until_sizes(stage: &Stage, expected: &[i64]) {
    stage.until(async |s| sizes(s).await == expected).await;
    stage.settle().await;
}

pub(crate) async fn until_gone(stage: &Stage, resource: &Gvr, name: &str) {
    stage
        .until(async |s| s.find(resource, name).await.is_none())
        .await;
}

pub(crate) async fn until_rolled_back(stage: &Stage) {
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            found.meta().annotation(ROLLBACK).is_none()
        })
        .await;
}

/// A Deployment whose first two revisions were rolled out.
pub(crate) async fn roll_out_two(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    set_image(stage, "nginx:2").await;
    until_complete(stage).await;
    stage.settle().await;
}

pub(crate) fn pause(is_paused: bool) -> Doc {
    doc!({ "spec": { "paused": is_paused } })
}

async fn set_scaled(stage: &Stage) {
    stage.run_kubelet();
    stage.create(replica_set("web", 3)).await;
    for replicas in [3, 5, 0, 2] {
        stage.scale(&SETS, "web", replicas).await;
        until_set(stage, "web", replicas, replicas).await;
    }
}

async fn set_adopts(stage: &Stage) {
    stage.create(orphan("free", "web")).await;
    stage.create(orphan("foreign", "other")).await;
    stage.create(replica_set("web", 2)).await;
    until_set(stage, "web", 2, 0).await;
}

async fn set_releases(stage: &Stage) {
    stage.create(replica_set("web", 1)).await;
    until_set(stage, "web", 1, 0).await;
    let name = stage.pods().await[0].meta().name().to_owned();
    let label = doc!({ "metadata": { "labels": { "app": "away" } } });
    stage.patch(&PODS, &name, label).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
}

async fn set_replaces_what_ended(stage: &Stage) {
    let set = replica_set("web", 2);
    let finalizers = doc!({ "metadata": { "finalizers": ["example.com/stay"] } });
    let template = merge_patch(set.at("/spec/template"), &finalizers);
    stage
        .create(set.with("/spec/template", template).unwrap())
        .await;
    until_set(stage, "web", 2, 0).await;
    let pods = stage.pods().await;
    stage.delete(&PODS, pods[0].meta().name()).await;
    stage
        .patch_status(&PODS, pods[1].meta().name(), doc!({ "phase": "Failed" }))
        .await;
    stage.until(async |s| s.pods().await.len() == 4).await;
}

async fn set_waits_for_availability(stage: &Stage) {
    let patient = replica_set("web", 2)
        .with("/spec/minReadySeconds", 3600)
        .unwrap();
    stage.create(patient).await;
    until_set(stage, "web", 2, 0).await;
    stage.make_all_ready().await;
    until_set(stage, "web", 2, 2).await;
}

async fn set_under_quota(stage: &Stage) {
    let quota = doc!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "quota" },
        "spec": { "hard": { "pods": "2" } }
    });
    stage.create(quota).await;
    // Nobody counts what is used here; the server adds to what is said in the status.
    let used = |count: &str| doc!({ "hard": { "pods": "2" }, "used": { "pods": count } });
    stage.patch_status(&QUOTAS, "quota", used("2")).await;
    let dry_run = windlass_client::WriteOptions::default().dry_run();
    stage
        .until(async |s| {
            let pod = orphan("dry", "other");
            s.api(&PODS).create(&pod, &dry_run).await.is_err()
        })
        .await;
    stage.patch_status(&QUOTAS, "quota", used("0")).await;
    stage.create(replica_set("web", 3)).await;
    until_set(stage, "web", 2, 0).await;
    stage
        .until(async |s| reason(&s.get(&SETS, "web").await, "ReplicaFailure") == "FailedCreate")
        .await;
    stage
        .until(async |s| s.has_event("web", "FailedCreate").await)
        .await;
    stage.scale(&SETS, "web", 2).await;
    stage
        .until(async |s| reason(&s.get(&SETS, "web").await, "ReplicaFailure").is_empty())
        .await;
}

async fn set_spares_expensive_pods(stage: &Stage) {
    stage.create(replica_set("web", 3)).await;
    until_set(stage, "web", 3, 0).await;
    for (at, pod) in stage.pods().await.iter().enumerate() {
        let cost = ((at as i64 + 1) * 100).to_string();
        let cost = doc!({ COST: cost });
        let patch = doc!({ "metadata": { "annotations": cost } });
        stage.patch(&PODS, pod.meta().name(), patch).await;
    }
    stage.settle().await;
    stage.scale(&SETS, "web", 1).await;
    until_set(stage, "web", 1, 0).await;
}

async fn sets_of_one_selector(stage: &Stage) {
    for (name, replicas) in [("one", 1), ("two", 2)] {
        let set = replica_set("web", replicas);
        stage
            .create(set.with("/metadata/name", name).unwrap())
            .await;
        until_set(stage, name, replicas, 0).await;
    }
}

async fn controller_scaled(stage: &Stage) {
    let controller = doc!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": { "name": "web" },
        "spec": { "replicas": 3, "template": (template("web", "nginx", "")) }
    });
    stage.create(controller).await;
    for replicas in [3, 1] {
        stage.scale(&CONTROLLERS, "web", replicas).await;
        stage
            .until(async |s| {
                let found = s.get(&CONTROLLERS, "web").await;
                number(&found, "/status/replicas") == replicas
            })
            .await;
    }
}

async fn deployment_created(stage: &Stage) {
    stage.run_kubelet();
    let note = doc!({ "example.com/note": "x", "kubernetes.io/change-cause": "first" });
    let noted = deployment("web", 4)
        .with("/metadata/annotations", note)
        .unwrap();
    stage.create(noted).await;
    until_complete(stage).await;
}

async fn deployment_updated(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 4)).await;
    until_complete(stage).await;
    for number in 2..=4 {
        set_image(stage, &format!("nginx:{number}")).await;
        until_complete(stage).await;
    }
    let patient = doc!({ "spec": { "minReadySeconds": 1 } });
    stage.patch(&DEPLOYMENTS, "web", patient).await;
    stage.settle().await;
    until_complete(stage).await;
}

async fn deployment_undone(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    for image in ["nginx:2", "nginx:1", "nginx:2"] {
        set_image(stage, image).await;
        until_complete(stage).await;
        stage.settle().await;
    }
}

async fn deployment_rolled_back(stage: &Stage) {
    roll_out_two(stage).await;
    for to in ["0", "99", "3"] {
        let patch = doc!({ "metadata": { "annotations": { ROLLBACK: to } } });
        stage.patch(&DEPLOYMENTS, "web", patch).await;
        until_rolled_back(stage).await;
        until_complete(stage).await;
        stage.settle().await;
    }
}

async fn deployment_paused(stage: &Stage) {
    stage.run_kubelet();
    let pause = |is_paused: bool| doc!({ "spec": { "paused": is_paused } });
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    stage.settle().await;
    stage.patch(&DEPLOYMENTS, "web", pause(true)).await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            reason(&found, "Progressing") == "DeploymentPaused"
        })
        .await;
    set_image(stage, "nginx:2").await;
    stage.scale(&DEPLOYMENTS, "web", 4).await;
    stage.until(async |s| sizes(s).await == [4]).await;
    stage.settle().await;
    stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
    until_complete(stage).await;
}

async fn deployment_scaled_in_the_middle(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(10, 3, 2)).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    stage.until(async |s| sizes(s).await == [8, 5]).await;
    stage.settle().await;
    stage.scale(&DEPLOYMENTS, "web", 20).await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            number(&found, "/status/replicas") == 23
        })
        .await;
}

async fn deployment_recreated(stage: &Stage) {
    stage.run_kubelet();
    let strategy = doc!({ "type": "Recreate" });
    stage
        .create(
            deployment("web", 3)
                .with("/spec/strategy", strategy)
                .unwrap(),
        )
        .await;
    until_complete(stage).await;
    set_image(stage, "nginx:2").await;
    until_complete(stage).await;
    stage.scale(&DEPLOYMENTS, "web", 1).await;
    until_complete(stage).await;
}

async fn deployment_with_short_history(stage: &Stage) {
    stage.run_kubelet();
    let short = deployment("web", 1)
        .with("/spec/revisionHistoryLimit", 1)
        .unwrap();
    stage.create(short).await;
    until_complete(stage).await;
    for number in 2..=4 {
        set_image(stage, &format!("nginx:{number}")).await;
        until_complete(stage).await;
    }
    stage.until(async |s| s.sets().await.len() == 2).await;
}

async fn deployment_late(stage: &Stage) {
    let late = deployment("web", 2)
        .with("/spec/progressDeadlineSeconds", 2)
        .unwrap();
    stage.create(late).await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            let is_late = reason(&found, "Progressing") == "ProgressDeadlineExceeded";
            // What comes after the deadline is progress all the same, and starts the clock again.
            is_late && number(&found, "/status/updatedReplicas") == 2
        })
        .await;
}

async fn deployment_with_adopted_set(stage: &Stage) {
    let annotations = doc!({ "deployment.kubernetes.io/revision": "41" });
    let set = replica_set("web", 1)
        .with("/metadata/annotations", annotations)
        .unwrap();
    stage.create(set).await;
    until_set(stage, "web", 1, 0).await;
    stage.run_kubelet();
    until_set(stage, "web", 1, 1).await;
    stage.create(deployment("web", 1)).await;
    until_complete(stage).await;
    assert_eq!(revision(&stage.get(&DEPLOYMENTS, "web").await), 42);
}

async fn deployment_overtaken(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(4, 1, 1)).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    stage.until(async |s| sizes(s).await == [3, 2]).await;
    stage.settle().await;
    set_image(stage, "nginx:3").await;
    until_complete(stage).await;
}

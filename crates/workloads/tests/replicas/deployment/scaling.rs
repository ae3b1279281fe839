//! Scaling, in the middle of a rollout and outside of one.

use http::Method;
use windlass_core::{Doc, doc};
use windlass_testing::Fault;

use crate::deployment::{
    rolling,
    stage::{DEPLOYMENTS, SETS, Stage, deployment, number, on_both, revision},
};

on_both!(
    a_rollout_in_the_middle_is_scaled_in_proportion,
    a_scale_and_a_new_template_at_once,
    the_scale_subresource_scales_a_deployment,
    overlapping_deployments_do_not_meddle,
    a_paused_deployment_is_scaled_and_not_rolled_out,
    pods_being_deleted_do_not_hold_a_scaling,
);

fn annotation(set: &Doc, name: &str) -> String {
    let name = format!("deployment.kubernetes.io/{name}");
    set.meta().annotation(&name).unwrap_or("").to_owned()
}

async fn a_rollout_in_the_middle_is_scaled_in_proportion(stage: &Stage) {
    stage.run();
    stage.run_kubelet();
    stage.create(rolling("web", 100, 20, 0)).await;
    stage.until_complete("web").await;
    stage.set_image("web", "broken").await;
    stage.until(async |s| s.sizes().await == [100, 20]).await;
    stage.settle().await;
    stage.scale(&DEPLOYMENTS, "web", 120).await;
    stage.until(async |s| s.sizes().await == [117, 23]).await;
    stage.settle().await;
    let sets = stage.sets().await;
    assert_eq!(stage.sizes().await, [117, 23]);
    for (at, set) in sets.iter().enumerate() {
        assert_eq!(annotation(set, "desired-replicas"), "120");
        assert_eq!(annotation(set, "max-replicas"), "140");
        assert_eq!(revision(set), at as i64 + 1);
    }
}

async fn a_scale_and_a_new_template_at_once(stage: &Stage) {
    stage.run();
    stage.run_kubelet();
    stage.create(deployment("web", 10)).await;
    stage.until_complete("web").await;
    for (replicas, image) in [(20, "nginx:2"), (5, "nginx:3")] {
        let patch = doc!({
            "spec": {
                "replicas": replicas,
                "template": { "spec": { "containers": [{ "name": "c", "image": image }] } }
            }
        });
        stage.patch(&DEPLOYMENTS, "web", patch).await;
        stage.until_complete("web").await;
        let wanted = replicas.to_string();
        stage
            .until(async |s| {
                let sets = s.sets().await;
                // The one that goes and the one that comes; those before them are history.
                let mut last = sets.iter().rev().take(2);
                last.all(|set| annotation(set, "desired-replicas") == wanted)
            })
            .await;
        let sizes = stage.sizes().await;
        assert_eq!(sizes.last(), Some(&i64::from(replicas)));
        assert_eq!(sizes.iter().sum::<i64>(), i64::from(replicas));
    }
}

async fn the_scale_subresource_scales_a_deployment(stage: &Stage) {
    stage.run();
    stage.create(deployment("web", 2)).await;
    for replicas in [3, 0] {
        stage.put_scale(&DEPLOYMENTS, "web", replicas).await;
        stage.until(async |s| s.sizes().await == [replicas]).await;
        stage
            .until(async |s| s.pods().await.len() as i64 == replicas)
            .await;
    }
}

async fn overlapping_deployments_do_not_meddle(stage: &Stage) {
    stage.run();
    for name in ["one", "two"] {
        stage
            .create(deployment("web", 2).with("/metadata/name", name).unwrap())
            .await;
    }
    stage.until(async |s| s.pods().await.len() == 4).await;
    stage.scale(&DEPLOYMENTS, "one", 3).await;
    stage.until(async |s| s.pods().await.len() == 5).await;
    stage.settle().await;
    let sets = stage.sets().await;
    let sizes = |owner: &str| {
        let of = sets
            .iter()
            .filter(|set| set.meta().controller().is_some_and(|it| it.name == owner));
        of.map(|set| number(set, "/spec/replicas"))
            .collect::<Vec<_>>()
    };
    assert_eq!((sizes("one"), sizes("two")), (vec![3], vec![2]));
}

async fn a_paused_deployment_is_scaled_and_not_rolled_out(stage: &Stage) {
    stage.run();
    let pause = |is_paused: bool| doc!({ "spec": { "paused": is_paused } });
    let paused = deployment("web", 2).with("/spec/paused", true).unwrap();
    stage.create(paused).await;
    stage
        .until(async |s| {
            number(
                &s.get(&DEPLOYMENTS, "web").await,
                "/status/observedGeneration",
            ) == 1
        })
        .await;
    stage.settle().await;
    assert!(stage.sets().await.is_empty());
    stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
    stage.until(async |s| s.sizes().await == [2]).await;
    stage
        .until(async |s| revision(&s.get(&DEPLOYMENTS, "web").await) == 1)
        .await;
    stage.settle().await;
    stage.patch(&DEPLOYMENTS, "web", pause(true)).await;
    stage.settle().await;
    stage.set_image("web", "nginx:2").await;
    stage.scale(&DEPLOYMENTS, "web", 3).await;
    stage.until(async |s| s.sizes().await == [3]).await;
    stage.settle().await;
    let sets = stage.sets().await;
    assert_eq!(sets.len(), 1);
    assert_eq!(
        sets[0].str_at("/spec/template/spec/containers/0/image"),
        "nginx:1"
    );
    stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
    stage.until(async |s| s.sets().await.len() == 2).await;
}

async fn pods_being_deleted_do_not_hold_a_scaling(stage: &Stage) {
    stage.run();
    let template = crate::deployment::stage::template("web", "nginx:1", "node");
    let rolling = rolling("web", 10, 3, 2).with("/spec/template", template);
    stage.create(rolling.unwrap()).await;
    stage.until(async |s| s.pods().await.len() == 10).await;
    stage.make_all_ready().await;
    stage.until_complete("web").await;
    // Nobody ends the pods that are being deleted, and the new ones do not become ready.
    stage.set_image("web", "nginx:2").await;
    stage.until(async |s| s.sizes().await == [8, 5]).await;
    let terminating = async |s: &Stage| {
        let found = s.get(&DEPLOYMENTS, "web").await;
        number(&found, "/status/terminatingReplicas")
    };
    stage.until(async |s| terminating(s).await == 2).await;
    stage.settle().await;
    stage.scale(&DEPLOYMENTS, "web", 20).await;
    stage.until(async |s| s.sizes().await == [14, 9]).await;
    stage
        .until(async |s| number(&s.get(&DEPLOYMENTS, "web").await, "/status/replicas") == 23)
        .await;
    assert_eq!(terminating(stage).await, 2);
    assert_eq!(stage.pods().await.len(), 25);
}

#[tokio::test(start_paused = true)]
async fn a_scaling_that_fails_half_way_is_finished() {
    let stage = Stage::embedded("half").await;
    stage.run();
    stage.run_kubelet();
    stage.create(rolling("web", 10, 2, 0)).await;
    stage.until_complete("web").await;
    stage.set_image("web", "broken").await;
    stage.until(async |s| s.sizes().await == [10, 2]).await;
    stage.settle().await;
    let mut writes = 0;
    stage.fail(move |call| {
        let is_set = call.path.contains("/replicasets/") && !call.path.ends_with("/status");
        if call.method != Method::PUT || !is_set {
            return Fault::None;
        }
        writes += 1;
        match writes {
            2 => Fault::Refuse(500, "InternalError"),
            _ => Fault::None,
        }
    });
    stage.scale(&DEPLOYMENTS, "web", 20).await;
    stage.until(async |s| s.sizes().await == [18, 4]).await;
    stage.settle().await;
    assert_eq!(stage.sizes().await, [18, 4]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_deployment_grows_by_its_new_set() {
    let stage = Stage::embedded("empty").await;
    stage.run();
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    stage.until_complete("web").await;
    stage.set_image("web", "nginx:2").await;
    stage.until_complete("web").await;
    stage.scale(&DEPLOYMENTS, "web", 0).await;
    stage.until(async |s| s.sizes().await == [0, 0]).await;
    stage.settle().await;
    stage.scale(&DEPLOYMENTS, "web", 6).await;
    stage.until(async |s| s.sizes().await == [0, 6]).await;
    let sets = stage.sets().await;
    assert_eq!(annotation(&sets[1], "desired-replicas"), "6");
    assert_eq!(
        stage
            .get(&SETS, sets[0].meta().name())
            .await
            .at("/spec/replicas"),
        &doc!(0)
    );
}

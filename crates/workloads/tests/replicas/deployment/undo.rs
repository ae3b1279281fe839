//! Going back: by the template, as kubectl does, and by the annotation of old clients.

use windlass_core::{Doc, doc};

use crate::deployment::stage::{DEPLOYMENTS, Stage, deployment, on_both, revision};

on_both!(
    an_undone_rollout_reuses_its_set,
    the_annotation_rolls_back,
    a_mix_of_everything_ends_well,
);

const ROLLBACK: &str = "deprecated.deployment.rollback.to";

async fn two_revisions(stage: &Stage) {
    stage.run();
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    stage.until_complete("web").await;
    stage.set_image("web", "nginx:2").await;
    stage.until_complete("web").await;
    stage.settle().await;
}

fn image(object: &Doc) -> &str {
    object.str_at("/spec/template/spec/containers/0/image")
}

async fn an_undone_rollout_reuses_its_set(stage: &Stage) {
    two_revisions(stage).await;
    let first = stage.sets().await.remove(0);
    stage.set_image("web", "nginx:1").await;
    stage.until_complete("web").await;
    stage.settle().await;
    let sets = stage.sets().await;
    assert_eq!(sets.iter().map(revision).collect::<Vec<_>>(), [2, 3]);
    let again = &sets[1];
    assert_eq!(again.meta().uid(), first.meta().uid());
    let history = "deployment.kubernetes.io/revision-history";
    assert_eq!(again.meta().annotation(history), Some("1"));
    assert_eq!(revision(&stage.get(&DEPLOYMENTS, "web").await), 3);
    assert_eq!(stage.sizes().await, [0, 2]);
}

async fn the_annotation_rolls_back(stage: &Stage) {
    two_revisions(stage).await;
    let to = |revision: &str| doc!({ "metadata": { "annotations": { ROLLBACK: revision } } });
    let is_taken = async |s: &Stage| {
        s.get(&DEPLOYMENTS, "web")
            .await
            .meta()
            .annotation(ROLLBACK)
            .is_none()
    };
    // Zero is the one before the current.
    stage.patch(&DEPLOYMENTS, "web", to("0")).await;
    stage.until(is_taken).await;
    assert_eq!(image(&stage.get(&DEPLOYMENTS, "web").await), "nginx:1");
    stage.until_complete("web").await;
    stage
        .until(async |s| s.has_event("web", "DeploymentRollback").await)
        .await;
    let template = stage.get(&DEPLOYMENTS, "web").await;
    assert!(
        template
            .at("/spec/template/metadata/labels/pod-template-hash")
            .is_null()
    );
    stage.settle().await;
    stage.patch(&DEPLOYMENTS, "web", to("99")).await;
    stage.until(is_taken).await;
    let missing = "DeploymentRollbackRevisionNotFound";
    stage
        .until(async |s| s.has_event("web", missing).await)
        .await;
    stage.settle().await;
    stage.patch(&DEPLOYMENTS, "web", to("3")).await;
    stage.until(is_taken).await;
    let unchanged = "DeploymentRollbackTemplateUnchanged";
    stage
        .until(async |s| s.has_event("web", unchanged).await)
        .await;
    assert_eq!(image(&stage.get(&DEPLOYMENTS, "web").await), "nginx:1");
}

async fn a_mix_of_everything_ends_well(stage: &Stage) {
    stage.run();
    stage.run_kubelet();
    stage.create(deployment("web", 6)).await;
    let pause = |is_paused: bool| doc!({ "spec": { "paused": is_paused } });
    for round in 0..5_i64 {
        stage.set_image("web", &format!("nginx:{round}")).await;
        stage.scale(&DEPLOYMENTS, "web", 4 + round).await;
        stage.patch(&DEPLOYMENTS, "web", pause(true)).await;
        stage.scale(&DEPLOYMENTS, "web", 8 - round).await;
        if let Some(pod) = stage.pods().await.first() {
            stage.end_pod(pod.meta().name()).await;
        }
        stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
        let to = doc!({ "metadata": { "annotations": { ROLLBACK: "0" } } });
        if round % 2 == 0 {
            stage.patch(&DEPLOYMENTS, "web", to).await;
        }
        stage
            .cluster
            .pass(std::time::Duration::from_millis(30))
            .await;
    }
    stage.until_complete("web").await;
    let live: Vec<i64> = stage
        .sizes()
        .await
        .into_iter()
        .filter(|size| *size > 0)
        .collect();
    assert_eq!(live, [4]);
}

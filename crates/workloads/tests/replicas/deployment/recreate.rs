//! Recreation: no new pod before the last old one is gone.

use windlass_core::doc;

use crate::deployment::{
    is_complete, recreating,
    stage::{DEPLOYMENTS, PODS, Stage, number, on_both, revision, template},
};

on_both!(
    new_pods_come_when_the_old_ones_are_gone,
    no_new_pod_runs_beside_an_old_one,
    a_recreated_deployment_can_be_scaled,
);

async fn new_pods_come_when_the_old_ones_are_gone(stage: &Stage) {
    stage.run();
    let slow = template("web", "nginx:1", "node")
        .with("/spec/terminationGracePeriodSeconds", 300)
        .unwrap();
    stage
        .create(recreating("web", 6).with("/spec/template", slow).unwrap())
        .await;
    let ready = async |s: &Stage| {
        s.make_all_ready().await;
        is_complete(&s.get(&DEPLOYMENTS, "web").await)
    };
    stage.until(ready).await;
    let old = stage.pods().await;
    stage.set_image("web", "nginx:2").await;
    stage.until(async |s| s.sizes().await == [0]).await;
    stage
        .until(async |s| s.pods().await.iter().all(|pod| pod.meta().is_deleting()))
        .await;
    stage.settle().await;
    assert_eq!(stage.sets().await.len(), 1, "no new set while old pods end");
    let found = stage.get(&DEPLOYMENTS, "web").await;
    assert_eq!(number(&found, "/status/terminatingReplicas"), 6);
    for pod in &old[..5] {
        stage.end_pod(pod.meta().name()).await;
    }
    stage.settle().await;
    assert_eq!(stage.sets().await.len(), 1);
    stage.end_pod(old[5].meta().name()).await;
    stage.until(ready).await;
    assert_eq!(stage.sizes().await, [0, 6]);
    // A pod that somebody deletes is replaced at once, and so is a scale followed.
    let name = stage.pods().await[0].meta().name().to_owned();
    stage.delete(&PODS, &name).await;
    stage.until(async |s| s.pods().await.len() == 7).await;
    stage.scale(&DEPLOYMENTS, "web", 7).await;
    stage.until(async |s| s.pods().await.len() == 8).await;
    stage.scale(&DEPLOYMENTS, "web", 5).await;
    stage
        .until(async |s| number(&s.get(&DEPLOYMENTS, "web").await, "/status/replicas") == 5)
        .await;
}

async fn no_new_pod_runs_beside_an_old_one(stage: &Stage) {
    use windlass_client::{WatchEvent, WatchOptions};
    stage.run();
    stage.run_kubelet();
    stage.create(recreating("web", 3)).await;
    stage.until_complete("web").await;
    let mut watch = stage
        .api(&PODS)
        .watch(&WatchOptions::initial())
        .await
        .unwrap();
    stage.set_image("web", "nginx:2").await;
    stage.until_complete("web").await;
    let (mut old, mut new) = (0, 0);
    while new < 3 {
        let event = watch.next().await.unwrap().unwrap();
        let image = event.object().str_at("/spec/containers/0/image").to_owned();
        match (&event, &*image) {
            (WatchEvent::Added(_), "nginx:1") => old += 1,
            (WatchEvent::Deleted(_), "nginx:1") => old -= 1,
            (WatchEvent::Added(_), "nginx:2") => {
                assert_eq!(old, 0, "old pods are still there");
                new += 1;
            }
            _ => {}
        }
    }
}

async fn a_recreated_deployment_can_be_scaled(stage: &Stage) {
    stage.run();
    stage.create(recreating("web", 1)).await;
    for replicas in [1, 2, 0, 1] {
        stage.scale(&DEPLOYMENTS, "web", replicas).await;
        stage.until(async |s| s.sizes().await == [replicas]).await;
        stage
            .until(async |s| s.pods().await.len() as i64 == replicas)
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn pods_that_have_ended_do_not_hold_a_recreation() {
    let stage = Stage::embedded("ended").await;
    stage.run();
    stage.create(recreating("web", 1)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    let name = stage.pods().await[0].meta().name().to_owned();
    stage
        .patch_status(&PODS, &name, doc!({ "phase": "Failed" }))
        .await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    stage.set_image("web", "nginx:2").await;
    stage.until(async |s| s.sizes().await == [0, 1]).await;
    assert_eq!(revision(&stage.get(&DEPLOYMENTS, "web").await), 2);
    assert!(
        stage.find(&PODS, &name).await.is_some(),
        "it is left for others to see"
    );
}

#[tokio::test(start_paused = true)]
async fn a_recreation_in_the_middle_is_not_scaled_in_proportion() {
    let stage = Stage::embedded("middle").await;
    stage.run();
    // Two sets have pods, which no recreation would lead to.
    stage
        .create(crate::deployment::rolling("web", 4, 1, 1))
        .await;
    stage.until(async |s| s.pods().await.len() == 4).await;
    stage.make_all_ready().await;
    stage.until_complete("web").await;
    stage.set_image("web", "nginx:2").await;
    stage.until(async |s| s.sizes().await == [3, 2]).await;
    stage.settle().await;
    let strategy = doc!({
        "spec": { "replicas": 8, "strategy": { "type": "Recreate", "rollingUpdate": null } }
    });
    stage.patch(&DEPLOYMENTS, "web", strategy).await;
    stage.settle().await;
    assert_eq!(stage.sizes().await, [3, 2]);
}

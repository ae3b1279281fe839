//! Old sets are kept for a while.

use windlass_client::{WatchEvent, WatchOptions};
use windlass_core::doc;

use crate::deployment::stage::{
    DEPLOYMENTS, PODS, SETS, Stage, deployment, number, on_both, replica_set, revision,
};

on_both!(
    the_history_keeps_the_newest_revisions,
    a_history_of_nothing_is_emptied,
    a_set_that_is_used_blocks_its_place,
);

async fn the_history_keeps_the_newest_revisions(stage: &Stage) {
    stage.run();
    stage.run_kubelet();
    stage
        .create(
            deployment("web", 1)
                .with("/spec/revisionHistoryLimit", 2)
                .unwrap(),
        )
        .await;
    stage.until_complete("web").await;
    for number in 2..=5 {
        stage.set_image("web", &format!("nginx:{number}")).await;
        stage.until_complete("web").await;
    }
    stage.until(async |s| s.sets().await.len() == 3).await;
    stage.settle().await;
    let revisions: Vec<i64> = stage.sets().await.iter().map(revision).collect();
    assert_eq!(revisions, [3, 4, 5]);
}

async fn a_history_of_nothing_is_emptied(stage: &Stage) {
    stage.run();
    stage.create(replica_set("web", 1)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage.run_kubelet();
    let mut watch = stage
        .api(&PODS)
        .watch(&WatchOptions::initial())
        .await
        .unwrap();
    stage
        .create(
            deployment("web", 1)
                .with("/spec/revisionHistoryLimit", 0)
                .unwrap(),
        )
        .await;
    stage.until_complete("web").await;
    stage.until(async |s| s.sets().await.len() == 1).await;
    assert_eq!(
        stage.sets().await[0].meta().controller().unwrap().name,
        "web"
    );
    stage.settle().await;
    stage
        .create(crate::deployment::stage::orphan("last", "other"))
        .await;
    let mut created = Vec::new();
    loop {
        let event = watch.next().await.unwrap().unwrap();
        if let WatchEvent::Added(pod) = &event {
            if pod.meta().name() == "last" {
                break;
            }
            created.push(pod.meta().name().to_owned());
        }
    }
    assert_eq!(created.len(), 2, "the old pod and one new one: {created:?}");
}

async fn a_set_that_is_used_blocks_its_place(stage: &Stage) {
    // The lowest revision has pods, and the Deployment is paused: nothing goes in its place.
    for (name, replicas, revision) in [("one", 1, "1"), ("two", 0, "2"), ("three", 0, "3")] {
        let annotations = doc!({ "deployment.kubernetes.io/revision": revision });
        let image = doc!({
            "metadata": { "name": name, "annotations": annotations },
            "spec": { "template": { "spec": { "containers": [{ "name": "c", "image": name }] } } }
        });
        let set = windlass_core::merge_patch(&replica_set("web", replicas), &image);
        stage.create(set).await;
    }
    stage.run();
    stage
        .until(async |s| {
            let sets = s.sets().await;
            sets.iter()
                .all(|set| number(set, "/status/observedGeneration") > 0)
        })
        .await;
    let paused = deployment("web", 1).with("/spec/paused", true).unwrap();
    stage
        .create(paused.with("/spec/revisionHistoryLimit", 1).unwrap())
        .await;
    stage
        .until(async |s| s.find(&SETS, "two").await.is_none())
        .await;
    stage.settle().await;
    let names: Vec<String> = stage
        .sets()
        .await
        .iter()
        .map(|set| set.meta().name().to_owned())
        .collect();
    assert_eq!(names, ["one", "three"]);
    assert_eq!(
        number(&stage.get(&DEPLOYMENTS, "web").await, "/status/replicas"),
        1
    );
}

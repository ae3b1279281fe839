//! Which sets belong to a Deployment.

use http::Method;
use windlass_client::{DeleteOptions, Propagation};
use windlass_core::{Doc, doc};

use crate::deployment::stage::{
    DEPLOYMENTS, SETS, Stage, deployment, number, on_both, owner_ref, replica_set, revision,
};

on_both!(
    a_set_of_another_owner_gets_a_second_reference,
    a_plain_reference_of_a_set_becomes_the_managing_one,
    a_relabelled_set_is_released_and_replaced,
    an_adopted_set_counts_by_its_revision,
    a_set_of_the_same_template_is_taken_for_the_new_one,
);

/// The references of an object: kind, and whether it manages.
fn owners(object: &Doc) -> Vec<(String, bool)> {
    let owners = object.meta().owner_refs();
    let mut owners: Vec<_> = owners.map(|owner| (owner.kind, owner.controller)).collect();
    owners.sort();
    owners
}

async fn a_set_of_another_owner_gets_a_second_reference(stage: &Stage) {
    let reference = doc!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "other",
        "uid": "11111111-1111-1111-1111-111111111111"
    });
    let set = replica_set("web", 1).with("/metadata/ownerReferences", vec![reference]);
    stage.create(set.unwrap()).await;
    stage.create(deployment("web", 1)).await;
    stage.run();
    stage
        .until(async |s| s.get(&SETS, "web").await.meta().controller().is_some())
        .await;
    let expected = [
        ("Deployment".to_owned(), true),
        ("StatefulSet".to_owned(), false),
    ];
    assert_eq!(owners(&stage.get(&SETS, "web").await), expected);
}

async fn a_plain_reference_of_a_set_becomes_the_managing_one(stage: &Stage) {
    let owner = stage.create(deployment("web", 1)).await;
    let references = vec![owner_ref(&owner, false)];
    let set = replica_set("web", 1).with("/metadata/ownerReferences", references);
    stage.create(set.unwrap()).await;
    stage.run();
    stage
        .until(async |s| s.get(&SETS, "web").await.meta().controller().is_some())
        .await;
    assert_eq!(
        owners(&stage.get(&SETS, "web").await),
        [("Deployment".to_owned(), true)]
    );
}

async fn a_relabelled_set_is_released_and_replaced(stage: &Stage) {
    stage.run();
    stage.create(deployment("web", 1)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage.settle().await;
    let name = stage.sets().await[0].meta().name().to_owned();
    let label = |value: &str| doc!({ "metadata": { "labels": { "app": value } } });
    stage.patch(&SETS, &name, label("away")).await;
    stage.until(async |s| s.sets().await.len() == 2).await;
    stage
        .until(async |s| s.get(&SETS, &name).await.meta().controller().is_none())
        .await;
    let found = stage.get(&DEPLOYMENTS, "web").await;
    assert_eq!(
        number(&found, "/status/collisionCount"),
        1,
        "the old name is taken"
    );
    stage.patch(&SETS, &name, label("web")).await;
    stage
        .until(async |s| s.get(&SETS, &name).await.meta().controller().is_some())
        .await;
}

async fn an_adopted_set_counts_by_its_revision(stage: &Stage) {
    let high: i64 = 3_546_343_826_724_305_832;
    let annotations = doc!({ "deployment.kubernetes.io/revision": (high.to_string()) });
    let set = replica_set("web", 1).with("/metadata/annotations", annotations);
    stage.create(set.unwrap()).await;
    stage.run();
    stage.run_kubelet();
    stage.create(deployment("web", 1)).await;
    stage.until_complete("web").await;
    assert_eq!(revision(&stage.get(&DEPLOYMENTS, "web").await), high + 1);
    assert_eq!(stage.sizes().await, [0, 1]);
}

async fn a_set_of_the_same_template_is_taken_for_the_new_one(stage: &Stage) {
    let first = stage.create(deployment("web", 1)).await;
    stage.run();
    stage.run_kubelet();
    stage.until_complete("web").await;
    let options = DeleteOptions {
        propagation: Some(Propagation::Orphan),
        ..DeleteOptions::uid(first.meta().uid_str())
    };
    stage
        .api(&DEPLOYMENTS)
        .delete("web", &options)
        .await
        .unwrap();
    // Here nobody else makes orphans of its sets.
    let set = stage.sets().await.remove(0);
    stage
        .patch(
            &SETS,
            set.meta().name(),
            doc!({ "metadata": { "ownerReferences": null } }),
        )
        .await;
    let finished = doc!({ "metadata": { "finalizers": null } });
    stage.patch(&DEPLOYMENTS, "web", finished).await;
    stage
        .until(async |s| s.find(&DEPLOYMENTS, "web").await.is_none())
        .await;
    let again = deployment("web", 1)
        .with("/metadata/name", "again")
        .unwrap();
    stage.create(again).await;
    stage.until_complete("again").await;
    let sets = stage.sets().await;
    assert_eq!(sets.len(), 1);
    assert_eq!(sets[0].meta().uid(), set.meta().uid());
    assert_eq!(sets[0].meta().controller().unwrap().name, "again");
}

#[tokio::test(start_paused = true)]
async fn the_oldest_of_equal_sets_is_the_new_one() {
    let stage = Stage::embedded("twins").await;
    let template = deployment("web", 1).at("/spec/template").clone();
    for name in ["web-b", "web-a"] {
        let set = replica_set("web", 1).with("/metadata/name", name).unwrap();
        stage
            .create(set.with("/spec/template", &template).unwrap())
            .await;
        stage.cluster.pass(std::time::Duration::from_secs(2)).await;
    }
    stage.run();
    stage.run_kubelet();
    stage.create(deployment("web", 1)).await;
    stage.until_complete("web").await;
    let size = async |name: &str| number(&stage.get(&SETS, name).await, "/spec/replicas");
    assert_eq!((size("web-b").await, size("web-a").await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_goes_adopts_nothing_although_the_cache_does_not_know() {
    let stage = Stage::embedded("race").await;
    stage.run();
    let paused = deployment("web", 1).with("/spec/paused", true).unwrap();
    stage.create(paused).await;
    stage.settle().await;
    // The server says that the Deployment is gone, whatever the cache says.
    stage.fail(|call| {
        let is_asked = call.method == Method::GET && call.path.ends_with("/deployments/web");
        match is_asked {
            true => windlass_testing::Fault::Refuse(404, "NotFound"),
            false => windlass_testing::Fault::None,
        }
    });
    stage.forget_calls();
    stage.create(replica_set("web", 1)).await;
    stage
        .until(async |s| !s.calls(&Method::GET, "/deployments/web").is_empty())
        .await;
    stage.settle().await;
    assert!(stage.get(&SETS, "web").await.meta().controller().is_none());
    assert_eq!(stage.calls_with(&Method::PATCH, "/replicasets/"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_was_created_without_an_answer_is_recognized() {
    let stage = Stage::embedded("lost").await;
    let mut losses = 1;
    stage.fail(move |call| {
        if losses > 0 && call.path.ends_with("/replicasets") && call.is_write() {
            losses -= 1;
            return windlass_testing::Fault::LostAnswer;
        }
        windlass_testing::Fault::None
    });
    stage.run();
    stage.create(deployment("web", 1)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage.settle().await;
    assert_eq!(stage.sets().await.len(), 1);
    let found = stage.get(&DEPLOYMENTS, "web").await;
    assert!(found.at("/status/collisionCount").is_null());
    assert_eq!(revision(&found), 1);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_was_left_behind_belongs_to_the_next_deployment() {
    let stage = Stage::embedded("left-behind").await;
    stage.run();
    stage.run_kubelet();
    stage.cluster.run_with("garbage-collector", |manager| {
        windlass_workloads::garbage_collector::add_to(manager, &Default::default());
    });
    let first = stage.create(deployment("web", 2)).await;
    stage.until_complete("web").await;
    let (set, pods) = (stage.sets().await.remove(0), stage.pods().await);
    stage.cluster.delete(&first, Propagation::Orphan).await;
    stage
        .until(async |s| s.find(&DEPLOYMENTS, "web").await.is_none())
        .await;
    let left = stage.get(&SETS, set.meta().name()).await;
    assert_eq!(owners(&left), []);
    let second = stage.create(deployment("web", 2)).await;
    stage.until_complete("web").await;
    stage.settle().await;
    let sets = stage.sets().await;
    assert_eq!(sets.len(), 1, "no other set was made");
    assert_eq!(sets[0].meta().uid(), set.meta().uid());
    assert!(sets[0].meta().is_controlled_by(&second.meta().uid()));
    let uids = |pods: &[Doc]| pods.iter().map(|it| it.meta().uid()).collect::<Vec<_>>();
    assert_eq!(uids(&stage.pods().await), uids(&pods), "no pod was touched");
}

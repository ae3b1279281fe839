//! Which pods belong to a set.

use http::Method;
use windlass_core::{Doc, doc};
use windlass_testing::Fault;

use crate::replicaset::stage::{
    PODS, SETS, Stage, number, on_both, orphan, owner_ref, replica_set,
};

on_both!(
    an_orphan_is_adopted,
    a_plain_reference_becomes_the_managing_one,
    a_pod_of_another_owner_gets_a_second_reference,
    a_pod_that_somebody_manages_is_left_alone,
    a_pod_that_the_set_manages_already_is_left_alone,
    a_relabelled_pod_is_released_and_taken_back,
);

/// The references of a pod: kind, and whether it manages.
fn owners(pod: &Doc) -> Vec<(String, bool)> {
    let owners = pod.meta().owner_refs();
    let mut owners: Vec<_> = owners.map(|owner| (owner.kind, owner.controller)).collect();
    owners.sort();
    owners
}

fn stateful_ref(is_controller: bool) -> Doc {
    let owner = doc!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "other", "uid": "11111111-1111-1111-1111-111111111111" }
    });
    owner_ref(&owner, is_controller)
}

async fn an_orphan_is_adopted(stage: &Stage) {
    stage.run();
    stage.create(orphan("free", "web")).await;
    stage.create(orphan("foreign", "other")).await;
    stage.create(replica_set("web", 1)).await;
    stage
        .until(async |s| s.get(&PODS, "free").await.meta().controller().is_some())
        .await;
    stage.settle().await;
    assert_eq!(stage.pods().await.len(), 2, "no other pod is needed");
    assert!(
        stage
            .get(&PODS, "foreign")
            .await
            .meta()
            .controller()
            .is_none()
    );
    // One that comes later is one too many.
    stage.create(orphan("late", "web")).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
}

async fn a_plain_reference_becomes_the_managing_one(stage: &Stage) {
    let set = stage.create(replica_set("web", 1)).await;
    let pod = orphan("mine", "web");
    let references = vec![owner_ref(&set, false)];
    stage
        .create(pod.with("/metadata/ownerReferences", references).unwrap())
        .await;
    stage.run();
    stage
        .until(async |s| s.get(&PODS, "mine").await.meta().controller().is_some())
        .await;
    let pod = stage.get(&PODS, "mine").await;
    assert_eq!(owners(&pod), [("ReplicaSet".to_owned(), true)]);
    assert!(pod.meta().controller().unwrap().block_owner_deletion);
}

async fn a_pod_of_another_owner_gets_a_second_reference(stage: &Stage) {
    stage.create(replica_set("web", 1)).await;
    let pod = orphan("shared", "web");
    let references = vec![stateful_ref(false)];
    stage
        .create(pod.with("/metadata/ownerReferences", references).unwrap())
        .await;
    stage.run();
    stage
        .until(async |s| s.get(&PODS, "shared").await.meta().controller().is_some())
        .await;
    let pod = stage.get(&PODS, "shared").await;
    let expected = [
        ("ReplicaSet".to_owned(), true),
        ("StatefulSet".to_owned(), false),
    ];
    assert_eq!(owners(&pod), expected);
}

async fn a_pod_that_somebody_manages_is_left_alone(stage: &Stage) {
    let set = stage.create(replica_set("web", 1)).await;
    let references = vec![owner_ref(&set, false), stateful_ref(true)];
    let pod = orphan("theirs", "web");
    let pod = pod.with("/metadata/ownerReferences", references).unwrap();
    let before = stage.create(pod).await;
    stage.run();
    stage.until(async |s| s.pods().await.len() == 2).await;
    stage.settle().await;
    let after = stage.get(&PODS, "theirs").await;
    assert_eq!(owners(&after), owners(&before));
    assert_eq!(
        number(&stage.get(&SETS, "web").await, "/status/replicas"),
        1
    );
}

async fn a_pod_that_the_set_manages_already_is_left_alone(stage: &Stage) {
    let set = stage.create(replica_set("web", 1)).await;
    let references = vec![owner_ref(&set, true)];
    let pod = orphan("own", "web").with("/metadata/ownerReferences", references);
    let before = stage.create(pod.unwrap()).await;
    stage.run();
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/replicas") == 1)
        .await;
    stage.settle().await;
    // That it does not hold its owner's deletion is no reason to change it.
    let pods = stage.pods().await;
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0].meta().revision(), before.meta().revision());
}

async fn a_relabelled_pod_is_released_and_taken_back(stage: &Stage) {
    stage.run();
    stage.create(replica_set("web", 1)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    let name = stage.pods().await[0].meta().name().to_owned();
    let label = |value: &str| doc!({ "metadata": { "labels": { "app": value } } });
    stage.patch(&PODS, &name, label("away")).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    stage
        .until(async |s| s.get(&PODS, &name).await.meta().controller().is_none())
        .await;
    stage.patch(&PODS, &name, label("web")).await;
    // Adopted again, there is one too many; which of the two goes is a matter of rank.
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage.settle().await;
    let pods = stage.pods().await;
    assert!(pods.len() == 1 && pods[0].meta().controller().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_server_is_asked_once_before_orphans_are_adopted() {
    let stage = Stage::embedded("asked").await;
    for name in ["one", "two", "three"] {
        stage.create(orphan(name, "web")).await;
    }
    stage.create(replica_set("web", 3)).await;
    stage.run();
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/replicas") == 3)
        .await;
    stage.settle().await;
    assert_eq!(stage.calls(&Method::GET, "/replicasets/web").len(), 1);
    assert_eq!(stage.calls_with(&Method::PATCH, "/pods/"), 3);
    assert!(stage.calls(&Method::POST, "/pods").is_empty());
    stage.create(replica_set("calm", 1)).await;
    stage.settle().await;
    assert!(stage.calls(&Method::GET, "/replicasets/calm").is_empty());
}

#[tokio::test(start_paused = true)]
async fn adoptions_that_fail_are_all_tried_and_hold_everything_else() {
    let stage = Stage::embedded("refused").await;
    for name in ["one", "two"] {
        stage.create(orphan(name, "web")).await;
    }
    stage.fail(|call| match call.method == Method::PATCH {
        true => Fault::Refuse(500, "InternalError"),
        false => Fault::None,
    });
    stage.create(replica_set("web", 3)).await;
    stage.run();
    stage
        .until(async |s| s.calls_with(&Method::PATCH, "/pods/") >= 4)
        .await;
    let patches = stage.calls_with(&Method::PATCH, "/pods/one");
    let others = stage.calls_with(&Method::PATCH, "/pods/two");
    assert!(patches >= 2 && others >= 2, "each sync tries both");
    assert!(stage.calls(&Method::POST, "/pods").is_empty());
    assert!(
        stage
            .get(&SETS, "web")
            .await
            .at("/status/observedGeneration")
            .is_null()
    );
}

#[tokio::test(start_paused = true)]
async fn an_orphan_without_the_labels_or_of_another_namespace_stays_free() {
    let stage = Stage::embedded("elsewhere").await;
    stage.run();
    let other = doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "other" } });
    stage.cluster.create_doc(&other).await;
    let elsewhere = orphan("free", "web")
        .with("/metadata/namespace", "other")
        .unwrap();
    stage.cluster.create_doc(&elsewhere).await;
    let bare = orphan("bare", "web").without("/metadata/labels").unwrap();
    stage.create(bare).await;
    stage.create(replica_set("web", 1)).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    stage.settle().await;
    assert!(stage.get(&PODS, "bare").await.meta().controller().is_none());
    let elsewhere = stage.cluster.find(&PODS, "other/free").await.unwrap();
    assert!(elsewhere.meta().controller().is_none());
}

/// Runs the controllers of sets for all namespaces.
fn run_everywhere(stage: &Stage) {
    stage.cluster.run_with("everywhere", |manager| {
        windlass_workloads::replicaset::add_to(manager, &Default::default());
    });
}

#[tokio::test(start_paused = true)]
async fn pods_of_another_namespace_are_nobodys_here() {
    let stage = Stage::embedded("here").await;
    let other = doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "other" } });
    stage.cluster.create_doc(&other).await;
    let set = stage.create(replica_set("web", 1)).await;
    // One says that it belongs to the set, the other one would if it were here.
    let references = vec![owner_ref(&set, true)];
    let claimed = orphan("claimed", "web").with("/metadata/ownerReferences", references);
    let mut before = Vec::new();
    for pod in [claimed.unwrap(), orphan("free", "web")] {
        let pod = pod.with("/metadata/namespace", "other").unwrap();
        before.push(stage.cluster.create_doc(&pod).await);
    }
    run_everywhere(&stage);
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage.scale(&SETS, "web", 0).await;
    stage.until(async |s| s.pods().await.is_empty()).await;
    stage.settle().await;
    let after = stage.cluster.list_docs(&PODS, "other", "").await;
    let versions = |pods: &[Doc]| -> Vec<String> {
        let versions = pods.iter().map(|pod| pod.meta().resource_version());
        versions.map(str::to_owned).collect()
    };
    assert_eq!(versions(&after), versions(&before), "nobody touches them");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_means_another_owner_by_name_or_kind_is_not_counted() {
    let stage = Stage::embedded("misnamed").await;
    let set = stage.create(replica_set("web", 1)).await;
    let right = owner_ref(&set, true);
    let wrong = [
        ("renamed", right.with("/name", "other").unwrap()),
        ("rekinded", right.with("/kind", "StatefulSet").unwrap()),
    ];
    for (name, reference) in wrong {
        let pod = orphan(name, "web").with("/metadata/ownerReferences", vec![reference]);
        stage.create(pod.unwrap()).await;
    }
    run_everywhere(&stage);
    stage.until(async |s| s.pods().await.len() == 3).await;
    stage.settle().await;
    assert_eq!(stage.pods().await.len(), 3);
    assert_eq!(
        number(&stage.get(&SETS, "web").await, "/status/replicas"),
        1
    );
}

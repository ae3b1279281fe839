//! Whose pods are whose.

use windlass_core::{Doc, doc};

use super::set;
use crate::world::{PODS, REVISIONS, World};

fn stray(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": "web" } },
        "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] }
    })
}

#[tokio::test(start_paused = true)]
async fn only_orphans_with_a_name_of_the_set_are_adopted() {
    let world = World::idle().await;
    world.create(stray("web-1")).await;
    world.create(stray("other-1")).await;
    let created = world.create(set(doc!({ "replicas": 2 }))).await;
    world.run();
    world.settle().await;
    let uid = created.meta().uid();
    let is_own = |pod: &Doc| pod.meta().is_controlled_by(&uid);
    assert!(is_own(&world.get(&PODS, "web-1").await));
    assert!(!is_own(&world.get(&PODS, "other-1").await));
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_other_labels_is_released_and_in_the_way() {
    let world = World::new().await;
    world.running(doc!({ "replicas": 1 })).await;
    let patch = doc!({ "metadata": { "labels": { "app": "x" } } });
    world.patch(&PODS, "web-0", patch).await;
    world.settle().await;
    let pod = world.get(&PODS, "web-0").await;
    assert!(pod.meta().controller().is_none());
}

#[tokio::test(start_paused = true)]
async fn labels_of_the_identity_are_put_back() {
    let world = World::new().await;
    world.running(doc!({ "replicas": 1 })).await;
    let label = "statefulset.kubernetes.io/pod-name";
    let patch = doc!({ "metadata": { "labels": { label: null } } });
    world.patch(&PODS, "web-0", patch).await;
    world.settle().await;
    let pod = world.get(&PODS, "web-0").await;
    assert_eq!(pod.meta().label(label), Some("web-0"));
    let text = "Normal SuccessfulUpdate Update Pod web-0 in StatefulSet web successful";
    assert!(world.has_event("web", text).await);
}

#[tokio::test(start_paused = true)]
async fn orphaned_revisions_are_adopted_with_their_pods() {
    let world = World::new().await;
    let first = world.running(doc!({ "replicas": 1 })).await;
    let pod = world.get(&PODS, "web-0").await;
    // The set goes and leaves everything behind; another one takes its place.
    world.collect_garbage();
    world
        .delete(
            &crate::world::STATEFUL_SETS,
            "web",
            windlass_client::Propagation::Orphan,
        )
        .await;
    world.pass(60).await;
    let second = world.create(set(doc!({ "replicas": 1 }))).await;
    world.settle().await;
    assert_ne!(first.meta().uid(), second.meta().uid());
    let revisions = world.list(&REVISIONS).await;
    assert_eq!(revisions.len(), 1);
    assert!(revisions[0].meta().is_controlled_by(&second.meta().uid()));
    let adopted = world.get(&PODS, "web-0").await;
    assert_eq!(adopted.meta().uid(), pod.meta().uid());
    assert!(adopted.meta().is_controlled_by(&second.meta().uid()));
}

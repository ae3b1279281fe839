//! Whose pods are whose.

use windlass_core::{doc, merge_patch};

use crate::world::{PODS, World, count, is_tracked, job};

/// A pod that nobody manages.
fn stray(name: &str, app: &str) -> windlass_core::Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": app } },
        "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] }
    })
}

fn by_hand(name: &str) -> windlass_core::Doc {
    let selector = doc!({ "matchLabels": { "app": name } });
    job(name, doc!({ "manualSelector": true, "selector": selector }))
}

#[tokio::test(start_paused = true)]
async fn a_stray_pod_is_adopted_with_the_finalizer() {
    let world = World::idle().await;
    world.cluster.create_doc(&stray("old", "pi")).await;
    let created = world.create(by_hand("pi")).await;
    world.run();
    world.until("pi", |job| count(job, "active") == 1).await;
    let pods = world.pods().await;
    assert_eq!(pods.len(), 1, "the stray one is enough");
    let pod = &pods[0];
    assert!(is_tracked(pod) && pod.meta().is_controlled_by(&created.meta().uid()));
    world.succeed(pod).await;
    let done = world
        .until("pi", |job| crate::world::has(job, "Complete"))
        .await;
    assert_eq!(count(&done, "succeeded"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_labels_change_is_released_without_the_finalizer() {
    let world = World::new().await;
    world.create(by_hand("pi")).await;
    let pods = world.until_active(1).await;
    let patch = doc!({ "metadata": { "labels": { "app": "other" } } });
    world.cluster.patch(&pods[0], patch).await;
    world.until_active(2).await;
    let key = format!("default/{}", pods[0].meta().name());
    let released = world.cluster.find(&PODS, &key).await.unwrap();
    assert!(!is_tracked(&released) && released.meta().controller().is_none());
    assert_eq!(count(&world.job("pi").await, "failed"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_of_somebody_else_is_left_alone() {
    let world = World::new().await;
    let created = world
        .create(job("pi", doc!({ "managedBy": "x.io/y" })))
        .await;
    let owner = doc!({
        "apiVersion": "batch/v1", "kind": "Job", "name": "pi",
        "uid": (created.meta().uid_str()), "controller": true
    });
    let meta = doc!({ "metadata": {
        "ownerReferences": [owner], "finalizers": [(windlass_workloads::job::FINALIZER)]
    } });
    let pod = merge_patch(&stray("theirs", "pi"), &meta);
    let pod = world.cluster.create_doc(&pod).await;
    world.settle().await;
    world.succeed(&pod).await;
    world.delete_pod(&pod).await;
    world.settle().await;
    assert!(world.job("pi").await.at("/status").items().is_empty());
    let pods = world.pods().await;
    assert!(pods.len() == 1 && is_tracked(&pods[0]));
    assert_eq!(world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_of_another_kind_of_owner_stays() {
    let world = World::new().await;
    let owner = doc!({
        "apiVersion": "x.io/v1", "kind": "Job", "name": "pi", "uid": "u", "controller": true
    });
    let meta = doc!({ "metadata": {
        "ownerReferences": [owner], "finalizers": [(windlass_workloads::job::FINALIZER)]
    } });
    world
        .cluster
        .create_doc(&merge_patch(&stray("theirs", "x"), &meta))
        .await;
    world.settle().await;
    assert!(is_tracked(&world.pods().await[0]));
}

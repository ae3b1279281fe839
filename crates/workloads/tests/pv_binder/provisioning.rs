//! Volumes that are made for claims.

use windlass_client::Propagation;
use windlass_core::{Doc, doc};
use windlass_workloads::pretend_provisioner::{CLASS, PROVISIONER_NAME};

use crate::world::{CLASSES, VOLUMES, World, claim, class, volume};

const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
const SELECTED: &str = "volume.kubernetes.io/selected-node";

fn of_class(name: &str) -> Doc {
    doc!({ "storageClassName": name })
}

fn without_class() -> Doc {
    doc!({ "storageClassName": null })
}

fn delayed(name: &str, provisioner: &str) -> Doc {
    let fields = doc!({
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"
    });
    class(name, &fields)
}

/// A claim that asks for nothing in particular gets a volume of the default class, and the volume
/// goes with it.
#[tokio::test(start_paused = true)]
async fn a_claim_gets_a_volume_of_the_default_class() {
    let world = World::provisioning(true).await;
    world
        .cluster
        .until(async |cluster| cluster.find(&CLASSES, CLASS).await.is_some())
        .await;
    let created = world.create(&claim("data", without_class())).await;
    let name = world.bound("data").await;
    assert_eq!(name, format!("pvc-{}", created.meta().uid_str()));
    let made = world.volume(&name).await;
    assert_eq!(made.str_at("/spec/storageClassName"), CLASS);
    assert_eq!(made.str_at("/spec/capacity/storage"), "6Gi");
    assert_eq!(
        made.meta().annotation("pv.kubernetes.io/provisioned-by"),
        Some(PROVISIONER_NAME)
    );
    let events = world.events("data").await;
    let text = format!("Normal ProvisioningSucceeded Successfully provisioned volume {name}");
    assert!(events.contains(&text), "{events:?}");
    // V9
    let claim = world.claim("data").await;
    world.cluster.delete(&claim, Propagation::Background).await;
    world
        .cluster
        .until(async |cluster| cluster.find(&VOLUMES, &name).await.is_none())
        .await;
}

/// V11
#[tokio::test(start_paused = true)]
async fn a_default_class_that_comes_later_is_given_to_claims_that_wait() {
    let world = World::provisioning(false).await;
    world.create(&claim("data", without_class())).await;
    world.create(&claim("none", of_class(""))).await;
    world.stays_pending("data").await;
    let fields = doc!({
        "provisioner": PROVISIONER_NAME, "metadata": { "annotations": { DEFAULT: "true" } }
    });
    world.create(&class("late", &fields)).await;
    world.bound("data").await;
    let bound = world.claim("data").await;
    assert_eq!(bound.str_at("/spec/storageClassName"), "late");
    // V12
    world.stays_pending("none").await;
}

/// V21
#[tokio::test(start_paused = true)]
async fn the_newest_default_class_wins() {
    let world = World::new().await;
    for name in ["b", "a"] {
        let fields = doc!({ "metadata": { "annotations": { DEFAULT: "true" } } });
        world.create(&class(name, &fields)).await;
        world.pass(5).await;
    }
    let fields = doc!({ "metadata": { "annotations": { DEFAULT: "false" } } });
    world.create(&class("c", &fields)).await;
    world.create(&claim("data", without_class())).await;
    world.pass(5).await;
    let found = world.claim("data").await;
    assert_eq!(found.str_at("/spec/storageClassName"), "a");
}

#[tokio::test(start_paused = true)]
async fn a_claim_says_who_is_to_make_its_volume() {
    let world = World::new().await;
    world.create(&class("disk", &doc!({}))).await;
    world.create(&claim("data", of_class("disk"))).await;
    world.pass(5).await;
    let found = world.claim("data").await;
    for key in [
        "volume.kubernetes.io/storage-provisioner",
        "volume.beta.kubernetes.io/storage-provisioner",
    ] {
        assert_eq!(found.meta().annotation(key), Some("example.com/disk"));
    }
    let text = "Normal ExternalProvisioning Waiting for a volume to be created either by the \
                external provisioner 'example.com/disk' or manually by the system administrator. \
                If volume creation is delayed, please verify that the provisioner is running and \
                correctly registered.";
    assert_eq!(world.events("data").await, [text]);
}

/// V17
#[tokio::test(start_paused = true)]
async fn a_class_without_a_provisioner_makes_nothing() {
    let world = World::new().await;
    let fields = doc!({ "provisioner": "kubernetes.io/no-provisioner" });
    world.create(&class("local", &fields)).await;
    world.create(&claim("data", of_class("local"))).await;
    world.create(&claim("lost", of_class("unknown"))).await;
    world.pass(5).await;
    let text = "Warning ProvisioningFailed no volume plugin matched name: \
                kubernetes.io/no-provisioner";
    assert_eq!(world.events("data").await, [text]);
    let text = "Warning ProvisioningFailed storageclass.storage.k8s.io \"unknown\" not found";
    assert_eq!(world.events("lost").await, [text]);
}

/// V13
#[tokio::test(start_paused = true)]
async fn delayed_binding_waits_for_a_pod() {
    let world = World::provisioning(false).await;
    world.create(&delayed("late", PROVISIONER_NAME)).await;
    world.create(&volume("a", "10Gi", of_class("late"))).await;
    world.until_volume("a", "Available").await;
    world.create(&claim("data", of_class("late"))).await;
    world.stays_pending("data").await;
    let text =
        "Normal WaitForFirstConsumer waiting for first consumer to be created before binding";
    assert_eq!(world.events("data").await, [text]);
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "default" },
        "spec": {
            "containers": [{ "name": "c", "image": "i" }],
            "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }]
        }
    });
    world.create(&pod).await;
    world.pass(20).await;
    let text = "Normal WaitForPodScheduled waiting for pod p to be scheduled".to_owned();
    assert!(world.events("data").await.contains(&text));
}

/// V14: the scheduler's part is played by the test.
#[tokio::test(start_paused = true)]
async fn delayed_binding_makes_a_volume_on_the_node_of_the_pod() {
    let world = World::provisioning(false).await;
    world.create(&delayed("late", PROVISIONER_NAME)).await;
    let data = world.create(&claim("data", of_class("late"))).await;
    world.pass(5).await;
    let chosen = doc!({ "metadata": { "annotations": { SELECTED: "n1" } } });
    world.cluster.patch(&data, chosen).await;
    let name = world.bound("data").await;
    let made = world.volume(&name).await;
    let terms = made.at("/spec/nodeAffinity/required/nodeSelectorTerms");
    let expected = doc!([{ "matchExpressions": [
        { "key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"] }
    ] }]);
    assert_eq!(*terms, expected);
}

/// V15: the scheduler names the claim in a volume that is there, and the binder does the rest.
#[tokio::test(start_paused = true)]
async fn a_volume_that_the_scheduler_chose_is_bound() {
    let world = World::new().await;
    world
        .create(&delayed("local", "kubernetes.io/no-provisioner"))
        .await;
    let there = world.create(&volume("a", "10Gi", of_class("local"))).await;
    world.until_volume("a", "Available").await;
    let data = world.create(&claim("data", of_class("local"))).await;
    world.stays_pending("data").await;
    let reference = doc!({ "spec": { "claimRef": {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default",
        "name": "data", "uid": (data.meta().uid_str())
    } } });
    world.cluster.patch(&there, reference).await;
    assert_eq!(world.bound("data").await, "a");
}

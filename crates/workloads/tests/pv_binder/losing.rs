//! Volumes and claims that lose each other.

use windlass_client::Propagation;
use windlass_core::doc;

use crate::world::{World, claim, volume};

async fn bound_world(policy: &str) -> World {
    let world = World::new().await;
    let spec = doc!({ "persistentVolumeReclaimPolicy": policy });
    world.create(&volume("a", "10Gi", spec)).await;
    world.create(&claim("data", doc!({}))).await;
    assert_eq!(world.bound("data").await, "a");
    world
}

/// V7
#[tokio::test(start_paused = true)]
async fn a_claim_whose_volume_is_gone_is_lost_until_it_returns() {
    let world = bound_world("Retain").await;
    let gone = world.volume("a").await;
    world.cluster.delete(&gone, Propagation::Background).await;
    world.until_claim("data", "Lost").await;
    let text = "Warning ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is \
                lost!";
    assert!(world.events("data").await.iter().any(|it| it == text));
    world.create(&volume("a", "10Gi", doc!({}))).await;
    assert_eq!(world.bound("data").await, "a");
}

/// V8 and V10
#[tokio::test(start_paused = true)]
async fn a_retained_volume_is_free_again_when_somebody_says_so() {
    let world = bound_world("Retain").await;
    let gone = world.claim("data").await;
    world.cluster.delete(&gone, Propagation::Background).await;
    let released = world.until_volume("a", "Released").await;
    assert_eq!(released.str_at("/spec/claimRef/name"), "data");
    world.create(&claim("other", doc!({}))).await;
    // One of the same name is another claim.
    world.create(&claim("data", doc!({}))).await;
    world.stays_pending("other").await;
    world.stays_pending("data").await;
    let free = doc!({ "spec": { "claimRef": null } });
    world.cluster.patch(&released, free).await;
    world.until_volume("a", "Bound").await;
}

/// A volume of nobody's that should be deleted: there is no program here that could.
#[tokio::test(start_paused = true)]
async fn a_volume_that_cannot_be_deleted_has_failed() {
    let world = bound_world("Delete").await;
    let gone = world.claim("data").await;
    world.cluster.delete(&gone, Propagation::Background).await;
    let failed = world.until_volume("a", "Failed").await;
    let text = "error getting deleter volume plugin for volume \"a\": no volume plugin matched";
    assert_eq!(failed.str_at("/status/message"), text);
    let events = world.events("a").await;
    assert_eq!(events, [format!("Warning VolumeFailedDelete {text}")]);
}

/// A volume whose claim took another one.
#[tokio::test(start_paused = true)]
async fn a_volume_whose_claim_is_bound_elsewhere_is_set_free() {
    let world = World::new().await;
    world.create(&volume("a", "10Gi", doc!({}))).await;
    let data = world.create(&claim("data", doc!({}))).await;
    assert_eq!(world.bound("data").await, "a");
    let uid = data.meta().uid_str();
    let reference = doc!({ "claimRef": {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "namespace": "default", "name": "data", "uid": uid
    } });
    world.create(&volume("b", "10Gi", reference)).await;
    let freed = world.until_volume("b", "Available").await;
    // A user named the claim, so that only its UID goes.
    assert_eq!(freed.str_at("/spec/claimRef/name"), "data");
    assert_eq!(freed.str_at("/spec/claimRef/uid"), "");
}

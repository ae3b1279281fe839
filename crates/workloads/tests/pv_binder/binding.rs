//! Claims find volumes.

use windlass_core::{Doc, doc};

use crate::world::{VOLUMES, World, claim, volume};

async fn with_volumes(volumes: &[Doc]) -> World {
    let world = World::new().await;
    for volume in volumes {
        world.create(volume).await;
    }
    for volume in volumes {
        world.until_volume(volume.meta().name(), "Available").await;
    }
    world
}

/// V1
#[tokio::test(start_paused = true)]
async fn the_smallest_volume_that_is_large_enough_is_taken() {
    let sizes = [("a", "20Gi"), ("b", "5Gi"), ("c", "10Gi")];
    let world = with_volumes(&sizes.map(|(name, size)| volume(name, size, doc!({})))).await;
    world.create(&claim("data", doc!({}))).await;
    assert_eq!(world.bound("data").await, "c");
    let bound = world.claim("data").await;
    assert_eq!(bound.str_at("/status/capacity/storage"), "10Gi");
    assert_eq!(*bound.at("/status/accessModes"), doc!(["ReadWriteOnce"]));
    for key in [
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
    ] {
        assert_eq!(bound.meta().annotation(key), Some("yes"), "{key}");
    }
    let volume = world.volume("c").await;
    let ours = volume
        .meta()
        .annotation("pv.kubernetes.io/bound-by-controller");
    assert_eq!(ours, Some("yes"));
    assert_eq!(
        volume.str_at("/spec/claimRef/kind"),
        "PersistentVolumeClaim"
    );
}

/// V2
#[tokio::test(start_paused = true)]
async fn volumes_of_another_class_are_not_taken() {
    let world = with_volumes(&[volume("a", "10Gi", doc!({ "storageClassName": "fast" }))]).await;
    world.create(&claim("data", doc!({}))).await;
    world.stays_pending("data").await;
    let text = "Normal FailedBinding no persistent volumes available for this claim and no storage \
                class is set";
    assert_eq!(world.events("data").await, [text]);
    let fast = doc!({ "storageClassName": "fast" });
    world.create(&claim("other", fast)).await;
    assert_eq!(world.bound("other").await, "a");
}

/// V3
#[tokio::test(start_paused = true)]
async fn a_volume_may_offer_more_access_modes() {
    let modes = |modes: &[&str]| {
        let modes: Vec<Doc> = modes.iter().map(|it| Doc::from(*it)).collect();
        doc!({ "accessModes": modes })
    };
    let more = modes(&["ReadWriteOnce", "ReadWriteMany"]);
    let world = with_volumes(&[
        volume("a", "6Gi", more.clone()),
        volume("b", "20Gi", doc!({})),
    ])
    .await;
    // The fewest modes come before the smallest size.
    world.create(&claim("first", doc!({}))).await;
    assert_eq!(world.bound("first").await, "b");
    world.create(&claim("second", doc!({}))).await;
    assert_eq!(world.bound("second").await, "a");
    let bound = world.claim("second").await;
    assert_eq!(bound.at("/status/accessModes").items().len(), 2);
}

/// V4
#[tokio::test(start_paused = true)]
async fn a_selector_is_honoured() {
    let labelled = |name: &str, disk: &str| {
        let labels = doc!({ "disk": disk });
        volume(name, "10Gi", doc!({}))
            .with("/metadata/labels", labels)
            .unwrap()
    };
    let world = with_volumes(&[labelled("a", "slow"), labelled("b", "fast")]).await;
    let selector = doc!({ "selector": { "matchLabels": { "disk": "fast" } } });
    world.create(&claim("data", selector)).await;
    assert_eq!(world.bound("data").await, "b");
}

/// V5
#[tokio::test(start_paused = true)]
async fn a_volume_that_names_a_claim_is_for_that_one() {
    let reference = doc!({ "claimRef": { "namespace": "default", "name": "mine" } });
    let world = with_volumes(&[volume("a", "10Gi", reference)]).await;
    world.create(&claim("other", doc!({}))).await;
    world.stays_pending("other").await;
    world.create(&claim("mine", doc!({}))).await;
    assert_eq!(world.bound("mine").await, "a");
    let volume = world.volume("a").await;
    let ours = volume
        .meta()
        .annotation("pv.kubernetes.io/bound-by-controller");
    assert_eq!(ours, None, "a user made this binding");
}

/// V6
#[tokio::test(start_paused = true)]
async fn a_volume_that_was_asked_for_must_fit() {
    let world = with_volumes(&[
        volume("small", "5Gi", doc!({})),
        volume("fast", "10Gi", doc!({ "storageClassName": "fast" })),
        volume("block", "10Gi", doc!({ "volumeMode": "Block" })),
        volume("many", "10Gi", doc!({ "accessModes": ["ReadOnlyMany"] })),
    ])
    .await;
    let cases = [
        ("small", "requested PV is too small"),
        ("fast", "storageClassName does not match"),
        ("block", "incompatible volumeMode"),
        ("many", "incompatible accessMode"),
    ];
    for (name, why) in cases {
        let wanted = doc!({ "volumeName": name });
        world.create(&claim(&format!("for-{name}"), wanted)).await;
        world.pass(5).await;
        let found = world.claim(&format!("for-{name}")).await;
        assert_eq!(found.str_at("/status/phase"), "Pending");
        let text =
            format!("Warning VolumeMismatch Cannot bind to requested volume \"{name}\": {why}");
        assert_eq!(world.events(&format!("for-{name}")).await, [text]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_another_claim_has_is_not_given_twice() {
    let world = with_volumes(&[volume("a", "10Gi", doc!({}))]).await;
    world.create(&claim("first", doc!({}))).await;
    world.bound("first").await;
    let wanted = doc!({ "volumeName": "a" });
    world.create(&claim("second", wanted)).await;
    world.pass(5).await;
    let text = "Warning FailedBinding volume \"a\" already bound to a different claim.";
    assert_eq!(world.events("second").await, [text]);
}

/// V18
#[tokio::test(start_paused = true)]
async fn one_volume_goes_to_one_of_two_claims() {
    let world = World::new().await;
    world.create(&claim("first", doc!({}))).await;
    world.create(&claim("second", doc!({}))).await;
    world.create(&volume("a", "10Gi", doc!({}))).await;
    world.pass(60).await;
    let mut bound = 0;
    for name in ["first", "second"] {
        let claim = world.claim(name).await;
        bound += usize::from(claim.str_at("/status/phase") == "Bound");
    }
    assert_eq!(bound, 1);
    world.create(&volume("b", "10Gi", doc!({}))).await;
    world.bound("first").await;
    world.bound("second").await;
}

/// V20
#[tokio::test(start_paused = true)]
async fn a_block_device_is_no_file_system() {
    let world = with_volumes(&[volume("a", "10Gi", doc!({ "volumeMode": "Block" }))]).await;
    world.create(&claim("data", doc!({}))).await;
    world.stays_pending("data").await;
    world
        .create(&claim("raw", doc!({ "volumeMode": "Block" })))
        .await;
    assert_eq!(world.bound("raw").await, "a");
}

/// A claim that waits gets a volume that comes later.
#[tokio::test(start_paused = true)]
async fn a_volume_that_comes_later_is_taken() {
    let world = World::new().await;
    world.create(&claim("data", doc!({}))).await;
    world.stays_pending("data").await;
    world.create(&volume("a", "10Gi", doc!({}))).await;
    assert_eq!(world.bound("data").await, "a");
    let volumes = world.cluster.list_docs(&VOLUMES, "", "").await;
    assert_eq!(volumes.len(), 1);
}

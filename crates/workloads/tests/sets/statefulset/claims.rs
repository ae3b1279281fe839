//! Claims from templates and their owners.

use windlass_client::Propagation;
use windlass_core::{Doc, doc};
use windlass_testing::Fault;

use super::{set, with_claims};
use crate::world::{CLAIMS, STATEFUL_SETS, World};

impl World {
    /// The claims, each with the kinds of its owners.
    async fn claim_owners(&self) -> Vec<String> {
        let claims = self.list(&CLAIMS).await;
        let text = |claim: &Doc| {
            let owners = claim.meta().owner_refs().map(|it| {
                let how = if it.controller { "" } else { "~" };
                format!(" {how}{}/{}", it.kind, it.name)
            });
            format!("{}{}", claim.meta().name(), owners.collect::<String>())
        };
        claims.iter().map(text).collect()
    }
}

fn retention(deleted: &str, scaled: &str) -> Doc {
    let policy = doc!({ "whenDeleted": deleted, "whenScaled": scaled });
    doc!({ "persistentVolumeClaimRetentionPolicy": policy })
}

fn claimed(replicas: i64, deleted: &str, scaled: &str) -> Doc {
    let spec =
        windlass_core::merge_patch(&doc!({ "replicas": replicas }), &retention(deleted, scaled));
    with_claims(&spec)
}

#[tokio::test(start_paused = true)]
async fn each_pod_has_its_claim_and_keeps_it() {
    let world = World::new().await;
    world.running(claimed(3, "Retain", "Retain")).await;
    assert_eq!(
        world.claim_owners().await,
        ["data-web-0", "data-web-1", "data-web-2"]
    );
    let pods = world.pods().await;
    let volume = pods[1].at("/spec/volumes").items().iter();
    let mut volume = volume.filter(|it| it.str_at("/name") == "data");
    let volume = volume.next().unwrap();
    assert_eq!(
        volume.str_at("/persistentVolumeClaim/claimName"),
        "data-web-1"
    );
    let claims = world.list(&CLAIMS).await;
    let before = claims[2].meta().uid();
    assert_eq!(claims[2].meta().label("app"), Some("web"));
    let text =
        "Normal SuccessfulCreate Create Claim data-web-0 Pod web-0 in StatefulSet web success";
    assert!(world.has_event("web", text).await);
    // Scaled down and up again, and replaced after a failure: the same claims.
    world.change_web(doc!({ "replicas": 2 })).await;
    world.serve_all().await;
    assert_eq!(world.list(&CLAIMS).await.len(), 3);
    world.change_web(doc!({ "replicas": 3 })).await;
    world.serve_all().await;
    world.end("web-1", "Failed").await;
    world.serve_all().await;
    let claims = world.list(&CLAIMS).await;
    assert_eq!((claims.len(), claims[2].meta().uid()), (3, before));
}

#[tokio::test(start_paused = true)]
async fn a_claim_goes_with_the_pod_that_is_scaled_away() {
    let world = World::new().await;
    world.collect_garbage();
    world.running(claimed(3, "Retain", "Delete")).await;
    assert_eq!(
        world.claim_owners().await,
        ["data-web-0", "data-web-1", "data-web-2"]
    );
    world.change_web(doc!({ "replicas": 2 })).await;
    let owners = world.claim_owners().await;
    assert_eq!(owners[2], "data-web-2 Pod/web-2");
    assert_eq!(owners[..2], ["data-web-0", "data-web-1"]);
    world.serve_all().await;
    assert_eq!(world.claim_owners().await, ["data-web-0", "data-web-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_the_claim_of_its_predecessor_to_go() {
    let world = World::new().await;
    world.running(claimed(2, "Retain", "Delete")).await;
    world.change_web(doc!({ "replicas": 1 })).await;
    world.remove_deleted().await;
    // Nobody collects the claim yet.
    world.change_web(doc!({ "replicas": 2 })).await;
    world.pass(60).await;
    assert_eq!(world.names().await, ["web-0"]);
    assert_eq!(world.claim_owners().await[1], "data-web-1 Pod/web-1");
    let claim = world.get(&CLAIMS, "data-web-1").await;
    world.cluster.delete(&claim, Propagation::Background).await;
    world.settle().await;
    assert_eq!(world.names().await, ["web-0", "web-1"]);
    assert_eq!(world.claim_owners().await[1], "data-web-1");
}

#[tokio::test(start_paused = true)]
async fn claims_go_with_the_set_unless_it_leaves_orphans() {
    for propagation in [Propagation::Background, Propagation::Orphan] {
        let world = World::new().await;
        world.collect_garbage();
        world.running(claimed(2, "Delete", "Retain")).await;
        let owned = ["data-web-0 StatefulSet/web", "data-web-1 StatefulSet/web"];
        assert_eq!(world.claim_owners().await, owned);
        world.delete(&STATEFUL_SETS, "web", propagation).await;
        world.serve_all().await;
        world.pass(60).await;
        let left = world.claim_owners().await;
        match propagation {
            Propagation::Orphan => assert_eq!(left, ["data-web-0", "data-web-1"]),
            _ => assert!(left.is_empty(), "{left:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_policy_gives_claims_other_owners() {
    let world = World::new().await;
    world.running(claimed(2, "Delete", "Delete")).await;
    let owned = ["data-web-0 StatefulSet/web", "data-web-1 StatefulSet/web"];
    assert_eq!(world.claim_owners().await, owned);
    world.change_web(doc!({ "replicas": 1 })).await;
    assert_eq!(world.claim_owners().await[1], "data-web-1 Pod/web-1");
    world.change_web(retention("Retain", "Retain")).await;
    world.serve_all().await;
    assert_eq!(world.claim_owners().await[0], "data-web-0");
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_somebody_else_is_left_alone() {
    let world = World::idle().await;
    let owner = doc!({
        "apiVersion": "x.io/v1", "kind": "X", "name": "x", "uid": "u", "controller": true
    });
    let claim = doc!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data-web-0", "namespace": "default", "ownerReferences": [owner]
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } }
        }
    });
    let before = world.create(claim).await;
    world.create(set(claimed(1, "Delete", "Retain"))).await;
    world.run();
    world.settle().await;
    world.serve_all().await;
    let after = world.get(&CLAIMS, "data-web-0").await;
    assert_eq!(
        after.at("/metadata/ownerReferences"),
        before.at("/metadata/ownerReferences")
    );
    assert!(
        world
            .has_event(
                "web",
                "Warning ConflictingController PersistentVolumeClaim data-web-0"
            )
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_missing_under_a_pending_pod_comes_back() {
    let world = World::new().await;
    world.create(set(claimed(1, "Retain", "Retain"))).await;
    world.settle().await;
    let claim = world.get(&CLAIMS, "data-web-0").await;
    world.cluster.delete(&claim, Propagation::Background).await;
    world.settle().await;
    let again = world.get(&CLAIMS, "data-web-0").await;
    assert_ne!(again.meta().uid(), claim.meta().uid());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_being_deleted_keeps_its_pod_from_coming() {
    let world = World::idle().await;
    let claim = doc!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": "data-web-0", "namespace": "default", "finalizers": ["x.io/y"] },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } }
        }
    });
    let claim = world.create(claim).await;
    world.cluster.delete(&claim, Propagation::Background).await;
    world.create(set(claimed(1, "Retain", "Retain"))).await;
    world.run();
    world.settle().await;
    assert!(world.pods().await.is_empty());
    let text = "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: \
                pvc data-web-0 is being deleted";
    assert!(world.has_event("web", text).await);
    let patch = doc!({ "metadata": { "finalizers": null } });
    world.patch(&CLAIMS, "data-web-0", patch).await;
    world.pass(30).await;
    assert_eq!(world.names().await, ["web-0"]);
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_refused_are_told_of_and_tried_again() {
    let world = World::idle().await;
    world.fail(
        |call| match call.method == http::Method::POST && call.path.ends_with("/pods") {
            true => Fault::Refuse(403, "Forbidden"),
            false => Fault::None,
        },
    );
    world.create(set(doc!({ "replicas": 1 }))).await;
    world.run();
    world.settle().await;
    let tries = world.calls(&http::Method::POST, "/pods");
    assert!((3..20).contains(&tries), "{tries} tries in three seconds");
    let text = "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: ";
    assert!(world.has_event("web", text).await);
    world.fail(|_| Fault::None);
    world.pass(60).await;
    assert_eq!(world.names().await, ["web-0"]);
}

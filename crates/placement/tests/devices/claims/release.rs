//! Reservations of pods that are gone or done are removed, and devices given back.

use windlass_core::doc;
use windlass_placement::claims::FINALIZER;

use crate::claims::stage::*;

scenarios![
    the_reservation_of_a_live_pod_stays,
    the_reservation_of_a_pod_that_never_was_goes,
    the_reservation_of_a_deleted_pod_goes_without_asking,
    the_reservation_of_an_earlier_life_goes,
    the_devices_of_a_finished_pod_go_back,
    a_failed_pod_gives_its_devices_back,
    a_running_pod_that_is_deleted_keeps_its_claim_until_it_is_gone,
    a_pod_deleted_before_it_had_a_node_gives_its_claim_back,
    devices_that_somebody_else_allocated_stay,
    a_claim_that_was_never_reserved_is_left_alone,
    a_deleted_claim_without_consumers_goes,
    a_deleted_claim_with_a_consumer_that_is_gone_goes_after_a_restart,
    a_generated_claim_of_a_finished_pod_is_deleted,
    a_claim_of_a_user_outlives_its_pod,
    a_generated_claim_of_a_pod_that_is_gone_is_left_to_the_garbage_collector,
    a_restarting_pod_keeps_its_claim,
    a_consumer_that_is_no_pod_stays,
    one_of_two_consumers_goes_and_the_other_stays,
    the_claim_of_extended_resources_is_released,
    what_happened_while_the_controller_was_away_is_made_up_for,
];

const GONE: &str = "6a7b0c5e-0000-4000-8000-000000000000";

async fn reserved(stage: &Stage, claim: &str) -> Vec<String> {
    let claim = stage.find(&CLAIMS, claim).await.unwrap();
    let consumers = claim.at("/status/reservedFor").items().iter();
    consumers
        .map(|one| one.str_at("/name").to_owned())
        .collect()
}

/// Waits until a claim has neither consumers, nor devices, nor the finalizer.
async fn until_free(stage: &Stage, name: &str) {
    stage
        .until(async |s| {
            let claim = s.find(&CLAIMS, name).await.unwrap();
            claim.at("/status/allocation").is_null()
                && claim.at("/status/reservedFor").items().is_empty()
                && !claim.meta().has_finalizer(FINALIZER)
        })
        .await;
}

async fn the_reservation_of_a_live_pod_stays(stage: &Stage) {
    let pod = stage.pod_on_node("web", &["gpu=c"]).await;
    stage.claim("c", &[consumer_of(&pod)]).await;
    stage.run();
    stage.settle().await;
    assert_eq!(reserved(stage, "c").await, ["web"]);
    assert_eq!(stage.calls(), Vec::<String>::new());
}

async fn the_reservation_of_a_pod_that_never_was_goes(stage: &Stage) {
    stage.claim("c", &[consumer("web", GONE)]).await;
    stage.run();
    until_free(stage, "c").await;
    let calls = stage.calls();
    let expected = ["GET pods/web", "PUT claims/c/status", "PUT claims/c"];
    assert_eq!(calls, expected);
}

async fn the_reservation_of_a_deleted_pod_goes_without_asking(stage: &Stage) {
    let pod = stage.pod_on_node("web", &["gpu=c"]).await;
    stage.claim("c", &[consumer_of(&pod)]).await;
    stage.run();
    stage.settle().await;
    stage.delete(&PODS, "web").await;
    until_free(stage, "c").await;
    assert_eq!(stage.calls(), ["PUT claims/c/status", "PUT claims/c"]);
}

async fn the_reservation_of_an_earlier_life_goes(stage: &Stage) {
    stage.pod_on_node("web", &[]).await;
    stage.claim("c", &[consumer("web", GONE)]).await;
    stage.run();
    until_free(stage, "c").await;
}

async fn the_devices_of_a_finished_pod_go_back(stage: &Stage) {
    let pod = stage.pod_on_node("web", &["gpu=c"]).await;
    stage.claim("c", &[consumer_of(&pod)]).await;
    stage.run();
    stage.phase("web", "Succeeded").await;
    until_free(stage, "c").await;
    stage.settle().await;
    assert_eq!(stage.calls(), ["PUT claims/c/status", "PUT claims/c"]);
}

async fn a_failed_pod_gives_its_devices_back(stage: &Stage) {
    let pod = stage.pod_on_node("web", &["gpu=c"]).await;
    stage.claim("c", &[consumer_of(&pod)]).await;
    stage.run();
    stage.phase("web", "Failed").await;
    until_free(stage, "c").await;
}

async fn a_running_pod_that_is_deleted_keeps_its_claim_until_it_is_gone(stage: &Stage) {
    let pod = stage.pod_on_node("web", &["gpu=c"]).await;
    stage.claim("c", &[consumer_of(&pod)]).await;
    stage.phase("web", "Running").await;
    stage.run();
    stage.delete_gracefully("web").await;
    stage.settle().await;
    assert_eq!(reserved(stage, "c").await, ["web"]);
    stage.delete(&PODS, "web").await;
    until_free(stage, "c").await;
}

async fn a_pod_deleted_before_it_had_a_node_gives_its_claim_back(stage: &Stage) {
    let held = pod("web", &["gpu=c"]).with_finalizer("example.com/hold");
    let pod = stage.create(held).await;
    stage.claim("c", &[consumer_of(&pod)]).await;
    stage.run();
    stage.settle().await;
    assert_eq!(reserved(stage, "c").await, ["web"]);
    stage.delete(&PODS, "web").await;
    until_free(stage, "c").await;
}

async fn devices_that_somebody_else_allocated_stay(stage: &Stage) {
    stage.allocated(claim("c"), &[consumer("web", GONE)]).await;
    stage.run();
    stage
        .until(async |s| reserved(s, "c").await.is_empty())
        .await;
    let claim = stage.find(&CLAIMS, "c").await.unwrap();
    assert_eq!(*claim.at("/status/allocation"), allocation());
}

async fn a_claim_that_was_never_reserved_is_left_alone(stage: &Stage) {
    stage.claim("c", &[]).await;
    stage.run();
    stage.settle().await;
    assert_eq!(stage.calls(), Vec::<String>::new());
}

async fn a_deleted_claim_without_consumers_goes(stage: &Stage) {
    stage.claim("c", &[]).await;
    stage.run();
    stage.delete(&CLAIMS, "c").await;
    stage
        .until(async |s| s.find(&CLAIMS, "c").await.is_none())
        .await;
    let mut calls = stage.calls();
    // The server says nothing of how far a cache must be to show that the object is gone.
    calls.dedup();
    assert_eq!(calls, ["PUT claims/c/status", "PUT claims/c"]);
}

async fn a_deleted_claim_with_a_consumer_that_is_gone_goes_after_a_restart(stage: &Stage) {
    stage.claim("c", &[consumer("web", GONE)]).await;
    stage.delete(&CLAIMS, "c").await;
    stage.run();
    stage
        .until(async |s| s.find(&CLAIMS, "c").await.is_none())
        .await;
}

async fn a_generated_claim_of_a_finished_pod_is_deleted(stage: &Stage) {
    let pod = stage.pod_on_node("web", &["gpu@t"]).await;
    let claim = claim_of("made", &pod, "gpu").with_finalizer(FINALIZER);
    stage.allocated(claim, &[consumer_of(&pod)]).await;
    let status = doc!({ "resourceClaimStatuses": [
        { "name": "gpu", "resourceClaimName": "made" }
    ] });
    stage.cluster.patch_status(&pod, status).await;
    stage.run();
    stage.settle().await;
    assert_eq!(stage.claims().await.len(), 1);
    stage.phase("web", "Succeeded").await;
    stage.until(async |s| s.claims().await.is_empty()).await;
    stage.settle().await;
    let expected = [
        "PUT claims/made/status",
        "PUT claims/made",
        "DELETE claims/made",
    ];
    assert_eq!(stage.calls(), expected);
    assert_eq!(stage.claims().await.len(), 0);
}

async fn a_claim_of_a_user_outlives_its_pod(stage: &Stage) {
    let pod = stage.pod_on_node("web", &["gpu=c"]).await;
    stage.claim("c", &[consumer_of(&pod)]).await;
    stage.run();
    stage.phase("web", "Succeeded").await;
    until_free(stage, "c").await;
    stage.delete(&PODS, "web").await;
    stage.settle().await;
    assert_eq!(stage.claims().await.len(), 1);
}

async fn a_generated_claim_of_a_pod_that_is_gone_is_left_to_the_garbage_collector(stage: &Stage) {
    let owner = pod("gone", &["gpu@t"]).with("/metadata/uid", GONE).unwrap();
    stage.create(claim_of("made", &owner, "gpu")).await;
    stage.run();
    stage.settle().await;
    assert_eq!(stage.claims().await.len(), 1);
}

async fn a_restarting_pod_keeps_its_claim(stage: &Stage) {
    let pod = stage.pod_on_node("web", &["gpu=c"]).await;
    stage.claim("c", &[consumer_of(&pod)]).await;
    stage.phase("web", "Running").await;
    stage.run();
    let pointer = doc!({ "containerStatuses": [{
        "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 3
    }] });
    let pod = stage.find(&PODS, "web").await.unwrap();
    stage.cluster.patch_status(&pod, pointer).await;
    stage.settle().await;
    assert_eq!(reserved(stage, "c").await, ["web"]);
}

async fn a_consumer_that_is_no_pod_stays(stage: &Stage) {
    let other = doc!({
        "apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "1234"
    });
    stage.claim("c", &[consumer("web", GONE), other]).await;
    stage.run();
    stage.until(async |s| reserved(s, "c").await == ["j"]).await;
    stage.settle().await;
    let claim = stage.find(&CLAIMS, "c").await.unwrap();
    assert_eq!(*claim.at("/status/allocation"), allocation());
    assert!(claim.meta().has_finalizer(FINALIZER));
}

async fn one_of_two_consumers_goes_and_the_other_stays(stage: &Stage) {
    let (a, b) = (
        stage.pod_on_node("a", &["gpu=c"]).await,
        stage.pod_on_node("b", &["gpu=c"]).await,
    );
    stage.claim("c", &[consumer_of(&a), consumer_of(&b)]).await;
    stage.run();
    stage.phase("a", "Succeeded").await;
    stage.until(async |s| reserved(s, "c").await == ["b"]).await;
    // A pod that has ended is never reserved for again.
    stage.settle().await;
    assert_eq!(reserved(stage, "c").await, ["b"]);
    let claim = stage.find(&CLAIMS, "c").await.unwrap();
    assert_eq!(*claim.at("/status/allocation"), allocation());
}

async fn the_claim_of_extended_resources_is_released(stage: &Stage) {
    let resources = doc!({
        "requests": { "example.com/gpu": "1" }, "limits": { "example.com/gpu": "1" }
    });
    let pod = pod("web", &[])
        .with("/spec/nodeName", "n1")
        .and_then(|pod| pod.with("/spec/containers/0/resources", resources))
        .unwrap();
    let pod = stage.create(pod).await;
    let status = doc!({ "extendedResourceClaimStatus": {
        "resourceClaimName": "c",
        "requestMappings": [
            { "containerName": "c", "resourceName": "example.com/gpu", "requestName": "r" }
        ]
    } });
    stage.cluster.patch_status(&pod, status).await;
    stage.claim("c", &[consumer_of(&pod)]).await;
    stage.run();
    stage.settle().await;
    assert_eq!(reserved(stage, "c").await, ["web"]);
    stage.phase("web", "Succeeded").await;
    until_free(stage, "c").await;
}

/// One pod ends, one goes, one comes and one goes on, all while nobody looks.
async fn what_happened_while_the_controller_was_away_is_made_up_for(stage: &Stage) {
    stage.template("t").await;
    for name in ["done", "gone"] {
        stage.pod(name, &["gpu@t"]).await;
    }
    stage.run();
    stage
        .until(async |s| s.recorded("done").await.len() == 1 && s.recorded("gone").await.len() == 1)
        .await;
    stage.end().await;

    for name in ["done", "gone"] {
        let pod = stage.find(&PODS, name).await.unwrap();
        let claim = stage.recorded(name).await[0].1.clone();
        let claim = stage.find(&CLAIMS, &claim).await.unwrap();
        stage.protect_and_allocate(&claim, &pod).await;
    }
    let kept = stage.pod_on_node("kept", &["gpu=shared"]).await;
    let done = stage.find(&PODS, "done").await.unwrap();
    stage
        .claim("shared", &[consumer_of(&done), consumer_of(&kept)])
        .await;
    stage.phase("done", "Succeeded").await;
    stage.delete(&PODS, "gone").await;
    stage.pod("new", &["gpu@t"]).await;

    stage.run();
    stage
        .until(async |s| {
            let claims = s.claims().await;
            // The claim of the pod that is gone waits for the garbage collector, without devices.
            let has_devices = |name: &str| {
                let mut claims = claims.iter();
                claims.any(|it| {
                    it.meta().name().starts_with(name) && !it.at("/status/allocation").is_null()
                })
            };
            let is_deleted = !claims
                .iter()
                .any(|it| it.meta().name().starts_with("done-"));
            is_deleted && !has_devices("gone-") && s.recorded("new").await.len() == 1
        })
        .await;
    stage
        .until(async |s| reserved(s, "shared").await == ["kept"])
        .await;
}

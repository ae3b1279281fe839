//! The condition `DisruptionTarget` of pods that were not deleted after all.

use windlass_core::{Doc, condition, doc};

use crate::world::World;

async fn targeted(world: &World, reason: &str) -> Doc {
    let pods = world.pods("web", None, 1).await;
    let now = world.cluster.env().now().to_string();
    let target = doc!({
        "type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m",
        "lastTransitionTime": now
    });
    let status = doc!({ "conditions": [target] });
    world.cluster.patch_status(&pods[0], status).await
}

async fn target(world: &World) -> Option<windlass_core::Condition> {
    condition(&world.find_pod("web-0").await.unwrap(), "DisruptionTarget")
}

/// P21
#[tokio::test(start_paused = true)]
async fn a_pod_that_survives_two_minutes_is_no_target_any_more() {
    let world = World::new().await;
    targeted(&world, "EvictionByEvictionAPI").await;
    world.pass(110).await;
    assert!(target(&world).await.unwrap().is_true());
    world.pass(20).await;
    let reset = target(&world).await.unwrap();
    assert_eq!(
        (reset.status.as_str(), reset.reason.as_str()),
        ("False", "")
    );
    assert_eq!(reset.message, "");
}

#[tokio::test(start_paused = true)]
async fn a_target_of_the_kubelet_stays_one() {
    let world = World::new().await;
    targeted(&world, "TerminationByKubelet").await;
    world.pass(600).await;
    assert!(target(&world).await.unwrap().is_true());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_ended_stays_a_target() {
    let world = World::new().await;
    let pod = targeted(&world, "PreemptionByScheduler").await;
    let failed = doc!({ "phase": "Failed" });
    world.cluster.patch_status(&pod, failed).await;
    world.pass(600).await;
    assert!(target(&world).await.unwrap().is_true());
}

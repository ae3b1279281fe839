//! Pods that were placed without the scheduler get their reservation here.

use windlass_core::doc;

use crate::claims::stage::*;

scenarios![
    an_allocated_claim_is_reserved_for_a_pod_on_a_node,
    a_claim_without_devices_is_not_reserved,
    a_pod_without_a_node_is_left_to_the_scheduler,
    a_finished_pod_is_not_reserved_for,
];

async fn consumers(stage: &Stage, claim: &str) -> Vec<windlass_core::Doc> {
    let claim = stage.find(&CLAIMS, claim).await.unwrap();
    claim.at("/status/reservedFor").items().to_vec()
}

async fn an_allocated_claim_is_reserved_for_a_pod_on_a_node(stage: &Stage) {
    stage.claim("c", &[]).await;
    stage.run();
    let pod = stage.pod_on_node("web", &["gpu=c"]).await;
    stage
        .until(async |s| !consumers(s, "c").await.is_empty())
        .await;
    assert_eq!(consumers(stage, "c").await, [consumer_of(&pod)]);
    stage.settle().await;
    assert_eq!(stage.calls(), ["PUT claims/c/status"]);
}

async fn a_claim_without_devices_is_not_reserved(stage: &Stage) {
    stage.create(claim("c")).await;
    stage.run();
    stage.pod_on_node("web", &["gpu=c"]).await;
    stage.settle().await;
    assert_eq!(consumers(stage, "c").await.len(), 0);
    let api = stage.cluster.api(&CLAIMS, &stage.namespace);
    let status = doc!({ "status": { "allocation": (allocation()) } });
    let patch = windlass_client::Patch::Merge(status);
    api.patch_status("c", &patch, &Default::default())
        .await
        .unwrap();
    stage
        .until(async |s| !consumers(s, "c").await.is_empty())
        .await;
}

async fn a_pod_without_a_node_is_left_to_the_scheduler(stage: &Stage) {
    stage.claim("c", &[]).await;
    stage.run();
    stage.pod("web", &["gpu=c"]).await;
    stage.settle().await;
    assert_eq!(consumers(stage, "c").await.len(), 0);
}

async fn a_finished_pod_is_not_reserved_for(stage: &Stage) {
    let other = stage.pod_on_node("other", &["gpu=c"]).await;
    stage.claim("c", &[consumer_of(&other)]).await;
    stage.pod_on_node("web", &["gpu=c"]).await;
    stage.phase("web", "Succeeded").await;
    stage.run();
    stage.settle().await;
    assert_eq!(consumers(stage, "c").await, [consumer_of(&other)]);
}

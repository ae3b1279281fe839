//! The status subresource.

use windlass_contract::objects::{config_map, deployment, job, node, pod, replica_set};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::doc;

cases![
    status_can_be_read_by_itself,
    status_update_changes_the_status_alone,
    status_update_keeps_the_generation,
    status_update_of_a_deployment_takes_annotations,
    status_update_of_a_deployment_leaves_labels,
    status_update_of_a_replica_set_takes_labels,
    status_update_of_a_pod_leaves_the_spec,
    stale_status_update_is_a_conflict,
    status_update_without_effect_keeps_the_revision,
    status_of_a_missing_object_is_not_found,
    status_cannot_be_created_or_deleted,
    impossible_deployment_status_is_refused,
    impossible_replica_set_status_is_refused,
    negative_status_is_refused,
    node_status,
    job_status_selects_nothing_but_itself,
    pod_conditions_are_kept_in_order,
    kind_without_a_status_has_no_such_path,
];

async fn status_can_be_read_by_itself(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    assert_eq!(t.get("deployments/a/status").await.is(200), made);
}

async fn status_update_changes_the_status_alone(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let changed = made.set("/status/replicas", 2).set("/spec/replicas", 9);
    let updated = t.update("deployments/a/status", &changed).await.is(200);
    assert_eq!(updated.at("/status/replicas"), 2);
    assert_eq!(updated.at("/spec"), made.at("/spec"));
    assert_eq!(t.get("deployments/a").await.is(200), updated);
}

async fn status_update_keeps_the_generation(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let patch = doc!({ "status": { "observedGeneration": 1 }, "spec": { "replicas": 7 } });
    let updated = t.merge("deployments/a/status", &patch).await.is(200);
    assert_eq!(updated.at("/metadata/generation"), 1);
    assert_eq!(updated.at("/status/observedGeneration"), 1);
}

async fn status_update_of_a_deployment_takes_annotations(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let patch = doc!({ "metadata": { "annotations": { "a": "b" } } });
    let updated = t.merge("deployments/a/status", &patch).await.is(200);
    assert_eq!(updated.at("/metadata/annotations/a"), "b");
    assert_eq!(updated.at("/metadata/generation"), 1);
}

async fn status_update_of_a_deployment_leaves_labels(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let patch = doc!({ "metadata": { "labels": { "a": "b" } }, "status": { "replicas": 1 } });
    let updated = t.merge("deployments/a/status", &patch).await.is(200);
    assert!(updated.at("/metadata/labels").is_null());
}

async fn status_update_of_a_replica_set_takes_labels(t: &Scope) {
    t.made("replicasets", &replica_set("a")).await;
    let patch = doc!({ "metadata": { "labels": { "a": "b" } }, "status": { "replicas": 1 } });
    let updated = t.merge("replicasets/a/status", &patch).await.is(200);
    assert_eq!(updated.at("/metadata/labels/a"), "b");
}

async fn status_update_of_a_pod_leaves_the_spec(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let patch = doc!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "nodeName": "n" },
        "status": { "phase": "Running", "podIP": "10.1.1.1" }
    });
    let updated = t.merge("pods/a/status", &patch).await.is(200);
    assert_eq!(updated.at("/status/phase"), "Running");
    assert_eq!(updated.at("/status/podIP"), "10.1.1.1");
    assert_eq!(updated.at("/spec"), made.at("/spec"));
    assert_eq!(updated.at("/metadata/labels/a"), "b");
    assert_eq!(updated.at("/metadata/generation"), 1);
}

async fn stale_status_update_is_a_conflict(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    t.merge("deployments/a", &doc!({ "spec": { "replicas": 2 } }))
        .await
        .is(200);
    let stale = made.set("/status/replicas", 1);
    t.update("deployments/a/status", &stale)
        .await
        .fails(409, "Conflict");
}

async fn status_update_without_effect_keeps_the_revision(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let updated = t.update("pods/a/status", &made).await.is(200);
    assert_eq!(updated, made);
}

async fn status_of_a_missing_object_is_not_found(t: &Scope) {
    t.get("pods/a/status")
        .await
        .fails(404, "NotFound")
        .says("pods \"a\" not found");
    t.merge("pods/a/status", &doc!({}))
        .await
        .fails(404, "NotFound");
}

async fn status_cannot_be_created_or_deleted(t: &Scope) {
    t.made("pods", &pod("a")).await;
    t.create("pods/a/status", &pod("a"))
        .await
        .fails(405, "MethodNotAllowed");
    t.delete("pods/a/status")
        .await
        .fails(405, "MethodNotAllowed");
    t.get("pods/a").await.is(200);
}

async fn impossible_deployment_status_is_refused(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let patch = doc!({ "status": { "replicas": 1, "readyReplicas": 2 } });
    t.merge("deployments/a/status", &patch)
        .await
        .fails(422, "Invalid")
        .says(
            "Deployment.apps \"a\" is invalid: status.readyReplicas: Invalid value: 2: cannot be \
             greater than status.replicas",
        )
        .because("FieldValueInvalid", "status.readyReplicas");
}

async fn impossible_replica_set_status_is_refused(t: &Scope) {
    t.made("replicasets", &replica_set("a")).await;
    let patch = doc!({ "status": { "replicas": 1, "availableReplicas": 2 } });
    let refusal = t
        .merge("replicasets/a/status", &patch)
        .await
        .fails(422, "Invalid");
    refusal.because("FieldValueInvalid", "status.availableReplicas");
}

async fn negative_status_is_refused(t: &Scope) {
    t.made("replicasets", &replica_set("a")).await;
    let patch = doc!({ "status": { "replicas": (-1) } });
    let refusal = t
        .merge("replicasets/a/status", &patch)
        .await
        .fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", "status.replicas")
        .mentions("must be greater than or equal to 0");
}

async fn node_status(t: &Scope) {
    let name = t.unique("n");
    t.made("nodes", &node(&name)).await;
    let patch = doc!({ "status": { "capacity": { "cpu": "4" } } });
    let updated = t
        .merge(&format!("nodes/{name}/status"), &patch)
        .await
        .is(200);
    assert_eq!(updated.at("/status/capacity/cpu"), "4");
}

async fn job_status_selects_nothing_but_itself(t: &Scope) {
    let made = t.made("jobs", &job("a")).await;
    let patch = doc!({ "status": { "active": 1 }, "spec": { "suspend": true } });
    let updated = t.merge("jobs/a/status", &patch).await.is(200);
    assert_eq!(updated.at("/status/active"), 1);
    assert_eq!(updated.at("/spec"), made.at("/spec"));
}

async fn pod_conditions_are_kept_in_order(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let patch = doc!({ "status": { "conditions": [
        { "type": "Ready", "status": "True" }, { "type": "Initialized", "status": "True" }
    ] } });
    let updated = t.merge("pods/a/status", &patch).await.is(200);
    assert_eq!(updated.at("/status/conditions/0/type"), "Ready");
    assert_eq!(updated.at("/status/conditions/1/type"), "Initialized");
}

async fn kind_without_a_status_has_no_such_path(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.get("configmaps/a/status")
        .await
        .fails(404, "NotFound")
        .says("the server could not find the requested resource");
}

//! Replacing objects.

use windlass_contract::objects::{config_map, deployment, lease, pod, replica_set, role, service};
use windlass_contract::{Edit, Scope, cases, revision};
use windlass_core::{Doc, doc};

cases![
    replaced_object_is_returned_with_a_new_revision,
    stale_revision_is_a_conflict,
    conflict_changes_nothing,
    update_without_a_revision_is_unconditional,
    lease_update_needs_a_revision,
    malformed_revision_is_refused,
    other_uid_is_a_conflict,
    right_uid_is_fine,
    name_that_differs_from_the_path_is_refused,
    missing_name_is_refused,
    namespace_that_differs_from_the_path_is_refused,
    missing_object_is_not_found,
    update_may_create_a_lease,
    update_may_create_a_role,
    same_content_keeps_the_revision,
    same_content_makes_no_event,
    creation_time_and_generation_cannot_be_changed,
    deletion_time_cannot_be_set,
    generation_grows_with_the_spec,
    generation_ignores_labels,
    generation_of_a_deployment_grows_with_annotations,
    generation_of_a_replica_set_ignores_annotations,
    status_is_kept_by_an_update,
    absent_fields_are_removed,
    absent_defaulted_fields_are_defaulted_again,
    update_of_the_collection_is_not_allowed,
    pod_image_may_change,
    pod_node_may_not_change,
    selector_of_a_deployment_is_immutable,
    selector_of_a_replica_set_is_immutable,
    cluster_ip_is_immutable,
    immutable_config_map_stays_as_it_is,
];

fn generation(object: &Doc) -> i64 {
    object
        .at("/metadata/generation")
        .as_i64()
        .expect("a generation")
}

async fn replaced_object_is_returned_with_a_new_revision(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let changed = made.set("/data/key", "other");
    let updated = t.update("configmaps/a", &changed).await.is(200);
    assert_eq!(updated.at("/data/key"), "other");
    assert_eq!(updated.at("/metadata/uid"), made.at("/metadata/uid"));
    assert_ne!(revision(&updated), revision(&made));
    assert_eq!(t.get("configmaps/a").await.is(200), updated);
}

async fn stale_revision_is_a_conflict(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    t.update("configmaps/a", &made.set("/data/key", "1"))
        .await
        .is(200);
    let answer = t.update("configmaps/a", &made.set("/data/key", "2")).await;
    answer
        .fails(409, "Conflict")
        .says(
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; \
             please apply your changes to the latest version and try again",
        )
        .is_about("", "configmaps", "a");
}

async fn conflict_changes_nothing(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let first = t
        .update("configmaps/a", &made.set("/data/key", "1"))
        .await
        .is(200);
    t.update("configmaps/a", &made.set("/data/key", "2"))
        .await
        .fails(409, "Conflict");
    assert_eq!(t.get("configmaps/a").await.is(200), first);
}

async fn update_without_a_revision_is_unconditional(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let updated = t
        .update("configmaps/a", &config_map("a").set("/data/key", "1"))
        .await;
    assert_eq!(updated.is(200).at("/data/key"), "1");
}

async fn lease_update_needs_a_revision(t: &Scope) {
    t.made("leases", &lease("a")).await;
    let answer = t.update("leases/a", &lease("a")).await;
    answer
        .fails(422, "Invalid")
        .says(
            "leases.coordination.k8s.io \"a\" is invalid: metadata.resourceVersion: Invalid value: \
             0: must be specified for an update",
        )
        .because("FieldValueInvalid", "metadata.resourceVersion");
}

async fn malformed_revision_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let malformed = config_map("a").set("/metadata/resourceVersion", "x");
    t.update("configmaps/a", &malformed).await.fails(500, "");
}

async fn other_uid_is_a_conflict(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let other = config_map("a").set("/metadata/uid", "other");
    let uid = made.str_at("/metadata/uid");
    let part =
        format!("Precondition failed: UID in precondition: other, UID in object meta: {uid}");
    t.update("configmaps/a", &other)
        .await
        .fails(409, "Conflict")
        .mentions(&part);
}

async fn right_uid_is_fine(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let same = config_map("a").set("/metadata/uid", made.at("/metadata/uid"));
    t.update("configmaps/a", &same.set("/data/key", "1"))
        .await
        .is(200);
}

async fn name_that_differs_from_the_path_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.update("configmaps/a", &config_map("b")).await;
    let message = "the name of the object (b) does not match the name on the URL (a)";
    answer.fails(400, "BadRequest").says(message);
}

async fn missing_name_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.update("configmaps/a", &doc!({ "metadata": {} })).await;
    let message =
        "the name of the object (a based on URL) was undeterminable: name must be provided";
    answer.fails(400, "BadRequest").says(message);
}

async fn namespace_that_differs_from_the_path_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let elsewhere = config_map("a").set("/metadata/namespace", "elsewhere");
    t.update("configmaps/a", &elsewhere)
        .await
        .fails(400, "BadRequest")
        .says(
            "the namespace of the provided object does not match the namespace sent on the request",
        );
}

async fn missing_object_is_not_found(t: &Scope) {
    let answer = t.update("configmaps/a", &config_map("a")).await;
    answer
        .fails(404, "NotFound")
        .says("configmaps \"a\" not found");
}

async fn update_may_create_a_lease(t: &Scope) {
    let made = t.update("leases/a", &lease("a")).await.is(201);
    assert_eq!(t.get("leases/a").await.is(200), made);
}

async fn update_may_create_a_role(t: &Scope) {
    t.update("roles/a", &role("a", &["get"], &["pods"]))
        .await
        .is(201);
    t.update("roles/a", &role("a", &["list"], &["pods"]))
        .await
        .is(200);
}

async fn same_content_keeps_the_revision(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let updated = t.update("deployments/a", &made).await.is(200);
    assert_eq!(revision(&updated), revision(&made));
    assert_eq!(generation(&updated), 1);
}

async fn same_content_makes_no_event(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let from = format!("resourceVersion={}", revision(&made));
    let mut watch = t.watch("configmaps", &from).await;
    t.update("configmaps/a", &made).await.is(200);
    t.made("configmaps", &config_map("b")).await;
    watch.expect("ADDED", "b").await;
}

async fn creation_time_and_generation_cannot_be_changed(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let changed = made
        .set("/metadata/creationTimestamp", "2020-01-01T00:00:00Z")
        .set("/metadata/generation", 70);
    let updated = t.update("deployments/a", &changed).await.is(200);
    assert_eq!(
        updated.at("/metadata/creationTimestamp"),
        made.at("/metadata/creationTimestamp")
    );
    assert_eq!(generation(&updated), 1);
}

async fn deletion_time_cannot_be_set(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let changed = made.set("/metadata/deletionTimestamp", "2020-01-01T00:00:00Z");
    let refusal = t
        .update("configmaps/a", &changed)
        .await
        .fails(422, "Invalid");
    refusal.because("FieldValueInvalid", "metadata.deletionTimestamp");
}

async fn generation_grows_with_the_spec(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let second = t
        .update("deployments/a", &made.set("/spec/replicas", 3))
        .await
        .is(200);
    assert_eq!(generation(&second), 2);
    let third = t
        .update("deployments/a", &second.set("/spec/paused", true))
        .await;
    assert_eq!(generation(&third.is(200)), 3);
}

async fn generation_ignores_labels(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let labeled = made.set("/metadata/labels/a", "b");
    let updated = t.update("deployments/a", &labeled).await.is(200);
    assert_eq!(generation(&updated), 1);
    assert_ne!(revision(&updated), revision(&made));
}

async fn generation_of_a_deployment_grows_with_annotations(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let annotated = made.set("/metadata/annotations/a", "b");
    assert_eq!(
        generation(&t.update("deployments/a", &annotated).await.is(200)),
        2
    );
}

async fn generation_of_a_replica_set_ignores_annotations(t: &Scope) {
    let made = t.made("replicasets", &replica_set("a")).await;
    let annotated = made.set("/metadata/annotations/a", "b");
    assert_eq!(
        generation(&t.update("replicasets/a", &annotated).await.is(200)),
        1
    );
}

async fn status_is_kept_by_an_update(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let updated = t
        .update("deployments/a", &made.set("/status/replicas", 5))
        .await;
    assert_eq!(updated.is(200).at("/status"), &doc!({}));
    let status = made.set("/status/replicas", 1);
    let with_status = t.update("deployments/a/status", &status).await.is(200);
    let without = with_status.cut("/status");
    let updated = t
        .update("deployments/a", &without.set("/spec/replicas", 2))
        .await;
    assert_eq!(updated.is(200).at("/status/replicas"), 1);
}

async fn absent_fields_are_removed(t: &Scope) {
    let made = t
        .made("configmaps", &config_map("a").set("/data/more", "1"))
        .await;
    let updated = t
        .update("configmaps/a", &made.cut("/data/more"))
        .await
        .is(200);
    assert_eq!(updated.at("/data"), &doc!({ "key": "value" }));
}

async fn absent_defaulted_fields_are_defaulted_again(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let updated = t.update("deployments/a", &deployment("a")).await.is(200);
    assert_eq!(updated.at("/spec"), made.at("/spec"));
    assert_eq!(revision(&updated), revision(&made));
}

async fn update_of_the_collection_is_not_allowed(t: &Scope) {
    t.update("configmaps", &config_map("a"))
        .await
        .fails(405, "MethodNotAllowed");
}

async fn pod_image_may_change(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let image = "registry.example/app:2";
    let changed = made.set("/spec/containers/0/image", image);
    let updated = t.update("pods/a", &changed).await.is(200);
    assert_eq!(updated.at("/spec/containers/0/image"), image);
    assert_eq!(generation(&updated), 2);
}

async fn pod_node_may_not_change(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let changed = made.set("/spec/nodeName", "n");
    let refusal = t.update("pods/a", &changed).await.fails(422, "Invalid");
    refusal
        .because("FieldValueForbidden", "spec")
        .mentions("spec: Forbidden: pod updates may not change fields other than");
}

async fn selector_of_a_deployment_is_immutable(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let changed = made
        .set("/spec/selector/matchLabels/more", "1")
        .set("/spec/template/metadata/labels/more", "1");
    t.update("deployments/a", &changed)
        .await
        .fails(422, "Invalid")
        .says(
            "Deployment.apps \"a\" is invalid: spec.selector: Invalid value: \
             {\"matchLabels\":{\"app\":\"web\",\"more\":\"1\"}}: field is immutable",
        )
        .because("FieldValueInvalid", "spec.selector");
}

async fn selector_of_a_replica_set_is_immutable(t: &Scope) {
    let made = t.made("replicasets", &replica_set("a")).await;
    let changed = made
        .set("/spec/selector/matchLabels/more", "1")
        .set("/spec/template/metadata/labels/more", "1");
    let refusal = t
        .update("replicasets/a", &changed)
        .await
        .fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", "spec.selector")
        .mentions("field is immutable");
}

async fn cluster_ip_is_immutable(t: &Scope) {
    let made = t.made("services", &service("a")).await;
    let changed = made.set("/spec/clusterIP", "10.0.0.250");
    let changed = changed.set("/spec/clusterIPs/0", "10.0.0.250");
    let refusal = t.update("services/a", &changed).await.fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", "spec.clusterIPs[0]")
        .mentions("may not change once set");
}

async fn immutable_config_map_stays_as_it_is(t: &Scope) {
    let made = t
        .made("configmaps", &config_map("a").set("/immutable", true))
        .await;
    let refusal = t
        .update("configmaps/a", &made.set("/data/key", "x"))
        .await
        .fails(422, "Invalid");
    refusal.because("FieldValueForbidden", "data").says(
        "ConfigMap \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is \
             set",
    );
    let refusal = t
        .update("configmaps/a", &made.set("/immutable", false))
        .await;
    refusal
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "immutable");
    let labeled = made.set("/metadata/labels/a", "b");
    t.update("configmaps/a", &labeled).await.is(200);
}

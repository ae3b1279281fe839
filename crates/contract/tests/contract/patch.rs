//! Patching objects.

use http::Method;
use windlass_contract::objects::{config_map, deployment, pod};
use windlass_contract::{Edit, Scope, cases, revision};
use windlass_core::{Doc, doc};

cases![
    merge_patch_sets_and_removes,
    merge_patch_replaces_lists,
    merge_patch_without_effect_keeps_the_revision,
    empty_merge_patch_keeps_the_revision,
    json_patch_runs_its_operations_in_order,
    json_patch_test_that_holds_lets_the_rest_run,
    json_patch_test_that_fails_changes_nothing,
    json_patch_removal_of_nothing_is_refused,
    json_patch_append_and_insert,
    json_patch_index_with_leading_zeros_counts,
    json_patch_copy_and_move,
    json_patch_escapes_slashes,
    json_patch_that_is_no_list_is_refused,
    json_patch_with_an_unknown_operation_is_refused,
    merge_patch_that_is_no_object_is_refused,
    broken_patch_is_refused,
    missing_object_is_not_found,
    patch_with_a_stale_revision_is_a_conflict,
    patch_with_the_right_revision_is_fine,
    patch_of_the_name_is_refused,
    patch_of_the_namespace_is_refused,
    patch_of_the_uid_is_refused,
    patch_of_the_kind_is_refused,
    patch_to_a_wrong_type_is_refused,
    patch_to_an_invalid_object_is_refused,
    patch_of_system_times_is_ignored,
    patch_cannot_touch_the_status,
    patch_of_the_spec_raises_the_generation,
    patch_can_edit_finalizers,
    removed_field_is_defaulted_again,
    plain_json_is_no_patch,
    force_is_for_apply_alone,
    patch_of_the_collection_is_not_allowed,
    pod_patch_of_an_immutable_field_is_refused,
];

async fn merge_patch_sets_and_removes(t: &Scope) {
    t.made("configmaps", &config_map("a").set("/data/gone", "1"))
        .await;
    let patch = doc!({ "data": { "gone": null, "new": "2" } });
    let patched = t.merge("configmaps/a", &patch).await.is(200);
    assert_eq!(patched.at("/data"), &doc!({ "key": "value", "new": "2" }));
    assert_eq!(t.get("configmaps/a").await.is(200), patched);
}

async fn merge_patch_replaces_lists(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let finalizers = |names: Doc| doc!({ "metadata": { "finalizers": names } });
    t.merge(
        "configmaps/a",
        &finalizers(doc!(["example.com/a", "example.com/b"])),
    )
    .await
    .is(200);
    let patched = t
        .merge("configmaps/a", &finalizers(doc!(["example.com/c"])))
        .await
        .is(200);
    assert_eq!(patched.at("/metadata/finalizers"), &doc!(["example.com/c"]));
}

async fn merge_patch_without_effect_keeps_the_revision(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let patched = t
        .merge("configmaps/a", &doc!({ "data": { "key": "value" } }))
        .await
        .is(200);
    assert_eq!(revision(&patched), revision(&made));
}

async fn empty_merge_patch_keeps_the_revision(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let patched = t.merge("deployments/a", &doc!({})).await.is(200);
    assert_eq!(revision(&patched), revision(&made));
}

async fn json_patch_runs_its_operations_in_order(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let patch = doc!([
        { "op": "add", "path": "/data/b", "value": "1" },
        { "op": "replace", "path": "/data/b", "value": "2" },
        { "op": "remove", "path": "/data/key" }
    ]);
    let patched = t.edit("configmaps/a", &patch).await.is(200);
    assert_eq!(patched.at("/data"), &doc!({ "b": "2" }));
}

async fn json_patch_test_that_holds_lets_the_rest_run(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let patch = doc!([
        { "op": "test", "path": "/data/key", "value": "value" },
        { "op": "replace", "path": "/data/key", "value": "2" }
    ]);
    assert_eq!(
        t.edit("configmaps/a", &patch).await.is(200).at("/data/key"),
        "2"
    );
}

async fn json_patch_test_that_fails_changes_nothing(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let patch = doc!([
        { "op": "replace", "path": "/data/key", "value": "2" },
        { "op": "test", "path": "/data/key", "value": "other" }
    ]);
    t.edit("configmaps/a", &patch)
        .await
        .fails(422, "Invalid")
        .says("the server rejected our request due to an error in our request");
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn json_patch_removal_of_nothing_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let patch = doc!([{ "op": "remove", "path": "/data/none" }]);
    t.edit("configmaps/a", &patch).await.fails(422, "Invalid");
}

async fn json_patch_append_and_insert(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let patch = doc!([
        { "op": "add", "path": "/metadata/finalizers", "value": ["example.com/b"] },
        { "op": "add", "path": "/metadata/finalizers/-", "value": "example.com/c" },
        { "op": "add", "path": "/metadata/finalizers/0", "value": "example.com/a" }
    ]);
    let patched = t.edit("configmaps/a", &patch).await.is(200);
    let expected = doc!(["example.com/a", "example.com/b", "example.com/c"]);
    assert_eq!(patched.at("/metadata/finalizers"), &expected);
}

async fn json_patch_index_with_leading_zeros_counts(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let patch = doc!([
        { "op": "add", "path": "/metadata/finalizers", "value": ["example.com/b"] },
        { "op": "add", "path": "/metadata/finalizers/00", "value": "example.com/a" }
    ]);
    let patched = t.edit("configmaps/a", &patch).await.is(200);
    let expected = doc!(["example.com/a", "example.com/b"]);
    assert_eq!(patched.at("/metadata/finalizers"), &expected);
    let patch = doc!([{ "op": "remove", "path": "/metadata/finalizers/00" }]);
    let patched = t.edit("configmaps/a", &patch).await.is(200);
    assert_eq!(patched.at("/metadata/finalizers"), &doc!(["example.com/b"]));
}

async fn json_patch_copy_and_move(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let patch = doc!([
        { "op": "copy", "from": "/data/key", "path": "/data/copy" },
        { "op": "move", "from": "/data/key", "path": "/data/moved" }
    ]);
    let patched = t.edit("configmaps/a", &patch).await.is(200);
    assert_eq!(
        patched.at("/data"),
        &doc!({ "copy": "value", "moved": "value" })
    );
}

async fn json_patch_escapes_slashes(t: &Scope) {
    t.made(
        "configmaps",
        &config_map("a").set("/metadata/labels/x", "y"),
    )
    .await;
    let patch =
        doc!([{ "op": "add", "path": "/metadata/labels/example.com~1role", "value": "web" }]);
    let patched = t.edit("configmaps/a", &patch).await.is(200);
    assert_eq!(patched.at("/metadata/labels/example.com~1role"), "web");
}

async fn json_patch_that_is_no_list_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.edit("configmaps/a", &doc!({ "op": "add" })).await;
    answer
        .fails(400, "BadRequest")
        .mentions("error decoding patch");
}

async fn json_patch_with_an_unknown_operation_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let patch = doc!([{ "op": "increment", "path": "/data/key", "value": "1" }]);
    t.edit("configmaps/a", &patch).await.fails(422, "Invalid");
}

async fn merge_patch_that_is_no_object_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.merge("configmaps/a", &doc!([1])).await;
    answer
        .fails(400, "BadRequest")
        .mentions("error decoding patch");
}

async fn broken_patch_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    for media_type in [
        "application/json-patch+json",
        "application/merge-patch+json",
    ] {
        let request = t
            .request(Method::PATCH, "configmaps/a")
            .body(media_type, "{");
        t.send(request).await.fails(400, "BadRequest");
    }
}

async fn missing_object_is_not_found(t: &Scope) {
    let answer = t.merge("configmaps/a", &doc!({ "data": {} })).await;
    answer
        .fails(404, "NotFound")
        .says("configmaps \"a\" not found");
}

async fn patch_with_a_stale_revision_is_a_conflict(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    t.merge("configmaps/a", &doc!({ "data": { "key": "1" } }))
        .await
        .is(200);
    let stale = doc!({
        "metadata": { "resourceVersion": (revision(&made)) },
        "data": { "key": "2" }
    });
    t.merge("configmaps/a", &stale).await.fails(409, "Conflict").says(
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please \
         apply your changes to the latest version and try again",
    );
}

async fn patch_with_the_right_revision_is_fine(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let patch = doc!({
        "metadata": { "resourceVersion": (revision(&made)) },
        "data": { "key": "2" }
    });
    t.merge("configmaps/a", &patch).await.is(200);
}

async fn patch_of_the_name_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t
        .merge("configmaps/a", &doc!({ "metadata": { "name": "b" } }))
        .await;
    let message = "the name of the object (b) does not match the name on the URL (a)";
    answer.fails(400, "BadRequest").says(message);
}

async fn patch_of_the_namespace_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t
        .merge("configmaps/a", &doc!({ "metadata": { "namespace": "b" } }))
        .await;
    answer.fails(400, "BadRequest").says(
        "the namespace of the provided object does not match the namespace sent on the request",
    );
}

async fn patch_of_the_uid_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t
        .merge("configmaps/a", &doc!({ "metadata": { "uid": "other" } }))
        .await;
    answer
        .fails(422, "Invalid")
        .says(
            "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"other\": field is \
             immutable",
        )
        .because("FieldValueInvalid", "metadata.uid");
}

async fn patch_of_the_kind_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.merge("configmaps/a", &doc!({ "kind": "Pod" })).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "patch");
}

async fn patch_to_a_wrong_type_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t
        .merge("configmaps/a", &doc!({ "data": { "key": 1 } }))
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "patch");
}

async fn patch_to_an_invalid_object_is_refused(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let answer = t
        .merge(
            "deployments/a",
            &doc!({ "spec": { "minReadySeconds": (-1) } }),
        )
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec.minReadySeconds");
    assert_eq!(t.get("deployments/a").await.is(200), made);
}

async fn patch_of_system_times_is_ignored(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let patch = doc!({
        "metadata": { "creationTimestamp": "2020-01-01T00:00:00Z", "generation": 70 }
    });
    assert_eq!(t.merge("deployments/a", &patch).await.is(200), made);
}

async fn patch_cannot_touch_the_status(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let patched = t
        .merge("deployments/a", &doc!({ "status": { "replicas": 4 } }))
        .await
        .is(200);
    assert_eq!(patched, made);
}

async fn patch_of_the_spec_raises_the_generation(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let patched = t
        .merge("deployments/a", &doc!({ "spec": { "replicas": 4 } }))
        .await
        .is(200);
    assert_eq!(patched.at("/metadata/generation"), 2);
}

async fn patch_can_edit_finalizers(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let patch = doc!({ "metadata": { "finalizers": ["example.com/a"] } });
    t.merge("configmaps/a", &patch).await.is(200);
    let removal = doc!([{ "op": "remove", "path": "/metadata/finalizers" }]);
    let patched = t.edit("configmaps/a", &removal).await.is(200);
    assert!(patched.at("/metadata/finalizers").is_null());
}

async fn removed_field_is_defaulted_again(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let patched = t
        .merge("deployments/a", &doc!({ "spec": { "replicas": null } }))
        .await
        .is(200);
    assert_eq!(patched.at("/spec/replicas"), 1);
}

async fn plain_json_is_no_patch(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    for media_type in ["application/json", "text/plain"] {
        let request = t
            .request(Method::PATCH, "configmaps/a")
            .body(media_type, "{}");
        t.send(request).await.fails(415, "UnsupportedMediaType");
    }
}

async fn force_is_for_apply_alone(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.merge("configmaps/a?force=true", &doc!({})).await;
    answer
        .fails(422, "Invalid")
        .says(
            "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for \
             non-apply patch",
        )
        .because("FieldValueForbidden", "force");
}

async fn patch_of_the_collection_is_not_allowed(t: &Scope) {
    t.merge("configmaps", &doc!({}))
        .await
        .fails(405, "MethodNotAllowed");
}

async fn pod_patch_of_an_immutable_field_is_refused(t: &Scope) {
    t.made("pods", &pod("a")).await;
    for spec in [
        doc!({ "terminationGracePeriodSeconds": 3 }),
        doc!({ "restartPolicy": "Never" }),
        doc!({ "serviceAccountName": "other" }),
    ] {
        let refusal = t
            .merge("pods/a", &doc!({ "spec": spec }))
            .await
            .fails(422, "Invalid");
        refusal.because("FieldValueForbidden", "spec");
    }
}

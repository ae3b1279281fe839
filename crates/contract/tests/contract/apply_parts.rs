//! Server-side apply of the status and of the scale, and who owns what is written there.

use windlass_contract::objects::{deployment, pod};
use windlass_contract::{Edit, Scope, applier, cases, managers, updater};
use windlass_core::{Doc, doc};

cases![
    status_has_its_own_owner,
    status_apply_ignores_the_spec,
    status_apply_keeps_annotations_and_not_labels,
    status_of_nothing_is_not_found,
    conditions_are_told_apart_by_type,
    conflict_about_the_status_names_the_subresource,
    main_apply_does_not_touch_the_status,
    scale_apply_sets_the_replicas,
    scale_update_is_owned_without_a_time,
    scale_patch_takes_the_replicas,
    scale_conflict_names_the_version_of_scales,
    scale_applied_by_one_is_a_conflict_for_the_main_object,
    scale_of_nothing_is_not_found,
    scale_of_another_kind_is_refused,
    scale_apply_with_a_stale_revision_is_a_conflict,
    negative_scale_is_refused,
    update_takes_the_replicas_back_from_the_scale,
    pod_status_apply_ignores_the_owners,
    binding_has_no_owner,
    ephemeral_container_is_owned_through_its_path,
    finalizers_of_a_namespace_are_owned_through_their_path,
];

fn status(status: Doc) -> Doc {
    deployment("a").cut("/spec").set("/status", status)
}

fn scale(replicas: i64) -> Doc {
    doc!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "a" },
        "spec": { "replicas": replicas }
    })
}

/// What the main object says about the manager of a subresource.
async fn entry(t: &Scope, manager: &str) -> Doc {
    let object = t.get("deployments/a").await.is(200);
    let entries = managers(&object);
    let found = entries.items().iter();
    let mut found = found.filter(|entry| entry.str_at("/manager") == manager);
    found.next().cloned().unwrap_or_default()
}

async fn status_has_its_own_owner(t: &Scope) {
    t.made("deployments?fieldManager=maker", &deployment("a"))
        .await;
    let config = status(doc!({ "replicas": 1 }));
    t.apply("me", "deployments/a/status", &config).await.is(200);
    let fields = doc!({ "f:status": { "f:replicas": {} } });
    let expected = applier("me", "apps/v1", fields).set("/subresource", "status");
    assert_eq!(entry(t, "me").await, expected);
}

async fn status_apply_ignores_the_spec(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let config = status(doc!({ "replicas": 1 })).set("/spec", doc!({ "replicas": 9 }));
    let applied = t.applied("me", "deployments/a/status", &config).await;
    assert_eq!(applied.at("/spec/replicas"), 1);
    assert_eq!(
        entry(t, "me").await.at("/fieldsV1"),
        &doc!({ "f:status": { "f:replicas": {} } })
    );
}

async fn status_apply_keeps_annotations_and_not_labels(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let metadata = doc!({ "name": "a", "labels": { "l": "1" }, "annotations": { "n": "1" } });
    let config = status(doc!({})).set("/metadata", metadata);
    let applied = t.applied("me", "deployments/a/status", &config).await;
    assert_eq!(applied.at("/metadata/labels"), &Doc::NULL);
    assert_eq!(applied.at("/metadata/annotations"), &doc!({ "n": "1" }));
    let fields = doc!({ "f:metadata": { "f:annotations": { "f:n": {} } }, "f:status": {} });
    assert_eq!(entry(t, "me").await.at("/fieldsV1"), &fields);
}

async fn status_of_nothing_is_not_found(t: &Scope) {
    t.apply(
        "me",
        "deployments/a/status",
        &status(doc!({ "replicas": 1 })),
    )
    .await
    .fails(404, "NotFound")
    .says("deployments.apps \"a\" not found");
}

fn condition(sort: &str, status: &str) -> Doc {
    doc!({ "conditions": [{ "type": sort, "status": status }] })
}

async fn conditions_are_told_apart_by_type(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let path = "deployments/a/status";
    t.applied("one", path, &status(condition("Available", "True")))
        .await;
    let both = t
        .applied("two", path, &status(condition("Progressing", "True")))
        .await;
    assert_eq!(both.at("/status/conditions").items().len(), 2);
    let fields = entry(t, "two").await;
    let fields = fields.at("/fieldsV1/f:status/f:conditions");
    let expected =
        doc!({ "k:{\"type\":\"Progressing\"}": { ".": {}, "f:status": {}, "f:type": {} } });
    assert_eq!(fields, &expected);
}

async fn conflict_about_the_status_names_the_subresource(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let path = "deployments/a/status";
    let patch = doc!({ "status": { "replicas": 1 } });
    t.merge(&format!("{path}?fieldManager=controller"), &patch)
        .await
        .is(200);
    t.apply("me", path, &status(doc!({ "replicas": 2 })))
        .await
        .fails(409, "Conflict")
        .says(
            "Apply failed with 1 conflict: conflict with \"controller\" with subresource \
             \"status\" using apps/v1: .status.replicas",
        );
}

async fn main_apply_does_not_touch_the_status(t: &Scope) {
    let config = deployment("a").set("/status", doc!({ "replicas": 7 }));
    let made = t.applied("me", "deployments/a", &config).await;
    assert_eq!(made.at("/status"), &doc!({}));
    assert_eq!(managers(&made).at("/0/fieldsV1/f:status"), &Doc::NULL);
}

async fn scale_apply_sets_the_replicas(t: &Scope) {
    t.made(
        "deployments?fieldManager=maker",
        &deployment("a").cut("/spec/replicas"),
    )
    .await;
    let path = "deployments/a/scale?force=true";
    let scaled = t.applied("me", path, &scale(4)).await;
    assert_eq!(scaled.at("/spec/replicas"), 4);
    assert_eq!(scaled.at("/metadata/managedFields"), &Doc::NULL);
    let fields = doc!({ "f:spec": { "f:replicas": {} } });
    let expected = applier("me", "apps/v1", fields)
        .set("/subresource", "scale")
        .cut("/time");
    assert_eq!(entry(t, "me").await, expected);
    let maker = entry(t, "maker").await;
    assert_eq!(maker.at("/fieldsV1/f:spec/f:replicas"), &Doc::NULL);
}

async fn scale_update_is_owned_without_a_time(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    t.update("deployments/a/scale?fieldManager=me", &scale(3))
        .await
        .is(200);
    let fields = doc!({ "f:spec": { "f:replicas": {} } });
    let expected = updater("me", "apps/v1", fields)
        .set("/subresource", "scale")
        .cut("/time");
    assert_eq!(entry(t, "me").await, expected);
}

async fn scale_patch_takes_the_replicas(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    t.update("deployments/a/scale?fieldManager=one", &scale(3))
        .await
        .is(200);
    let patch = doc!({ "spec": { "replicas": 4 } });
    t.merge("deployments/a/scale?fieldManager=two", &patch)
        .await
        .is(200);
    assert_eq!(entry(t, "one").await, Doc::NULL);
    assert_eq!(entry(t, "two").await.at("/subresource"), "scale");
}

async fn scale_conflict_names_the_version_of_scales(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    t.update("deployments/a/scale?fieldManager=one", &scale(3))
        .await
        .is(200);
    t.apply("two", "deployments/a/scale", &scale(4))
        .await
        .fails(409, "Conflict")
        .says(
            "Apply failed with 1 conflict: conflict with \"one\" with subresource \"scale\" using \
             autoscaling/v1: .spec.replicas",
        );
}

async fn scale_applied_by_one_is_a_conflict_for_the_main_object(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let path = "deployments/a/scale?force=true";
    t.applied("me", path, &scale(4)).await;
    let config = deployment("a").set("/spec", doc!({ "replicas": 5 }));
    t.apply("me", "deployments/a", &config)
        .await
        .fails(409, "Conflict")
        .says(
            "Apply failed with 1 conflict: conflict with \"me\" with subresource \"scale\": \
             .spec.replicas",
        );
}

async fn scale_of_nothing_is_not_found(t: &Scope) {
    t.apply("me", "deployments/a/scale", &scale(1))
        .await
        .fails(404, "NotFound")
        .says("deployments.apps \"a\" not found");
}

async fn scale_of_another_kind_is_refused(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    t.apply("me", "deployments/a/scale", &deployment("a"))
        .await
        .fails(400, "BadRequest")
        .says("invalid object type: apps/v1, Kind=Deployment");
}

async fn scale_apply_with_a_stale_revision_is_a_conflict(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let config = scale(4).set("/metadata/resourceVersion", "1");
    t.apply("me", "deployments/a/scale?force=true", &config)
        .await
        .fails(409, "Conflict")
        .mentions("the object has been modified");
}

async fn negative_scale_is_refused(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    t.apply("me", "deployments/a/scale?force=true", &scale(-1))
        .await
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec.replicas");
}

async fn update_takes_the_replicas_back_from_the_scale(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    t.update("deployments/a/scale?fieldManager=one", &scale(3))
        .await
        .is(200);
    let patch = doc!({ "spec": { "replicas": 8 } });
    t.merge("deployments/a?fieldManager=two", &patch)
        .await
        .is(200);
    assert_eq!(entry(t, "one").await, Doc::NULL);
    let fields = doc!({ "f:spec": { "f:replicas": {} } });
    assert_eq!(entry(t, "two").await, updater("two", "apps/v1", fields));
}

async fn pod_status_apply_ignores_the_owners(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let owner = doc!([{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1" }]);
    let config = doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "ownerReferences": owner },
        "status": { "message": "m" }
    });
    let applied = t.applied("me", "pods/a/status", &config).await;
    assert_eq!(applied.at("/metadata/ownerReferences"), &Doc::NULL);
    assert_eq!(applied.at("/status/message"), "m");
    let entries = managers(&applied);
    assert_eq!(
        entries.at("/0/fieldsV1"),
        &doc!({ "f:status": { "f:message": {} } })
    );
}

async fn binding_has_no_owner(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let binding = doc!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "a" },
        "target": { "kind": "Node", "name": "n1" }
    });
    t.create("pods/a/binding?fieldManager=scheduler", &binding)
        .await
        .is(201);
    let bound = t.get("pods/a").await.is(200);
    assert_eq!(bound.at("/spec/nodeName"), "n1");
    assert_eq!(managers(&bound), managers(&made));
}

async fn ephemeral_container_is_owned_through_its_path(t: &Scope) {
    t.made("pods?fieldManager=maker", &pod("a")).await;
    let patch = doc!({ "spec": { "ephemeralContainers": [{ "name": "e", "image": "x" }] } });
    let path = "pods/a/ephemeralcontainers";
    let patched = t.strategic(path, &patch).await.is(200);
    let entries = managers(&patched);
    assert_eq!(entries.at("/1/subresource"), "ephemeralcontainers");
    let expected = doc!({ "f:spec": { "f:ephemeralContainers": {
        ".": {},
        "k:{\"name\":\"e\"}": {
            ".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {}, "f:resources": {},
            "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {}
        }
    } } });
    assert_eq!(entries.at("/1/fieldsV1"), &expected);
}

async fn finalizers_of_a_namespace_are_owned_through_their_path(t: &Scope) {
    let name = t.namespace();
    let path = format!("/api/v1/namespaces/{name}");
    let object = t.get(&path).await.is(200);
    let object = object.set("/spec/finalizers", doc!(["kubernetes", "a.b/c"]));
    let put = t
        .update(&format!("{path}/finalize?fieldManager=me"), &object)
        .await;
    let entries = managers(&put.is(200));
    let mine = entries.items().iter();
    let mut mine = mine.filter(|entry| entry.str_at("/manager") == "me");
    let fields = doc!({ "f:spec": { "f:finalizers": {} } });
    let expected = updater("me", "v1", fields).set("/subresource", "finalize");
    assert_eq!(mine.next(), Some(&expected));
    // Without this nobody could ever remove the namespace.
    let object = t.get(&path).await.is(200);
    let object = object.set("/spec/finalizers", doc!(["kubernetes"]));
    t.update(&format!("{path}/finalize"), &object).await.is(200);
}

//! Namespaces: what they are born with, and how they end.

use windlass_contract::objects::{config_map, held, namespace};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    namespace_is_born_active,
    namespace_label_cannot_be_removed,
    generated_namespace_has_its_label,
    name_with_a_dot_is_refused,
    name_that_is_too_long_is_refused,
    deletion_begins_termination,
    second_deletion_changes_nothing,
    terminating_namespace_takes_nothing_new,
    terminating_namespace_still_allows_deletion_and_change,
    empty_finalize_removes_a_terminating_namespace,
    metadata_finalizers_hold_a_finalized_namespace,
    finalize_of_a_living_namespace_keeps_it,
    spec_finalizers_change_through_finalize_alone,
    phase_cannot_be_terminating_while_living,
    first_namespaces_exist,
    vital_namespaces_may_not_be_deleted,
    missing_namespace_is_not_found,
    foreground_deletion_leaves_its_finalizer,
    deletion_with_a_wrong_uid_is_a_conflict,
    finalize_of_another_name_is_refused,
];

async fn made(t: &Scope) -> (String, Doc) {
    let name = t.unique("ns");
    let made = t.made("namespaces", &namespace(&name)).await;
    (format!("namespaces/{name}"), made)
}

async fn namespace_is_born_active(t: &Scope) {
    let (_, made) = made(t).await;
    assert_eq!(made.at("/spec"), &doc!({ "finalizers": ["kubernetes"] }));
    assert_eq!(made.at("/status"), &doc!({ "phase": "Active" }));
    let label = made.at("/metadata/labels/kubernetes.io~1metadata.name");
    assert_eq!(label, made.str_at("/metadata/name"));
    assert!(made.at("/metadata/namespace").is_null());
}

async fn namespace_label_cannot_be_removed(t: &Scope) {
    let (path, made) = made(t).await;
    let patch = doc!({ "metadata": { "labels": { "kubernetes.io/metadata.name": null } } });
    assert_eq!(t.merge(&path, &patch).await.is(200), made);
}

async fn generated_namespace_has_its_label(t: &Scope) {
    let made = t
        .made(
            "namespaces",
            &doc!({ "metadata": { "generateName": "gen-" } }),
        )
        .await;
    let label = made.at("/metadata/labels/kubernetes.io~1metadata.name");
    assert_eq!(label, made.str_at("/metadata/name"));
}

async fn name_with_a_dot_is_refused(t: &Scope) {
    let answer = t.create("namespaces", &namespace("a.b")).await;
    answer
        .fails(422, "Invalid")
        .says(
            "Namespace \"a.b\" is invalid: metadata.name: Invalid value: \"a.b\": must not \
             contain dots",
        )
        .because("FieldValueInvalid", "metadata.name");
}

async fn name_that_is_too_long_is_refused(t: &Scope) {
    let answer = t.create("namespaces", &namespace(&"a".repeat(64))).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "metadata.name");
}

async fn deletion_begins_termination(t: &Scope) {
    let (path, _) = made(t).await;
    let deleted = t.delete(&path).await.is(200);
    assert_eq!(deleted.at("/kind"), "Namespace");
    assert_eq!(deleted.at("/status/phase"), "Terminating");
    assert!(deleted.str_at("/metadata/deletionTimestamp").ends_with('Z'));
    assert!(deleted.at("/metadata/deletionGracePeriodSeconds").is_null());
    assert_eq!(deleted.at("/spec/finalizers"), &doc!(["kubernetes"]));
    assert_eq!(t.get(&path).await.is(200), deleted);
}

async fn second_deletion_changes_nothing(t: &Scope) {
    let (path, _) = made(t).await;
    let first = t.delete(&path).await.is(200);
    assert_eq!(t.delete(&path).await.is(200), first);
}

async fn terminating_namespace_takes_nothing_new(t: &Scope) {
    let (path, made) = made(t).await;
    t.delete(&path).await.is(200);
    let name = made.str_at("/metadata/name");
    let inside = t.in_namespace(name);
    let refusal = inside
        .create("configmaps", &config_map("a"))
        .await
        .fails(403, "Forbidden");
    let message = format!(
        "configmaps \"a\" is forbidden: unable to create new content in namespace {name} because \
         it is being terminated"
    );
    let refusal = refusal
        .says(&message)
        .is_about("", "configmaps", "a")
        .because("NamespaceTerminating", "metadata.namespace");
    let cause = format!("namespace {name} is being terminated");
    assert_eq!(refusal.causes()[0].at("/message"), cause.as_str());
}

async fn terminating_namespace_still_allows_deletion_and_change(t: &Scope) {
    let (path, made) = made(t).await;
    let inside = t.in_namespace(made.str_at("/metadata/name"));
    inside.made("configmaps", &config_map("a")).await;
    t.delete(&path).await.is(200);
    inside
        .merge("configmaps/a", &doc!({ "data": { "key": "2" } }))
        .await
        .is(200);
    inside.delete("configmaps/a").await.is(200);
    inside.get("configmaps/a").await.fails(404, "NotFound");
}

async fn empty_finalize_removes_a_terminating_namespace(t: &Scope) {
    let (path, _) = made(t).await;
    let deleted = t.delete(&path).await.is(200);
    let finalized = deleted.set("/spec/finalizers", doc!([]));
    t.update(&format!("{path}/finalize"), &finalized)
        .await
        .is(200);
    t.get(&path).await.fails(404, "NotFound");
}

async fn metadata_finalizers_hold_a_finalized_namespace(t: &Scope) {
    let name = t.unique("ns");
    let path = format!("namespaces/{name}");
    t.made("namespaces", &held(&namespace(&name), &["example.com/a"]))
        .await;
    let deleted = t.delete(&path).await.is(200);
    let finalized = deleted.set("/spec/finalizers", doc!([]));
    t.update(&format!("{path}/finalize"), &finalized)
        .await
        .is(200);
    t.get(&path).await.is(200);
    t.merge(&path, &doc!({ "metadata": { "finalizers": null } }))
        .await
        .is(200);
    t.get(&path).await.fails(404, "NotFound");
}

async fn finalize_of_a_living_namespace_keeps_it(t: &Scope) {
    let (path, made) = made(t).await;
    let finalized = made.set("/spec/finalizers", doc!(["example.com/mine"]));
    let updated = t
        .update(&format!("{path}/finalize"), &finalized)
        .await
        .is(200);
    assert_eq!(updated.at("/spec/finalizers"), &doc!(["example.com/mine"]));
    assert_eq!(t.get(&path).await.is(200).at("/status/phase"), "Active");
}

async fn spec_finalizers_change_through_finalize_alone(t: &Scope) {
    let (path, made) = made(t).await;
    let patched = t
        .merge(&path, &doc!({ "spec": { "finalizers": [] } }))
        .await
        .is(200);
    assert_eq!(patched, made);
}

async fn phase_cannot_be_terminating_while_living(t: &Scope) {
    let (path, _) = made(t).await;
    let patch = doc!({ "status": { "phase": "Terminating" } });
    let answer = t.merge(&format!("{path}/status"), &patch).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "status.Phase");
}

async fn first_namespaces_exist(t: &Scope) {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let found = t.get(&format!("namespaces/{name}")).await.is(200);
        assert_eq!(found.at("/status/phase"), "Active");
    }
    t.in_namespace("default")
        .get("services/kubernetes")
        .await
        .is(200);
}

async fn vital_namespaces_may_not_be_deleted(t: &Scope) {
    for name in ["default", "kube-system", "kube-public"] {
        let message =
            format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        t.delete(&format!("namespaces/{name}"))
            .await
            .fails(403, "Forbidden")
            .says(&message);
    }
}

async fn missing_namespace_is_not_found(t: &Scope) {
    let answer = t.get("namespaces/no-such-namespace").await;
    answer
        .fails(404, "NotFound")
        .says("namespaces \"no-such-namespace\" not found");
    t.delete("namespaces/no-such-namespace")
        .await
        .fails(404, "NotFound");
}

async fn foreground_deletion_leaves_its_finalizer(t: &Scope) {
    let (path, _) = made(t).await;
    let options = doc!({ "propagationPolicy": "Foreground" });
    let deleted = t.delete_with(&path, &options).await.is(200);
    assert_eq!(
        deleted.at("/metadata/finalizers"),
        &doc!(["foregroundDeletion"])
    );
}

async fn deletion_with_a_wrong_uid_is_a_conflict(t: &Scope) {
    let (path, _) = made(t).await;
    let options = doc!({ "preconditions": { "uid": "other" } });
    t.delete_with(&path, &options).await.fails(409, "Conflict");
    assert_eq!(t.get(&path).await.is(200).at("/status/phase"), "Active");
}

async fn finalize_of_another_name_is_refused(t: &Scope) {
    let (path, _) = made(t).await;
    let answer = t
        .update(&format!("{path}/finalize"), &namespace("other"))
        .await;
    answer.fails(400, "BadRequest");
}

//! `managedFields`: who is noted for a write that is not an apply.

use windlass_contract::objects::{config_map, deployment, pod, secret};
use windlass_contract::{Edit, Scope, cases, managers, revision, updater};
use windlass_core::{Doc, doc};

cases![
    manager_is_the_one_the_request_names,
    manager_is_the_program_if_nobody_is_named,
    program_without_a_version_is_the_manager,
    long_name_of_a_program_is_cut,
    nobody_is_unknown,
    long_name_of_a_manager_is_refused,
    name_of_a_manager_must_print,
    update_owns_what_it_changes,
    update_drops_what_it_removes,
    update_without_change_is_no_write,
    update_by_another_without_change_is_no_write,
    second_update_adds_to_the_same_entry,
    updates_of_two_managers_are_kept_apart,
    name_and_system_metadata_are_never_owned,
    labels_and_annotations_are_owned_by_key,
    list_of_patches_is_one_manager,
    json_patch_is_tracked,
    merge_patch_is_tracked,
    create_by_update_is_tracked,
    delete_with_finalizer_changes_no_owner,
    what_admission_adds_is_not_owned,
    what_the_server_generates_is_not_owned,
    status_is_owned_through_its_path,
    status_given_to_create_is_not_owned,
    status_given_to_update_is_not_owned,
    empty_list_resets,
    one_empty_entry_resets,
    reset_is_for_good_until_the_next_apply,
    null_keeps_the_managers,
    entries_of_the_client_count,
    entry_with_a_wrong_operation_is_ignored,
    entry_with_a_wrong_type_is_ignored,
    entry_with_wrong_fields_is_ignored,
    entries_of_a_new_object_count,
    subresource_cannot_edit_the_entries,
    oldest_of_many_managers_are_joined,
    same_manager_has_one_entry_for_each_subresource,
    managers_come_after_appliers,
    secret_texts_are_owned_where_they_are_stored,
    dry_run_shows_the_entry_and_keeps_nothing,
    times_are_whole_seconds,
];

fn data(keys: &[&str]) -> Doc {
    let fields = keys.iter().fold(doc!({}), |fields, key| {
        fields.set(&format!("/f:{key}"), doc!({}))
    });
    doc!({ "f:data": fields })
}

/// Fields of a map that was made with them.
fn made_data(keys: &[&str]) -> Doc {
    data(keys).set("/f:data/.", doc!({}))
}

fn names(object: &Doc) -> Vec<&str> {
    let entries = object.at("/metadata/managedFields").items().iter();
    entries.map(|entry| entry.str_at("/manager")).collect()
}

async fn manager_is_the_one_the_request_names(t: &Scope) {
    let t = t.with_header("user-agent", "program/1.0");
    let made = t.made("configmaps?fieldManager=me", &config_map("a")).await;
    let expected = doc!([(updater("me", "v1", made_data(&["key"])))]);
    assert_eq!(managers(&made), expected);
}

async fn manager_is_the_program_if_nobody_is_named(t: &Scope) {
    let t = t.with_header("user-agent", "my program/1.0 (linux/amd64)");
    let made = t.made("configmaps", &config_map("a")).await;
    assert_eq!(names(&made), ["my program"]);
}

async fn program_without_a_version_is_the_manager(t: &Scope) {
    let t = t.with_header("user-agent", "program");
    let made = t.made("configmaps", &config_map("a")).await;
    assert_eq!(names(&made), ["program"]);
}

async fn long_name_of_a_program_is_cut(t: &Scope) {
    let agent = format!("{}/1", "x".repeat(200));
    let t = t.with_header("user-agent", &agent);
    let made = t.made("configmaps", &config_map("a")).await;
    assert_eq!(names(&made), ["x".repeat(128)]);
}

async fn nobody_is_unknown(t: &Scope) {
    let t = t.with_header("user-agent", "");
    let made = t.made("configmaps", &config_map("a")).await;
    assert_eq!(names(&made), ["unknown"]);
}

async fn long_name_of_a_manager_is_refused(t: &Scope) {
    let path = format!("configmaps?fieldManager={}", "x".repeat(129));
    t.create(&path, &config_map("a"))
        .await
        .fails(422, "Invalid")
        .because("FieldValueTooLong", "fieldManager");
}

async fn name_of_a_manager_must_print(t: &Scope) {
    t.create("configmaps?fieldManager=a%07b", &config_map("a"))
        .await
        .fails(422, "Invalid")
        .says(
            "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\ab\": \
             invalid character U+0007 (at position 1)",
        );
}

async fn update_owns_what_it_changes(t: &Scope) {
    t.made(
        "configmaps?fieldManager=one",
        &config_map("a").set("/data/b", "1"),
    )
    .await;
    let new = config_map("a").set("/data/b", "2").set("/data/c", "3");
    let put = t
        .update("configmaps/a?fieldManager=two", &new)
        .await
        .is(200);
    let expected = doc!([
        (updater("one", "v1", made_data(&["key"]))),
        (updater("two", "v1", data(&["b", "c"])))
    ]);
    assert_eq!(managers(&put), expected);
}

async fn update_drops_what_it_removes(t: &Scope) {
    t.made(
        "configmaps?fieldManager=one",
        &config_map("a").set("/data/b", "1"),
    )
    .await;
    let put = t
        .update("configmaps/a?fieldManager=two", &config_map("a"))
        .await;
    let expected = doc!([(updater("one", "v1", made_data(&["key"])))]);
    assert_eq!(managers(&put.is(200)), expected);
}

async fn update_without_change_is_no_write(t: &Scope) {
    let made = t
        .made("deployments?fieldManager=one", &deployment("a"))
        .await;
    let put = t
        .update("deployments/a?fieldManager=one", &deployment("a"))
        .await;
    assert_eq!(put.is(200), made);
}

async fn update_by_another_without_change_is_no_write(t: &Scope) {
    let made = t.made("pods?fieldManager=one", &pod("a")).await;
    let put = t.update("pods/a?fieldManager=two", &made);
    assert_eq!(put.await.is(200), made);
}

async fn second_update_adds_to_the_same_entry(t: &Scope) {
    t.made("configmaps?fieldManager=one", &config_map("a"))
        .await;
    let patch = doc!({ "data": { "b": "1" } });
    let patched = t.merge("configmaps/a?fieldManager=one", &patch).await;
    let expected = doc!([(updater("one", "v1", made_data(&["b", "key"])))]);
    assert_eq!(managers(&patched.is(200)), expected);
}

async fn updates_of_two_managers_are_kept_apart(t: &Scope) {
    t.made("configmaps?fieldManager=one", &config_map("a"))
        .await;
    let patch = doc!({ "data": { "b": "1" } });
    let patched = t.merge("configmaps/a?fieldManager=two", &patch).await;
    assert_eq!(names(&patched.is(200)), ["one", "two"]);
}

async fn name_and_system_metadata_are_never_owned(t: &Scope) {
    let object = doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a", "namespace": (t.namespace()), "generation": 3 }
    });
    let made = t.made("configmaps?fieldManager=one", &object).await;
    assert_eq!(managers(&made), doc!([]));
}

async fn labels_and_annotations_are_owned_by_key(t: &Scope) {
    let object = config_map("a")
        .cut("/data")
        .set("/metadata/labels", doc!({ "l": "1" }))
        .set("/metadata/annotations", doc!({ "n": "1" }));
    let made = t.made("configmaps?fieldManager=one", &object).await;
    let fields = doc!({ "f:metadata": {
        "f:annotations": { ".": {}, "f:n": {} }, "f:labels": { ".": {}, "f:l": {} }
    } });
    assert_eq!(managers(&made), doc!([(updater("one", "v1", fields))]));
}

async fn list_of_patches_is_one_manager(t: &Scope) {
    t.made("configmaps?fieldManager=one", &config_map("a"))
        .await;
    for key in ["b", "c", "d"] {
        let patch = doc!({ "data": {} }).set(&format!("/data/{key}"), "1");
        t.merge("configmaps/a?fieldManager=two", &patch)
            .await
            .is(200);
    }
    let object = t.get("configmaps/a").await.is(200);
    assert_eq!(
        managers(&object).at("/1"),
        &updater("two", "v1", data(&["b", "c", "d"]))
    );
}

async fn json_patch_is_tracked(t: &Scope) {
    t.made("configmaps?fieldManager=one", &config_map("a"))
        .await;
    let patch = doc!([{ "op": "replace", "path": "/data/key", "value": "2" }]);
    let patched = t
        .edit("configmaps/a?fieldManager=two", &patch)
        .await
        .is(200);
    let expected = doc!([
        (updater("one", "v1", doc!({ "f:data": {} }))),
        (updater("two", "v1", data(&["key"])))
    ]);
    assert_eq!(managers(&patched), expected);
}

async fn merge_patch_is_tracked(t: &Scope) {
    t.made("deployments?fieldManager=one", &deployment("a"))
        .await;
    let patch = doc!({ "spec": { "replicas": 3, "paused": true } });
    let patched = t.merge("deployments/a?fieldManager=two", &patch).await;
    let fields = doc!({ "f:spec": { "f:paused": {}, "f:replicas": {} } });
    let expected = updater("two", "apps/v1", fields);
    assert_eq!(managers(&patched.is(200)).at("/1"), &expected);
}

async fn create_by_update_is_tracked(t: &Scope) {
    let role = windlass_contract::objects::role("a", &["get"], &["pods"]);
    let made = t.update("roles/a?fieldManager=one", &role).await.is(201);
    let version = "rbac.authorization.k8s.io/v1";
    let expected = doc!([(updater("one", version, doc!({ "f:rules": {} })))]);
    assert_eq!(managers(&made), expected);
}

async fn delete_with_finalizer_changes_no_owner(t: &Scope) {
    let object = config_map("a").set("/metadata/finalizers", doc!(["a.b/c"]));
    let made = t.made("configmaps?fieldManager=one", &object).await;
    t.delete("configmaps/a").await.is(200);
    let deleting = t.get("configmaps/a").await.is(200);
    assert_ne!(revision(&deleting), revision(&made));
    assert_eq!(managers(&deleting), managers(&made));
}

async fn what_admission_adds_is_not_owned(t: &Scope) {
    let made = t.made("pods?fieldManager=one", &pod("a")).await;
    assert_eq!(made.at("/spec/priority"), 0);
    let owned = managers(&made);
    let owned = owned.at("/0/fieldsV1/f:spec");
    assert_eq!(owned.get("f:priority"), None);
    assert_eq!(owned.get("f:tolerations"), None);
    assert_eq!(owned.get("f:dnsPolicy"), Some(&doc!({})));
}

async fn what_the_server_generates_is_not_owned(t: &Scope) {
    let service = windlass_contract::objects::service("a");
    let made = t.made("services?fieldManager=one", &service).await;
    assert_ne!(made.str_at("/spec/clusterIP"), "");
    let owned = managers(&made);
    assert_eq!(owned.at("/0/fieldsV1/f:spec/f:clusterIP"), &Doc::NULL);
}

async fn status_is_owned_through_its_path(t: &Scope) {
    t.made("deployments?fieldManager=one", &deployment("a"))
        .await;
    let patch = doc!({ "status": { "replicas": 1 } });
    let path = "deployments/a/status?fieldManager=two";
    let patched = t.merge(path, &patch).await.is(200);
    let fields = doc!({ "f:status": { "f:replicas": {} } });
    let expected = updater("two", "apps/v1", fields).set("/subresource", "status");
    assert_eq!(managers(&patched).at("/1"), &expected);
}

async fn status_given_to_create_is_not_owned(t: &Scope) {
    let object = deployment("a").set("/status", doc!({ "replicas": 1 }));
    let made = t.made("deployments?fieldManager=one", &object).await;
    assert_eq!(managers(&made).at("/0/fieldsV1/f:status"), &Doc::NULL);
}

async fn status_given_to_update_is_not_owned(t: &Scope) {
    let made = t
        .made("deployments?fieldManager=one", &deployment("a"))
        .await;
    let object = made.set("/status", doc!({ "replicas": 1 }));
    let put = t.update("deployments/a?fieldManager=two", &object).await;
    assert_eq!(put.is(200), made);
}

async fn reset(t: &Scope, entries: Doc) -> Doc {
    t.made("configmaps?fieldManager=one", &config_map("a"))
        .await;
    let patch = doc!({ "metadata": { "managedFields": entries } });
    t.merge("configmaps/a?fieldManager=two", &patch)
        .await
        .is(200)
}

async fn empty_list_resets(t: &Scope) {
    assert_eq!(managers(&reset(t, doc!([])).await), doc!([]));
}

async fn one_empty_entry_resets(t: &Scope) {
    assert_eq!(managers(&reset(t, doc!([{}])).await), doc!([]));
}

async fn reset_is_for_good_until_the_next_apply(t: &Scope) {
    reset(t, doc!([{}])).await;
    let patch = doc!({ "data": { "b": "1" } });
    let patched = t.merge("configmaps/a?fieldManager=two", &patch).await;
    assert_eq!(managers(&patched.is(200)), doc!([]));
    let config = config_map("a");
    let applied = t.applied("me", "configmaps/a", &config).await;
    assert_eq!(names(&applied), ["me", "before-first-apply"]);
}

async fn null_keeps_the_managers(t: &Scope) {
    assert_eq!(names(&reset(t, Doc::NULL).await), ["one"]);
}

fn given(operation: &str, sort: &str, fields: Doc) -> Doc {
    doc!([{
        "manager": "given", "operation": operation, "apiVersion": "v1", "fieldsType": sort,
        "fieldsV1": fields
    }])
}

async fn entries_of_the_client_count(t: &Scope) {
    let entries = given("Update", "FieldsV1", data(&["key"]));
    let changed = reset(t, entries.clone()).await;
    assert_eq!(managers(&changed), entries);
}

async fn entry_with_a_wrong_operation_is_ignored(t: &Scope) {
    let entries = given("Wish", "FieldsV1", data(&["key"]));
    assert_eq!(names(&reset(t, entries).await), ["one"]);
}

async fn entry_with_a_wrong_type_is_ignored(t: &Scope) {
    let entries = given("Update", "FieldsV2", data(&["key"]));
    assert_eq!(names(&reset(t, entries).await), ["one"]);
}

async fn entry_with_wrong_fields_is_ignored(t: &Scope) {
    let entries = given("Update", "FieldsV1", doc!({ "what": {} }));
    assert_eq!(names(&reset(t, entries).await), ["one"]);
}

async fn entries_of_a_new_object_count(t: &Scope) {
    let entries = given("Apply", "FieldsV1", data(&["key"]));
    let object = config_map("a")
        .set("/data/b", "1")
        .set("/metadata/managedFields", entries);
    let made = t.made("configmaps?fieldManager=one", &object).await;
    // What the maker sets, it takes: the applier is left with nothing.
    let expected = doc!([(updater("one", "v1", made_data(&["b", "key"])))]);
    assert_eq!(managers(&made), expected);
}

async fn subresource_cannot_edit_the_entries(t: &Scope) {
    let made = t
        .made("deployments?fieldManager=one", &deployment("a"))
        .await;
    let patch = doc!({ "metadata": { "managedFields": [{}] } });
    let patched = t.merge("deployments/a/status", &patch).await.is(200);
    assert_eq!(managers(&patched), managers(&made));
}

async fn oldest_of_many_managers_are_joined(t: &Scope) {
    t.made("configmaps?fieldManager=m00", &config_map("a"))
        .await;
    for at in 1..13 {
        let patch = doc!({ "data": {} }).set(&format!("/data/k{at:02}"), "1");
        let path = format!("configmaps/a?fieldManager=m{at:02}");
        t.merge(&path, &patch).await.is(200);
    }
    let object = t.get("configmaps/a").await.is(200);
    let found = names(&object);
    assert_eq!(found.len(), 10);
    assert_eq!(
        found
            .iter()
            .filter(|name| **name == "ancient-changes")
            .count(),
        1
    );
    let joined = managers(&object);
    let joined = joined.items().iter();
    let mut joined = joined.filter(|entry| entry.str_at("/manager") == "ancient-changes");
    let fields = made_data(&["k01", "k02", "k03", "key"]);
    assert_eq!(
        joined.next().map(|entry| entry.at("/fieldsV1")),
        Some(&fields)
    );
}

async fn same_manager_has_one_entry_for_each_subresource(t: &Scope) {
    t.made("deployments?fieldManager=one", &deployment("a"))
        .await;
    let patch = doc!({ "status": { "replicas": 1 } });
    let path = "deployments/a/status?fieldManager=one";
    let patched = t.merge(path, &patch).await.is(200);
    assert_eq!(names(&patched), ["one", "one"]);
}

async fn managers_come_after_appliers(t: &Scope) {
    t.made("configmaps?fieldManager=aa", &config_map("a")).await;
    let config = config_map("a").set("/data", doc!({ "z": "1" }));
    let applied = t.applied("zz", "configmaps/a", &config).await;
    assert_eq!(names(&applied), ["zz", "aa"]);
}

async fn secret_texts_are_owned_where_they_are_stored(t: &Scope) {
    let object = secret("a").set("/stringData", doc!({ "text": "x" }));
    let made = t.made("secrets?fieldManager=one", &object).await;
    let fields = made_data(&["key", "text"]).set("/f:type", doc!({}));
    assert_eq!(managers(&made), doc!([(updater("one", "v1", fields))]));
}

async fn dry_run_shows_the_entry_and_keeps_nothing(t: &Scope) {
    let made = t
        .made("configmaps?fieldManager=one", &config_map("a"))
        .await;
    let patch = doc!({ "data": { "b": "1" } });
    let path = "configmaps/a?fieldManager=two&dryRun=All";
    assert_eq!(names(&t.merge(path, &patch).await.is(200)), ["one", "two"]);
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn times_are_whole_seconds(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let time = made.str_at("/metadata/managedFields/0/time");
    assert_eq!(time, made.str_at("/metadata/creationTimestamp"));
    assert_eq!(time.len(), "2026-01-01T00:00:00Z".len());
}

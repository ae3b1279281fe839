//! Server-side apply: what a configuration may be, and who may change what.

use http::Method;
use windlass_contract::objects::config_map;
use windlass_contract::{Edit, Scope, applier, cases, managers, revision, updater};
use windlass_core::{Doc, doc};

cases![
    creates_what_is_missing,
    owner_of_the_applied_fields_is_the_manager,
    same_configuration_again_changes_nothing,
    changes_its_own_fields,
    leaves_fields_of_others,
    removes_what_it_no_longer_mentions,
    keeps_what_another_applies_too,
    same_value_makes_a_second_owner,
    other_value_is_a_conflict,
    conflict_with_an_updater_names_its_version,
    several_conflicts_are_grouped_by_manager,
    conflicts_have_one_cause_for_each_field,
    force_takes_the_field,
    force_takes_nothing_else,
    refused_apply_changes_nothing,
    giving_up_a_field_leaves_it_to_the_other,
    last_owner_that_gives_up_removes_the_field,
    update_takes_ownership_from_appliers,
    update_with_the_applied_value_takes_nothing,
    manager_without_fields_is_forgotten,
    applied_again_after_an_update_took_it_is_a_conflict,
    yaml_is_read,
    manager_is_required,
    manager_from_the_agent_does_not_count,
    unknown_field_is_refused,
    unknown_nested_field_is_refused,
    text_for_a_number_is_refused,
    number_for_a_text_is_refused,
    list_for_a_map_is_refused,
    missing_kind_is_refused,
    missing_version_is_refused,
    other_kind_is_refused,
    other_version_is_refused,
    other_name_is_refused,
    other_namespace_is_refused,
    name_can_be_left_out_of_an_existing_object,
    name_is_needed_to_create,
    managed_fields_in_the_configuration_are_refused,
    list_is_no_configuration,
    broken_yaml_is_refused,
    empty_body_is_refused,
    cbor_is_not_served,
    wrong_uid_of_nothing_is_a_conflict,
    wrong_uid_is_refused,
    stale_revision_is_a_conflict,
    right_revision_is_fine,
    revision_of_nothing_is_ignored,
    missing_namespace_is_not_found,
    invalid_result_is_refused,
    dry_run_creates_nothing,
    dry_run_changes_nothing,
    dry_run_still_conflicts,
    duplicate_key_is_warned_about,
    duplicate_key_is_refused_in_strict_mode,
    first_apply_to_an_untracked_object_finds_its_owner,
    create_right_is_needed_to_create,
];

fn data(name: &str, data: Doc) -> Doc {
    config_map(name).set("/data", data)
}

async fn apply(t: &Scope, manager: &str, values: Doc) -> Doc {
    t.applied(manager, "configmaps/a", &data("a", values)).await
}

/// Applies again and again with force.
async fn forced(t: &Scope, manager: &str, values: Doc) -> Doc {
    let path = "configmaps/a?force=true";
    t.applied(manager, path, &data("a", values)).await
}

fn owns(keys: &[&str]) -> Doc {
    let fields = keys.iter().fold(doc!({}), |fields, key| {
        fields.set(&format!("/f:{key}"), doc!({}))
    });
    doc!({ "f:data": fields })
}

async fn creates_what_is_missing(t: &Scope) {
    let answer = t.apply("me", "configmaps/a", &config_map("a")).await;
    let made = answer.is(201);
    assert_eq!(made.at("/data"), &doc!({ "key": "value" }));
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn owner_of_the_applied_fields_is_the_manager(t: &Scope) {
    let made = apply(t, "me", doc!({ "k": "1" })).await;
    let expected = doc!([(applier("me", "v1", owns(&["k"])))]);
    assert_eq!(managers(&made), expected);
}

async fn same_configuration_again_changes_nothing(t: &Scope) {
    let made = apply(t, "me", doc!({ "k": "1" })).await;
    let config = data("a", doc!({ "k": "1" }));
    let again = t.apply("me", "configmaps/a", &config).await;
    assert_eq!(again.is(200), made);
}

async fn changes_its_own_fields(t: &Scope) {
    let made = apply(t, "me", doc!({ "k": "1" })).await;
    let changed = apply(t, "me", doc!({ "k": "2" })).await;
    assert_eq!(changed.at("/data"), &doc!({ "k": "2" }));
    assert_ne!(revision(&changed), revision(&made));
}

async fn leaves_fields_of_others(t: &Scope) {
    apply(t, "one", doc!({ "a": "1" })).await;
    let both = apply(t, "two", doc!({ "b": "2" })).await;
    assert_eq!(both.at("/data"), &doc!({ "a": "1", "b": "2" }));
    let expected = doc!([
        (applier("one", "v1", owns(&["a"]))),
        (applier("two", "v1", owns(&["b"])))
    ]);
    assert_eq!(managers(&both), expected);
}

async fn removes_what_it_no_longer_mentions(t: &Scope) {
    apply(t, "me", doc!({ "a": "1", "b": "2" })).await;
    let left = apply(t, "me", doc!({ "b": "2" })).await;
    assert_eq!(left.at("/data"), &doc!({ "b": "2" }));
    assert_eq!(managers(&left), doc!([(applier("me", "v1", owns(&["b"])))]));
}

async fn keeps_what_another_applies_too(t: &Scope) {
    apply(t, "one", doc!({ "a": "1", "b": "2" })).await;
    apply(t, "two", doc!({ "a": "1" })).await;
    let left = apply(t, "one", doc!({ "b": "2" })).await;
    assert_eq!(left.at("/data"), &doc!({ "a": "1", "b": "2" }));
}

async fn same_value_makes_a_second_owner(t: &Scope) {
    apply(t, "one", doc!({ "a": "1" })).await;
    let shared = apply(t, "two", doc!({ "a": "1" })).await;
    // Nothing changed, and so the second has no time.
    let expected = doc!([
        (applier("two", "v1", owns(&["a"])).cut("/time")),
        (applier("one", "v1", owns(&["a"])))
    ]);
    assert_eq!(managers(&shared), expected);
}

async fn other_value_is_a_conflict(t: &Scope) {
    apply(t, "one", doc!({ "a": "1" })).await;
    let config = data("a", doc!({ "a": "2" }));
    t.apply("two", "configmaps/a", &config)
        .await
        .fails(409, "Conflict")
        .says("Apply failed with 1 conflict: conflict with \"one\": .data.a")
        .because("FieldManagerConflict", ".data.a");
}

async fn conflict_with_an_updater_names_its_version(t: &Scope) {
    let object = data("a", doc!({ "a": "1" }));
    t.made("configmaps?fieldManager=maker", &object).await;
    let config = data("a", doc!({ "a": "2" }));
    t.apply("two", "configmaps/a", &config)
        .await
        .fails(409, "Conflict")
        .says("Apply failed with 1 conflict: conflict with \"maker\" using v1: .data.a");
}

/// A config map with fields of three managers, and a configuration that changes them all.
async fn disputed(t: &Scope) -> Doc {
    apply(t, "one", doc!({ "a": "1", "b": "1" })).await;
    for (manager, key) in [("u1", "c"), ("u2", "d")] {
        let path = format!("configmaps/a?fieldManager={manager}");
        let patch = doc!({ "data": {} }).set(&format!("/data/{key}"), "1");
        t.merge(&path, &patch).await.is(200);
    }
    data("a", doc!({ "a": "2", "b": "2", "c": "2", "d": "2" }))
}

async fn several_conflicts_are_grouped_by_manager(t: &Scope) {
    let config = disputed(t).await;
    t.apply("two", "configmaps/a", &config)
        .await
        .fails(409, "Conflict")
        .says(
            "Apply failed with 4 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b\n\
             conflicts with \"u1\" using v1:\n- .data.c\nconflicts with \"u2\" using v1:\n- .data.d",
        );
}

async fn conflicts_have_one_cause_for_each_field(t: &Scope) {
    let config = disputed(t).await;
    let refusal = t.apply("two", "configmaps/a", &config).await;
    let refusal = refusal.fails(409, "Conflict");
    let mut causes: Vec<(&str, &str)> = refusal
        .causes()
        .iter()
        .map(|cause| (cause.str_at("/field"), cause.str_at("/message")))
        .collect();
    causes.sort_unstable();
    let expected = [
        (".data.a", "conflict with \"one\""),
        (".data.b", "conflict with \"one\""),
        (".data.c", "conflict with \"u1\" using v1"),
        (".data.d", "conflict with \"u2\" using v1"),
    ];
    assert_eq!(causes, expected);
}

async fn force_takes_the_field(t: &Scope) {
    apply(t, "one", doc!({ "a": "1" })).await;
    let taken = forced(t, "two", doc!({ "a": "2" })).await;
    assert_eq!(taken.at("/data"), &doc!({ "a": "2" }));
    assert_eq!(
        managers(&taken),
        doc!([(applier("two", "v1", owns(&["a"])))])
    );
}

async fn force_takes_nothing_else(t: &Scope) {
    apply(t, "one", doc!({ "a": "1", "b": "1" })).await;
    let taken = forced(t, "two", doc!({ "a": "2" })).await;
    let expected = doc!([
        (applier("one", "v1", owns(&["b"]))),
        (applier("two", "v1", owns(&["a"])))
    ]);
    assert_eq!(managers(&taken), expected);
}

async fn refused_apply_changes_nothing(t: &Scope) {
    let made = apply(t, "one", doc!({ "a": "1" })).await;
    let config = data("a", doc!({ "a": "2", "b": "3" }));
    t.apply("two", "configmaps/a", &config)
        .await
        .fails(409, "Conflict");
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn giving_up_a_field_leaves_it_to_the_other(t: &Scope) {
    apply(t, "one", doc!({ "a": "1" })).await;
    apply(t, "two", doc!({ "a": "1" })).await;
    let left = apply(t, "one", doc!({})).await;
    assert_eq!(left.at("/data"), &doc!({ "a": "1" }));
    assert_eq!(managers(&left).at("/0/manager"), "two");
}

async fn last_owner_that_gives_up_removes_the_field(t: &Scope) {
    apply(t, "one", doc!({ "a": "1", "z": "9" })).await;
    apply(t, "two", doc!({ "a": "1" })).await;
    apply(t, "two", doc!({})).await;
    let left = apply(t, "one", doc!({ "z": "9" })).await;
    assert_eq!(left.at("/data"), &doc!({ "z": "9" }));
}

async fn update_takes_ownership_from_appliers(t: &Scope) {
    apply(t, "one", doc!({ "a": "1", "b": "2" })).await;
    let patch = doc!({ "data": { "a": "9" } });
    let path = "configmaps/a?fieldManager=editor";
    let patched = t.merge(path, &patch).await.is(200);
    let expected = doc!([
        (applier("one", "v1", owns(&["b"]))),
        (updater("editor", "v1", owns(&["a"])))
    ]);
    assert_eq!(managers(&patched), expected);
}

async fn update_with_the_applied_value_takes_nothing(t: &Scope) {
    let made = apply(t, "one", doc!({ "a": "1" })).await;
    let path = "configmaps/a?fieldManager=editor";
    let patch = doc!({ "data": { "a": "1" } });
    assert_eq!(t.merge(path, &patch).await.is(200), made);
}

async fn manager_without_fields_is_forgotten(t: &Scope) {
    apply(t, "one", doc!({ "a": "1" })).await;
    apply(t, "two", doc!({ "b": "1" })).await;
    let left = t
        .applied("one", "configmaps/a", &config_map("a").cut("/data"))
        .await;
    assert_eq!(
        managers(&left),
        doc!([(applier("two", "v1", owns(&["b"])))])
    );
}

async fn applied_again_after_an_update_took_it_is_a_conflict(t: &Scope) {
    apply(t, "one", doc!({ "a": "1" })).await;
    let patch = doc!({ "data": { "a": "9" } });
    let path = "configmaps/a?fieldManager=editor";
    t.merge(path, &patch).await.is(200);
    let config = data("a", doc!({ "a": "1" }));
    t.apply("one", "configmaps/a", &config)
        .await
        .fails(409, "Conflict")
        .says("Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.a");
}

async fn raw(t: &Scope, query: &str, body: &str) -> windlass_contract::Answer {
    let request = t.request(Method::PATCH, &format!("configmaps/a?{query}"));
    t.send(request.body("application/apply-patch+yaml", body.as_bytes().to_vec()))
        .await
}

async fn yaml_is_read(t: &Scope) {
    let body =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: |\n    x\n    y\n";
    let made = raw(t, "fieldManager=me", body).await.is(201);
    assert_eq!(made.at("/data/k"), "x\ny\n");
}

async fn manager_is_required(t: &Scope) {
    raw(t, "force=true", &config_map("a").to_string())
        .await
        .fails(422, "Invalid")
        .says(
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required \
             for apply patch",
        )
        .because("FieldValueRequired", "fieldManager");
}

async fn manager_from_the_agent_does_not_count(t: &Scope) {
    let agent = t.with_header("user-agent", "program/1");
    raw(&agent, "", &config_map("a").to_string())
        .await
        .fails(422, "Invalid");
}

async fn unknown_field_is_refused(t: &Scope) {
    let config = config_map("a").set("/foo", 1);
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(500, "")
        .says(
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .foo: field not \
             declared in schema",
        );
}

fn deployment(spec: Doc) -> Doc {
    doc!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" }, "spec": spec
    })
}

async fn unknown_nested_field_is_refused(t: &Scope) {
    let config = deployment(doc!({ "template": { "spec": { "foo": 1 } } }));
    t.apply("me", "deployments/a", &config)
        .await
        .fails(500, "")
        .says(
            "failed to create typed patch object (/a; apps/v1, Kind=Deployment): \
             .spec.template.spec.foo: field not declared in schema",
        );
}

async fn text_for_a_number_is_refused(t: &Scope) {
    let config = deployment(doc!({ "replicas": "3" }));
    t.apply("me", "deployments/a", &config)
        .await
        .fails(500, "")
        .says(
            "failed to create typed patch object (/a; apps/v1, Kind=Deployment): .spec.replicas: \
             expected numeric (int or float), got string",
        );
}

async fn number_for_a_text_is_refused(t: &Scope) {
    let config = data("a", doc!({ "k": 1 }));
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(500, "")
        .says(
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.k: expected \
             string, got &value.valueUnstructured{Value:1}",
        );
}

async fn list_for_a_map_is_refused(t: &Scope) {
    let config = data("a", doc!(["k"]));
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(500, "")
        .says(
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data: expected map, \
             got &{[k]}",
        );
}

async fn missing_kind_is_refused(t: &Scope) {
    let config = config_map("a").cut("/kind");
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(400, "BadRequest")
        .says("invalid object type: /v1, Kind=");
}

async fn missing_version_is_refused(t: &Scope) {
    let config = config_map("a").cut("/apiVersion");
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(400, "BadRequest")
        .says("invalid object type: /, Kind=ConfigMap");
}

async fn other_kind_is_refused(t: &Scope) {
    let config = config_map("a").set("/kind", "Secret");
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(400, "BadRequest")
        .says("invalid object type: /v1, Kind=Secret");
}

async fn other_version_is_refused(t: &Scope) {
    let config = deployment(doc!({})).set("/apiVersion", "apps/v2");
    t.apply("me", "deployments/a", &config)
        .await
        .fails(400, "BadRequest")
        .says("invalid object type: apps/v2, Kind=Deployment");
}

async fn other_name_is_refused(t: &Scope) {
    t.apply("me", "configmaps/a", &config_map("b"))
        .await
        .fails(400, "BadRequest")
        .says("the name of the object (b) does not match the name on the URL (a)");
}

async fn other_namespace_is_refused(t: &Scope) {
    let config = config_map("a").set("/metadata/namespace", "other");
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(400, "BadRequest")
        .says(
            "the namespace of the provided object does not match the namespace sent on the request",
        );
}

async fn name_can_be_left_out_of_an_existing_object(t: &Scope) {
    let made = apply(t, "me", doc!({ "k": "1" })).await;
    let config = data("a", doc!({ "k": "1" })).set("/metadata", doc!({}));
    let again = t.applied("me", "configmaps/a", &config).await;
    assert_eq!(again, made);
}

async fn name_is_needed_to_create(t: &Scope) {
    let config = config_map("a").set("/metadata", doc!({}));
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(400, "BadRequest")
        .mentions("name must be provided");
}

async fn managed_fields_in_the_configuration_are_refused(t: &Scope) {
    for entries in [doc!([]), doc!([{}])] {
        let config = config_map("a").set("/metadata/managedFields", entries);
        t.apply("me", "configmaps/a", &config)
            .await
            .fails(400, "BadRequest")
            .says("metadata.managedFields must be nil");
    }
}

async fn list_is_no_configuration(t: &Scope) {
    raw(t, "fieldManager=me", "[1]")
        .await
        .fails(400, "BadRequest")
        .says(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot \
             unmarshal array into Go value of type map[string]interface {}",
        );
}

async fn broken_yaml_is_refused(t: &Scope) {
    raw(t, "fieldManager=me", "a: b: c")
        .await
        .fails(400, "BadRequest")
        .mentions("error decoding YAML: error converting YAML to JSON: yaml: ")
        .mentions("mapping values are not allowed in this context");
}

async fn empty_body_is_refused(t: &Scope) {
    raw(t, "fieldManager=me", "")
        .await
        .fails(400, "BadRequest")
        .says("invalid object type: /, Kind=");
}

async fn cbor_is_not_served(t: &Scope) {
    let request = t.request(Method::PATCH, "configmaps/a?fieldManager=me");
    t.send(request.body("application/apply-patch+cbor", b"\xa0".to_vec()))
        .await
        .fails(415, "UnsupportedMediaType")
        .says("415: Unsupported Media Type");
}

async fn wrong_uid_of_nothing_is_a_conflict(t: &Scope) {
    let config = config_map("a").set("/metadata/uid", "abc");
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(409, "Conflict")
        .says(
            "Operation cannot be fulfilled on configmaps \"a\": uid mismatch: the provided object \
             specified uid abc, and no existing object was found",
        )
        .is_about("", "configmaps", "a");
}

async fn wrong_uid_is_refused(t: &Scope) {
    apply(t, "me", doc!({ "k": "1" })).await;
    let config = config_map("a").set("/metadata/uid", "abc");
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(422, "Invalid")
        .says(
            "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"abc\": field is immutable",
        );
}

async fn stale_revision_is_a_conflict(t: &Scope) {
    apply(t, "me", doc!({ "k": "1" })).await;
    let config = config_map("a").set("/metadata/resourceVersion", "1");
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(409, "Conflict")
        .mentions("the object has been modified");
}

async fn right_revision_is_fine(t: &Scope) {
    let made = apply(t, "me", doc!({ "k": "1" })).await;
    let config = data("a", doc!({ "k": "2" })).set("/metadata/resourceVersion", revision(&made));
    let changed = t.applied("me", "configmaps/a", &config).await;
    assert_eq!(changed.at("/data/k"), "2");
    assert_eq!(managers(&changed).at("/0/fieldsV1"), &owns(&["k"]));
}

async fn revision_of_nothing_is_ignored(t: &Scope) {
    let config = config_map("a").set("/metadata/resourceVersion", "1");
    t.apply("me", "configmaps/a", &config).await.is(201);
}

async fn missing_namespace_is_not_found(t: &Scope) {
    let missing = t.in_namespace(&t.unique("missing"));
    let name = missing.namespace().to_owned();
    missing
        .apply("me", "configmaps/a", &config_map("a"))
        .await
        .fails(404, "NotFound")
        .says(&format!("namespaces \"{name}\" not found"));
}

async fn invalid_result_is_refused(t: &Scope) {
    let config = config_map("a").set("/metadata/labels", doc!({ "-bad-": "x" }));
    t.apply("me", "configmaps/a", &config)
        .await
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "metadata.labels");
}

async fn dry_run_creates_nothing(t: &Scope) {
    let path = "configmaps/a?dryRun=All";
    let made = t.apply("me", path, &config_map("a")).await.is(201);
    assert_eq!(revision(&made), "");
    assert_eq!(managers(&made).items().len(), 1);
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn dry_run_changes_nothing(t: &Scope) {
    let made = apply(t, "me", doc!({ "k": "1" })).await;
    let config = data("a", doc!({ "k": "2" }));
    let path = "configmaps/a?dryRun=All";
    let changed = t.apply("me", path, &config).await.is(200);
    assert_eq!(changed.at("/data/k"), "2");
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn dry_run_still_conflicts(t: &Scope) {
    apply(t, "one", doc!({ "k": "1" })).await;
    let config = data("a", doc!({ "k": "2" }));
    t.apply("two", "configmaps/a?dryRun=All", &config)
        .await
        .fails(409, "Conflict");
}

const DOUBLED: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"}}"#;

async fn duplicate_key_is_warned_about(t: &Scope) {
    let answer = raw(t, "fieldManager=me", DOUBLED).await;
    assert_eq!(answer.is(201).at("/data/k"), "2");
    let warning = "299 - \"line 1: key \\\"k\\\" already set in map\"";
    assert_eq!(answer.header("warning"), warning);
}

async fn duplicate_key_is_refused_in_strict_mode(t: &Scope) {
    raw(t, "fieldManager=me&fieldValidation=Strict", DOUBLED)
        .await
        .fails(400, "BadRequest")
        .says(
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  \
             line 1: key \"k\" already set in map",
        );
}

async fn first_apply_to_an_untracked_object_finds_its_owner(t: &Scope) {
    t.made("configmaps", &data("a", doc!({ "k": "1", "l": "2" })))
        .await;
    let forget = doc!({ "metadata": { "managedFields": [{}] } });
    let untracked = t.merge("configmaps/a", &forget).await.is(200);
    assert_eq!(managers(&untracked), doc!([]));
    let applied = apply(t, "me", doc!({ "k": "1" })).await;
    let names: Vec<&str> = applied
        .at("/metadata/managedFields")
        .items()
        .iter()
        .map(|entry| entry.str_at("/manager"))
        .collect();
    assert_eq!(names, ["me", "before-first-apply"]);
    let before = managers(&applied).at("/1/fieldsV1").clone();
    assert_eq!(
        before,
        owns(&[".", "k", "l"])
            .set("/f:data/.", doc!({}))
            .cut("/f:data/f:.")
    );
}

async fn create_right_is_needed_to_create(t: &Scope) {
    let role = windlass_contract::objects::role("patcher", &["get", "patch"], &["configmaps"]);
    t.made("roles", &role).await;
    let binding = windlass_contract::objects::role_binding("patcher", "patcher", "patty");
    t.made("rolebindings", &binding).await;
    let patty = t.as_user("patty");
    patty
        .apply("me", "configmaps/a", &config_map("a"))
        .await
        .fails(403, "Forbidden");
    apply(t, "me", doc!({ "k": "1" })).await;
    let config = data("a", doc!({ "k": "2" }));
    patty.apply("me", "configmaps/a", &config).await.is(200);
}

//! The life of definitions: names, conditions, updates, deletion.

use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use super::support::{DEFINITIONS, condition, definition, established, install, own_group, until};

cases![
    definition_becomes_established,
    objects_are_served_as_soon_as_established,
    taken_names_are_not_accepted,
    names_are_accepted_once_they_are_free,
    new_field_of_the_schema_is_kept,
    deleted_definition_takes_its_objects_along,
    deletion_waits_for_objects_that_are_held,
    terminating_definition_creates_nothing,
    definition_comes_back_without_its_old_objects,
    new_short_name_is_accepted,
    deleting_twice_is_fine,
];

fn gadgets(t: &Scope) -> Doc {
    let spec = doc!({ "type": "object", "properties": { "a": { "type": "string" } } });
    definition(&own_group(t), "gadgets", "Gadget", &spec)
}

fn gadget(t: &Scope, name: &str) -> Doc {
    let group = own_group(t);
    doc!({
        "apiVersion": (format!("{group}/v1")), "kind": "Gadget", "metadata": { "name": name },
        "spec": { "a": "x", "b": "y" }
    })
}

fn path(t: &Scope) -> String {
    format!(
        "/apis/{}/v1/namespaces/{}/gadgets",
        own_group(t),
        t.namespace()
    )
}

fn definition_path(t: &Scope) -> String {
    format!("{DEFINITIONS}/gadgets.{}", own_group(t))
}

async fn definition_becomes_established(t: &Scope) {
    let crd = install(t, &gadgets(t)).await;
    let conditions: Vec<(&str, &str, &str)> = crd
        .at("/status/conditions")
        .items()
        .iter()
        .map(|known| {
            (
                known.str_at("/type"),
                known.str_at("/status"),
                known.str_at("/reason"),
            )
        })
        .collect();
    assert_eq!(
        conditions,
        [
            ("NamesAccepted", "True", "NoConflicts"),
            ("Established", "True", "InitialNamesAccepted")
        ]
    );
    let names = doc!({ "plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList" });
    assert_eq!(*crd.at("/status/acceptedNames"), names);
    assert_eq!(*crd.at("/status/storedVersions"), doc!(["v1"]));
    assert_eq!(crd.at("/metadata/generation"), 1);
}

async fn objects_are_served_as_soon_as_established(t: &Scope) {
    install(t, &gadgets(t)).await;
    t.made(&path(t), &gadget(t, "a")).await;
    let found = t.get(&format!("{}/a", path(t))).await.is(200);
    assert_eq!(*found.at("/spec"), doc!({ "a": "x" }));
}

/// A definition in the same group that wants the same kind.
fn rival(t: &Scope) -> Doc {
    definition(
        &own_group(t),
        "rivals",
        "Gadget",
        &doc!({ "type": "object" }),
    )
}

async fn taken_names_are_not_accepted(t: &Scope) {
    install(t, &gadgets(t)).await;
    t.made(DEFINITIONS, &rival(t)).await;
    let name = format!("{DEFINITIONS}/rivals.{}", own_group(t));
    let crd = until(t, &name, |_, crd| {
        condition(crd, "NamesAccepted") == "False"
    })
    .await;
    let found = crd
        .at("/status/conditions")
        .items()
        .iter()
        .find(|known| *known.at("/type") == "NamesAccepted");
    let found = found.expect("the condition is there");
    assert_eq!(found.at("/reason"), "ListKindConflict");
    assert_eq!(found.at("/message"), "\"GadgetList\" is already in use");
    assert_eq!(condition(&crd, "Established"), "False");
}

async fn names_are_accepted_once_they_are_free(t: &Scope) {
    install(t, &gadgets(t)).await;
    t.made(DEFINITIONS, &rival(t)).await;
    t.delete(&definition_path(t)).await.is(200);
    established(t, &format!("rivals.{}", own_group(t))).await;
}

async fn new_field_of_the_schema_is_kept(t: &Scope) {
    install(t, &gadgets(t)).await;
    t.made(&path(t), &gadget(t, "a")).await;
    let patch = doc!([{
        "op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b",
        "value": { "type": "string", "default": "z" }
    }]);
    let changed = t.edit(&definition_path(t), &patch).await.is(200);
    assert_eq!(changed.at("/metadata/generation"), 2);
    // Stored objects get the new default when they are read.
    until(t, &format!("{}/a", path(t)), |_, object| {
        *object.at("/spec/b") == "z"
    })
    .await;
    let made = t.made(&path(t), &gadget(t, "b")).await;
    assert_eq!(*made.at("/spec"), doc!({ "a": "x", "b": "y" }));
}

async fn deleted_definition_takes_its_objects_along(t: &Scope) {
    install(t, &gadgets(t)).await;
    t.made(&path(t), &gadget(t, "a")).await;
    let deleted = t.delete(&definition_path(t)).await.is(200);
    assert_eq!(deleted.at("/kind"), "CustomResourceDefinition");
    assert_eq!(
        *deleted.at("/metadata/finalizers"),
        doc!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    assert_eq!(condition(&deleted, "Terminating"), "True");
    until(t, &definition_path(t), |code, _| code == 404).await;
    until(t, &path(t), |code, _| code == 404).await;
}

async fn deletion_waits_for_objects_that_are_held(t: &Scope) {
    install(t, &gadgets(t)).await;
    let held = gadget(t, "a").set("/metadata/finalizers", doc!(["example.com/hold"]));
    t.made(&path(t), &held).await;
    t.delete(&definition_path(t)).await.is(200);
    let object = format!("{}/a", path(t));
    until(t, &object, |_, object| {
        !object.at("/metadata/deletionTimestamp").is_null()
    })
    .await;
    let crd = until(t, &definition_path(t), |_, crd| {
        let mut conditions = crd.at("/status/conditions").items().iter();
        conditions.any(|known| *known.at("/reason") == "InstanceDeletionInProgress")
    })
    .await;
    assert_eq!(condition(&crd, "Terminating"), "True");
    t.edit(
        &object,
        &doc!([{ "op": "remove", "path": "/metadata/finalizers" }]),
    )
    .await
    .is(200);
    until(t, &definition_path(t), |code, _| code == 404).await;
}

async fn terminating_definition_creates_nothing(t: &Scope) {
    install(t, &gadgets(t)).await;
    let held = gadget(t, "a").set("/metadata/finalizers", doc!(["example.com/hold"]));
    t.made(&path(t), &held).await;
    t.delete(&definition_path(t)).await.is(200);
    let object = format!("{}/a", path(t));
    until(t, &object, |_, object| {
        !object.at("/metadata/deletionTimestamp").is_null()
    })
    .await;
    let refusal = t
        .create(&path(t), &gadget(t, "b"))
        .await
        .fails(403, "Forbidden");
    refusal.says(&format!(
        "gadgets.{} \"b\" is forbidden: create not allowed while custom resource definition is terminating",
        own_group(t)
    ));
    t.edit(
        &object,
        &doc!([{ "op": "remove", "path": "/metadata/finalizers" }]),
    )
    .await
    .is(200);
}

async fn definition_comes_back_without_its_old_objects(t: &Scope) {
    install(t, &gadgets(t)).await;
    t.made(&path(t), &gadget(t, "a")).await;
    t.delete(&definition_path(t)).await.is(200);
    until(t, &definition_path(t), |code, _| code == 404).await;
    install(t, &gadgets(t)).await;
    assert!(
        t.get(&path(t))
            .await
            .is(200)
            .at("/items")
            .items()
            .is_empty()
    );
    t.made(&path(t), &gadget(t, "a")).await;
}

async fn new_short_name_is_accepted(t: &Scope) {
    install(t, &gadgets(t)).await;
    let patch = doc!({ "spec": { "names": { "shortNames": ["gd"] } } });
    t.merge(&definition_path(t), &patch).await.is(200);
    let is_accepted =
        |_: u16, crd: &Doc| *crd.at("/status/acceptedNames/shortNames") == doc!(["gd"]);
    until(t, &definition_path(t), is_accepted).await;
    let is_served = |_: u16, list: &Doc| {
        let mut resources = list.at("/resources").items().iter();
        resources.any(|resource| *resource.at("/shortNames") == doc!(["gd"]))
    };
    until(t, &format!("/apis/{}/v1", own_group(t)), is_served).await;
}

async fn deleting_twice_is_fine(t: &Scope) {
    install(t, &gadgets(t)).await;
    t.delete(&definition_path(t)).await.is(200);
    let again = t.delete(&definition_path(t)).await;
    assert!(matches!(again.code(), 200 | 404), "{}", again.text());
    until(t, &definition_path(t), |code, _| code == 404).await;
}

use windlass_core::{Doc, Gvk, Time, doc};

use super::*;
use crate::table::Atlas;

fn schema() -> AtlasSchema {
    let deployment = Gvk::constant("apps", "v1", "Deployment");
    AtlasSchema::of(Atlas::kind(&deployment).expect("a built-in kind"))
}

fn write<'a>(manager: &'a str, second: i64, ignored: &'a FieldSet) -> Write<'a> {
    Write {
        manager,
        subresource: "",
        api_version: "apps/v1",
        time: Time::from_unix(second),
        ignored,
    }
}

fn with_labels(labels: &Doc) -> Doc {
    doc!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "labels": labels } })
}

fn managers(object: &Doc) -> Vec<&str> {
    let entries = object.at("/metadata/managedFields").items().iter();
    entries.map(|entry| entry.str_at("/manager")).collect()
}

#[test]
fn the_oldest_of_too_many_updaters_are_joined() {
    let none = FieldSet::new();
    let mut labels = doc!({});
    let mut live = track(
        schema(),
        None,
        &with_labels(&labels),
        &write("m00", 1, &none),
    );
    for at in 0..12 {
        let name = format!("m{at:02}");
        labels = labels.with(&format!("/{name}"), "x").expect("an object");
        let new = with_labels(&labels);
        let live_object = (at > 0).then_some(&live);
        live = track(schema(), live_object, &new, &write(&name, at, &none));
    }
    let found = managers(&live);
    assert_eq!(found.len(), MANAGERS_LIMIT);
    assert_eq!(found[..2], ["ancient-changes", "m03"]);
    assert_eq!(
        live.at("/metadata/managedFields/0/fieldsV1/f:metadata/f:labels"),
        &doc!({ ".": {}, "f:m00": {}, "f:m01": {}, "f:m02": {} })
    );
}

#[test]
fn fields_an_endpoint_ignores_are_not_owned() {
    let ignored = FieldSet::of_fields(&[&["status"]]);
    let object = doc!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "spec": { "replicas": 1 }, "status": { "replicas": 1 } });
    let tracked = track(schema(), None, &object, &write("m", 1, &ignored));
    let fields = tracked.at("/metadata/managedFields/0/fieldsV1");
    assert_eq!(fields, &doc!({ "f:spec": { "f:replicas": {} } }));
    let applied = apply(schema(), None, &object, &write("m", 1, &ignored), false);
    let applied = applied.expect("no conflict");
    let fields = applied.at("/metadata/managedFields/0/fieldsV1");
    assert_eq!(fields, &doc!({ "f:spec": { "f:replicas": {} } }));
}

#[test]
fn a_subresource_is_written_under_its_name_and_cannot_edit_the_managers() {
    let none = FieldSet::new();
    let live = track(
        schema(),
        None,
        &with_labels(&doc!({ "a": "1" })),
        &write("m", 1, &none),
    );
    let status = Write {
        subresource: "status",
        ..write("s", 2, &none)
    };
    let new = live.with("/status/replicas", 3).expect("an object");
    let new = new
        .with("/metadata/managedFields", Doc::from(vec![]))
        .expect("an object");
    let tracked = track(schema(), Some(&live), &new, &status);
    assert_eq!(managers(&tracked), ["m", "s"]);
    let entry = tracked.at("/metadata/managedFields/1");
    assert_eq!(entry.at("/subresource"), "status");

    let config = doc!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "labels": { "a": "2" } }, "status": { "replicas": 4 } });
    let refused = apply(
        schema(),
        Some(&tracked),
        &config,
        &write("x", 3, &none),
        false,
    );
    assert_eq!(
        refused.expect_err("conflicts").to_string(),
        "Apply failed with 2 conflicts: conflicts with \"m\" using apps/v1:\n\
         - .metadata.labels.a\n\
         conflicts with \"s\" with subresource \"status\" using apps/v1:\n\
         - .status.replicas"
    );
}

#[test]
fn unreadable_managed_fields_refuse_an_apply_and_do_not_stop_an_update() {
    let none = FieldSet::new();
    let broken = doc!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "uid": "u", "managedFields": [{ "operation": "Bogus" }] } });
    let refused = apply(
        schema(),
        Some(&broken),
        &with_labels(&doc!({})),
        &write("m", 1, &none),
        true,
    );
    assert_eq!(
        refused.expect_err("unreadable").to_string(),
        "operation must be `Apply` or `Update`"
    );
    let tracked = track(
        schema(),
        Some(&broken),
        &with_labels(&doc!({ "a": "b" })),
        &write("m", 1, &none),
    );
    assert!(managers(&tracked).is_empty());
}

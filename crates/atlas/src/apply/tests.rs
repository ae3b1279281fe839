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

fn pod_schema() -> AtlasSchema {
    let pod = Gvk::constant("", "v1", "Pod");
    AtlasSchema::of(Atlas::kind(&pod).expect("a built-in kind"))
}

fn pod(name: &str, image: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": image }] },
        "status": { "phase": "Running" }
    })
}

#[test]
fn creation_from_memory_is_the_same_as_tracking() {
    let ignored = FieldSet::of_fields(&[&["status"]]);
    let memory = Creations::default();
    for (second, (name, image)) in [("a", "x"), ("b", "x"), ("c", "y")].iter().enumerate() {
        let second = i64::try_from(second).expect("a small number");
        let (object, write) = (pod(name, image), write("maker", second, &ignored));
        let made = create(pod_schema(), &object, &write, &memory);
        assert_eq!(made, track(pod_schema(), None, &object, &write));
    }
    assert_eq!(format!("{memory:?}"), "Creations { known: 2 }");
}

#[test]
fn creation_sets_what_a_comparison_with_nothing_finds() {
    let objects = [
        doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": "a", "labels": { "x": "y" }, "finalizers": ["a/b", "c/d"],
            "ownerReferences": [{ "apiVersion": "v1", "kind": "X", "name": "x", "uid": "1" }]
        }, "spec": {
            "containers": [
                { "name": "one", "image": "i", "ports": [{ "containerPort": 80 },
                    { "containerPort": 80, "protocol": "TCP" }, { "containerPort": 81, "name": "<b>" }],
                    "env": [{ "name": "A", "value": "1" }, { "name": "A", "value": "2" },
                        { "name": "B", "valueFrom": { "fieldRef": { "fieldPath": "x" } } }],
                    "resources": { "limits": { "cpu": "1000m" }, "requests": {} }, "command": ["a"] },
                { "name": "two", "env": [], "securityContext": {}, "unknown": 1 }
            ],
            "volumes": [{ "name": "v", "emptyDir": {} }], "tolerations": [{ "key": "k" }],
            "nodeSelector": {}, "hostNetwork": false, "securityContext": null
        }, "status": { "phase": "Pending" } }),
        doc!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e" },
            "involvedObject": { "kind": "Pod", "name": "a" }, "source": { "component": "c" },
            "message": "m", "count": 1, "firstTimestamp": "2020-01-01T00:00:00Z", "eventTime": null }),
        doc!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "annotations": {} },
            "spec": { "replicas": 0, "selector": { "matchLabels": { "a": "b" } },
                "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [] } } } }),
        doc!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "b", ".": "c" } }),
        doc!({ "apiVersion": "v1", "kind": "Service", "spec": { "ports": [{ "port": 1 }, { "port": 1 }] } }),
        doc!({ "apiVersion": "x/v1", "kind": "Custom", "spec": { "a": { "b": [1, { "c": {} }] }, "d": null } }),
    ];
    for object in objects {
        for ignored in [&[][..], &[&["status"][..], &["spec", "containers"][..]][..]] {
            let ignored = FieldSet::of_fields(ignored);
            let write = write("maker", 1, &ignored);
            let (kind, memory) = (
                object.gvk().and_then(|it| Atlas::kind(&it)),
                Creations::default(),
            );
            let (made, compared) = match kind.map(AtlasSchema::of) {
                Some(schema) => (
                    create(schema, &object, &write, &memory),
                    track(schema, None, &object, &write),
                ),
                None => (
                    create(Deduced, &object, &write, &memory),
                    track(Deduced, None, &object, &write),
                ),
            };
            assert_eq!(made, compared);
            assert!(!managers(&made).is_empty(), "{made}");
        }
    }
}

#[test]
fn memory_of_creations_is_bounded() {
    let none = FieldSet::new();
    let memory = Creations::default();
    for at in 0..=CREATIONS_LIMIT {
        let labels = doc!({}).with(&format!("/l{at}"), "x").expect("an object");
        let object = with_labels(&labels)
            .with("/spec", doc!({}))
            .expect("an object");
        create(schema(), &object, &write("maker", 1, &none), &memory);
    }
    assert_eq!(format!("{memory:?}"), "Creations { known: 1 }");
}

#[test]
fn creation_without_fields_has_no_manager() {
    let none = FieldSet::new();
    let object =
        doc!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" } });
    let made = create(
        schema(),
        &object,
        &write("maker", 1, &none),
        &Creations::default(),
    );
    assert_eq!(made, object);
}

const PATHS: ScalePaths<'_> = ScalePaths {
    api_version: "apps/v1",
    replicas: &[("apps/v1", &["spec", "replicas"])],
};

fn updated_by(manager: &str, fields: Doc) -> Doc {
    doc!({
        "manager": manager, "operation": "Update", "apiVersion": "apps/v1",
        "time": "1970-01-01T00:00:01Z", "fieldsType": "FieldsV1", "fieldsV1": fields
    })
}

#[test]
fn scale_shows_who_set_the_replicas() {
    let parent = [
        updated_by(
            "one",
            doc!({ "f:spec": { "f:replicas": {}, "f:paused": {} } }),
        ),
        updated_by("two", doc!({ "f:spec": { "f:paused": {} } })),
    ];
    let shown = scale_entries(&parent, &PATHS).expect("entries");
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].at("/manager"), "one");
    assert_eq!(shown[0].at("/apiVersion"), "autoscaling/v1");
    let fields = doc!({ "f:spec": { "f:replicas": {} } });
    assert_eq!(shown[0].at("/fieldsV1"), &fields);
}

#[test]
fn writer_of_a_scale_takes_the_replicas_from_the_parent() {
    let fields = doc!({ "f:spec": { "f:replicas": {}, "f:paused": {} } });
    let parent = [updated_by("one", fields)];
    let scale = [doc!({
        "manager": "scaler", "operation": "Update", "apiVersion": "autoscaling/v1",
        "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:replicas": {} } },
        "subresource": "scale"
    })];
    let entries = parent_entries(&parent, &scale, &PATHS).expect("entries");
    let found: Vec<(&str, &str)> = entries
        .iter()
        .map(|entry| (entry.str_at("/manager"), entry.str_at("/apiVersion")))
        .collect();
    assert_eq!(found, [("scaler", "apps/v1"), ("one", "apps/v1")]);
    assert_eq!(
        entries[1].at("/fieldsV1"),
        &doc!({ "f:spec": { "f:paused": {} } })
    );
}

#[test]
fn unknown_kind_merges_maps_and_replaces_lists() {
    let none = FieldSet::new();
    let config = |spec: Doc| doc!({ "apiVersion": "a/v1", "kind": "B", "metadata": { "name": "b" }, "spec": spec });
    let one = config(doc!({ "map": { "x": 1 }, "list": [1, 2] }));
    let schema: &dyn Merging = &Deduced;
    let live = schema
        .apply(None, &one, &write("one", 1, &none), false)
        .expect("no conflict");
    let two = config(doc!({ "map": { "y": 2 } }));
    let both = schema
        .apply(Some(&live), &two, &write("two", 2, &none), false)
        .expect("no conflict");
    assert_eq!(both.at("/spec/map"), &doc!({ "x": 1, "y": 2 }));
    let other = config(doc!({ "list": [3] }));
    let refused = schema.apply(Some(&both), &other, &write("two", 3, &none), false);
    let conflicts = refused.expect_err("another list").to_string();
    assert_eq!(
        conflicts,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.list"
    );
}

#[test]
fn wrong_types_are_named_in_the_words_of_go() {
    let none = FieldSet::new();
    let fault = |spec: Doc| {
        let config = doc!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": spec });
        let applied = apply(schema(), None, &config, &write("me", 1, &none), false);
        applied.expect_err("a wrong type").to_string()
    };
    let table = [
        (
            doc!({ "replicas": "3" }),
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        (
            doc!({ "replicas": [] }),
            ".spec.replicas: expected numeric (int or float), got []interface {}",
        ),
        (
            doc!({ "paused": "x" }),
            ".spec.paused: expected boolean, got &{x}",
        ),
        (
            doc!({ "selector": [1] }),
            ".spec.selector: expected map, got &{[1]}",
        ),
        (
            doc!({ "strategy": { "type": { "a": [1.5, null] } } }),
            ".spec.strategy.type: expected string, got &value.valueUnstructured{Value:\
             map[string]interface {}{\"a\":[]interface {}{1.5, interface {}(nil)}}}",
        ),
        (
            doc!({ "template": { "spec": { "containers": { "a": { "b": true } } } } }),
            ".spec.template.spec.containers: expected list, got &{map[a:map[b:true]]}",
        ),
    ];
    for (spec, expected) in table {
        assert_eq!(fault(spec), expected);
    }
}

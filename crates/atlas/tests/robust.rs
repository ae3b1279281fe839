//! Patches, configurations and managed fields come from outside: none may end the process.

use proptest::prelude::*;
use windlass_atlas::apply::{AtlasSchema, FieldSet, Write, apply, track};
use windlass_atlas::{Atlas, Type, canonical, strategic_merge, unknown_fields};
use windlass_core::{Doc, Gvk, Object, Time, doc};

/// Names that lead somewhere in a pod, and directives.
const KEYS: &[&str] = &[
    "metadata",
    "spec",
    "containers",
    "name",
    "env",
    "ports",
    "containerPort",
    "volumes",
    "labels",
    "finalizers",
    "managedFields",
    "operation",
    "apiVersion",
    "fieldsType",
    "fieldsV1",
    "f:spec",
    "k:{\"name\":\"a\"}",
    "v:1",
    "i:x",
    ".",
    "resources",
    "limits",
    "cpu",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$setElementOrder/finalizers",
    "$deleteFromPrimitiveList/finalizers",
];

const WORDS: &[&str] = &[
    "delete", "replace", "merge", "a", "b", "Apply", "FieldsV1", "v1", "",
];

fn any_doc() -> impl Strategy<Value = Doc> {
    let leaf = prop_oneof![
        Just(Doc::NULL),
        any::<bool>().prop_map(Doc::from),
        (-2_i64..3).prop_map(Doc::from),
        Just(Doc::from(0.5)),
        prop::sample::select(WORDS).prop_map(Doc::from),
    ];
    leaf.prop_recursive(7, 60, 4, |inner| {
        let key = prop::sample::select(KEYS);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Doc::from),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|fields| fields.into_iter().collect::<Object>().into()),
        ]
    })
}

/// Something like a pod: the upper levels are as they should be, what is in them may be anything.
fn any_pod() -> impl Strategy<Value = Doc> {
    let item = (any_doc(), prop::sample::select(WORDS), any_doc(), 0..4)
        .prop_map(|(env, name, ports, sort)| match sort {
            0 => doc!({ "name": name, "$patch": "delete" }),
            1 => doc!({ "name": name, "env": env }),
            2 => doc!({ "name": name, "env": [{ "name": name, "value": "1" }], "ports": ports }),
            _ => ports,
        })
        .boxed();
    let items = || prop::collection::vec(item.clone(), 0..4).prop_map(Doc::from);
    let managed = || {
        let entry = (any_doc(), prop::sample::select(WORDS)).prop_map(|(fields, name)| {
            doc!({ "manager": name, "operation": "Apply", "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": fields } })
        });
        prop::collection::vec(entry, 0..3).prop_map(Doc::from)
    };
    let parts = (items(), items(), any_doc(), any_doc(), managed(), any_doc());
    parts.prop_map(|(containers, volumes, labels, finalizers, managed, other)| {
        doc!({ "metadata": { "labels": labels, "finalizers": finalizers, "managedFields": managed },
            "spec": { "containers": containers, "volumes": volumes, "tolerations": &other,
                "$setElementOrder/containers": other } })
    })
}

/// A configuration that fits the schema.
fn any_configuration() -> impl Strategy<Value = Doc> {
    let names = || prop::sample::subsequence(vec!["a", "b", "c", "d"], 0..=4).prop_shuffle();
    let words = || prop::sample::select(WORDS);
    (names(), names(), names(), words()).prop_map(|(containers, env, finalizers, value)| {
        let env = env.iter().map(|name| doc!({ "name": *name, "value": value }));
        let env = Doc::from(env.collect::<Vec<_>>());
        let containers = containers
            .iter()
            .map(|name| doc!({ "name": *name, "image": value, "env": env.clone() }));
        let finalizers = finalizers.iter().map(|name| Doc::from(*name));
        doc!({ "apiVersion": "v1", "kind": "Pod",
            "metadata": { "labels": { value: value }, "finalizers": finalizers.collect::<Vec<_>>() },
            "spec": { "containers": containers.collect::<Vec<_>>() } })
    })
}

fn pod() -> &'static Type {
    Atlas::kind(&Gvk::constant("", "v1", "Pod")).expect("a built-in kind")
}

fn write<'a>(manager: &'a str, second: i64, ignored: &'a FieldSet) -> Write<'a> {
    Write {
        manager,
        subresource: "",
        api_version: "v1",
        time: Time::from_unix(second),
        ignored,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 128,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_patch_merges_or_is_refused(original in any_pod(), patch in any_pod()) {
        let _ = strategic_merge(pod(), &original, &patch);
    }

    #[test]
    fn any_configuration_is_applied_or_refused(live in any_pod(), config in any_pod()) {
        let ignored = FieldSet::of_fields(&[&["status"]]);
        let schema = AtlasSchema::of(pod());
        let _ = apply(schema, Some(&live), &config, &write("kubectl", 1, &ignored), true);
        let _ = track(schema, Some(&live), &config, &write("a", 1, &ignored));
        let _ = track(schema, None, &config, &write("a", 1, &ignored));
    }

    #[test]
    fn applying_the_same_again_changes_nothing(
        first in any_configuration(),
        second in any_configuration(),
        third in any_configuration(),
    ) {
        let none = FieldSet::new();
        let schema = AtlasSchema::of(pod());
        let live = track(schema, None, &first, &write("a", 1, &none));
        let live = apply(schema, Some(&live), &second, &write("b", 2, &none), true)?;
        let live = apply(schema, Some(&live), &third, &write("c", 3, &none), true)?;
        let again = apply(schema, Some(&live), &third, &write("c", 4, &none), false);
        prop_assert_eq!(again, Ok(live));
    }

    #[test]
    fn canonical_objects_stay_as_they_are(doc in any_pod()) {
        let once = canonical(pod(), &doc);
        prop_assert_eq!(&canonical(pod(), &once), &once);
        prop_assert_eq!(unknown_fields(pod(), &once), []);
    }

    #[test]
    fn field_sets_read_back_as_they_were_written(tree in any_doc()) {
        if let Ok(set) = FieldSet::decode(&tree) {
            prop_assert_eq!(FieldSet::decode(&set.encode()), Ok(set));
        }
    }
}

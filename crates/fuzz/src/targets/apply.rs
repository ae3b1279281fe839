//! Server-side apply, and the sets of fields that it keeps.

use serde_json::Value;
use windlass_atlas::apply::{AtlasSchema, FieldSet, Write, apply, track};
use windlass_atlas::{Atlas, canonical, unknown_fields};
use windlass_core::{Doc, Gvk, Object, Time};

use crate::{Outcome, model, parts, work};

/// Bytes of field sets for each byte of a configuration: `f:` before a key, `k:{...}` before an
/// item, and two managers.
const FIELDS_FACTOR_MAX: usize = 16;
const FIELDS_BYTES_FREE: usize = 4 << 10;

fn write<'a>(manager: &'a str, second: i64, ignored: &'a FieldSet) -> Write<'a> {
    Write {
        manager,
        subresource: "",
        api_version: "v1",
        time: Time::from_unix(second),
        ignored,
    }
}

/// Two configurations of a pod, applied one after the other by two managers.
///
/// Applying the same again changes nothing. Labels that were applied are there. A manager that
/// applies nothing afterwards leaves only what the other holds.
pub fn server_side_apply(data: &[u8]) -> Outcome {
    work::bounded(work::PURE, data.len(), || {
        let [first, second] = parts::<2>(data).map(Doc::parse);
        let (Ok(first), Ok(second)) = (first, second) else {
            return Outcome::Refused;
        };
        // The Go types leave out empty keys of items, and read null and absent ones as empty, so that
        // the item is another one when it is applied again. Validation refuses such items.
        let is_empty = |value: &Value| match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.iter().any(has_no_key),
            _ => false,
        };
        if [&first, &second]
            .iter()
            .any(|doc| model::any(&model::plain(doc), &is_empty))
        {
            return Outcome::Refused;
        }
        let kind = Atlas::kind(&Gvk::constant("", "v1", "Pod")).expect("a built-in kind");
        let (schema, none) = (AtlasSchema::of(kind), FieldSet::new());
        let tracked = track(schema, None, &first, &write("creator", 1, &none));
        let Ok(one) = apply(schema, None, &first, &write("one", 1, &none), true) else {
            // What cannot be applied may still be live.
            let _ = apply(
                schema,
                Some(&tracked),
                &second,
                &write("two", 2, &none),
                true,
            );
            return Outcome::Refused;
        };
        // An object without managers was not applied before, as upstream has it.
        if one.at("/metadata/managedFields").is_null() {
            return Outcome::Refused;
        }
        let again = apply(schema, Some(&one), &first, &write("one", 2, &none), false);
        assert_eq!(again.as_ref(), Ok(&one), "the first again");
        let Ok(both) = apply(schema, Some(&one), &second, &write("two", 3, &none), true) else {
            return Outcome::Refused;
        };
        let again = apply(schema, Some(&both), &second, &write("two", 4, &none), false);
        assert_eq!(again.as_ref(), Ok(&both), "the second again");
        labels_are_in(&second, &both);
        let fields = both.at("/metadata/managedFields").to_json().len();
        let allowed = FIELDS_BYTES_FREE + FIELDS_FACTOR_MAX * data.len();
        assert!(fields <= allowed, "{fields} bytes of managed fields");
        let empty = Doc::from(Object::empty());
        let left = apply(schema, Some(&both), &empty, &write("two", 5, &none), true);
        let left = left.expect("nothing can always be applied");
        let managers = left.at("/metadata/managedFields").items();
        assert!(
            managers
                .iter()
                .all(|entry| entry.str_at("/manager") != "two")
        );
        Outcome::Accepted
    })
}

/// Returns true for an item that has none of the keys of a pod's lists.
fn has_no_key(item: &Value) -> bool {
    let keys = [
        "name",
        "containerPort",
        "mountPath",
        "devicePath",
        "uid",
        "ip",
        "key",
        "topologyKey",
        "type",
        "resourceName",
    ];
    item.as_object()
        .is_some_and(|item| keys.iter().all(|key| !item.contains_key(*key)))
}

/// Labels are strings: everything else about them was refused.
fn labels_are_in(config: &Doc, live: &Doc) {
    let Some(labels) = config.at("/metadata/labels").as_object() else {
        return;
    };
    let found = live.at("/metadata/labels");
    for (key, value) in labels.iter().filter(|(_, value)| !value.is_null()) {
        assert_eq!(found.get(key), Some(value), "label {key}");
    }
}

/// A tree of `FieldsV1`: decoding and encoding again gives the same set, and the laws of sets hold.
pub fn field_set(data: &[u8]) -> Outcome {
    work::bounded(work::PURE, data.len(), || {
        let [one, two] = parts::<2>(data).map(|text| Doc::parse(text).unwrap_or_default());
        let Ok(one) = FieldSet::decode(&one) else {
            return Outcome::Refused;
        };
        assert_eq!(
            FieldSet::decode(&one.encode()).as_ref(),
            Ok(&one),
            "encoded"
        );
        let Ok(two) = FieldSet::decode(&two) else {
            return Outcome::Refused;
        };
        let both = one.clone().union(&two);
        assert_eq!(both, two.clone().union(&one), "union commutes");
        assert_eq!(both.clone().union(&one), both, "union absorbs");
        let common = one.intersection(&two);
        assert_eq!(common, two.intersection(&one), "intersection commutes");
        assert_eq!(common.is_empty(), !one.intersects(&two), "intersects");
        assert_eq!(
            one.difference(&two).union(&common),
            one,
            "parts make the whole"
        );
        assert!(
            !one.difference(&two).intersects(&two),
            "the difference is apart"
        );
        Outcome::Accepted
    })
}

/// Any document as a pod in upstream's form: bringing it there twice changes nothing more, and
/// leaves no unknown field.
pub fn canonical_form(data: &[u8]) -> Outcome {
    work::bounded(work::PURE, data.len(), || {
        let Ok(doc) = Doc::parse(data) else {
            return Outcome::Refused;
        };
        let pod = Atlas::kind(&Gvk::constant("", "v1", "Pod")).expect("a built-in kind");
        let once = canonical(pod, &doc);
        assert_eq!(canonical(pod, &once), once, "twice");
        assert_eq!(unknown_fields(pod, &once), []);
        Outcome::Accepted
    })
}

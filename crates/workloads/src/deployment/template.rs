//! When two pod templates are the same, and the hash that names them.

use windlass_core::{Doc, Kind, Object, Quantity, Str, names};

/// The label by which the pods of one template are told from those of another.
pub(super) const HASH_LABEL: &str = "pod-template-hash";

/// Fields that are maps: one that is empty says as much as one that is absent.
const MAPS: [&str; 8] = [
    "annotations",
    "labels",
    "limits",
    "matchLabels",
    "metadata",
    "nodeSelector",
    "overhead",
    "requests",
];
/// Maps from names to quantities.
const QUANTITY_MAPS: [&str; 3] = ["limits", "overhead", "requests"];
/// Fields that are quantities.
const QUANTITIES: [&str; 2] = ["divisor", "sizeLimit"];

/// Whether two templates describe the same pods, whatever their hash labels say.
pub(crate) fn is_same(a: &Doc, b: &Doc) -> bool {
    let (a, b) = (without_hash(a), without_hash(b));
    a == b || normal(&a) == normal(&b)
}

/// A template without its hash label.
pub(super) fn without_hash(template: &Doc) -> Doc {
    let pointer = format!("/metadata/labels/{HASH_LABEL}");
    let bare = template.without(&pointer);
    bare.unwrap_or_else(|_| template.clone())
}

/// The hash of a template, spelled with letters that make no words. Every collision that was
/// counted gives another one.
///
/// It is made of the template as JSON, not of the types of a program: it stays the same when
/// fields are added to those types.
pub(crate) fn hash(template: &Doc, collisions: Option<i64>) -> String {
    let mut hash = fnv1a(FNV_START, &normal(&without_hash(template)).to_json());
    if let Some(collisions) = collisions {
        hash = fnv1a(hash, &collisions.to_le_bytes());
    }
    names::safe_encode(&hash.to_string())
}

const FNV_START: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

fn fnv1a(start: u32, bytes: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(FNV_PRIME);
    bytes.iter().fold(start, step)
}

/// The document in one spelling: without nulls, empty lists and empty maps, and with quantities
/// in their shortest form.
fn normal(doc: &Doc) -> Doc {
    match doc.kind() {
        Kind::Array(items) => items.iter().map(normal).collect::<Vec<_>>().into(),
        Kind::Object(object) => {
            let fields = object.iter().filter_map(|(key, value)| {
                let value = normal_field(key, value);
                (!says_nothing(key, &value)).then(|| (key.clone(), value))
            });
            Object::new(fields.collect()).into()
        }
        _ => doc.clone(),
    }
}

fn normal_field(key: &Str, value: &Doc) -> Doc {
    if QUANTITIES.contains(&key.as_str()) {
        return quantity(value);
    }
    match value.as_object() {
        Some(map) if QUANTITY_MAPS.contains(&key.as_str()) => {
            let amounts = map
                .iter()
                .map(|(name, amount)| (name.clone(), quantity(amount)));
            Object::new(amounts.collect()).into()
        }
        _ => normal(value),
    }
}

fn says_nothing(key: &Str, value: &Doc) -> bool {
    match value.kind() {
        Kind::Null => true,
        Kind::Array(items) => items.is_empty(),
        Kind::Object(object) => object.is_empty() && MAPS.contains(&key.as_str()),
        _ => false,
    }
}

/// A quantity by its amount; the spelling of one amount is chosen here and goes nowhere.
fn quantity(value: &Doc) -> Doc {
    let text = match value.kind() {
        Kind::Str(text) => text.to_owned(),
        Kind::Int(number) => number.to_string(),
        _ => return value.clone(),
    };
    let Ok(amount) = text.parse::<Quantity>() else {
        return value.clone();
    };
    let zero = Quantity::ZERO;
    let mut difference = amount;
    // An amount that was computed prints in its canonical form, not as it was read.
    difference -= &zero;
    Doc::from(difference.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use windlass_core::doc;

    use super::*;

    fn template(image: &str) -> Doc {
        doc!({
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "c", "image": image }] }
        })
    }

    fn hashed(template: &Doc, hash: &str) -> Doc {
        template
            .with(&format!("/metadata/labels/{HASH_LABEL}"), hash)
            .unwrap()
    }

    #[test]
    fn the_hash_label_does_not_count() {
        let plain = template("nginx");
        for (a, b) in [
            (hashed(&plain, "1"), hashed(&plain, "2")),
            (hashed(&plain, "1"), plain.clone()),
            (plain.clone(), plain.clone()),
        ] {
            assert!(is_same(&a, &b) && is_same(&b, &a));
        }
        let other = template("httpd");
        let labelled = plain.with("/metadata/labels/tier", "db").unwrap();
        for different in [other, labelled] {
            let (a, b) = (hashed(&plain, "1"), hashed(&different, "1"));
            assert!(!is_same(&a, &b) && !is_same(&b, &a));
        }
    }

    #[test]
    fn spelling_does_not_count() {
        let a = doc!({
            "metadata": { "labels": {}, "creationTimestamp": null },
            "spec": {
                "tolerations": [],
                "containers": [{ "name": "c", "resources": { "limits": { "cpu": "1000m" } } }]
            }
        });
        let b = doc!({
            "spec": {
                "containers": [{ "name": "c", "resources": { "limits": { "cpu": "1" } } }]
            }
        });
        assert!(is_same(&a, &b));
        assert_eq!(hash(&a, None), hash(&b, None));
        let volume = |source: Doc| doc!({ "spec": { "volumes": [source] } });
        let (empty, absent) = (
            volume(doc!({ "name": "v", "emptyDir": {} })),
            volume(doc!({ "name": "v" })),
        );
        assert!(!is_same(&empty, &absent), "an empty choice is a choice");
        let unknown = template("nginx").with("/spec/unheardOf", true).unwrap();
        assert!(!is_same(&template("nginx"), &unknown));
    }

    #[test]
    fn hashes_differ_by_template_and_by_collisions() {
        let hashes: HashSet<String> = (0..1000)
            .map(|number| hash(&template(&format!("nginx:{number}")), None))
            .collect();
        assert_eq!(hashes.len(), 1000);
        let plain = template("nginx");
        let counts = [None, Some(0), Some(1), Some(2), Some(i64::from(i32::MAX))];
        let hashes: HashSet<String> = counts.iter().map(|count| hash(&plain, *count)).collect();
        assert_eq!(hashes.len(), counts.len());
        assert_eq!(hash(&plain, None), hash(&hashed(&plain, "x"), None));
        let is_safe = |c: char| "bcdfghjklmnpqrstvwxz2456789".contains(c);
        assert!(hash(&plain, None).chars().all(is_safe));
    }
}

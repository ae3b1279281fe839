//! Definitions of custom resources.

use windlass_core::{Doc, Gvk, Object, Str, doc};

use super::definition::{map_values, reference_to, with};
use super::{GVK, META, list_gvk};
use crate::custom::Version;
use crate::openapi::Descriptions;
use crate::openapi::built_in::{described, kind_doc};
use crate::resource::Resource;

const METADATA: &str = "Standard object's metadata. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA: &str = "Standard list metadata. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const EMBEDDED_VERSION: &str = "apiVersion defines the versioned schema of this representation of \
    an object. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND: &str = "kind is a string value representing the type of this object. In \
    CamelCase. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
/// The parts of a schema that OpenAPI v2 does not have, or that upstream does not publish.
const DROPPED: &[&str] = &[
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "nullable",
    "default",
    "example",
    "externalDocs",
];

/// The name of a kind of custom resources in documents.
pub(super) fn name(group: &str, version: &str, kind: &str) -> String {
    let domain: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", domain.join("."))
}

/// The definitions of a custom resource and of its lists.
pub(super) fn definitions(
    row: &Resource,
    custom: &Version,
    descriptions: &Descriptions,
) -> Vec<(String, Doc)> {
    let (group, version) = (row.gvk.group(), row.gvk.version());
    let object_name = name(group, version, row.gvk.kind());
    let list_kind = row.list_kind();
    let fields: Vec<Doc> = row
        .fields
        .iter()
        .map(|field| doc!({ "fieldPath": (&*field.label) }))
        .collect();
    let marked = |schema: Doc, gvk: &Gvk| {
        let schema = with(&schema, GVK, doc!([(kind_doc(gvk))]));
        match fields.is_empty() {
            true => schema,
            false => with(
                &schema,
                "x-kubernetes-selectable-fields",
                fields.clone().into(),
            ),
        }
    };
    let object = marked(object(&custom.source, descriptions), &row.gvk);
    let list = list(row, &object_name, descriptions);
    vec![
        (
            name(group, version, &list_kind),
            marked(list, &list_gvk(row)),
        ),
        (object_name, object),
    ]
}

/// The fields that name the type of an object, as those of a built-in kind are described.
fn type_fields(descriptions: &Descriptions) -> [(Str, Doc); 2] {
    ["apiVersion", "kind"].map(|field| {
        let text = descriptions.of_type_field(field);
        (field.into(), described(doc!({ "type": "string" }), text))
    })
}

fn metadata(sort: &str, description: &str) -> Doc {
    let schema = reference_to(&format!("{META}.{sort}"));
    described(schema, Some(description))
}

fn list(row: &Resource, object_name: &str, descriptions: &Descriptions) -> Doc {
    let about = format!("List of {}. More info: {CONVENTIONS}", row.plural);
    let items = doc!({
        "type": "array", "items": (reference_to(object_name)), "description": about
    });
    let mut properties = vec![
        ("items".into(), items),
        ("metadata".into(), metadata("ListMeta", LIST_METADATA)),
    ];
    properties.extend(type_fields(descriptions));
    let about = format!("{} is a list of {}", row.list_kind(), row.gvk.kind());
    doc!({
        "type": "object", "required": ["items"], "description": about,
        "properties": (Object::new(properties))
    })
}

/// The schema of an object. One that keeps unknown fields at its root says nothing about them:
/// clients would refuse those that it does not name.
fn object(source: &Doc, descriptions: &Descriptions) -> Doc {
    if source.as_object().is_none() || *source.at("/x-kubernetes-preserve-unknown-fields") == true {
        return doc!({ "type": "object" });
    }
    let schema = simplified(source);
    let properties = schema.get("properties").and_then(Doc::as_object);
    let mut properties = properties.cloned().unwrap_or_else(Object::empty);
    properties = properties.with("metadata", metadata("ObjectMeta", METADATA));
    for (key, value) in type_fields(descriptions) {
        properties = properties.with(&key, value);
    }
    with(&schema, "properties", properties.into())
}

/// A schema without what OpenAPI v2 cannot say. Where values may be null or unknown fields are
/// kept, it says nothing about the values.
fn simplified(schema: &Doc) -> Doc {
    let Some(object) = schema.as_object() else {
        return schema.clone();
    };
    let is_set = |key: &str| object.get(key).is_some_and(|value| *value == true);
    let (is_nullable, keeps_unknown) = (is_set("nullable"), is_set(PRESERVE));
    let is_opaque = is_nullable || keeps_unknown;
    let sort = object.get("type").and_then(Doc::as_str).unwrap_or_default();
    let has_items = object.get("items").is_some() && !is_opaque;
    let is_untyped =
        is_nullable || sort == "array" && !has_items || sort == "object" && keeps_unknown;
    let fields = object.iter().filter_map(|(key, value)| {
        let value = match key.as_str() {
            dropped if DROPPED.contains(&dropped) => return None,
            "items" | "properties" if is_opaque => return None,
            "type" if is_untyped => return None,
            "items" | "additionalProperties" => simplified(value),
            "properties" => map_values(value, simplified),
            "required" => required(object, value)?,
            _ => value.clone(),
        };
        Some((key.clone(), value))
    });
    let schema = Object::new(fields.collect());
    match is_set(EMBEDDED) && !keeps_unknown {
        true => embedded(&schema),
        false => schema.into(),
    }
}

/// The required properties of a schema, without those that may be null.
fn required(schema: &Object, required: &Doc) -> Option<Doc> {
    let is_nullable = |name: &str| {
        let properties = schema.get("properties").and_then(Doc::as_object);
        let property = properties.and_then(|properties| properties.get(name));
        property.is_some_and(|property| *property.at("/nullable") == true)
    };
    let values = schema.get("additionalProperties");
    if values.is_some_and(|values| *values.at("/nullable") == true) {
        return None;
    }
    let names = required.items().iter();
    let left: Vec<Doc> = names
        .filter(|name| !name.as_str().is_some_and(is_nullable))
        .cloned()
        .collect();
    (!left.is_empty()).then(|| left.into())
}

/// The schema of a whole object inside of another one.
fn embedded(schema: &Object) -> Doc {
    let properties = schema.get("properties").and_then(Doc::as_object);
    let mut properties = properties.cloned().unwrap_or_else(Object::empty);
    for (key, text) in [("apiVersion", EMBEDDED_VERSION), ("kind", EMBEDDED_KIND)] {
        let schema = doc!({ "type": "string", "description": text });
        properties = properties.with(key, schema);
    }
    properties = properties.with("metadata", metadata("ObjectMeta", METADATA));
    let mut required = schema.get("required").map_or(&[][..], Doc::items).to_vec();
    for key in ["kind", "apiVersion"] {
        if !required.iter().any(|name| *name == key) {
            required.push(key.into());
        }
    }
    let schema = schema.with("properties", properties.into());
    schema.with("required", required.into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_simplified_where_values_may_be_anything() {
        let check = |schema: Doc, expected: Doc| assert_eq!(simplified(&schema), expected);
        check(
            doc!({ "type": "object", "required": ["a", "b"], "properties": {
                "a": { "type": "string", "nullable": true }, "b": { "type": "string", "default": "x" }
            } }),
            doc!({ "type": "object", "required": ["b"], "properties": {
                "a": {}, "b": { "type": "string" }
            } }),
        );
        check(
            doc!({ "type": "object", PRESERVE: true, "properties": { "a": { "type": "string" } } }),
            doc!({ PRESERVE: true }),
        );
        check(doc!({ "type": "array" }), doc!({}));
        check(
            doc!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }] }),
            doc!({ "x-kubernetes-int-or-string": true }),
        );
    }

    #[test]
    fn objects_inside_have_their_type_and_metadata() {
        let inside = simplified(&doc!({ "type": "object", EMBEDDED: true }));
        assert_eq!(inside.at("/required"), &doc!(["kind", "apiVersion"]));
        assert!(!inside.at("/properties/metadata/$ref").is_null());
    }
}

//! Schemas as OpenAPI v2 has them.

use windlass_core::{Doc, Kind, Object, Str, doc};

const V3: &str = "#/components/schemas/";
const V2: &str = "#/definitions/";

/// The schema of a built-in type, from that of OpenAPI v3: references stand beside descriptions,
/// and there are no defaults.
pub(super) fn of_built_in(schema: &Doc) -> Doc {
    let Kind::Object(object) = schema.kind() else {
        return schema.clone();
    };
    let mut fields: Vec<(Str, Doc)> = Vec::new();
    for (key, value) in object.iter() {
        match key.as_str() {
            "default" => {}
            "allOf" => fields.extend(reference(value.at("/0/$ref"))),
            "$ref" => fields.extend(reference(value)),
            "oneOf" => fields.push(("type".into(), "string".into())),
            "properties" => fields.push((key.clone(), map_values(value, of_built_in))),
            "items" | "additionalProperties" => fields.push((key.clone(), of_built_in(value))),
            _ => fields.push((key.clone(), value.clone())),
        }
    }
    Object::new(fields).into()
}

fn reference(to: &Doc) -> Option<(Str, Doc)> {
    let name = to.as_str()?.strip_prefix(V3)?;
    Some(("$ref".into(), format!("{V2}{name}").into()))
}

/// A reference to a definition.
pub(super) fn reference_to(name: &str) -> Doc {
    doc!({ "$ref": (format!("{V2}{name}")) })
}

/// A schema with one more part.
pub(super) fn with(schema: &Doc, key: &str, value: Doc) -> Doc {
    match schema.as_object() {
        Some(object) => object.with(key, value).into(),
        None => schema.clone(),
    }
}

/// A map whose values are changed.
pub(super) fn map_values(map: &Doc, change: impl Fn(&Doc) -> Doc) -> Doc {
    let Some(object) = map.as_object() else {
        return map.clone();
    };
    let fields = object.iter();
    let fields = fields.map(|(key, value)| (key.clone(), change(value)));
    Object::new(fields.collect()).into()
}

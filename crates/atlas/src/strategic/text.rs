//! Values as upstream's messages show them.

use windlass_core::{Doc, Kind, Object};

/// The type of a value in upstream's words.
pub(super) fn type_of(doc: &Doc) -> &'static str {
    match doc.kind() {
        Kind::Null => "%!s(<nil>)",
        Kind::Bool(_) => "bool",
        Kind::Int(_) => "int64",
        Kind::UInt(_) | Kind::Float(_) => "float64",
        Kind::Str(_) => "string",
        Kind::Array(_) => "[]interface {}",
        Kind::Object(_) => "map[string]interface {}",
    }
}

/// A value where a text was expected.
pub(super) fn word(doc: &Doc) -> String {
    match doc.kind() {
        Kind::Null => type_of(doc).to_owned(),
        Kind::Bool(_) | Kind::Int(_) | Kind::UInt(_) | Kind::Float(_) => {
            format!("%!s({}={})", type_of(doc), value(doc))
        }
        Kind::Str(_) | Kind::Array(_) | Kind::Object(_) => value(doc),
    }
}

/// A value without quotes or commas: `map[name:web ports:[80 443]]`.
pub(super) fn value(doc: &Doc) -> String {
    match doc.kind() {
        Kind::Null => "<nil>".to_owned(),
        Kind::Str(text) => text.to_owned(),
        Kind::Array(items) => list(items),
        Kind::Object(fields) => object(fields),
        _ => doc.to_string(),
    }
}

pub(super) fn list(items: &[Doc]) -> String {
    let items: Vec<String> = items.iter().map(value).collect();
    format!("[{}]", items.join(" "))
}

pub(super) fn object(object: &Object) -> String {
    let fields: Vec<String> = object
        .iter()
        .map(|(key, field)| format!("{key}:{}", value(field)))
        .collect();
    format!("map[{}]", fields.join(" "))
}

//! Values as upstream's messages show them.

use windlass_core::{Doc, Kind};

/// A value as Go's `%v` shows it, and with it messages of upstream.
#[must_use]
pub fn plain(value: &Doc) -> String {
    match value.kind() {
        Kind::Null => "<nil>".to_owned(),
        Kind::Str(text) => text.to_owned(),
        Kind::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Kind::Object(object) => {
            let fields = object.iter();
            let fields: Vec<String> = fields
                .map(|(key, value)| format!("{key}:{}", plain(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        _ => value.to_string(),
    }
}

/// A value as `%#v` shows it.
pub(super) fn literal(value: &Doc) -> String {
    match value.kind() {
        Kind::Null => "interface {}(nil)".to_owned(),
        Kind::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Kind::Object(object) => {
            let fields = object.iter();
            let fields: Vec<String> = fields
                .map(|(key, value)| format!("{}:{}", windlass_core::quote(key), literal(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        Kind::Str(text) => windlass_core::quote(text),
        _ => value.to_string(),
    }
}

/// The type of a value as `%T` shows it.
pub(super) fn type_name(value: &Doc) -> &'static str {
    match value.kind() {
        Kind::Null => "<nil>",
        Kind::Bool(_) => "bool",
        Kind::Int(_) | Kind::UInt(_) => "int64",
        Kind::Float(_) => "float64",
        Kind::Str(_) => "string",
        Kind::Array(_) => "[]interface {}",
        Kind::Object(_) => "map[string]interface {}",
    }
}

//! Bodies of many parts.

use std::fmt::Write as _;

use windlass_core::{Doc, doc};

use crate::support::BODY_BYTES;

/// A list or object of as many parts as fit into a body, between its ends.
pub(crate) fn filled(open: &str, part: impl Fn(usize) -> String, close: &str) -> String {
    filled_to(BODY_BYTES, open, part, close)
}

/// The same of some length.
pub(crate) fn filled_to(
    bytes: usize,
    open: &str,
    part: impl Fn(usize) -> String,
    close: &str,
) -> String {
    let mut text = open.to_owned();
    let mut number = 0;
    loop {
        let part = part(number);
        if text.len() + part.len() + close.len() + 1 > bytes {
            break;
        }
        if number > 0 {
            text.push(',');
        }
        text.push_str(&part);
        number += 1;
    }
    text.push_str(close);
    text
}

/// A plain object that is accepted: as many short fields as a config map may have.
pub(crate) fn plain_config_map() -> String {
    filled_to(
        900 << 10,
        r#"{"metadata":{"name":"plain"},"data":{"#,
        |number| format!(r#""key-{number}":"value-{number}""#),
        "}}",
    )
}

/// A config map with these fields behind its metadata.
pub(crate) fn config_map(rest: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}}{rest}}}"#)
}

/// An object of a custom kind with a spec.
pub(crate) fn gadget(spec: &str) -> String {
    let mut text = String::new();
    let head = r#"{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"},"spec":"#;
    write!(text, "{head}{spec}}}").unwrap();
    text
}

/// A custom kind whose spec has a list map, a set, and anything else.
pub(crate) fn definition() -> Doc {
    let items = doc!({
        "type": "object", "required": ["name"],
        "properties": { "name": { "type": "string" }, "value": { "type": "integer" } }
    });
    let any = doc!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    doc!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "gadgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "gadgets", "kind": "Gadget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "status": (any.clone()),
                    "spec": { "type": "object", "properties": {
                        "any": any,
                        "list": {
                            "type": "array", "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["name"], "items": items
                        },
                        "set": {
                            "type": "array", "x-kubernetes-list-type": "set",
                            "items": { "type": "string" }
                        },
                        "strings": { "type": "object", "additionalProperties": { "type": "string" } },
                        "numbers": { "type": "array", "items": { "type": "integer" } }
                    } }
                } } }
            }]
        }
    })
}

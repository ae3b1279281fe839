//! Whether a schema is structural: every field has one type, said in one place.

use std::collections::HashSet;

use windlass_core::{Doc, Kind};

use crate::custom::schema::{DEPTH_LIMIT, compile_pattern};
use windlass_rules::field::{FieldErrors, FieldPath};

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The types a value may have.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// What a nested schema may not say, and what is said against it.
const NOT_NESTED: [(&str, &str); 11] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-embedded-resource",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-int-or-string",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-list-map-keys",
        "must be empty to be structural",
    ),
    (
        "x-kubernetes-list-type",
        "must be undefined to be structural",
    ),
];
/// What no schema may say.
const UNSUPPORTED: [(&str, &str); 9] = [
    ("$ref", "$ref is not supported"),
    ("additionalItems", "additionalItems is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("externalDocs", ""),
    ("id", "id is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("$schema", ""),
    ("example", ""),
];

fn text<'a>(schema: &'a Doc, key: &str) -> &'a str {
    schema.get(key).and_then(Doc::as_str).unwrap_or_default()
}

fn flag(schema: &Doc, key: &str) -> bool {
    schema.get(key).and_then(Doc::as_bool).unwrap_or(false)
}

fn is_set(schema: &Doc, key: &str) -> bool {
    schema.get(key).is_some_and(|value| match value.kind() {
        Kind::Bool(value) => value,
        Kind::Str(text) => !text.is_empty(),
        Kind::Array(items) => !items.is_empty(),
        Kind::Null => false,
        _ => true,
    })
}

fn properties(schema: &Doc) -> impl Iterator<Item = (&str, &Doc)> {
    let object = schema.get("properties").and_then(Doc::as_object);
    object
        .into_iter()
        .flat_map(|object| object.iter())
        .map(|(key, part)| (key.as_str(), part))
}

/// Finds what is not structural about a schema.
pub(super) fn check(schema: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    invariants(schema, Level::Root, path, errors, 0);
}

fn invariants(
    schema: &Doc,
    level: Level,
    path: &FieldPath,
    errors: &mut FieldErrors,
    depth: usize,
) {
    if depth > DEPTH_LIMIT {
        errors.forbidden(
            path,
            format!("schemas may not be nested deeper than {DEPTH_LIMIT}"),
        );
        return;
    }
    let sort = text(schema, "type");
    if sort == "array" && schema.get("items").is_none() {
        errors.required(&path.child("items"), "must be specified");
    }
    if let Some(items) = schema.get("items") {
        if items.as_object().is_some() {
            invariants(items, Level::Item, &path.child("items"), errors, depth + 1);
        } else {
            errors.forbidden(
                &path.child("items"),
                "items must be a schema object and not an array",
            );
        }
    }
    for (key, part) in properties(schema) {
        invariants(
            part,
            Level::Field,
            &path.child("properties").key(key),
            errors,
            depth + 1,
        );
    }
    if let Some(values) = schema.get("additionalProperties") {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.forbidden(&path, "must not be used at the root");
        }
        if values.as_object().is_some() {
            invariants(values, Level::Field, &path, errors, depth + 1);
        }
    }
    extensions(schema, path, errors);
    nested_parts(schema, path, errors, depth);
    typed(schema, level, path, errors);
    metadata(schema, level, path, errors);
    lists(schema, path, errors);
}

fn extensions(schema: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for (key, why) in UNSUPPORTED
        .iter()
        .filter(|(key, why)| !why.is_empty() && is_set(schema, key))
    {
        errors.forbidden(&path.child(key), *why);
    }
    if flag(schema, "uniqueItems") {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.forbidden(&path.child("uniqueItems"), why);
    }
    if flag(schema, "x-kubernetes-int-or-string") {
        for key in [
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
        ] {
            if flag(schema, key) {
                errors.invalid(
                    &path.child(key),
                    true,
                    "must be false if x-kubernetes-int-or-string is true",
                );
            }
        }
    }
    let has_values = schema
        .get("additionalProperties")
        .is_some_and(|values| values.as_bool() != Some(true));
    if has_values && properties(schema).next().is_some() {
        let why = "additionalProperties and properties are mutual exclusive";
        errors.forbidden(&path.child("additionalProperties"), why);
    }
}

/// Whether the types that a schema names are the two of int-or-string.
fn is_int_or_string(parts: &[Doc]) -> bool {
    let sorts: Vec<&str> = parts.iter().map(|part| text(part, "type")).collect();
    sorts == ["integer", "string"]
        && parts
            .iter()
            .all(|part| part.as_object().is_some_and(|part| part.len() == 1))
}

fn nested_parts(schema: &Doc, path: &FieldPath, errors: &mut FieldErrors, depth: usize) {
    for key in ["anyOf", "allOf", "oneOf"] {
        let parts = schema.get(key).map_or(&[][..], Doc::items);
        if key == "anyOf" && flag(schema, "x-kubernetes-int-or-string") && is_int_or_string(parts) {
            continue;
        }
        for (at, part) in parts.iter().enumerate() {
            let is_first_choice =
                key == "allOf" && at == 0 && flag(schema, "x-kubernetes-int-or-string");
            if is_first_choice && is_int_or_string(part.at("/anyOf").items()) {
                continue;
            }
            nested(part, &path.child(key).index(at), errors, depth + 1);
        }
    }
    if let Some(part) = schema.get("not").filter(|part| !part.is_null()) {
        nested(part, &path.child("not"), errors, depth + 1);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(error) = compile_pattern(pattern)
    {
        let why = super::regex_message(pattern, &error);
        let detail =
            format!("must be a valid regular expression, but isn't: error parsing regexp: {why}");
        errors.invalid(&path.child("pattern"), pattern, detail);
    }
}

fn nested(schema: &Doc, path: &FieldPath, errors: &mut FieldErrors, depth: usize) {
    if depth > DEPTH_LIMIT {
        return;
    }
    nested_parts(schema, path, errors, depth);
    if let Some(items) = schema.get("items") {
        nested(items, &path.child("items"), errors, depth + 1);
    }
    for (key, part) in properties(schema) {
        nested(part, &path.child("properties").key(key), errors, depth + 1);
    }
    for (key, why) in NOT_NESTED.iter().filter(|(key, _)| is_set(schema, key)) {
        errors.forbidden(&path.child(key), *why);
    }
    if is_set(schema, "x-kubernetes-map-type") {
        errors.forbidden(
            &path.child("x-kubernetes-map-type"),
            "must be undefined to be structural",
        );
    }
    if is_set(schema, "x-kubernetes-validations") {
        errors.forbidden(
            &path.child("x-kubernetes-validations"),
            "must be empty to be structural",
        );
    }
    if schema.at("/properties").get("metadata").is_some() {
        let path = path.child("properties").key("metadata");
        errors.forbidden(&path, "must not be specified in a nested context");
    }
}

fn typed(schema: &Doc, level: Level, path: &FieldPath, errors: &mut FieldErrors) {
    let sort = text(schema, "type");
    let is_embedded = flag(schema, "x-kubernetes-embedded-resource");
    let field = path.child("type");
    if is_embedded && sort != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        match sort {
            "" => errors.required(&field, why),
            _ => errors.invalid(&field, sort, why),
        }
    } else if sort.is_empty()
        && !flag(schema, "x-kubernetes-int-or-string")
        && !flag(schema, "x-kubernetes-preserve-unknown-fields")
        && !is_set(schema, "$ref")
    {
        errors.required(
            &field,
            match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            },
        );
    }
    if sort == "null" {
        errors.forbidden(
            &field,
            "type cannot be set to null, use nullable as an alternative",
        );
    } else if !sort.is_empty() && !TYPES.contains(&sort) {
        errors.not_supported(&field, sort, &TYPES);
    }
    if level == Level::Root && !sort.is_empty() && sort != "object" {
        errors.invalid(&field, sort, "must be object at the root");
    }
    if is_embedded {
        if schema.get("additionalProperties").is_some() {
            let why = "must not be used if x-kubernetes-embedded-resource is set";
            errors.forbidden(&path.child("additionalProperties"), why);
        }
        if !flag(schema, "x-kubernetes-preserve-unknown-fields")
            && properties(schema).next().is_none()
        {
            let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                       x-kubernetes-preserve-unknown-fields";
            errors.required(&path.child("properties"), why);
        }
    }
}

fn metadata(schema: &Doc, level: Level, path: &FieldPath, errors: &mut FieldErrors) {
    if level != Level::Root && !flag(schema, "x-kubernetes-embedded-resource") {
        return;
    }
    for key in ["apiVersion", "kind"] {
        if let Some(part) = schema.at("/properties").get(key)
            && text(part, "type") != "string"
        {
            let path = path.child("properties").key(key).child("type");
            errors.invalid(&path, text(part, "type"), "must be string");
        }
    }
    let Some(part) = schema.at("/properties").get("metadata") else {
        return;
    };
    let path = path.child("properties").key("metadata");
    if text(part, "type") != "object" {
        errors.invalid(&path.child("type"), text(part, "type"), "must be object");
    }
    let is_plain = properties(part).all(|(key, _)| matches!(key, "name" | "generateName"));
    let others = part.as_object().into_iter().flat_map(|part| part.keys());
    let is_short = others
        .filter(|key| !matches!(key.as_str(), "type" | "properties" | "description"))
        .count()
        == 0;
    if level == Level::Root && !(is_plain && is_short) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.forbidden(&path, why);
    }
}

fn lists(schema: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let list = text(schema, "x-kubernetes-list-type");
    let sort = text(schema, "type");
    let items = schema.at("/items");
    let map_type = text(schema, "x-kubernetes-map-type");
    if !map_type.is_empty() {
        let why = "must be object if x-kubernetes-map-type is specified";
        match sort {
            "object" => {}
            "" => errors.required(&path.child("type"), why),
            _ => errors.invalid(&path.child("type"), sort, why),
        }
        if !matches!(map_type, "atomic" | "granular") {
            errors.not_supported(
                &path.child("x-kubernetes-map-type"),
                map_type,
                &["atomic", "granular"],
            );
        }
    }
    let keys = schema
        .get("x-kubernetes-list-map-keys")
        .map_or(&[][..], Doc::items);
    let list_path = path.child("x-kubernetes-list-type");
    if !list.is_empty() && sort != "array" {
        let why = "must be array if x-kubernetes-list-type is specified";
        match sort {
            "" => errors.required(&path.child("type"), why),
            _ => errors.invalid(&path.child("type"), sort, why),
        }
    } else if list == "set" {
        set_items(items, path, errors);
    }
    if !matches!(list, "" | "atomic" | "set" | "map") {
        errors.not_supported(&list_path, list, &["atomic", "set", "map"]);
    }
    if !keys.is_empty() && list != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list {
            "" => errors.required(&list_path, why),
            _ => errors.invalid(&list_path, list, why),
        }
    }
    if list == "map" {
        map_items(schema, keys, path, errors);
    }
    if matches!(list, "set" | "map") && flag(items, "nullable") {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list}");
        errors.forbidden(&path.child("items").child("nullable"), why);
    }
}

fn set_items(items: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    match text(items, "type") {
        "array" if !matches!(text(items, "x-kubernetes-list-type"), "" | "atomic") => {
            let field = path.child("items").child("x-kubernetes-list-type");
            errors.invalid(&field, text(items, "x-kubernetes-list-type"), why);
        }
        "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
            errors.invalid(
                &path.child("items").child("x-kubernetes-map-type"),
                Doc::NULL,
                why,
            );
        }
        _ => {}
    }
}

fn map_items(schema: &Doc, keys: &[Doc], path: &FieldPath, errors: &mut FieldErrors) {
    let keys_path = path.child("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors.required(
            &keys_path,
            "must not be empty if x-kubernetes-list-type is map",
        );
    }
    let Some(items) = schema.get("items") else {
        return errors.required(
            &path.child("items"),
            "must have a schema if x-kubernetes-list-type is map",
        );
    };
    let items_path = path.child("items");
    if text(items, "type") != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        return errors.invalid(&items_path.child("type"), text(items, "type"), why);
    }
    let all = schema.at("/x-kubernetes-list-map-keys");
    let required = items.at("/required").items().iter();
    let required: HashSet<&str> = required.filter_map(Doc::as_str).collect();
    let mut seen = HashSet::new();
    for key in keys {
        let key = key.as_str().unwrap_or_default();
        let part_path = items_path.child("properties").key(key);
        match items.at("/properties").get(key) {
            None => errors.invalid(
                &keys_path,
                all,
                "entries must all be names of item properties",
            ),
            Some(part) => {
                if matches!(text(part, "type"), "array" | "object") {
                    let why =
                        "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    errors.invalid(&part_path.child("type"), text(part, "type"), why);
                }
                let is_required = required.contains(key);
                if !is_required && part.get("default").is_none() {
                    let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                               required property";
                    errors.required(&part_path.child("default"), why);
                }
                if flag(part, "nullable") {
                    let why =
                        "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                    errors.forbidden(&part_path.child("nullable"), why);
                }
            }
        }
        if !seen.insert(key) {
            errors.invalid(&keys_path, all, "must not contain duplicate entries");
        }
    }
}

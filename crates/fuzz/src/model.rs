//! Naive models: the plain reading of a standard, on plain trees, without any sharing.

use serde_json::{Map, Value};
use windlass_core::{Doc, Kind, Object};

/// A document as a plain tree. Not by way of JSON text, of which serde_json reads less depth.
pub(crate) fn plain(doc: &Doc) -> Value {
    match doc.kind() {
        Kind::Null => Value::Null,
        Kind::Bool(value) => Value::Bool(value),
        Kind::Int(value) => Value::from(value),
        Kind::UInt(value) => Value::from(value),
        Kind::Float(value) => Value::from(value),
        Kind::Str(value) => Value::from(value),
        Kind::Array(items) => items.iter().map(plain).collect(),
        Kind::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(key, value)| (key.to_string(), plain(value)))
                .collect()
        }
    }
}

/// A plain tree as a document.
pub(crate) fn shared(tree: &Value) -> Doc {
    match tree {
        Value::Null => Doc::NULL,
        Value::Bool(value) => Doc::from(*value),
        Value::String(value) => Doc::from(value.as_str()),
        Value::Array(items) => items.iter().map(shared).collect::<Vec<_>>().into(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| (key.as_str(), shared(value)));
            fields.collect::<Object>().into()
        }
        Value::Number(number) => {
            let text = number.to_string();
            Doc::parse(text.as_bytes()).expect("a number is JSON")
        }
    }
}

/// How deep arrays and objects nest.
pub(crate) fn depth(tree: &Value) -> usize {
    match tree {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns true if a condition holds for a value or any value in it.
pub(crate) fn any(tree: &Value, is_it: &impl Fn(&Value) -> bool) -> bool {
    is_it(tree)
        || match tree {
            Value::Array(items) => items.iter().any(|item| any(item, is_it)),
            Value::Object(fields) => fields.values().any(|field| any(field, is_it)),
            _ => false,
        }
}

/// Returns true if a key starts with a dollar sign, as the directives of strategic merge do.
pub(crate) fn has_directives(tree: &Value) -> bool {
    any(tree, &|value| match value {
        Value::Object(fields) => fields.keys().any(|key| key.starts_with('$')),
        _ => false,
    })
}

/// `MergePatch` of RFC 7386, section 2.
pub(crate) fn merge_patch(target: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let mut fields = match target {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            let old = fields.remove(key).unwrap_or(Value::Null);
            fields.insert(key.clone(), merge_patch(old, change));
        }
    }
    Value::Object(fields)
}

/// A JSON patch by RFC 6902, with two stated differences: the whole document cannot be removed
/// to nothing, it becomes `null`; and `test` takes an absent value for `null`, as upstream does.
pub(crate) fn json_patch(mut doc: Value, operations: &Value) -> Option<Value> {
    for operation in operations.as_array()? {
        let field = |name: &str| operation.get(name).and_then(Value::as_str);
        let pointer =
            |name: &str| field(name).filter(|path| path.is_empty() || path.starts_with('/'));
        let path = pointer("path")?;
        match field("op")? {
            "add" => add(&mut doc, path, operation.get("value")?.clone())?,
            "remove" => drop(take(&mut doc, path)?),
            "replace" => *doc.pointer_mut(path)? = operation.get("value")?.clone(),
            "copy" => {
                let value = doc.pointer(pointer("from")?)?.clone();
                add(&mut doc, path, value)?;
            }
            "move" => {
                let from = pointer("from")?;
                let is_inside = path
                    .strip_prefix(from)
                    .is_some_and(|rest| rest.starts_with('/'));
                if is_inside {
                    return None;
                }
                let value = take(&mut doc, from)?;
                add(&mut doc, path, value)?;
            }
            "test" => {
                let found = doc.pointer(path).unwrap_or(&Value::Null);
                if found != operation.get("value")? {
                    return None;
                }
            }
            _ => return None,
        }
    }
    Some(doc)
}

fn parent(path: &str) -> Option<(&str, String)> {
    let (parent, token) = path.rsplit_once('/')?;
    Some((parent, token.replace("~1", "/").replace("~0", "~")))
}

fn index(token: &str) -> Option<usize> {
    let is_plain = token == "0" || !token.starts_with(['0', '+']);
    is_plain.then(|| token.parse().ok()).flatten()
}

fn add(doc: &mut Value, path: &str, value: Value) -> Option<()> {
    let Some((parent, token)) = parent(path) else {
        *doc = value;
        return Some(());
    };
    match doc.pointer_mut(parent)? {
        Value::Object(fields) => drop(fields.insert(token, value)),
        Value::Array(items) if token == "-" => items.push(value),
        Value::Array(items) => {
            let at = index(&token).filter(|at| *at <= items.len())?;
            items.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn take(doc: &mut Value, path: &str) -> Option<Value> {
    let Some((parent, token)) = parent(path) else {
        return Some(doc.take());
    };
    match doc.pointer_mut(parent)? {
        Value::Object(fields) => fields.remove(&token),
        Value::Array(items) => {
            let at = index(&token).filter(|at| *at < items.len())?;
            Some(items.remove(at))
        }
        _ => None,
    }
}

//! Pruning and defaulting: what becomes of an object before it is validated.

use windlass_core::{Doc, Kind, Object, Str};

use super::schema::Node;
use windlass_rules::field::FieldPath;

/// How deep objects are walked. JSON is not read deeper than that.
const UNKNOWN_LIMIT: usize = 100;

/// Fields that every whole object has.
pub(crate) fn is_type_or_metadata(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// A walk that leaves out fields which the schema does not name.
pub(crate) struct Pruning {
    path: String,
    /// Where such fields were.
    pub(crate) unknown: Vec<String>,
}

impl Pruning {
    pub(crate) fn new() -> Self {
        Self {
            path: String::new(),
            unknown: Vec::new(),
        }
    }

    /// The value without fields that the schema does not name; `None` if there are none.
    pub(crate) fn run(&mut self, node: &Node, doc: &Doc, is_resource: bool) -> Option<Doc> {
        match doc.kind() {
            Kind::Object(object) => self.object(node, object, is_resource),
            Kind::Array(items) => {
                let part = node.items.as_deref()?;
                self.array(part, items)
            }
            _ => None,
        }
    }

    fn array(&mut self, part: &Node, items: &[Doc]) -> Option<Doc> {
        let length = self.path.len();
        let mut changed: Option<Vec<Doc>> = None;
        for (at, item) in items.iter().enumerate() {
            self.path.push_str(&format!("[{at}]"));
            if let Some(pruned) = self.run(part, item, part.is_embedded) {
                changed.get_or_insert_with(|| items.to_vec())[at] = pruned;
            }
            self.path.truncate(length);
        }
        changed.map(Doc::from)
    }

    fn object(&mut self, node: &Node, object: &Object, is_resource: bool) -> Option<Doc> {
        let length = self.path.len();
        let mut changes = Vec::new();
        for (key, value) in object.iter() {
            if is_resource && is_type_or_metadata(key) {
                continue;
            }
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(key);
            match node.field(key) {
                Some(part) => {
                    if let Some(pruned) = self.run(part, value, part.is_embedded) {
                        changes.push((key.clone(), Some(pruned)));
                    }
                }
                None if node.keeps_unknown || node.allows_any => {}
                None => {
                    if self.unknown.len() < UNKNOWN_LIMIT {
                        self.unknown.push(self.path.clone());
                    }
                    changes.push((key.clone(), None));
                }
            }
            self.path.truncate(length);
        }
        (!changes.is_empty()).then(|| object.with_changes(changes).into())
    }
}

/// The value with its defaults and without nulls that mean nothing; `None` if it has them already.
pub(crate) fn settle(node: &Node, doc: &Doc) -> Option<Doc> {
    match doc.kind() {
        Kind::Object(object) => settle_object(node, object),
        Kind::Array(items) => {
            let part = node.items.as_deref()?;
            let mut changed: Option<Vec<Doc>> = None;
            for (at, item) in items.iter().enumerate() {
                if let Some(settled) = settle(part, item) {
                    changed.get_or_insert_with(|| items.to_vec())[at] = settled;
                }
            }
            changed.map(Doc::from)
        }
        _ => None,
    }
}

fn settle_object(node: &Node, object: &Object) -> Option<Doc> {
    let mut changes = Vec::new();
    for (key, value) in object.iter() {
        let Some(part) = node.field(key) else {
            continue;
        };
        if value.is_null() && !part.is_nullable {
            let default = part.default.as_ref().map(|default| settled(part, default));
            changes.push((key.clone(), default));
        } else if let Some(settled) = settle(part, value) {
            changes.push((key.clone(), Some(settled)));
        }
    }
    if node.has_defaults {
        for (key, part) in &node.properties {
            if let Some(default) = &part.default
                && !object.contains_key(key)
            {
                changes.push((key.clone(), Some(settled(part, default))));
            }
        }
    }
    (!changes.is_empty()).then(|| object.with_changes(changes).into())
}

/// A default, which may have defaults inside.
fn settled(node: &Node, default: &Doc) -> Doc {
    settle(node, default).unwrap_or_else(|| default.clone())
}

/// The metadata of every whole object inside, as `fix` makes it.
pub(crate) fn map_metadata(
    node: &Node,
    doc: &Doc,
    path: &FieldPath,
    fix: &mut dyn FnMut(&Doc, &str) -> Result<Doc, String>,
) -> Result<Option<Doc>, String> {
    if !node.holds_embedded {
        return Ok(None);
    }
    match doc.kind() {
        Kind::Object(object) => {
            let mut fields: Vec<(Str, Doc)> = Vec::with_capacity(object.len());
            for (key, value) in object.iter() {
                let at = path.child(key);
                let value = match node.field(key) {
                    _ if node.is_embedded && key.as_str() == "metadata" => {
                        fix(value, &at.to_string())?
                    }
                    Some(part) => {
                        map_metadata(part, value, &at, fix)?.unwrap_or_else(|| value.clone())
                    }
                    None => value.clone(),
                };
                fields.push((key.clone(), value));
            }
            Ok(Some(Object::new(fields).into()))
        }
        Kind::Array(items) => {
            let Some(part) = node.items.as_deref() else {
                return Ok(None);
            };
            let mut fixed = Vec::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                let at = path.index(at);
                fixed.push(map_metadata(part, item, &at, fix)?.unwrap_or_else(|| item.clone()));
            }
            Ok(Some(fixed.into()))
        }
        _ => Ok(None),
    }
}

//! Messages: objects with a type name, constructed by an expression.

use std::collections::BTreeMap;

use windlass_core::{Doc, Object, Str};

use super::{Value, equals};
use crate::error::EvalError;

/// A message: its type name, and its fields.
#[derive(Clone, Debug)]
pub struct Message {
    name: String,
    fields: BTreeMap<String, Value>,
}

impl Message {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            fields: BTreeMap::new(),
        }
    }

    pub(crate) fn set(&mut self, field: &str, value: Value) -> Result<(), EvalError> {
        if self.name == "JSONPatch" && field != "value" && value.as_str().is_none() {
            let ty = value.ty().base_name();
            return Err(EvalError::failed(format!(
                "unexpected type {ty} for JSONPatchType '{field}' field"
            )));
        }
        self.fields.insert(field.to_owned(), value);
        Ok(())
    }

    /// The name of the message type.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of a field that is set.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    /// The fields that are set, in the order of their names.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.fields
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        self.name == other.name
            && self.fields.len() == other.fields.len()
            && self.fields().zip(other.fields()).all(
                |((name, value), (other_name, other_value))| {
                    name == other_name && equals(value, other_value)
                },
            )
    }

    pub(super) fn to_doc(&self) -> Option<Doc> {
        let fields = self
            .fields()
            .map(|(name, value)| Some((Str::new(name), value.to_doc()?)));
        Some(Doc::from(Object::new(fields.collect::<Option<Vec<_>>>()?)))
    }

    /// The complaints about nested messages whose type names do not spell the way to them from the
    /// root: below `Object`, the field `spec` holds an `Object.spec`. Maps and lists in between have
    /// no names.
    #[must_use]
    pub fn misnamed(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        check_names(self, &self.name, &mut complaints);
        complaints
    }
}

fn check_names(message: &Message, expected: &str, complaints: &mut Vec<String>) {
    if message.name != expected {
        complaints.push(format!(
            "unexpected type name {:?}, expected {expected:?}, which matches field name path from \
             root Object type",
            message.name
        ));
    }
    for (field, value) in message.fields() {
        check_value(value, &format!("{expected}.{field}"), complaints);
    }
}

fn check_value(value: &Value, expected: &str, complaints: &mut Vec<String>) {
    match value {
        Value::Message(message) => check_names(message, expected, complaints),
        Value::List(list) => {
            for item in list.iter() {
                check_value(&item, expected, complaints);
            }
        }
        Value::Map(map) => {
            for (_, item) in map.entries() {
                check_value(&item, expected, complaints);
            }
        }
        _ => {}
    }
}

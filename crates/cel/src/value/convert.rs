//! Between documents and values.

use std::sync::Arc;

use windlass_core::{Doc, Kind, Object, Quantity, Str};

use super::{List, Map, MapKey, Text, Value, integral, parse_duration, parse_timestamp};
use crate::base64;
use crate::types::Decl;
use crate::types::{Opaque, Type};

/// A document read as declared, or as what it is.
pub(crate) fn from_doc(doc: &Doc, decl: Option<&Arc<Decl>>) -> Value {
    if let Some(value) = decl.and_then(|decl| special(doc, decl)) {
        return value;
    }
    match doc.kind() {
        Kind::Null => Value::Null,
        Kind::Bool(value) => Value::Bool(value),
        Kind::Int(value) => Value::Int(value),
        Kind::UInt(value) => Value::Uint(value),
        Kind::Float(value) => Value::Double(value),
        Kind::Str(text) => Text::of(doc).map_or_else(|| Value::from(text), Value::String),
        Kind::Array(array) => Value::List(List::of(array.clone(), decl)),
        Kind::Object(object) => Value::Map(Map::of(object.clone(), decl)),
    }
}

/// The value where the declaration makes it another one than the JSON shows.
///
/// Text that is not what its format promises stays text; validation reports it elsewhere.
fn special(doc: &Doc, decl: &Decl) -> Option<Value> {
    if decl.is_date() {
        let date = format!("{}T00:00:00Z", doc.as_str()?);
        return parse_timestamp(&date).map(Value::Timestamp);
    }
    match decl.plain_type()? {
        Type::Double => doc.as_f64().map(Value::Double),
        Type::Int => integral(doc).map(Value::Int),
        Type::Timestamp => parse_timestamp(doc.as_str()?).map(Value::Timestamp),
        Type::Duration => parse_duration(doc.as_str()?).map(Value::Duration),
        Type::Bytes => base64::decode(doc.as_str()?).map(|bytes| Value::Bytes(Arc::from(bytes))),
        Type::Opaque(Opaque::Quantity) => {
            let quantity: Quantity = doc.as_str()?.parse().ok()?;
            Some(Value::Quantity(Arc::new(quantity)))
        }
        _ => None,
    }
}

/// A value as JSON, if it has such a form.
pub(super) fn to_doc(value: &Value) -> Option<Doc> {
    Some(match value {
        Value::Null => Doc::NULL,
        Value::Bool(value) => Doc::from(*value),
        Value::Int(value) => Doc::from(*value),
        Value::Uint(value) => Doc::from(*value),
        Value::Double(value) => Doc::from(*value),
        Value::String(text) => Doc::from(&**text),
        Value::List(list) => Doc::from(
            list.iter()
                .map(|item| to_doc(&item))
                .collect::<Option<Vec<_>>>()?,
        ),
        Value::Map(map) => {
            let fields = map.entries().into_iter().map(|(key, value)| {
                let MapKey::String(key) = MapKey::of(&key)? else {
                    return None;
                };
                Some((Str::new(&key), to_doc(&value)?))
            });
            Doc::from(Object::new(fields.collect::<Option<Vec<_>>>()?))
        }
        Value::Timestamp(time) => Doc::from(time.to_string()),
        Value::Duration(nanos) => Doc::from(super::duration_text(*nanos)),
        Value::Bytes(bytes) => Doc::from(base64::encode(bytes)),
        Value::Quantity(quantity) => Doc::from(quantity.to_string()),
        Value::Semver(version) => Doc::from(version.to_string()),
        Value::Optional(Some(inner)) => return to_doc(inner),
        Value::Optional(None) => Doc::NULL,
        Value::Message(message) => return message.to_doc(),
        Value::Type(_)
        | Value::Url(_)
        | Value::Ip(_)
        | Value::Cidr(_)
        | Value::Format(_)
        | Value::Authorization(_) => return None,
    })
}

//! Strategic merge patch: a merge patch that knows which lists are merged, and by which key.
//!
//! The directives `$patch`, `$retainKeys`, `$setElementOrder/<field>` and
//! `$deleteFromPrimitiveList/<field>` work as upstream's server takes them, its error messages
//! included. Two things upstream leaves to chance are fixed here: deletions from a list of plain
//! values happen after the same patch's additions, and a `null` item is an error, not a crash.

mod list;
mod order;
mod schema;
mod text;

use std::collections::BTreeMap;

use windlass_core::{Doc, Kind, Object, Str};

use crate::table::Type;
use schema::Schema;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

type Fields = BTreeMap<Str, Doc>;

/// The reason why a strategic merge patch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategicError {
    /// The object or the patch is not a JSON object.
    #[error("invalid JSON document")]
    NotAnObject,
    /// A list of values to delete has no field to delete from.
    #[error("invalid patch format of primitive list")]
    PrimitiveList,
    /// The keys to retain are not a list, or the patch sets others.
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    /// An order of elements has no field to order.
    #[error("invalid patch format of setElementOrder list")]
    ElementOrder,
    /// A list to merge holds lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// Something else upstream answers as an error of its own.
    #[error("{0}")]
    Other(String),
}

impl StrategicError {
    /// The HTTP status of the answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::NotAnObject | Self::PrimitiveList | Self::RetainKeys | Self::ElementOrder => 400,
            Self::ListOfLists => 422,
            Self::Other(_) => 500,
        }
    }

    fn wrong_type(wanted: &str, found: &Doc) -> Self {
        Self::Other(format!(
            "expected a {wanted}, but received a {}",
            text::type_of(found)
        ))
    }

    fn unknown_directive(directive: &Doc, object: &Object) -> Self {
        let (directive, object) = (text::word(directive), text::object(object));
        Self::Other(format!("unknown patch type: {directive} in map: {object}"))
    }
}

/// Applies a strategic merge patch to an object of a built-in kind.
pub fn strategic_merge(
    kind: &'static Type,
    original: &Doc,
    patch: &Doc,
) -> Result<Doc, StrategicError> {
    let (Some(original), Some(patch)) = (original.as_object(), patch.as_object()) else {
        return Err(StrategicError::NotAnObject);
    };
    merge_objects(Schema::Type(kind), original, patch)
}

fn merge_objects(schema: Schema, original: &Object, patch: &Object) -> Result<Doc, StrategicError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => Ok(patch.without(PATCH).into()),
            Some("delete") => Ok(Doc::empty_object()),
            _ => Err(StrategicError::unknown_directive(directive, patch)),
        };
    }
    let mut merged = to_fields(original);
    let mut patch = to_fields(patch);
    if let Some(keys) = patch.remove(RETAIN_KEYS) {
        retain(&mut merged, &patch, &keys)?;
    }
    order::apply(schema, &mut merged, &mut patch)?;
    let (deletions, changes): (Vec<_>, Vec<_>) = patch
        .into_iter()
        .partition(|(key, _)| key.starts_with(DELETE_FROM_LIST));
    for (key, value) in changes {
        merge_field(schema, &mut merged, &key, &value, false)?;
    }
    for (key, value) in deletions {
        let key = target(&key, DELETE_FROM_LIST).ok_or(StrategicError::PrimitiveList)?;
        merge_field(schema, &mut merged, key, &value, true)?;
    }
    Ok(merged.into_iter().collect::<Object>().into())
}

fn to_fields(object: &Object) -> Fields {
    let fields = object.iter();
    fields
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The field that a directive such as `$setElementOrder/containers` is about.
fn target<'a>(key: &'a str, directive: &str) -> Option<&'a str> {
    key.strip_prefix(directive)?.strip_prefix('/')
}

/// Drops the fields that the patch does not retain. The patch may set no others.
fn retain(merged: &mut Fields, patch: &Fields, keys: &Doc) -> Result<(), StrategicError> {
    let Kind::Array(keys) = keys.kind() else {
        return Err(StrategicError::RetainKeys);
    };
    let keys: std::collections::HashSet<&str> = keys.iter().filter_map(Doc::as_str).collect();
    let is_directive =
        |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
    let is_sound = |(key, value): (&Str, &Doc)| {
        value.is_null() || is_directive(key) || keys.contains(key.as_str())
    };
    if !patch.iter().all(is_sound) {
        return Err(StrategicError::RetainKeys);
    }
    merged.retain(|key, _| keys.contains(key.as_str()));
    Ok(())
}

fn merge_field(
    schema: Schema,
    merged: &mut Fields,
    key: &str,
    patch: &Doc,
    is_deletion: bool,
) -> Result<(), StrategicError> {
    if patch.is_null() {
        merged.remove(key);
        return Ok(());
    }
    let value = match (merged.get(key).map(Doc::kind), patch.kind()) {
        (Some(Kind::Object(original)), Kind::Object(patch)) => {
            let field = schema.field(key)?;
            if field.strategy().replace {
                Some(patch.clone().into())
            } else {
                Some(merge_objects(Schema::of(field.shape()), original, patch)?)
            }
        }
        (Some(Kind::Array(original)), Kind::Array(patch)) => {
            let merge = list::Merge::of(schema, key)?;
            Some(merge.lists(original, patch, is_deletion)?.list.into())
        }
        _ if is_deletion => return Ok(()),
        _ => without_directives(patch, true),
    };
    match value {
        Some(value) => drop(merged.insert(Str::new(key), value)),
        None => drop(merged.remove(key)),
    }
    Ok(())
}

/// A value of the patch that has nothing to be merged with: objects that carry `$patch` are
/// dropped, and so are fields that are `null`, if they would be deletions.
fn without_directives(value: &Doc, without_nulls: bool) -> Option<Doc> {
    match value.kind() {
        Kind::Object(object) if object.contains_key(PATCH) => None,
        Kind::Object(object) => {
            let kept = object.iter().filter_map(|(key, value)| {
                if without_nulls && value.is_null() {
                    return None;
                }
                Some((key.clone(), without_directives(value, without_nulls)?))
            });
            Some(kept.collect::<Object>().into())
        }
        Kind::Array(items) => {
            let kept = items
                .iter()
                .filter_map(|item| without_directives(item, without_nulls));
            Some(kept.collect::<Vec<_>>().into())
        }
        _ => Some(value.clone()),
    }
}

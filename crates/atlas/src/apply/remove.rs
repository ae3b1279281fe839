//! An object without some of its fields.

use windlass_core::{Doc, Kind, Object};

use super::element::PathElement;
use super::schema::{ListKind, Schema, Structure, step_of};
use super::set::FieldSet;

/// The value without the fields of a set. As upstream has it, what is emptied without being in the
/// set itself is `null` afterwards: it has lost its inside, but was not removed.
pub(super) fn remove<S: Schema>(schema: S, value: &Doc, gone: &FieldSet) -> Doc {
    match (schema.structure(Some(value)), value.kind()) {
        (Structure::Map, Kind::Object(object)) => {
            let left = object.iter().filter_map(|(key, value)| {
                let step = PathElement::Field(key.clone());
                let value = remove_at(schema.field(key), value, gone, &step)?;
                Some((key.clone(), value))
            });
            let left: Object = left.collect();
            if left.is_empty() {
                Doc::NULL
            } else {
                left.into()
            }
        }
        (Structure::List(kind @ (ListKind::Set | ListKind::Map(_))), Kind::Array(items)) => {
            let left = items
                .iter()
                .filter_map(|item| match step_of(schema, kind, item) {
                    Ok(step) => remove_at(schema.item(), item, gone, &step),
                    Err(_) => Some(item.clone()),
                });
            let left: Vec<Doc> = left.collect();
            if left.is_empty() {
                Doc::NULL
            } else {
                left.into()
            }
        }
        (Structure::Scalar, _) => value.clone(),
        _ => Doc::NULL,
    }
}

/// The value at a path element without the removed fields.
fn remove_at<S: Schema>(
    schema: Option<S>,
    value: &Doc,
    gone: &FieldSet,
    step: &PathElement,
) -> Option<Doc> {
    if gone.members.contains(step) {
        return None;
    }
    Some(match (gone.children.get(step), schema) {
        (Some(gone), Some(schema)) => remove(schema, value, gone),
        _ => value.clone(),
    })
}

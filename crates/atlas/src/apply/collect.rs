//! The fields that an object has.

use std::collections::BTreeSet;

use windlass_core::{Doc, Kind};

use super::element::PathElement;
use super::schema::{ListKind, Schema, Structure, step_of};
use super::set::FieldSet;

/// The set of all fields of a value.
pub(super) fn fields_of<S: Schema>(schema: S, value: &Doc) -> FieldSet {
    let mut set = FieldSet::new();
    collect(schema, value, &mut Vec::new(), &mut set);
    set
}

fn collect<S: Schema>(schema: S, value: &Doc, path: &mut Vec<PathElement>, set: &mut FieldSet) {
    match (schema.structure(Some(value)), value.kind()) {
        (Structure::Scalar | Structure::AtomicMap | Structure::List(ListKind::Atomic), _) => {
            set.insert(path);
        }
        (Structure::Map, Kind::Object(object)) => {
            for (key, value) in object.iter() {
                path.push(PathElement::Field(key.clone()));
                if let Some(inner) = schema.field(key) {
                    collect(inner, value, path, set);
                }
                let is_empty = match value.kind() {
                    Kind::Null => true,
                    Kind::Object(object) => object.is_empty(),
                    _ => false,
                };
                if is_empty || !schema.is_declared(key) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        (Structure::List(kind), Kind::Array(items)) => {
            collect_items(schema, kind, items, path, set);
        }
        _ => {}
    }
}

/// Items that are there twice are owned as a whole.
fn collect_items<S: Schema>(
    schema: S,
    kind: ListKind<'_>,
    items: &[Doc],
    path: &mut Vec<PathElement>,
    set: &mut FieldSet,
) {
    let steps: Vec<Option<PathElement>> = items
        .iter()
        .map(|item| step_of(schema, kind, item).ok())
        .collect();
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for step in steps.iter().flatten() {
        if !seen.insert(step) {
            twice.insert(step);
        }
    }
    for (step, item) in steps.iter().zip(items) {
        let Some(step) = step else {
            continue;
        };
        path.push(step.clone());
        if let (Some(inner), false) = (schema.item(), twice.contains(step)) {
            collect(inner, item, path, set);
        }
        set.insert(path);
        path.pop();
    }
}

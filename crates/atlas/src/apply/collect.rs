//! The fields that an object has.

use std::collections::BTreeSet;

use windlass_core::{Doc, Kind};

use super::element::PathElement;
use super::schema::{ListKind, Schema, Structure, step_of};
use super::set::FieldSet;

/// The set of all fields of a value.
pub(super) fn fields_of<S: Schema>(schema: S, value: &Doc) -> FieldSet {
    let mut set = FieldSet::new();
    collect(schema, value, &mut set);
    set
}

/// Adds the fields below a value; whether the value itself is one.
fn collect<S: Schema>(schema: S, value: &Doc, below: &mut FieldSet) -> bool {
    match (schema.structure(Some(value)), value.kind()) {
        (Structure::Scalar | Structure::AtomicMap | Structure::List(ListKind::Atomic), _) => {
            return true;
        }
        (Structure::Map, Kind::Object(object)) => {
            for (key, value) in object.iter() {
                let mut inside = FieldSet::new();
                let inner = schema.field(key);
                let is_field = inner.is_some_and(|inner| collect(inner, value, &mut inside));
                let is_empty = match value.kind() {
                    Kind::Null => true,
                    Kind::Object(object) => object.is_empty(),
                    _ => false,
                };
                let is_member = is_field || is_empty || !schema.is_declared(key);
                below.attach(PathElement::Field(key.clone()), is_member, inside);
            }
        }
        (Structure::List(kind), Kind::Array(items)) => {
            collect_items(schema, kind, items, below);
        }
        _ => {}
    }
    false
}

/// Items that are there twice are owned as a whole.
fn collect_items<S: Schema>(schema: S, kind: ListKind<'_>, items: &[Doc], below: &mut FieldSet) {
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
        let mut inside = FieldSet::new();
        if let (Some(inner), false) = (schema.item(), twice.contains(step)) {
            collect(inner, item, &mut inside);
        }
        below.attach(step.clone(), true, inside);
    }
}

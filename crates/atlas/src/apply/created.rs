//! The field set of a new object, as `FieldsV1`.
//!
//! Nearly all of a new object is new as a whole, and needs no comparison: its fields become the
//! tree of `FieldsV1` in one walk.

use std::cell::RefCell;

use windlass_core::{Doc, Memo, Object, Str};

use super::compare::is_same;
use super::element::PathElement;
use super::encode::{SELF, encode_step, joined};
use super::schema::{ListKind, Schema, Structure, step_of};

/// The number of field names whose path elements a thread memoizes; far more than the kinds of a
/// cluster have.
const STEPS_LIMIT: usize = 8192;

/// The same of items.
const ITEMS_LIMIT: usize = 1024;

thread_local! {
    /// The steps of fields, by name.
    static STEPS: RefCell<Memo<Str, Str>> = RefCell::new(Memo::new(STEPS_LIMIT));
    /// The nodes of items that have scalar fields only, by the schema and the names of the fields.
    static ITEMS: RefCell<Memo<(usize, usize), (Object, Doc)>> =
        RefCell::new(Memo::new(ITEMS_LIMIT));
}

/// The fields that an object has more than what its creation started from, or differently. `None`
/// where only a comparison can tell.
pub(super) fn tree_of<S: Schema>(schema: S, start: &Doc, new: &Doc) -> Option<Object> {
    changed(schema, start, new).map(|found| found.below)
}

/// The entry of one path element.
struct Found {
    is_member: bool,
    below: Object,
}

impl Found {
    fn nothing() -> Self {
        Self::leaf(false)
    }

    fn leaf(is_member: bool) -> Self {
        Self::inside(is_member, Vec::new())
    }

    fn inside(is_member: bool, fields: Vec<(Str, Doc)>) -> Self {
        let below = Object::new(fields);
        Self { is_member, below }
    }

    /// The node of the path element; `None` if it is not in the set.
    fn node(self) -> Option<Doc> {
        let is_there = self.is_member || !self.below.is_empty();
        is_there.then(|| joined(self.below, self.is_member).into())
    }
}

fn changed<S: Schema>(schema: S, old: &Doc, new: &Doc) -> Option<Found> {
    if old == new {
        return Some(Found::nothing());
    }
    let structure = schema.structure(Some(old));
    if structure != schema.structure(Some(new)) {
        return None;
    }
    let leaf = || Some(Found::leaf(!is_same(old, new)));
    match structure {
        Structure::Map => match (old.as_object(), new.as_object()) {
            (old, None) if old.is_none_or(Object::is_empty) => leaf(),
            (old, Some(new)) if old.is_none_or(Object::is_empty) && new.is_empty() => leaf(),
            (old, Some(new)) => changed_fields(schema, old, new),
            (_, None) => Some(Found::nothing()),
        },
        Structure::List(kind @ (ListKind::Set | ListKind::Map(_))) => {
            if !old.items().is_empty() {
                return None;
            }
            match new.items() {
                [] => leaf(),
                items => Some(Found::inside(false, new_items(schema, kind, items))),
            }
        }
        Structure::Scalar | Structure::AtomicMap | Structure::List(ListKind::Atomic) => leaf(),
    }
}

fn changed_fields<S: Schema>(schema: S, old: Option<&Object>, new: &Object) -> Option<Found> {
    let mut fields = Vec::with_capacity(new.len());
    for (key, value) in new.iter() {
        let Some(inner) = schema.field(key) else {
            continue;
        };
        let node = match old.and_then(|old| old.get(key)) {
            Some(old) => changed(inner, old, value)?.node(),
            None => Some(added(inner, value)),
        };
        fields.extend(node.map(|node| (field_step(key), node)));
    }
    Some(Found::inside(false, fields))
}

/// The node of a value that was not there at all: it and all its parts are members.
fn added<S: Schema>(schema: S, value: &Doc) -> Doc {
    let fields = match schema.structure(Some(value)) {
        Structure::Map => {
            let fields = value.as_object().into_iter().flat_map(Object::iter);
            let fields = fields.filter_map(|(key, value)| {
                Some((field_step(key), added(schema.field(key)?, value)))
            });
            fields.collect()
        }
        Structure::List(kind @ (ListKind::Set | ListKind::Map(_))) => {
            new_items(schema, kind, value.items())
        }
        Structure::Scalar | Structure::AtomicMap | Structure::List(ListKind::Atomic) => {
            return Doc::empty_object();
        }
    };
    member(fields)
}

/// The node of a path element that is a member itself, with the elements below it.
fn member(mut below: Vec<(Str, Doc)>) -> Doc {
    if !below.is_empty() {
        below.push((Str::new(SELF), Doc::empty_object()));
    }
    Object::new(below).into()
}

/// The nodes of items that were not there before. Those that are there twice are owned as a whole.
fn new_items<S: Schema>(schema: S, kind: ListKind<'_>, items: &[Doc]) -> Vec<(Str, Doc)> {
    let Some(inner) = schema.item() else {
        return Vec::new();
    };
    let found = items
        .iter()
        .filter_map(|item| Some((step_of(schema, kind, item).ok()?, item)));
    let mut found: Vec<(PathElement, &Doc)> = found.collect();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    let alike = found.chunk_by(|(a, _), (b, _)| a == b);
    let nodes = alike.map(|alike| match alike {
        [(step, item)] => (encode_step(step), added_item(inner, item)),
        several => (encode_step(&several[0].0), Doc::empty_object()),
    });
    nodes.collect()
}

/// The node of an item that was not there before. Of plain fields it follows from their names, and
/// lists are full of such items.
fn added_item<S: Schema>(schema: S, item: &Doc) -> Doc {
    let plain = item.as_object().filter(|fields| is_plain(fields));
    let Some((fields, place)) = plain.zip(schema.identity()) else {
        return added(schema, item);
    };
    let key = (place, fields.keys().as_ptr().addr());
    if let Some((_, node)) = ITEMS.with_borrow(|items| items.get(&key)) {
        return node;
    }
    let node = added(schema, item);
    // As long as an item with these names is kept, no other names can be where they are.
    ITEMS.with_borrow_mut(|items| items.put(key, (fields.clone(), node.clone())));
    node
}

fn is_plain(fields: &Object) -> bool {
    let is_plain =
        |value: &Doc| !value.is_null() && value.as_object().is_none() && value.as_array().is_none();
    fields.values().iter().all(is_plain)
}

fn field_step(key: &Str) -> Str {
    STEPS.with_borrow_mut(|steps| {
        steps.get(key).unwrap_or_else(|| {
            let step = encode_step(&PathElement::Field(key.clone()));
            steps.put(key.clone(), step.clone());
            step
        })
    })
}

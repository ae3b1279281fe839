//! The comparison of two objects, as field sets.

use std::collections::BTreeMap;

use windlass_core::{Array, Doc, Kind, Object};

use super::element::PathElement;
use super::schema::{ListKind, Schema, Structure, step_of};
use super::set::FieldSet;

/// The fields that differ between an old and a new object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) added: FieldSet,
}

impl Comparison {
    pub(super) fn of<S: Schema>(schema: S, old: &Doc, new: &Doc) -> Self {
        let mut walk = Walk::default();
        walk.values(schema, Some(old), Some(new));
        walk.below
    }

    /// Without what is in a set or below its members.
    pub(super) fn without(self, ignored: &FieldSet) -> Self {
        Self {
            removed: self.removed.difference_below(ignored),
            modified: self.modified.difference_below(ignored),
            added: self.added.difference_below(ignored),
        }
    }
}

/// The result of the walk below one path element, for the element above.
#[derive(Default)]
struct Walk {
    is_removed: bool,
    is_modified: bool,
    is_added: bool,
    below: Comparison,
}

impl Walk {
    /// Looks at what a step leads to.
    fn step(&mut self, step: PathElement, look: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        look(&mut inner);
        let (ours, theirs) = (&mut self.below, inner.below);
        ours.removed
            .attach(step.clone(), inner.is_removed, theirs.removed);
        ours.modified
            .attach(step.clone(), inner.is_modified, theirs.modified);
        ours.added.attach(step, inner.is_added, theirs.added);
    }

    fn values<S: Schema>(&mut self, schema: S, old: Option<&Doc>, new: Option<&Doc>) {
        // Equal values are one node, so this skips all that did not change.
        if old == new {
            return;
        }
        let (before, after) = (schema.structure(old), schema.structure(new));
        let is_leaf = match (old, new) {
            (_, None) => self.handle(schema, before, old, new),
            (Some(_), Some(_)) if before != after => {
                self.handle(schema, before, old, new);
                self.handle(schema, after, old, new)
            }
            _ => self.handle(schema, after, old, new),
        };
        if !is_leaf {
            match (old, new) {
                (None, _) => self.is_added = true,
                (_, None) => self.is_removed = true,
                _ => {}
            }
        }
    }

    /// Compares as one structure; whether that took both values as a whole.
    fn handle<S: Schema>(
        &mut self,
        schema: S,
        structure: Structure<'_>,
        old: Option<&Doc>,
        new: Option<&Doc>,
    ) -> bool {
        match structure {
            Structure::Map => {
                let objects = (old.and_then(Doc::as_object), new.and_then(Doc::as_object));
                let is_empty = |it: Option<&Object>| it.is_none_or(Object::is_empty);
                if is_empty(objects.0) && is_empty(objects.1) {
                    return self.leaf(old, new);
                }
                self.maps(schema, objects.0, objects.1);
                false
            }
            Structure::List(kind @ (ListKind::Set | ListKind::Map(_))) => {
                let lists = (old.and_then(Doc::as_array), new.and_then(Doc::as_array));
                let is_empty = |it: Option<&Array>| it.is_none_or(|it| it.is_empty());
                if is_empty(lists.0) && is_empty(lists.1) {
                    return self.leaf(old, new);
                }
                let items = |it: Option<&Array>| it.map_or(Vec::new(), |it| it.to_vec());
                self.lists(schema, kind, &items(lists.0), &items(lists.1));
                false
            }
            Structure::Scalar | Structure::AtomicMap | Structure::List(ListKind::Atomic) => {
                self.leaf(old, new)
            }
        }
    }

    fn leaf(&mut self, old: Option<&Doc>, new: Option<&Doc>) -> bool {
        match (old, new) {
            (None, _) => self.is_added = true,
            (_, None) => self.is_removed = true,
            (Some(old), Some(new)) if !is_same(old, new) => self.is_modified = true,
            _ => {}
        }
        true
    }

    fn maps<S: Schema>(&mut self, schema: S, old: Option<&Object>, new: Option<&Object>) {
        let keys = |it: Option<&Object>| it.map_or(Vec::new(), |it| it.keys().to_vec());
        let mut all = keys(old);
        all.extend(keys(new));
        all.sort();
        all.dedup();
        for key in all {
            let Some(inner) = schema.field(&key) else {
                continue;
            };
            let (old, new) = (
                old.and_then(|old| old.get(&key)),
                new.and_then(|new| new.get(&key)),
            );
            if old == new {
                continue;
            }
            self.step(PathElement::Field(key), |walk| walk.values(inner, old, new));
        }
    }

    fn lists<S: Schema>(&mut self, schema: S, kind: ListKind<'_>, old: &[Doc], new: &[Doc]) {
        let mut all: BTreeMap<PathElement, (Vec<&Doc>, Vec<&Doc>)> = BTreeMap::new();
        for item in old {
            if let Ok(step) = step_of(schema, kind, item) {
                all.entry(step).or_default().0.push(item);
            }
        }
        for item in new {
            if let Ok(step) = step_of(schema, kind, item) {
                all.entry(step).or_default().1.push(item);
            }
        }
        let Some(inner) = schema.item() else {
            return;
        };
        for (step, (old, new)) in all {
            if old != new {
                self.step(step, |walk| walk.items(inner, &old, &new));
            }
        }
    }

    /// Compares the items of one key, of which there may be several.
    fn items<S: Schema>(&mut self, schema: S, old: &[&Doc], new: &[&Doc]) {
        match (old, new) {
            ([] | [_], [] | [_]) => {
                self.values(schema, old.first().copied(), new.first().copied());
            }
            ([_, _, ..], [_, _, ..]) => {
                if old != new {
                    self.is_modified = true;
                }
            }
            ([_, _, ..], _) => {
                if let Some(new) = new.first() {
                    self.values(schema, None, Some(new));
                }
                self.is_removed = true;
            }
            (_, _) => {
                if let Some(old) = old.first() {
                    self.values(schema, Some(old), None);
                }
                self.is_added = true;
            }
        }
    }
}

/// Equality of values, in which a whole number equals the same float.
pub(super) fn is_same(a: &Doc, b: &Doc) -> bool {
    match (a.kind(), b.kind()) {
        (Kind::Int(_) | Kind::UInt(_), Kind::Float(_))
        | (Kind::Float(_), Kind::Int(_) | Kind::UInt(_)) => a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

//! Merging of lists.

use std::collections::{HashMap, HashSet};

use windlass_core::{Doc, Kind, Object};

use super::schema::Schema;
use super::{PATCH, StrategicError, merge_objects, order, text};
use crate::table::Shape;

/// The merge rules for the lists of one field.
#[derive(Clone, Copy)]
pub(super) struct Merge {
    items: Schema,
    is_merged: bool,
    /// Tells the items apart; `None` for lists of plain values.
    pub(super) key: Option<&'static str>,
}

/// Two lists merged.
pub(super) struct Merged {
    pub(super) list: Vec<Doc>,
    /// The list that upstream, which merges in place, takes for the live one when it sorts the
    /// merged list by the order that the patch sets. New items stand in the slots of deleted ones.
    pub(super) live: Vec<Doc>,
}

impl Merge {
    /// The merge rules for the lists of a field.
    pub(super) fn of(schema: Schema, key: &str) -> Result<Self, StrategicError> {
        let field = schema.field(key)?;
        let items = match field.shape() {
            Shape::List(items) | Shape::WrappedList(items) => items,
            // Upstream takes what a pointer leads to for the items.
            shape if field.is_pointer() => shape,
            _ => {
                return Err(StrategicError::Other(format!(
                    "expected slice or array type, but got: {}",
                    schema.go_kind()
                )));
            }
        };
        Ok(Self {
            items: Schema::of(items),
            is_merged: field.strategy().merge,
            key: field.merge_key(),
        })
    }

    /// The list of both lists; with `is_deletion` the first without what is in the second.
    pub(super) fn lists(
        self,
        original: &[Doc],
        patch: &[Doc],
        is_deletion: bool,
    ) -> Result<Merged, StrategicError> {
        let list = if !self.is_merged && !is_deletion {
            patch.to_vec()
        } else if original.is_empty() && patch.is_empty() {
            Vec::new()
        } else if holds_objects(original, patch)? {
            return self.objects(original, patch);
        } else if is_deletion {
            let gone: HashSet<&Doc> = patch.iter().collect();
            let left = original.iter().filter(|item| !gone.contains(item));
            left.cloned().collect()
        } else {
            let mut seen = HashSet::new();
            let both = original.iter().chain(patch);
            let both = both.filter(|item| seen.insert(*item)).cloned();
            order::arrange(self.key, both.collect(), patch, original)?
        };
        let live = original.to_vec();
        Ok(Merged { list, live })
    }

    fn objects(self, original: &[Doc], patch: &[Doc]) -> Result<Merged, StrategicError> {
        let Some(key) = self.key else {
            return Err(StrategicError::Other(format!(
                "cannot merge lists without merge key for {}",
                self.items.go_kind()
            )));
        };
        let (left, patch, is_replaced) = apply_directives(original, patch, key)?;
        if is_replaced {
            let list = order::arrange(self.key, patch.clone(), &[], &patch)?;
            return Ok(Merged { list, live: left });
        }
        let merged = self.matching(&left, &patch, key)?;
        let live = merged.iter().take(original.len()).cloned().collect();
        let list = order::arrange(self.key, merged, &patch, &left)?;
        Ok(Merged { list, live })
    }

    /// Merges each object of the patch into the first that has the same key, or appends it.
    fn matching(
        self,
        original: &[Doc],
        patch: &[Doc],
        key: &str,
    ) -> Result<Vec<Doc>, StrategicError> {
        let mut merged = original.to_vec();
        let mut positions: HashMap<Doc, usize> = HashMap::with_capacity(merged.len());
        for (at, item) in merged.iter().enumerate() {
            if let Some(name) = item.get(key) {
                positions.entry(name.clone()).or_insert(at);
            }
        }
        for item in patch {
            let (item, name) = keyed(item, key)?;
            match positions.get(name).map(|at| (*at, merged[*at].as_object())) {
                Some((at, Some(found))) => merged[at] = merge_objects(self.items, found, item)?,
                Some((_, None)) => return Err(StrategicError::NotAnObject),
                None => {
                    positions.insert(name.clone(), merged.len());
                    merged.push(item.clone().into());
                }
            }
        }
        Ok(merged)
    }
}

/// An item as an object, and the value of its merge key.
pub(super) fn keyed<'a>(item: &'a Doc, key: &str) -> Result<(&'a Object, &'a Doc), StrategicError> {
    let object = as_object(item)?;
    let name = object.get(key).ok_or_else(|| {
        let object = text::object(object);
        StrategicError::Other(format!(
            "map: {object} does not contain declared merge key: {key}"
        ))
    })?;
    Ok((object, name))
}

pub(super) fn as_object(item: &Doc) -> Result<&Object, StrategicError> {
    item.as_object()
        .ok_or_else(|| StrategicError::wrong_type("map[string]interface {}", item))
}

/// Takes the items with a `$patch` directive out of the patch and does what they say: what is
/// left of the original and of the patch, and whether this replaces that.
fn apply_directives(
    original: &[Doc],
    patch: &[Doc],
    key: &str,
) -> Result<(Vec<Doc>, Vec<Doc>, bool), StrategicError> {
    let (mut kept, mut deleted, mut is_replaced) = (Vec::new(), HashSet::new(), false);
    for item in patch {
        let object = as_object(item)?;
        let Some(directive) = object.get(PATCH) else {
            kept.push(item.clone());
            continue;
        };
        match directive.as_str() {
            Some("delete") => drop(deleted.insert(keyed(item, key)?.1)),
            Some("replace") => is_replaced = true,
            Some("merge") => {
                let fault = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Other(fault.to_owned()));
            }
            _ => return Err(StrategicError::unknown_directive(directive, object)),
        }
    }
    let stays = |item: &&Doc| !item.get(key).is_some_and(|name| deleted.contains(name));
    let left = original.iter().filter(stays).cloned().collect();
    Ok((left, kept, is_replaced))
}

/// Returns true if two lists, which must not both be empty, hold objects. All items must be of one
/// JSON type.
pub(super) fn holds_objects(original: &[Doc], patch: &[Doc]) -> Result<bool, StrategicError> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else {
        let fault = "no elements in any of the given slices";
        return Err(StrategicError::Other(fault.to_owned()));
    };
    if let Kind::Array(_) = first.kind() {
        return Err(StrategicError::ListOfLists);
    }
    let sort = text::type_of(first);
    if first.is_null() || items.any(|item| text::type_of(item) != sort) {
        let (original, patch) = (text::list(original), text::list(patch));
        return Err(StrategicError::Other(format!(
            "list element types are not identical: [{original} {patch}]"
        )));
    }
    Ok(first.as_object().is_some())
}

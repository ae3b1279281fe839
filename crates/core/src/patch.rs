//! JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386) on [`Doc`].

mod chunks;
mod json;
mod tree;

use crate::{Doc, Kind, Object, Str};

pub use json::{COPIED_BYTES_LIMIT, JsonPatch, OPERATIONS_LIMIT, PatchError, PatchErrorKind};

/// Applies a merge patch: objects are merged field by field, `null` removes a field, anything
/// else replaces what was there.
///
/// ```
/// use windlass_core::{doc, merge_patch};
/// let before = doc!({ "spec": { "replicas": 1, "paused": true } });
/// let patch = doc!({ "spec": { "replicas": 3, "paused": null } });
/// assert_eq!(merge_patch(&before, &patch), doc!({ "spec": { "replicas": 3 } }));
/// ```
#[must_use]
pub fn merge_patch(target: &Doc, patch: &Doc) -> Doc {
    let Kind::Object(changes) = patch.kind() else {
        return patch.clone();
    };
    let start = target.as_object().cloned().unwrap_or_else(Object::empty);
    // The object is built once: one copy for each key would be quadratic.
    let change = |(key, change): (&Str, &Doc)| {
        if change.is_null() {
            return (key.clone(), None);
        }
        let value = merge_patch(start.get(key).unwrap_or(&Doc::NULL), change);
        (key.clone(), Some(value))
    };
    let changes = changes.iter().map(change).collect();
    start.with_changes(changes).into()
}

/// The smallest merge patch that turns one document into another.
///
/// Only objects can be patched in part; a field whose new value is `null` cannot be expressed and
/// comes out as its removal.
#[must_use]
pub fn merge_patch_between(before: &Doc, after: &Doc) -> Doc {
    let (Kind::Object(old), Kind::Object(new)) = (before.kind(), after.kind()) else {
        return after.clone();
    };
    let removed = old
        .iter()
        .filter(|(key, _)| !new.contains_key(key))
        .map(|(key, _)| (key.clone(), Doc::NULL));
    let changed = new.iter().filter_map(|(key, value)| match old.get(key) {
        Some(same) if same == value => None,
        Some(other) => Some((key.clone(), merge_patch_between(other, value))),
        None => Some((key.clone(), value.clone())),
    });
    removed.chain(changed).collect::<Object>().into()
}

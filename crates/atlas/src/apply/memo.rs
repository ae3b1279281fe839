//! Memoization of the field sets of new objects.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use windlass_core::{Doc, Object};

use super::set::FieldSet;

/// The number of field sets that are memoized.
pub const CREATIONS_LIMIT: usize = 2048;

/// Remembers the fields of new objects: a thousand pods of one template set the same ones, and
/// their set is worked out once.
///
/// Objects are equal here when they differ in nothing but what no manager owns, such as the name.
#[derive(Default)]
pub struct Creations(Mutex<HashMap<Doc, Doc>>);

impl Creations {
    /// The `FieldsV1` of an object, worked out only if there was no such object before.
    pub(super) fn fields(&self, essence: Doc, work_out: impl FnOnce() -> Doc) -> Doc {
        let known = self.lock().get(&essence).cloned();
        known.unwrap_or_else(|| {
            let fields = work_out();
            let mut known = self.lock();
            // Starting over is cheaper than keeping the order of use.
            if known.len() >= CREATIONS_LIMIT {
                known.clear();
            }
            known.insert(essence, fields.clone());
            fields
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Doc, Doc>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Creations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.lock().len();
        f.debug_struct("Creations").field("known", &count).finish()
    }
}

/// The memoization key of an object: the object without the fields that nobody owns, and of its
/// labels and annotations only the keys. `None` for objects that are not made from templates.
pub(super) fn essence(object: &Doc, never_owned: &[&[&str]], ignored: &FieldSet) -> Option<Doc> {
    let fields = object.as_object().filter(|it| it.get("spec").is_some())?;
    let left = fields.iter().filter(|(key, _)| !ignored.has_field(key));
    let left = left.map(|(key, value)| match value.as_object() {
        Some(metadata) if *key == "metadata" => (key.clone(), owned(metadata, never_owned)),
        Some(spec) if *key == "spec" => (key.clone(), without_texts(spec)),
        _ => (key.clone(), value.clone()),
    });
    Some(left.collect::<Object>().into())
}

/// Metadata without what nobody owns.
fn owned(metadata: &Object, never_owned: &[&[&str]]) -> Doc {
    let is_unowned = |name: &str| {
        let is_it = |path: &&[&str]| matches!(path, ["metadata", last] if *last == name);
        never_owned.iter().any(is_it)
    };
    let left = metadata.iter().filter(|(key, _)| !is_unowned(key));
    let left = left.map(|(key, value)| match value.as_object() {
        Some(map) if *key == "labels" || *key == "annotations" => {
            let keys = map.keys().iter().cloned().map(Doc::from);
            (key.clone(), keys.collect::<Vec<Doc>>().into())
        }
        _ => (key.clone(), value.clone()),
    });
    left.collect::<Object>().into()
}

/// A spec with every text replaced by `true`: the owner of a text does not depend on the text. Pods
/// of one template thus share a key although each is on another node.
fn without_texts(spec: &Object) -> Doc {
    let alike = |value: &Doc| match value.as_str() {
        Some(text) if !text.is_empty() => Doc::from(true),
        _ => value.clone(),
    };
    let fields = spec.iter().map(|(key, value)| (key.clone(), alike(value)));
    fields.collect::<Object>().into()
}

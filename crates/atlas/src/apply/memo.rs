//! What new objects set, remembered.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use windlass_core::{Doc, Object};

use super::set::FieldSet;

/// How many sorts of new objects are remembered.
pub const CREATIONS_LIMIT: usize = 1024;

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

/// An object without what nobody owns: what its field set follows from.
pub(super) fn essence(object: &Doc, never_owned: &[&[&str]], ignored: &FieldSet) -> Doc {
    let Some(fields) = object.as_object() else {
        return object.clone();
    };
    let unowned = |name: &str| {
        let is_it = |path: &&&[&str]| matches!(path, ["metadata", last] if *last == name);
        never_owned.iter().find(is_it).is_some()
    };
    let left = fields.iter().filter_map(|(key, value)| {
        let is_ignored = ignored.has_field(key);
        match (is_ignored, value.as_object()) {
            (true, _) => None,
            (false, Some(metadata)) if *key == "metadata" => {
                let owned = metadata.iter().filter(|(key, _)| !unowned(key));
                let owned = owned.map(|(key, value)| (key.clone(), value.clone()));
                Some((key.clone(), owned.collect::<Object>().into()))
            }
            (false, _) => Some((key.clone(), value.clone())),
        }
    });
    left.collect::<Object>().into()
}

//! Editing an object in one go: all changes are made on a copy, which is interned once.

use std::collections::HashMap;

use windlass_core::{Doc, Object, Str};

use crate::field::{FieldErrors, FieldPath};

/// The fields of an object while they are edited.
#[derive(Debug)]
pub struct Fields {
    original: Doc,
    fields: Vec<(Str, Doc)>,
    is_changed: bool,
}

/// An object with defaults filled in; what is not an object is left for validation to refuse.
pub fn edit(doc: &Doc, change: impl FnOnce(&mut Fields)) -> Doc {
    let Some(object) = doc.as_object() else {
        return doc.clone();
    };
    let fields = object
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut edited = Fields {
        original: doc.clone(),
        fields,
        is_changed: false,
    };
    change(&mut edited);
    if edited.is_changed {
        Object::new(edited.fields).into()
    } else {
        edited.original
    }
}

impl Fields {
    /// The value of a field as it is by now.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Doc> {
        self.fields
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    /// Whether a field is there.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| !value.is_null())
    }

    /// The text of a field; empty if there is none.
    pub fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Doc::as_str).unwrap_or_default()
    }

    /// Sets a field.
    pub fn set(&mut self, key: &str, value: impl Into<Doc>) {
        let value = value.into();
        match self.fields.iter_mut().find(|(name, _)| *name == key) {
            Some((_, known)) if *known == value => return,
            Some((_, known)) => *known = value,
            None => self.fields.push((Str::new(key), value)),
        }
        self.is_changed = true;
    }

    /// Removes a field.
    pub fn remove(&mut self, key: &str) {
        let before = self.fields.len();
        self.fields.retain(|(name, _)| *name != key);
        self.is_changed |= self.fields.len() != before;
    }

    /// Sets a field that is absent, or an empty text.
    pub fn default(&mut self, key: &str, value: impl Into<Doc>) {
        if self
            .get(key)
            .is_none_or(|known| known.is_null() || *known == "")
        {
            self.set(key, value);
        }
    }

    /// Sets each of many fields that is absent, or an empty text, at the cost of looking each up.
    pub fn default_each<'a>(&mut self, defaults: impl Iterator<Item = (&'a Str, &'a Doc)>) {
        let places = self.fields.iter().enumerate();
        let mut places: HashMap<Str, usize> =
            places.map(|(at, (key, _))| (key.clone(), at)).collect();
        for (key, value) in defaults {
            let at = *places.entry(key.clone()).or_insert_with(|| {
                self.fields.push((key.clone(), Doc::NULL));
                self.fields.len() - 1
            });
            let known = &mut self.fields[at].1;
            if (known.is_null() || *known == "") && known != value {
                *known = value.clone();
                self.is_changed = true;
            }
        }
    }

    /// Changes the value of a field that is there.
    pub fn inside(&mut self, key: &str, change: impl FnOnce(&Doc) -> Doc) {
        if let Some(value) = self.get(key).filter(|value| !value.is_null()) {
            let changed = change(value);
            self.set(key, changed);
        }
    }

    /// Changes every item of a list that is there.
    pub fn each(&mut self, key: &str, change: impl Fn(&Doc) -> Doc) {
        self.inside(key, |list| match list.as_array() {
            Some(items) => {
                // Items that repeat the one before are changed as that was: a list of a million
                // empty ones would cost far more than its bytes.
                let mut last: Option<(&Doc, Doc)> = None;
                let changed = items.iter().map(|item| match &last {
                    Some((known, changed)) if *known == item => changed.clone(),
                    _ => last.insert((item, change(item))).1.clone(),
                });
                changed.collect::<Vec<_>>().into()
            }
            None => list.clone(),
        });
    }
}

/// An object with its metadata changed.
pub fn edit_metadata(doc: &Doc, edit: impl FnOnce(Object) -> Object) -> Doc {
    let metadata = doc.get("metadata").and_then(Doc::as_object).cloned();
    let metadata = edit(metadata.unwrap_or_else(Object::empty));
    match doc.as_object() {
        Some(object) => object.with("metadata", metadata.into()).into(),
        None => doc.clone(),
    }
}

/// A document with a value set at a pointer, or as it was if the way there is blocked: validation
/// speaks about what stands in the way.
pub fn put(doc: Doc, pointer: &str, value: impl Into<Doc>) -> Doc {
    doc.with(pointer, value).unwrap_or(doc)
}

/// A document without the value at a pointer.
#[must_use]
pub fn cut(doc: Doc, pointer: &str) -> Doc {
    doc.without(pointer).unwrap_or(doc)
}

/// A number that may not be negative.
pub fn not_negative(object: &Doc, pointer: &str, errors: &mut FieldErrors) {
    let value = object.at(pointer);
    if value.as_i64().is_some_and(|value| value < 0) {
        errors.invalid(
            &path_of(pointer),
            value,
            "must be greater than or equal to 0",
        );
    }
}

/// A pointer in the words of messages.
#[must_use]
pub fn path_of(pointer: &str) -> FieldPath {
    FieldPath::new(&pointer.trim_start_matches('/').replace('/', "."))
}

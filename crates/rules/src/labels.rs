//! Validation of labels and annotations.

use windlass_core::{Doc, names};

use crate::field::{FieldErrors, FieldPath};

/// Finds what is wrong with a map of labels.
pub fn labels(path: &FieldPath, labels: &Doc, errors: &mut FieldErrors) {
    for (key, value) in labels.as_object().into_iter().flat_map(|map| map.iter()) {
        errors.invalid_each(path, key, names::qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        errors.invalid_each(path, value, names::label_value(value));
    }
}

/// Finds what is wrong with a map of annotations.
pub fn annotations(path: &FieldPath, annotations: &Doc, errors: &mut FieldErrors) {
    let mut bytes = 0;
    for (key, value) in annotations
        .as_object()
        .into_iter()
        .flat_map(|map| map.iter())
    {
        errors.invalid_each(path, key, names::annotation_key(key));
        bytes += key.len() + value.as_str().unwrap_or_default().len();
    }
    if bytes > names::ANNOTATIONS_BYTES_MAX {
        errors.too_long(path, names::ANNOTATIONS_BYTES_MAX);
    }
}

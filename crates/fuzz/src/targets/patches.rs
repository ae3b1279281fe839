//! Patches of all types. An input is a document and a patch.

use serde_json::Value;
use windlass_atlas::{Atlas, Type, strategic_merge};
use windlass_core::{
    COPIED_BYTES_LIMIT, DEPTH_LIMIT, Doc, Gvk, JsonPatch, OPERATIONS_LIMIT, PatchErrorKind,
    merge_patch as merge, merge_patch_between,
};

use crate::{Outcome, model, parts, work};

fn documents(data: &[u8]) -> Option<(Doc, Doc)> {
    let [target, patch] = parts::<2>(data);
    Some((Doc::parse(target).ok()?, Doc::parse(patch).ok()?))
}

/// A merge patch: the result is that of RFC 7386, applying it twice changes nothing more, and the
/// patch between two documents leads from one to the other.
pub fn merge_patch(data: &[u8]) -> Outcome {
    work::bounded(work::PURE, data.len(), || {
        let Some((target, patch)) = documents(data) else {
            return Outcome::Refused;
        };
        let result = merge(&target, &patch);
        let (plain_target, plain_patch) = (model::plain(&target), model::plain(&patch));
        let expected = model::merge_patch(plain_target, &plain_patch);
        assert_eq!(result, model::shared(&expected), "RFC 7386");
        assert_eq!(merge(&result, &patch), result, "twice");
        let between = merge_patch_between(&target, &patch);
        let has_nulls = |value: &Value| match value {
            Value::Object(fields) => fields.values().any(Value::is_null),
            _ => false,
        };
        if !model::any(&plain_patch, &has_nulls) {
            assert_eq!(merge(&target, &between), patch, "the patch between");
        }
        Outcome::Accepted
    })
}

/// A JSON patch: the result is that of RFC 6902, and the copies stay within their limit.
pub fn json_patch(data: &[u8]) -> Outcome {
    work::bounded(work::PURE, data.len(), || {
        let Some((target, operations)) = documents(data) else {
            return Outcome::Refused;
        };
        let result = JsonPatch::from_doc(&operations).and_then(|patch| patch.apply(&target));
        if let Err(error) = &result
            && matches!(
                error.kind,
                PatchErrorKind::CopiesTooMuch | PatchErrorKind::TooManyOperations(_)
            )
        {
            return Outcome::Refused;
        }
        let count = operations.items().len();
        assert!(count <= OPERATIONS_LIMIT);
        // RFC 6901 has no such indexes; upstream takes them for numbers, and so do we in part.
        if operations.items().iter().any(has_padded_index) {
            return Outcome::of(result.is_ok());
        }
        let expected = model::json_patch(model::plain(&target), &model::plain(&operations));
        match (result, expected) {
            (Ok(doc), Some(tree)) => {
                assert_eq!(doc, model::shared(&tree), "RFC 6902");
                let bytes = doc.to_json().len();
                assert!(
                    bytes <= 2 * (data.len() + 16) * 6 + COPIED_BYTES_LIMIT,
                    "{bytes} bytes"
                );
                Outcome::Accepted
            }
            (Ok(doc), None) => panic!("the model refuses what became {doc}"),
            (Err(error), Some(tree)) => {
                assert!(
                    model::depth(&tree) > DEPTH_LIMIT,
                    "the model accepts: {error}"
                );
                Outcome::Refused
            }
            (Err(_), None) => Outcome::Refused,
        }
    })
}

/// Returns true if two items of a list agree in a field, which may be their key.
fn has_twins(value: &Value) -> bool {
    let items = value.as_array().into_iter().flatten();
    let fields = items.filter_map(Value::as_object).flatten();
    let mut seen = std::collections::BTreeSet::new();
    fields
        .into_iter()
        .any(|(key, value)| !seen.insert((key, value.to_string())))
}

/// Returns true if a path of an operation has an index with leading zeros.
fn has_padded_index(operation: &Doc) -> bool {
    let is_padded = |token: &str| {
        token.len() > 1 && token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit())
    };
    let paths = [operation.str_at("/path"), operation.str_at("/from")];
    paths.iter().any(|path| path.split('/').any(is_padded))
}

fn kind(name: &'static str) -> &'static Type {
    Atlas::kind(&Gvk::constant("", "v1", name)).expect("a built-in kind")
}

/// A strategic merge patch of a pod: without lists and directives it is a merge patch, and without
/// directives applying it twice changes nothing more.
pub fn strategic_merge_patch(data: &[u8]) -> Outcome {
    work::bounded(work::PURE, data.len(), || {
        let Some((target, patch)) = documents(data) else {
            return Outcome::Refused;
        };
        let Ok(result) = strategic_merge(kind("Pod"), &target, &patch) else {
            return Outcome::Refused;
        };
        let bytes = result.to_json().len();
        let given = target.to_json().len() + patch.to_json().len();
        assert!(bytes <= given, "{bytes} bytes of {given}");
        let (plain_target, plain_patch) = (model::plain(&target), model::plain(&patch));
        if model::has_directives(&plain_patch) {
            return Outcome::Accepted;
        }
        // A list that is replaced keeps the nulls in it, a list that is new does not.
        let has_null = |value: &Value| value.is_array() && model::any(value, &Value::is_null);
        // A field that is unknown is added as it is, and then it cannot be merged.
        // Of two items with one key upstream changes the first, and then the first again.
        if !model::any(&plain_patch, &has_null)
            && !model::any(&plain_patch, &has_twins)
            && let Ok(twice) = strategic_merge(kind("Pod"), &result, &patch)
        {
            assert_eq!(twice, result, "twice");
        }
        if !model::any(&plain_patch, &Value::is_array) {
            let expected = model::merge_patch(plain_target, &plain_patch);
            assert_eq!(result, model::shared(&expected), "RFC 7386");
        }
        Outcome::Accepted
    })
}

//! Patches. Strategic ones know two lists only: owners by uid, and finalizers as a set.

use windlass_core::{Doc, JsonPatch, merge_patch};

pub(super) fn apply(old: &Doc, patch: &Doc, content_type: &str) -> Result<Doc, String> {
    if content_type.starts_with("application/json-patch") {
        let patch = JsonPatch::from_doc(patch).map_err(|error| error.to_string())?;
        return patch.apply(old).map_err(|error| error.to_string());
    }
    if content_type.starts_with("application/strategic-merge-patch") {
        return Ok(strategic(old, patch));
    }
    Ok(merge_patch(old, patch))
}

const OWNERS: &str = "/metadata/ownerReferences";
const FINALIZERS: &str = "/metadata/finalizers";
const REMOVED_FINALIZERS: &str = "/metadata/$deleteFromPrimitiveList~1finalizers";

fn strategic(old: &Doc, patch: &Doc) -> Doc {
    let (owners, finalizers) = (owners(old, patch), finalizers(old, patch));
    let rest = [OWNERS, FINALIZERS, REMOVED_FINALIZERS]
        .into_iter()
        .fold(patch.clone(), |it, at| it.without(at).unwrap_or(it));
    let merged = merge_patch(old, &rest);
    let merged = set_list(merged, OWNERS, owners);
    set_list(merged, FINALIZERS, finalizers)
}

fn set_list(doc: Doc, pointer: &str, items: Vec<Doc>) -> Doc {
    let edited = if items.is_empty() {
        doc.without(pointer)
    } else {
        doc.with(pointer, items)
    };
    edited.unwrap_or(doc)
}

fn owners(old: &Doc, patch: &Doc) -> Vec<Doc> {
    let mut owners = old.at(OWNERS).items().to_vec();
    for change in patch.at(OWNERS).items() {
        let uid = change.str_at("/uid");
        let at = owners.iter().position(|owner| owner.str_at("/uid") == uid);
        match (at, change.str_at("/$patch") == "delete") {
            (Some(at), true) => drop(owners.remove(at)),
            (Some(at), false) => owners[at] = merge_patch(&owners[at], change),
            (None, true) => {}
            (None, false) => owners.push(change.clone()),
        }
    }
    owners
}

fn finalizers(old: &Doc, patch: &Doc) -> Vec<Doc> {
    let mut finalizers = old.at(FINALIZERS).items().to_vec();
    for added in patch.at(FINALIZERS).items() {
        if !finalizers.contains(added) {
            finalizers.push(added.clone());
        }
    }
    let removed = patch.at(REMOVED_FINALIZERS).items();
    finalizers.retain(|finalizer| !removed.contains(finalizer));
    finalizers
}

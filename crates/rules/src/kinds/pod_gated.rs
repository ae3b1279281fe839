//! What may change about where a pod goes while gates keep it from being placed: it may become
//! choosier.

use windlass_core::Doc;

use crate::edit::{cut, put};
use crate::field::{FieldErrors, FieldPath};

const NODE_AFFINITY: &str = "/affinity/nodeAffinity";
const TERMS: &str = "/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

/// The new spec of a pod with whatever it may change about its node as it was before. Changes that
/// go too far are told of.
pub(super) fn unchanged(new: &Doc, old: &Doc, errors: &mut FieldErrors) -> Doc {
    if old.at("/schedulingGates").items().is_empty() {
        return new.clone();
    }
    let selector = old.at("/nodeSelector");
    check_selector(new.at("/nodeSelector"), selector, errors);
    check_affinity(new.at(NODE_AFFINITY), old.at(NODE_AFFINITY), errors);
    let spec = match selector.is_null() {
        true => cut(new.clone(), "/nodeSelector"),
        false => put(new.clone(), "/nodeSelector", selector),
    };
    with_affinity_of(spec, old)
}

fn with_affinity_of(spec: Doc, old: &Doc) -> Doc {
    let known = old.at(NODE_AFFINITY);
    if !known.is_null() {
        let has_affinity = !spec.at("/affinity").is_null();
        let spec = match has_affinity {
            true => spec,
            false => put(spec, "/affinity", Doc::empty_object()),
        };
        return put(spec, NODE_AFFINITY, known);
    }
    let spec = cut(spec, NODE_AFFINITY);
    let is_bare = |affinity: &Doc| affinity.as_object().is_some_and(|it| it.is_empty());
    match old.at("/affinity").is_null() && is_bare(spec.at("/affinity")) {
        true => cut(spec, "/affinity"),
        false => spec,
    }
}

/// Labels of the node may be added to those that were asked for.
fn check_selector(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    let mut asked = old.as_object().into_iter().flat_map(|pairs| pairs.iter());
    if !asked.all(|(key, value)| new.get(key) == Some(value)) {
        let path = FieldPath::new("spec").child("nodeSelector");
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.invalid(&path, new, detail);
    }
}

/// Each term may ask for more than before; none may come or go.
fn check_affinity(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    let (terms, known) = (new.at(TERMS), old.at(TERMS));
    if known.items().is_empty() {
        return;
    }
    let path = FieldPath::new("spec")
        .child("affinity")
        .child("nodeAffinity")
        .child("requiredDuringSchedulingIgnoredDuringExecution")
        .child("nodeSelectorTerms");
    if terms.items().len() != known.items().len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return errors.invalid(&path, terms, detail);
    }
    let both = terms.items().iter().zip(known.items());
    for (index, (term, known)) in both.enumerate() {
        if !only_adds(term, known) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.invalid(&path.index(index), term, detail);
        }
    }
}

fn only_adds(term: &Doc, known: &Doc) -> bool {
    let lists = ["/matchExpressions", "/matchFields"];
    let is_empty = |term: &Doc| lists.iter().all(|list| term.at(list).items().is_empty());
    if is_empty(known) {
        return is_empty(term);
    }
    let starts = |list: &&str| term.at(list).items().starts_with(known.at(list).items());
    lists.iter().all(starts)
}

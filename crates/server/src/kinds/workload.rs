//! What deployments, replica sets and their like have in common.

use windlass_core::{Doc, LabelSelector, Selector};

use super::fields::not_negative;
use super::pod_spec;
use crate::field::{FieldErrors, FieldPath};

/// Finds what is wrong with replicas, selector and template of a workload.
pub(super) fn validate(object: &Doc, kind: &str, errors: &mut FieldErrors) {
    not_negative(object, "/spec/replicas", errors);
    not_negative(object, "/spec/minReadySeconds", errors);
    not_negative(object, "/spec/revisionHistoryLimit", errors);
    let selector = validate_selector(object.at("/spec/selector"), kind, errors);
    let path = FieldPath::new("spec").child("template");
    let template = object.at("/spec/template");
    if let Some(selector) = selector
        && !selector.matches(&template.meta().labels())
    {
        let labels = template.at("/metadata/labels");
        let detail = "`selector` does not match template `labels`";
        errors.invalid(&path.child("metadata").child("labels"), labels, detail);
    }
    pod_spec::validate_template(template, &path, errors);
    let policy = template.str_at("/spec/restartPolicy");
    if !policy.is_empty() && policy != "Always" {
        errors.not_supported(&path.child("spec").child("restartPolicy"), policy, &["Always"]);
    }
    if !template.at("/spec/activeDeadlineSeconds").is_null() {
        let path = path.child("spec").child("activeDeadlineSeconds");
        errors.forbidden(&path, format!("activeDeadlineSeconds in {kind} is not Supported"));
    }
}

/// The compiled selector of a workload, unless it is missing or wrong.
fn validate_selector(selector: &Doc, kind: &str, errors: &mut FieldErrors) -> Option<Selector> {
    let path = FieldPath::new("spec").child("selector");
    if selector.is_null() {
        errors.required(&path, "");
        return None;
    }
    let parsed = selector.decode::<LabelSelector>();
    let compiled = parsed.map_err(|error| error.to_string()).and_then(|parsed| {
        Selector::try_from(&parsed).map_err(|error| error.to_string())
    });
    match compiled {
        Err(error) => {
            errors.invalid(&path, selector, error);
            None
        }
        Ok(compiled) if compiled.is_everything() => {
            let detail = format!("empty selector is invalid for {}", kind.to_ascii_lowercase());
            errors.invalid(&path, selector, detail);
            None
        }
        Ok(compiled) => Some(compiled),
    }
}

/// Finds a changed selector.
pub(super) fn selector_is_immutable(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    let path = FieldPath::new("spec").child("selector");
    errors.immutable(&path, new.at("/spec/selector"), old.at("/spec/selector"));
}

/// Finds counts in a status that cannot be: negative, or one that another one bounds.
pub(super) fn validate_counts(
    object: &Doc,
    counts: &[&str],
    bounds: &[(&str, &str)],
    errors: &mut FieldErrors,
) {
    for key in counts {
        not_negative(object, &format!("/status/{key}"), errors);
    }
    let count = |key: &str| object.at(&format!("/status/{key}")).as_i64().unwrap_or(0);
    for (small, large) in bounds {
        if count(small) > count(large) {
            let path = FieldPath::new("status").child(small);
            errors.invalid(&path, count(small), format!("cannot be greater than status.{large}"));
        }
    }
}

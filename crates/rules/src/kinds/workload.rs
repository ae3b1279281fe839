//! What deployments, replica sets and their like have in common.

use windlass_core::{Doc, LabelSelector, Selector};

use super::{pod_spec, pod_terms};
use crate::edit::{edit, not_negative};
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// Hooks of pod templates that stand alone.
#[derive(Debug)]
pub struct PodTemplates;

impl Hooks for PodTemplates {
    fn default(&self, template: Doc) -> Doc {
        edit(&template, pod_spec::default_template)
    }
}

/// Finds what is wrong with replicas, selector and template of a workload.
pub(super) fn validate(object: &Doc, kind: &str, errors: &mut FieldErrors) {
    not_negative(object, "/spec/replicas", errors);
    not_negative(object, "/spec/minReadySeconds", errors);
    not_negative(object, "/spec/revisionHistoryLimit", errors);
    validate_pods(object, kind, errors);
}

/// Finds what is wrong with selector and template of a workload.
pub(super) fn validate_pods(object: &Doc, kind: &str, errors: &mut FieldErrors) {
    let selector = validate_selector(object.at("/spec/selector"), kind, errors);
    let path = FieldPath::new("spec").child("template");
    let template = object.at("/spec/template");
    let Some(selector) = selector else {
        // Upstream looks no further, except at daemon sets.
        if kind == "DaemonSet" {
            pod_spec::validate_template(template, &path, errors);
        }
        return;
    };
    if !selector.matches(&template.meta().labels()) {
        let labels = template.at("/metadata/labels");
        let detail = "`selector` does not match template `labels`";
        errors.invalid(&path.child("metadata").child("labels"), labels, detail);
    }
    pod_spec::validate_template(template, &path, errors);
    let policy = template.str_at("/spec/restartPolicy");
    if !policy.is_empty() && policy != "Always" {
        errors.not_supported(
            &path.child("spec").child("restartPolicy"),
            policy,
            &["Always"],
        );
    }
    if !template.at("/spec/activeDeadlineSeconds").is_null() {
        let path = path.child("spec").child("activeDeadlineSeconds");
        let kind = match kind {
            "StatefulSet" | "DaemonSet" => kind,
            _ => "ReplicaSet",
        };
        errors.forbidden(
            &path,
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        );
    }
}

/// The compiled selector of a workload, unless it is wrong.
fn validate_selector(selector: &Doc, kind: &str, errors: &mut FieldErrors) -> Option<Selector> {
    let path = FieldPath::new("spec").child("selector");
    if selector.is_null() {
        // Upstream does not ask daemon sets for one.
        if kind != "DaemonSet" {
            errors.required(&path, "");
        }
        // What selects nothing does not select the template either.
        return Some(Selector::nothing());
    }
    pod_terms::validate_selector(Some(selector), &path, errors);
    let parsed = selector.decode::<LabelSelector>();
    let compiled = parsed
        .map_err(drop)
        .and_then(|parsed| Selector::try_from(&parsed).map_err(drop));
    match compiled {
        Err(_) => {
            let detail = match kind {
                "DaemonSet" => return None,
                "StatefulSet" => "",
                _ => "invalid label selector",
            };
            errors.invalid_shown(&path, show_selector(selector), detail);
            None
        }
        Ok(compiled) if compiled.is_everything() => {
            let detail = format!(
                "empty selector is invalid for {}",
                kind.to_ascii_lowercase()
            );
            errors.invalid(&path, selector, detail);
            Some(compiled)
        }
        Ok(compiled) => Some(compiled),
    }
}

/// A selector as messages show it, labels first.
pub(super) fn show_selector(selector: &Doc) -> String {
    let fields = ["matchLabels", "matchExpressions"];
    let given = fields.iter().filter_map(|key| {
        let value = selector.get(key).filter(|value| !value.is_null())?;
        Some(format!("\"{key}\":{value}"))
    });
    format!("{{{}}}", given.collect::<Vec<_>>().join(","))
}

/// Finds an expression of a selector whose operator is unknown, or goes ill with its values.
pub(super) fn validate_operator(expression: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let values = expression.at("/values").items();
    match expression.str_at("/operator") {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.required(&path.child("values"), detail);
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.forbidden(&path.child("values"), detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let detail = "not a valid selector operator";
            errors.invalid(&path.child("operator"), other, detail);
        }
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
            // Upstream leaves out the parent in this one.
            let named = match *large {
                "readyReplicas" => large.to_string(),
                _ => format!("status.{large}"),
            };
            errors.invalid(
                &path,
                count(small),
                format!("cannot be greater than {named}"),
            );
        }
    }
}

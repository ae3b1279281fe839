//! Which nodes a pod demands and prefers, and which taints of them it tolerates.

use windlass_core::{Doc, names};

use crate::field::{FieldErrors, FieldPath};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// The one field of nodes that terms may ask for.
const NODE_NAME: &str = "metadata.name";
const NO_EXECUTE: &str = "NoExecute";
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", NO_EXECUTE];
const OPERATORS: &[&str] = &["Equal", "Exists"];
/// Upstream names the comparing operators when one of them is used, though it serves none.
const OPERATORS_WITH_COMPARISON: &[&str] = &["Equal", "Exists", "Lt", "Gt"];

/// Whether the values of labels are checked. Wishes may name values that no label can have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Checked,
    Unchecked,
}

/// Finds what is wrong with the affinity of a pod to nodes.
pub(super) fn validate_affinity(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let affinity = spec.at("/affinity/nodeAffinity");
    let path = path.child("affinity").child("nodeAffinity");
    if let Some(required) = affinity.get(REQUIRED).filter(|it| !it.is_null()) {
        let path = path.child(REQUIRED).child("nodeSelectorTerms");
        let terms = required.at("/nodeSelectorTerms").items();
        if terms.is_empty() {
            errors.required(&path, "must have at least one node selector term");
        }
        for (index, term) in terms.iter().enumerate() {
            validate_term(term, Values::Checked, &path.index(index), errors);
        }
    }
    let wishes = affinity.get(PREFERRED).map(Doc::items).unwrap_or_default();
    for (index, wish) in wishes.iter().enumerate() {
        let path = path.child(PREFERRED).index(index);
        super::pod_terms::validate_weight(wish, &path, errors);
        let term = wish.at("/preference");
        validate_term(term, Values::Unchecked, &path.child("preference"), errors);
    }
}

fn validate_term(term: &Doc, values: Values, path: &FieldPath, errors: &mut FieldErrors) {
    for (index, expression) in term.at("/matchExpressions").items().iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        validate_expression(expression, values, &path, errors);
    }
    for (index, field) in term.at("/matchFields").items().iter().enumerate() {
        validate_field(field, &path.child("matchFields").index(index), errors);
    }
}

fn validate_expression(
    expression: &Doc,
    values: Values,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let given = expression.at("/values").items();
    match expression.str_at("/operator") {
        "Gt" | "Lt" if given.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.required(&path.child("values"), detail);
        }
        "Gt" | "Lt" => {}
        _ => super::workload::validate_operator(expression, path, errors),
    }
    let key = expression.str_at("/key");
    errors.invalid_each(&path.child("key"), key, names::qualified_name(key));
    if values == Values::Checked {
        for (index, value) in given.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            let path = path.child("values").index(index);
            errors.invalid_each(&path, value, names::label_value(value));
        }
    }
}

/// A term asks for one node by its name, or for any other one.
fn validate_field(field: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let values = field.at("/values").items();
    match field.str_at("/operator") {
        "In" | "NotIn" if values.len() != 1 => {
            let detail =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.required(&path.child("values"), detail);
        }
        "In" | "NotIn" => {}
        other => {
            let detail = "not a valid selector operator";
            errors.invalid(&path.child("operator"), other, detail);
        }
    }
    let key = field.str_at("/key");
    if key != NODE_NAME {
        let detail = "not a valid field selector key";
        return errors.invalid(&path.child("key"), key, detail);
    }
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        let path = path.child("values").index(index);
        errors.invalid_each(&path, value, names::dns1123_subdomain(value));
    }
}

/// Finds what is wrong with a list of tolerations.
pub(super) fn validate_tolerations(list: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for (index, toleration) in list.items().iter().enumerate() {
        validate_toleration(toleration, &path.index(index), errors);
    }
}

fn validate_toleration(toleration: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let text = |key: &str| {
        toleration
            .get(key)
            .and_then(Doc::as_str)
            .unwrap_or_default()
    };
    let (key, operator, value, effect) =
        (text("key"), text("operator"), text("value"), text("effect"));
    if !key.is_empty() {
        errors.invalid_each(&path.child("key"), key, names::qualified_name(key));
    } else if operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values \
                      and all keys\"";
        errors.invalid(&path.child("operator"), operator, detail);
    }
    if !toleration.at("/tolerationSeconds").is_null() && effect != NO_EXECUTE {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.invalid(&path.child("effect"), effect, detail);
    }
    let operator_path = path.child("operator");
    match operator {
        "Equal" | "" => {
            let problems = names::label_value(value);
            if !problems.is_empty() {
                errors.invalid(&operator_path, value, problems.join(";"));
            }
        }
        "Exists" if value.is_empty() => {}
        "Exists" => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.invalid(&operator_path, value, detail);
        }
        "Lt" | "Gt" => errors.not_supported(&operator_path, operator, OPERATORS_WITH_COMPARISON),
        _ => errors.not_supported(&operator_path, operator, OPERATORS),
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect) {
        errors.not_supported(&path.child("effect"), effect, EFFECTS);
    }
}

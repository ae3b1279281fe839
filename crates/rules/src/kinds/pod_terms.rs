//! What pods demand of the pods around them: affinity, anti-affinity, and even spreading.
//!
//! A term may name labels by their keys alone, and then means the values that its pod has when it
//! is made: they become expressions of the term's selector. Templates keep their terms as they
//! are.

use std::collections::{HashMap, HashSet};

use windlass_core::{Doc, doc, names};

use crate::edit::{Fields, edit};
use crate::field::{FieldErrors, FieldPath};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const AFFINITIES: [&str; 2] = ["podAffinity", "podAntiAffinity"];
const CONSTRAINTS: &str = "topologySpreadConstraints";
const MATCHED: &str = "matchLabelKeys";
const MISMATCHED: &str = "mismatchLabelKeys";
const DO_NOT_SCHEDULE: &str = "DoNotSchedule";
const ACTIONS: &[&str] = &[DO_NOT_SCHEDULE, "ScheduleAnyway"];
const NODE_POLICIES: &[&str] = &["Honor", "Ignore"];

/// A new pod with the labels in its terms that they name by key.
pub(super) fn merge(pod: Doc) -> Doc {
    let spec = pod.at("/spec");
    let has_terms = [CONSTRAINTS, "affinity"]
        .iter()
        .any(|key| spec.get(key).is_some_and(|given| !given.is_null()));
    if !has_terms {
        return pod;
    }
    let labels = pod.at("/metadata/labels");
    edit(&pod, |pod| {
        pod.inside("spec", |spec| edit(spec, |spec| merge_spec(spec, labels)));
    })
}

fn merge_spec(spec: &mut Fields, labels: &Doc) {
    let term = |term: &Doc| edit(term, |term| merge_term(term, labels));
    spec.inside("affinity", |affinity| {
        edit(affinity, |affinity| {
            for sort in AFFINITIES {
                affinity.inside(sort, |affinity| {
                    edit(affinity, |affinity| {
                        affinity.each(REQUIRED, term);
                        affinity.each(PREFERRED, |wish| {
                            edit(wish, |wish| wish.inside("podAffinityTerm", term))
                        });
                    })
                });
            }
        })
    });
    spec.each(CONSTRAINTS, term);
}

/// Constraints have no keys whose values must differ.
fn merge_term(term: &mut Fields, labels: &Doc) {
    let mut merged = Vec::new();
    for (list, operator) in [(MATCHED, "In"), (MISMATCHED, "NotIn")] {
        let keys = term.get(list).map(Doc::items).unwrap_or_default();
        for key in keys.iter().filter_map(Doc::as_str) {
            if let Some(value) = labels.get(key) {
                merged.push(doc!({ "key": key, "operator": operator, "values": [value] }));
            }
        }
    }
    if merged.is_empty() {
        return;
    }
    term.inside("labelSelector", |selector| {
        edit(selector, |selector| {
            let given = selector.get("matchExpressions").map(Doc::items);
            let mut all = given.unwrap_or_default().to_vec();
            all.append(&mut merged);
            selector.set("matchExpressions", all);
        })
    });
}

/// Finds what is wrong with the affinity of a pod to others.
pub(super) fn validate_affinity(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let affinity = spec.at("/affinity");
    for sort in AFFINITIES {
        let Some(given) = affinity.get(sort) else {
            continue;
        };
        let path = path.child("affinity").child(sort);
        let terms = given.get(REQUIRED).map(Doc::items).unwrap_or_default();
        for (index, term) in terms.iter().enumerate() {
            validate_term(term, &path.child(REQUIRED).index(index), errors);
        }
        let wishes = given.get(PREFERRED).map(Doc::items).unwrap_or_default();
        for (index, wish) in wishes.iter().enumerate() {
            let path = path.child(PREFERRED).index(index);
            validate_weight(wish, &path, errors);
            let term = wish.at("/podAffinityTerm");
            validate_term(term, &path.child("podAffinityTerm"), errors);
        }
    }
}

/// Finds a wish that counts for nothing, or for too much.
pub(super) fn validate_weight(wish: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let weight = wish.at("/weight").as_i64().unwrap_or(0);
    if !(1..=100).contains(&weight) {
        let detail = "must be in the range 1-100";
        errors.invalid(&path.child("weight"), weight, detail);
    }
}

fn validate_term(term: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for key in ["labelSelector", "namespaceSelector"] {
        validate_selector(term.get(key), &path.child(key), errors);
    }
    for name in term.at("/namespaces").items() {
        let name = name.as_str().unwrap_or_default();
        errors.invalid_each(&path.child("namespace"), name, names::dns1123_label(name));
    }
    validate_keys(term, path, errors);
    let (key, path) = (term.str_at("/topologyKey"), path.child("topologyKey"));
    if key.is_empty() {
        errors.required(&path, "can not be empty");
    }
    errors.invalid_each(&path, key, names::qualified_name(key));
}

/// Finds what is wrong with how a pod's like shall be spread.
pub(super) fn validate_spread(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let path = path.child(CONSTRAINTS);
    let constraints = spec.get(CONSTRAINTS).map(Doc::items).unwrap_or_default();
    let last = constraints.iter().enumerate();
    let last: HashMap<_, _> = last.map(|(index, it)| (spread_kind(it), index)).collect();
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        let comes_again = last.get(&spread_kind(constraint)) != Some(&index);
        validate_constraint(constraint, &path, errors);
        if comes_again {
            let (topology, action) = spread_kind(constraint);
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.duplicate(&path, format!("{{{topology}, {action}}}"));
        }
        validate_domains(constraint, &path, errors);
        validate_keys(constraint, &path, errors);
        let selector = constraint.get("labelSelector");
        validate_selector(selector, &path.child("labelSelector"), errors);
    }
}

/// What no two constraints have in common.
fn spread_kind(constraint: &Doc) -> (&str, &str) {
    let topology = constraint.str_at("/topologyKey");
    (topology, constraint.str_at("/whenUnsatisfiable"))
}

fn validate_constraint(constraint: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let skew = constraint.at("/maxSkew").as_i64().unwrap_or(0);
    positive(skew, &path.child("maxSkew"), errors);
    if constraint.str_at("/topologyKey").is_empty() {
        errors.required(&path.child("topologyKey"), "can not be empty");
    }
    let action = constraint.str_at("/whenUnsatisfiable");
    if !ACTIONS.contains(&action) {
        errors.not_supported(&path.child("whenUnsatisfiable"), action, ACTIONS);
    }
}

/// Finds what is wrong with the nodes that a constraint counts.
fn validate_domains(constraint: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let action = constraint.str_at("/whenUnsatisfiable");
    if let Some(domains) = constraint.at("/minDomains").as_i64() {
        let path = path.child("minDomains");
        positive(domains, &path, errors);
        if action != DO_NOT_SCHEDULE {
            let detail = format!(
                "can only use minDomains if whenUnsatisfiable={DO_NOT_SCHEDULE}, not {action}"
            );
            errors.invalid(&path, domains, detail);
        }
    }
    for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        let policy = constraint.get(key).and_then(Doc::as_str);
        if let Some(policy) = policy.filter(|policy| !NODE_POLICIES.contains(policy)) {
            errors.not_supported(&path.child(key), policy, NODE_POLICIES);
        }
    }
}

fn positive(value: i64, path: &FieldPath, errors: &mut FieldErrors) {
    if value <= 0 {
        errors.invalid(path, value, "must be greater than zero");
    }
}

/// Finds what is wrong with the labels that a term names by key, after they were merged: a key that
/// comes twice in the selector was there before.
fn validate_keys(term: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let selector = term.get("labelSelector").filter(|given| !given.is_null());
    let keys = |list: &str| -> Vec<&str> {
        let keys = term.get(list).map(Doc::items).unwrap_or_default();
        keys.iter()
            .map(|key| key.as_str().unwrap_or_default())
            .collect()
    };
    let (matched, mismatched) = (keys(MATCHED), keys(MISMATCHED));
    for (list, keys) in [(MATCHED, &matched), (MISMATCHED, &mismatched)] {
        let path = path.child(list);
        if selector.is_none() && !keys.is_empty() {
            errors.forbidden(&path, "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            errors.invalid_each(&path.index(index), key, names::qualified_name(key));
        }
    }
    if let Some(selector) = selector {
        find_duplicates(selector, &matched, path, errors);
    }
    let mismatched: HashSet<&str> = mismatched.into_iter().collect();
    for (index, key) in matched.iter().enumerate() {
        if mismatched.contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.invalid(&path.child(MATCHED).index(index), *key, detail);
        }
    }
}

fn find_duplicates(selector: &Doc, matched: &[&str], path: &FieldPath, errors: &mut FieldErrors) {
    if matched.is_empty() {
        return;
    }
    let labels = selector.at("/matchLabels");
    let expressions = selector.at("/matchExpressions").items();
    let matched = matched.iter().enumerate();
    let matched: HashMap<&str, usize> = matched.map(|(index, key)| (*key, index)).collect();
    let mut seen = HashSet::new();
    for expression in expressions {
        let key = expression.str_at("/key");
        let is_repeated = !seen.insert(key);
        let Some(index) = matched.get(key) else {
            continue;
        };
        if labels.get(key).is_some() || is_repeated {
            let detail = "exists in both matchLabelKeys and labelSelector";
            // Upstream numbers the term here, and not its list of keys.
            errors.invalid(&path.index(*index), key, detail);
        }
    }
}

/// Finds what is wrong with a selector of labels.
pub(super) fn validate_selector(
    selector: Option<&Doc>,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let Some(selector) = selector.filter(|given| !given.is_null()) else {
        return;
    };
    let labels = selector.at("/matchLabels");
    crate::labels::labels(&path.child("matchLabels"), labels, errors);
    let expressions = selector.at("/matchExpressions").items();
    for (index, expression) in expressions.iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        super::workload::validate_operator(expression, &path, errors);
        let key = expression.str_at("/key");
        errors.invalid_each(&path.child("key"), key, names::qualified_name(key));
        for (index, value) in expression.at("/values").items().iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            let path = path.child("values").index(index);
            errors.invalid_each(&path, value, names::label_value(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_without_terms_stay_the_same_object() {
        let pod = doc!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [] } });
        assert_eq!(merge(pod.clone()), pod);
    }

    #[test]
    fn terms_that_are_no_terms_are_left_for_validation() {
        for spec in [
            doc!({ "affinity": "near", "topologySpreadConstraints": "even" }),
            doc!({ "affinity": { "podAffinity": [] }, "topologySpreadConstraints": [1] }),
            doc!({ "topologySpreadConstraints": [{
                "matchLabelKeys": ["a", 1], "labelSelector": 5
            }] }),
        ] {
            let pod = doc!({ "metadata": { "labels": { "a": "b" } }, "spec": (&spec) });
            assert_eq!(merge(pod.clone()), pod);
            let mut errors = FieldErrors::default();
            validate_affinity(&spec, &FieldPath::new("spec"), &mut errors);
            validate_spread(&spec, &FieldPath::new("spec"), &mut errors);
        }
    }
}

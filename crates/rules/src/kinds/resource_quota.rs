//! Resource quotas: their own validity. What they do to others is part of admission.

use std::collections::BTreeSet;

use windlass_core::{Doc, Quantity, names};

use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// Hooks of resource quotas.
#[derive(Debug)]
pub struct ResourceQuotas;

impl Hooks for ResourceQuotas {
    fn validate(&self, quota: &Doc, errors: &mut FieldErrors) {
        let spec = FieldPath::new("spec");
        validate_amounts(quota.at("/spec/hard"), &spec.child("hard"), errors);
        validate_scopes(quota.at("/spec"), &spec.child("scopes"), errors);
        let path = spec.child("scopeSelector").child("matchExpressions");
        validate_selector(quota.at("/spec"), &path, errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let scopes = |quota: &Doc| -> BTreeSet<String> {
            let scopes = quota.at("/spec/scopes").items().iter();
            scopes
                .filter_map(|it| it.as_str().map(str::to_owned))
                .collect()
        };
        if scopes(new) != scopes(old) {
            let path = FieldPath::new("spec").child("scopes");
            errors.invalid(&path, new.at("/spec/scopes"), "field is immutable");
        }
    }

    fn validate_status(&self, new: &Doc, _old: &Doc, errors: &mut FieldErrors) {
        let status = FieldPath::new("status");
        for map in ["hard", "used"] {
            let amounts = new.at("/status").get(map).unwrap_or(&Doc::NULL);
            validate_amounts(amounts, &status.child(map), errors);
        }
    }
}

/// What is counted in whole numbers, with the plain names of objects first.
const OBJECTS: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// What pods use of a node.
const COMPUTE: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

/// What is measured in bytes of disks.
const STORAGE: [&str; 4] = [
    "ephemeral-storage",
    "limits.ephemeral-storage",
    "requests.ephemeral-storage",
    "requests.storage",
];

const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];

/// Scopes that no object can be in at the same time.
const CONFLICTS: [[&str; 2]; 2] = [
    ["BestEffort", "NotBestEffort"],
    ["Terminating", "NotTerminating"],
];

fn is_standard(name: &str) -> bool {
    let pages = name.strip_prefix("requests.").unwrap_or(name);
    OBJECTS.contains(&name)
        || COMPUTE.contains(&name)
        || STORAGE.contains(&name)
        || pages.starts_with("hugepages-")
}

/// Whether there are only whole ones of something: objects, and what users have added.
fn is_whole(name: &str) -> bool {
    let is_added = name.contains('/') && !name.contains("kubernetes.io/");
    OBJECTS.contains(&name) || (is_added && !name.starts_with("requests."))
}

fn validate_amounts(map: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for (name, amount) in map.as_object().into_iter().flat_map(|map| map.iter()) {
        let path = path.key(name);
        validate_name(name, &path, errors);
        let amount: Option<Quantity> = amount.as_str().and_then(|it| it.parse().ok());
        let Some(amount) = amount else {
            continue;
        };
        if amount.is_negative() {
            let detail = "must be greater than or equal to 0";
            errors.invalid(&path, amount.to_string(), detail);
        }
        if is_whole(name) && amount.milli_value() % 1000 != 0 {
            errors.invalid(&path, amount.to_string(), "must be an integer");
        }
    }
}

fn validate_name(name: &str, path: &FieldPath, errors: &mut FieldErrors) {
    let faults = names::qualified_name(name);
    let is_qualified = faults.is_empty();
    errors.invalid_each(path, name, faults);
    if name.contains('/') || is_standard(name) {
        return;
    }
    if is_qualified && name != "storage" {
        let detail = "must be a standard resource type or fully qualified";
        errors.invalid(path, name, detail);
    }
    errors.invalid(path, name, "must be a standard resource for quota");
}

fn is_valid_for(scope: &str, name: &str) -> bool {
    match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        scope if SCOPES.contains(&scope) => name == "pods" || COMPUTE.contains(&name),
        _ => true,
    }
}

/// How many of the limited names a scope cannot be about.
fn unfit_names(spec: &Doc, scope: &str) -> usize {
    let hard = spec.at("/hard").as_object();
    let names = hard.into_iter().flat_map(|hard| hard.keys().iter());
    let is_unfit = |name: &&windlass_core::Str| is_standard(name) && !is_valid_for(scope, name);
    names.filter(is_unfit).count()
}

fn has_conflict(scopes: &BTreeSet<&str>) -> bool {
    let mut conflicts = CONFLICTS.iter();
    conflicts.any(|pair| pair.iter().all(|scope| scopes.contains(scope)))
}

fn validate_scopes(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let scopes = spec.at("/scopes");
    let mut seen = BTreeSet::new();
    for scope in scopes.items().iter().filter_map(Doc::as_str) {
        if !SCOPES.contains(&scope) {
            errors.invalid(path, scopes, "unsupported scope");
        }
        if unfit_names(spec, scope) > 0 {
            errors.invalid(path, scopes, "unsupported scope applied to resource");
        }
        seen.insert(scope);
    }
    if has_conflict(&seen) {
        errors.invalid(path, scopes, "conflicting scopes");
    }
}

fn validate_selector(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let selector = spec.at("/scopeSelector");
    let mut seen = BTreeSet::new();
    for choice in selector.at("/matchExpressions").items() {
        let scope = choice.str_at("/scopeName");
        if !SCOPES.contains(&scope) {
            errors.invalid(&path.child("scopeName"), scope, "unsupported scope");
        }
        if unfit_names(spec, scope) > 0 {
            errors.invalid(path, selector, "unsupported scope applied to resource");
        }
        validate_operator(choice, path, errors);
        seen.insert(scope);
    }
    if has_conflict(&seen) {
        errors.invalid(path, spec.at("/scopes"), "conflicting scopes");
    }
}

fn validate_operator(choice: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let (scope, operator) = (choice.str_at("/scopeName"), choice.str_at("/operator"));
    let has_classes = matches!(scope, "PriorityClass" | "VolumeAttributesClass");
    if SCOPES.contains(&scope) && !has_classes && operator != "Exists" {
        let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                      ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                      ResourceQuotaScopeNotBestEffort or \
                      ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.invalid(&path.child("operator"), operator, detail);
    }
    let values = choice.at("/values");
    match (operator, values.items().is_empty()) {
        ("In" | "NotIn", true) => {
            let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope \
                          selector";
            errors.required(&path.child("values"), detail);
        }
        ("Exists" | "DoesNotExist", false) => {
            let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope \
                          selector";
            errors.invalid(&path.child("values"), values, detail);
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
        (operator, _) => {
            let detail = "not a valid selector operator";
            errors.invalid(&path.child("operator"), operator, detail);
        }
    }
}

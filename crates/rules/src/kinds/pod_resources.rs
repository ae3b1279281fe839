//! What containers request and are limited to.

use std::collections::HashSet;

use windlass_core::{Doc, Quantity, names};

use crate::field::{FieldErrors, FieldPath};

const HUGE_PAGES: &str = "hugepages-";
const COMPUTE: [&str; 2] = ["cpu", "memory"];
/// Names without a domain that are known outside of containers.
const STANDARD: &[&str] = &[
    "configmaps",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
];
const RESIZED: &[&str] = &["cpu", "memory"];
const RESIZE_POLICIES: &[&str] = &["NotRequired", "RestartContainer"];

/// Finds what is wrong with the resources of a container.
pub(super) fn validate(resources: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let mut has_huge_pages = false;
    let mut has_compute = false;
    for key in ["limits", "requests"] {
        let list = resources.get(key).and_then(Doc::as_object);
        for (name, value) in list.into_iter().flat_map(|list| list.iter()) {
            validate_amount(name, value, &path.child(key).key(name), errors);
            if key == "requests" {
                validate_request(name, value, resources, path, errors);
            }
            if name.starts_with(HUGE_PAGES) {
                has_huge_pages = true;
                validate_pages(name, value, &path.child(key).key(name), errors);
            }
            has_compute |= COMPUTE.contains(&&**name);
        }
    }
    if has_huge_pages && !has_compute {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
}

fn validate_amount(name: &str, value: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    validate_name(name, path, errors);
    let Some(amount) = quantity(value) else {
        return errors.invalid(path, value, "must be a quantity");
    };
    if amount.is_negative() {
        errors.invalid(path, value, "must be greater than or equal to 0");
    }
    if is_extended(name) && amount.milli_value() % 1000 != 0 {
        errors.invalid(path, amount.to_string(), "must be an integer");
    }
}

fn validate_name(name: &str, path: &FieldPath, errors: &mut FieldErrors) {
    let problems = names::qualified_name(name);
    let has_domain = name.contains('/');
    let is_of_containers =
        COMPUTE.contains(&name) || name == "ephemeral-storage" || name.starts_with(HUGE_PAGES);
    if problems.is_empty() && !has_domain && !is_of_containers && !STANDARD.contains(&name) {
        let detail = "must be a standard resource type or fully qualified";
        errors.invalid(path, name, detail);
    }
    errors.invalid_each(path, name, problems);
    if !has_domain && !is_of_containers {
        errors.invalid(path, name, "must be a standard resource for containers");
    } else if has_domain && !is_native(name) && !is_extended(name) {
        errors.invalid(path, name, "doesn't follow extended resource name standard");
    }
}

/// Resources of the cluster itself, which are counted and can be requested beyond what is there.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Resources that somebody else defines, and nodes offer by the piece.
fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

fn validate_request(
    name: &str,
    value: &Doc,
    resources: &Doc,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let limit = resources.at("/limits").get(name).and_then(quantity);
    let is_shared = is_native(name) && !name.starts_with(HUGE_PAGES);
    let (Some(amount), list) = (quantity(value), path.child("requests")) else {
        return;
    };
    match limit {
        Some(limit) if amount != limit && !is_shared => {
            let detail = format!("must be equal to {name} limit of {limit}");
            errors.invalid(&list, value, detail);
        }
        Some(limit) if amount > limit => {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            errors.invalid(&list, value, detail);
        }
        None if !is_shared => {
            let detail = "Limit must be set for non overcommitable resources";
            errors.required(&path.child("limits"), detail);
        }
        _ => {}
    }
}

/// Pages are whole.
fn validate_pages(name: &str, value: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let size = name.strip_prefix(HUGE_PAGES).unwrap_or_default();
    let size = size.parse::<Quantity>().map_or(0, |size| size.value());
    let amount = quantity(value);
    let Some(amount) = amount.filter(|amount| size <= 0 || amount.value() % size != 0) else {
        return;
    };
    let detail = format!("{amount} is not positive integer multiple of {name}");
    errors.invalid(path, amount.to_string(), detail);
}

/// Finds what is wrong with what happens to a container whose resources change.
pub(super) fn validate_resizing(
    container: &Doc,
    spec: &Doc,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let path = path.child("resizePolicy");
    let mut seen = HashSet::new();
    for (index, rule) in container.at("/resizePolicy").items().iter().enumerate() {
        let (resource, policy) = (rule.str_at("/resourceName"), rule.str_at("/restartPolicy"));
        if seen.contains(&resource) {
            errors.duplicate(&path.index(index), resource);
        }
        seen.insert(resource);
        for (value, known) in [(resource, RESIZED), (policy, RESIZE_POLICIES)] {
            if value.is_empty() {
                errors.required(&path, "");
            } else if !known.contains(&value) {
                errors.not_supported(&path, value, known);
            }
        }
        if spec.str_at("/restartPolicy") == "Never" && policy != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.invalid(&path, policy, detail);
        }
    }
}

/// A quantity, written as a text or as a number.
fn quantity(value: &Doc) -> Option<Quantity> {
    match value.as_str() {
        Some(text) => text.parse().ok(),
        None => value.to_string().parse().ok(),
    }
}

//! What a claim asks for.

use windlass_core::{Doc, names};

use super::common;
use crate::field::{FieldErrors, FieldPath};

/// Limits of upstream.
const REQUESTS_MAX: usize = 32;
const CONSTRAINTS_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;

pub(super) fn validate_spec(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let (devices, path) = (spec.at("/devices"), path.child("devices"));
    validate_requests(devices, &path.child("requests"), errors);
    let names = request_names(devices);
    let constraints = devices.at("/constraints").items();
    let constraints_path = path.child("constraints");
    if constraints.len() > CONSTRAINTS_MAX {
        errors.too_many(&constraints_path, constraints.len(), CONSTRAINTS_MAX);
    } else {
        for (index, constraint) in constraints.iter().enumerate() {
            validate_constraint(constraint, &constraints_path.index(index), &names, errors);
        }
    }
    common::validate_configs(devices, &path, common::CONFIG_MAX, Some(&names), errors);
}

/// What references may name: requests, and requests with one of their alternatives.
pub(super) fn request_names(devices: &Doc) -> Vec<String> {
    let mut names = Vec::new();
    for request in devices.at("/requests").items() {
        let name = request.str_at("/name");
        names.push(name.to_owned());
        let subs = request.at("/firstAvailable").items().iter();
        names.extend(subs.map(|sub| format!("{name}/{}", sub.str_at("/name"))));
    }
    names
}

fn validate_requests(devices: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let requests = devices.at("/requests").items();
    if requests.len() > REQUESTS_MAX {
        errors.too_many(path, requests.len(), REQUESTS_MAX);
        return;
    }
    for (index, request) in requests.iter().enumerate() {
        let path = path.index(index);
        validate_name(request, &path, &requests[..index], errors);
        validate_request(request, &path, errors);
    }
}

/// The name of a request, which no earlier one has.
fn validate_name(request: &Doc, path: &FieldPath, earlier: &[Doc], errors: &mut FieldErrors) {
    let name = request.str_at("/name");
    if earlier.iter().any(|other| other.str_at("/name") == name) {
        errors.duplicate(path, name);
    }
    match name {
        "" => errors.required(&path.child("name"), ""),
        name => errors.invalid_each(&path.child("name"), name, names::dns1123_label(name)),
    }
}

fn validate_request(request: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let exactly = request.at("/exactly");
    let alternatives = request.at("/firstAvailable").items();
    let detail = "exactly one of `exactly` or `firstAvailable` is required";
    match (exactly.is_null(), alternatives.is_empty()) {
        (true, true) => errors.required(path, detail),
        (false, false) => {
            let detail = format!("{detail}, but multiple fields are set");
            errors.invalid(path, request, detail);
        }
        (false, true) => validate_exact(exactly, &path.child("exactly"), errors),
        (true, false) => {
            let path = path.child("firstAvailable");
            if alternatives.len() > ALTERNATIVES_MAX {
                errors.too_many(&path, alternatives.len(), ALTERNATIVES_MAX);
                return;
            }
            for (index, alternative) in alternatives.iter().enumerate() {
                let path = path.index(index);
                validate_name(alternative, &path, &alternatives[..index], errors);
                validate_exact(alternative, &path, errors);
            }
        }
    }
}

fn validate_exact(request: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let class = path.child("deviceClassName");
    match request.str_at("/deviceClassName") {
        "" => errors.required(&class, ""),
        name => errors.invalid_each(&class, name, names::dns1123_subdomain(name)),
    }
    common::validate_selectors(request, path, errors);
    let count = request.at("/count").as_i64().unwrap_or(0);
    match request.str_at("/allocationMode") {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            errors.invalid(&path.child("count"), count, detail);
        }
        "All" => {}
        "ExactCount" if count <= 0 => {
            errors.invalid(&path.child("count"), count, "must be greater than zero");
        }
        "ExactCount" => {}
        other => {
            errors.not_supported(&path.child("allocationMode"), other, &["All", "ExactCount"]);
        }
    }
    let tolerations = request.at("/tolerations").items().iter().enumerate();
    for (index, toleration) in tolerations {
        let path = path.child("tolerations").index(index);
        validate_toleration(toleration, &path, errors);
    }
}

fn validate_toleration(toleration: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let (key, value) = (toleration.str_at("/key"), toleration.str_at("/value"));
    if !key.is_empty() {
        errors.invalid_each(&path.child("key"), key, names::qualified_name(key));
    }
    match toleration.str_at("/operator") {
        "Exists" if !value.is_empty() => {
            let detail = "must be empty for operator `Exists`";
            errors.invalid(&path.child("value"), value, detail);
        }
        "Exists" => {}
        "Equal" => errors.invalid_each(&path.child("value"), value, names::label_value(value)),
        "" => errors.required(&path.child("operator"), ""),
        other => {
            errors.not_supported(&path.child("operator"), other, &["Equal", "Exists"]);
        }
    }
    match toleration.str_at("/effect") {
        "" | "None" | "NoSchedule" | "NoExecute" => {}
        other => {
            let effects = &["NoExecute", "NoSchedule", "None"];
            errors.not_supported(&path.child("effect"), other, effects);
        }
    }
}

fn validate_constraint(
    constraint: &Doc,
    path: &FieldPath,
    requests: &[String],
    errors: &mut FieldErrors,
) {
    common::validate_references(constraint, path, requests, errors);
    let matched = constraint.str_at("/matchAttribute");
    let distinct = constraint.str_at("/distinctAttribute");
    match (matched, distinct) {
        ("", "") => {
            let detail = "exactly one of `matchAttribute` or `distinctAttribute` is required";
            errors.required(path, detail);
        }
        ("", distinct) => {
            let path = path.child("distinctAttribute");
            common::validate_fully_qualified(distinct, &path, errors);
        }
        (matched, _) => {
            let path = path.child("matchAttribute");
            common::validate_fully_qualified(matched, &path, errors);
        }
    }
}

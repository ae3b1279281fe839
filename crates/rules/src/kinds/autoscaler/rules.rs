//! What an autoscaler must look like, in version 2.

use windlass_core::{Doc, names};

use crate::edit::not_negative;
use crate::field::{FieldErrors, FieldPath};

const SORTS: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];
const WINDOW_SECONDS_LIMIT: i64 = 3600;
const PERIOD_SECONDS_LIMIT: i64 = 1800;

pub(super) fn validate(scaler: &Doc, errors: &mut FieldErrors) {
    let (spec, path) = (scaler.at("/spec"), FieldPath::new("spec"));
    let (least, most) = (spec.at("/minReplicas"), spec.at("/maxReplicas"));
    let (least_path, most_path) = (path.child("minReplicas"), path.child("maxReplicas"));
    let most_number = most.as_i64().unwrap_or(0);
    if least.as_i64().is_some_and(|least| least < 1) {
        errors.invalid(&least_path, least, "must be greater than or equal to 1");
    }
    if most_number == 0 {
        errors.required(&most_path, "must be set and greater than 0");
    } else if most_number < 0 {
        errors.invalid(&most_path, most, "must be greater than or equal to 1");
    }
    if least.as_i64().is_some_and(|least| most_number < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.invalid(&most_path, most_number, detail);
    }
    reference(
        spec.at("/scaleTargetRef"),
        &path.child("scaleTargetRef"),
        errors,
    );
    let metrics = path.child("metrics");
    for (at, one) in spec.at("/metrics").items().iter().enumerate() {
        metric(one, &metrics.index(at), errors);
    }
    let mut sorts = spec
        .at("/metrics")
        .items()
        .iter()
        .map(|one| one.str_at("/type"));
    let is_from_elsewhere = sorts.any(|sort| matches!(sort, "Object" | "External"));
    if *least == 0 && !is_from_elsewhere {
        let detail = "must specify at least one Object or External metric to support scaling to \
                      zero replicas";
        errors.forbidden(&metrics, detail);
    }
    for direction in ["scaleUp", "scaleDown"] {
        if let Some(found) = spec.at("/behavior").get(direction) {
            rules(found, &path.child("behavior").child(direction), errors);
        }
    }
}

pub(super) fn validate_status(scaler: &Doc, errors: &mut FieldErrors) {
    not_negative(scaler, "/status/currentReplicas", errors);
    not_negative(scaler, "/status/desiredReplicas", errors);
}

fn reference(reference: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for key in ["kind", "name"] {
        let field = path.child(key);
        match reference.get(key).and_then(Doc::as_str).unwrap_or_default() {
            "" => errors.required(&field, ""),
            value => errors.invalid_each(&field, value, names::path_segment(value)),
        }
    }
}

fn metric(metric: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let sort = metric.str_at("/type");
    let known = SORTS.iter().find(|(name, _)| *name == sort);
    let Some((_, field)) = known else {
        if sort.is_empty() {
            errors.required(&path.child("type"), "must specify a metric source type");
        }
        let names = SORTS.map(|(name, _)| name);
        errors.not_supported(&path.child("type"), sort, &names);
        return;
    };
    let is_there = |field: &str| metric.get(field).is_some_and(|body| !body.is_null());
    if !is_there(field) {
        let detail = "must populate information for the given metric source";
        errors.required(&path.child(field), detail);
    }
    let others = SORTS
        .iter()
        .filter(|(_, other)| other != field && is_there(other));
    for (_, other) in others {
        let detail = "must populate the given metric source only";
        errors.forbidden(&path.child(other), detail);
    }
    if let Some(body) = metric.get(field).filter(|body| !body.is_null()) {
        source(field, body, &path.child(field), errors);
    }
}

fn source(sort: &str, body: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if sort == "object" {
        let object = path.child("describedObject");
        reference(body.at("/describedObject"), &object, errors);
    }
    match sort {
        "resource" | "containerResource" => {
            if body.str_at("/name").is_empty() {
                errors.required(&path.child("name"), "must specify a resource name");
            }
            if sort == "containerResource" && body.str_at("/container").is_empty() {
                errors.required(&path.child("container"), "must specify a container");
            }
        }
        _ => {
            let name = path.child("metric").child("name");
            match body.str_at("/metric/name") {
                "" => errors.required(&name, "must specify a metric name"),
                value => errors.invalid_each(&name, value, names::path_segment(value)),
            }
        }
    }
    target(sort, body.at("/target"), &path.child("target"), errors);
}

fn target(sort: &str, target: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let form = target.str_at("/type");
    if form.is_empty() {
        errors.required(&path.child("type"), "must specify a metric target type");
    }
    if !matches!(form, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.invalid(&path.child("type"), form, detail);
    }
    for key in ["value", "averageValue"] {
        let value = target.get(key).and_then(Doc::as_str);
        let quantity = value.and_then(|value| value.parse::<windlass_core::Quantity>().ok());
        if quantity.is_some_and(|quantity| quantity <= windlass_core::Quantity::default()) {
            errors.invalid(
                &path.child(key),
                value.unwrap_or_default(),
                "must be positive",
            );
        }
    }
    let utilization = target.at("/averageUtilization");
    if utilization.as_i64().is_some_and(|share| share < 1) {
        let field = path.child("averageUtilization");
        errors.invalid(&field, utilization, "must be greater than 0");
    }
    let has = |key: &str| target.get(key).is_some_and(|value| !value.is_null());
    let (value, average) = (has("value"), has("averageValue"));
    let shared = has("averageUtilization");
    match sort {
        "object" if !value && !average => errors.required(
            &path.child("averageValue"),
            "must set either a target value or averageValue",
        ),
        "external" if !value && !average => errors.required(
            &path.child("averageValue"),
            "must set either a target value for metric or a per-pod target",
        ),
        "external" if value && average => errors.forbidden(
            &path.child("value"),
            "may not set both a target value for metric and a per-pod target",
        ),
        "pods" if !average => errors.required(
            &path.child("averageValue"),
            "must specify a positive target averageValue",
        ),
        "resource" | "containerResource" if !shared && !average => errors.required(
            &path.child("averageUtilization"),
            "must set either a target raw value or a target utilization",
        ),
        "resource" | "containerResource" if shared && average => errors.forbidden(
            &path.child("averageValue"),
            "may not set both a target raw value and a target utilization",
        ),
        _ => {}
    }
}

fn rules(rules: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let window = rules.at("/stabilizationWindowSeconds");
    let field = path.child("stabilizationWindowSeconds");
    match window.as_i64() {
        Some(seconds) if seconds < 0 => {
            errors.invalid(&field, window, "must be greater than or equal to zero");
        }
        Some(seconds) if seconds > WINDOW_SECONDS_LIMIT => {
            let detail = format!("must be less than or equal to {WINDOW_SECONDS_LIMIT}");
            errors.invalid(&field, window, detail);
        }
        _ => {}
    }
    let choice = rules.str_at("/selectPolicy");
    if !matches!(choice, "" | "Max" | "Min" | "Disabled") {
        let field = path.child("selectPolicy");
        errors.not_supported(&field, choice, &["Disabled", "Max", "Min"]);
    }
    let policies = rules.at("/policies").items();
    if policies.is_empty() {
        errors.required(&path.child("policies"), "must specify at least one Policy");
    }
    for (at, one) in policies.iter().enumerate() {
        policy(one, &path.child("policies").index(at), errors);
    }
}

fn policy(policy: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let sort = policy.str_at("/type");
    if !matches!(sort, "Pods" | "Percent") {
        errors.not_supported(&path.child("type"), sort, &["Percent", "Pods"]);
    }
    for key in ["value", "periodSeconds"] {
        let value = policy.get(key).and_then(Doc::as_i64).unwrap_or(0);
        if value <= 0 {
            errors.invalid(&path.child(key), value, "must be greater than zero");
        }
        if key == "periodSeconds" && value > PERIOD_SECONDS_LIMIT {
            let detail = format!("must be less than or equal to {PERIOD_SECONDS_LIMIT}");
            errors.invalid(&path.child(key), value, detail);
        }
    }
}

//! How a container is asked whether it is well, and what runs as it starts and ends.

use windlass_core::Doc;

use super::pod_containers::{port_name, port_number};
use crate::field::{FieldErrors, FieldPath};

const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const COUNTS: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];
const SCHEMES: &[&str] = &["HTTP", "HTTPS"];
const HEADER_RULE: &str = "a valid HTTP header must consist of alphanumeric characters or '-' \
     (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

/// Finds what is wrong with the probes and hooks of a container of a pod.
pub(super) fn validate(container: &Doc, spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let grace = spec.at("/terminationGracePeriodSeconds").as_i64();
    let lifecycle = container.at("/lifecycle");
    for moment in ["postStart", "preStop"] {
        if let Some(hook) = lifecycle.get(moment).filter(|hook| !hook.is_null()) {
            let path = path.child("lifecycle").child(moment);
            validate_handler(hook, grace, &path, errors);
        }
    }
    for key in PROBES {
        if let Some(probe) = container.get(key).filter(|probe| !probe.is_null()) {
            validate_probe(probe, key, grace, &path.child(key), errors);
        }
    }
}

/// Refuses all of them, for a container that ends before the others start.
pub(super) fn refuse(container: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for key in ["lifecycle"].iter().chain(&PROBES) {
        if container.get(key).is_some_and(|given| !given.is_null()) {
            let detail = "may not be set for init containers without restartPolicy=Always";
            errors.forbidden(&path.child(key), detail);
        }
    }
}

fn validate_probe(
    probe: &Doc,
    key: &str,
    grace: Option<i64>,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    validate_handler(probe, grace, path, errors);
    let number = |key: &str| probe.get(key).and_then(Doc::as_i64);
    for key in COUNTS {
        if let Some(count) = number(key).filter(|count| *count < 0) {
            let detail = "must be greater than or equal to 0";
            errors.invalid(&path.child(key), count, detail);
        }
    }
    let own_grace = number("terminationGracePeriodSeconds");
    let grace_path = path.child("terminationGracePeriodSeconds");
    if let Some(seconds) = own_grace.filter(|seconds| *seconds <= 0) {
        errors.invalid(&grace_path, seconds, "must be greater than 0");
    }
    match (key, own_grace) {
        ("readinessProbe", Some(seconds)) => {
            errors.invalid(&grace_path, seconds, "must not be set for readinessProbes");
        }
        ("readinessProbe", None) => {}
        _ => {
            let successes = number("successThreshold").unwrap_or(0);
            if successes != 1 {
                errors.invalid(&path.child("successThreshold"), successes, "must be 1");
            }
        }
    }
}

fn validate_handler(given: &Doc, grace: Option<i64>, path: &FieldPath, errors: &mut FieldErrors) {
    let mut handlers = HANDLERS
        .iter()
        .filter_map(|key| Some((*key, given.get(key).filter(|given| !given.is_null())?)));
    let Some((key, handler)) = handlers.next() else {
        return errors.required(path, "must specify a handler type");
    };
    let own = path.child(key);
    match key {
        "exec" if handler.at("/command").items().is_empty() => {
            errors.required(&own.child("command"), "");
        }
        "httpGet" => validate_http(handler, &own, errors),
        "tcpSocket" | "grpc" => validate_port(handler.at("/port"), &own.child("port"), errors),
        "sleep" => validate_sleep(handler, grace, &own, errors),
        _ => {}
    }
    for (key, _) in handlers {
        let detail = "may not specify more than 1 handler type";
        errors.forbidden(&path.child(key), detail);
    }
}

fn validate_http(get: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if get.str_at("/path").is_empty() {
        errors.required(&path.child("path"), "");
    }
    validate_port(get.at("/port"), &path.child("port"), errors);
    let scheme = get.str_at("/scheme");
    if !SCHEMES.contains(&scheme) {
        errors.not_supported(&path.child("scheme"), scheme, SCHEMES);
    }
    for header in get.at("/httpHeaders").items() {
        let name = header.str_at("/name");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || !name.bytes().all(is_plain) {
            errors.invalid(&path.child("httpHeaders"), name, HEADER_RULE);
        }
    }
}

fn validate_port(port: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    match port.as_str() {
        Some(name) => port_name(name, path, errors),
        None => port_number(port.as_i64().unwrap_or(0), path, errors),
    }
}

fn validate_sleep(sleep: &Doc, grace: Option<i64>, path: &FieldPath, errors: &mut FieldErrors) {
    let seconds = sleep.at("/seconds").as_i64().unwrap_or(0);
    if let Some(grace) = grace
        && !(0..=grace).contains(&seconds)
    {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.invalid(path, seconds, detail);
    }
}

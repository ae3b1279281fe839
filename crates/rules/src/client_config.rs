//! The address of a webhook: a URL or a Service.

use windlass_core::{Doc, names};

use crate::edit::edit;
use crate::field::{FieldErrors, FieldPath};

const PORT: i64 = 443;
const FORM: &str = "; desired format: https://host[/path]";

/// An address with the default port of a Service.
#[must_use]
pub fn defaulted(config: &Doc) -> Doc {
    edit(config, |config| {
        config.inside("service", |at| edit(at, |at| at.default("port", PORT)));
    })
}

/// Finds what is wrong with an address.
pub fn validate(config: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let (url, service) = (config.get("url"), config.get("service"));
    match (url, service) {
        (Some(url), None) => {
            validate_url(url.as_str().unwrap_or_default(), &path.child("url"), errors);
        }
        (None, Some(service)) => validate_service(service, &path.child("service"), errors),
        _ => errors.required(path, "exactly one of url or service is required"),
    }
}

fn validate_url(url: &str, path: &FieldPath, errors: &mut FieldErrors) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = match scheme {
        "" => "",
        _ => rest.split('/').next().unwrap_or_default(),
    };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.invalid(path, scheme, detail);
    }
    if host.is_empty() {
        errors.invalid(path, host, format!("host must be specified{FORM}"));
    }
    for (part, detail) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            errors.invalid(path, part, detail);
        }
    }
}

/// Name and namespace change places in the paths of errors, as upstream passes them.
fn validate_service(service: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if service.str_at("/namespace").is_empty() {
        errors.required(&path.child("name"), "");
    }
    if service.str_at("/name").is_empty() {
        errors.required(&path.child("namespace"), "");
    }
    let port = service.at("/port").as_i64().unwrap_or(0);
    if !(1..=65_535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid(&path.child("port"), port, detail);
    }
    if let Some(given) = service.at("/path").as_str() {
        validate_path(given, &path.child("path"), errors);
    }
}

fn validate_path(given: &str, path: &FieldPath, errors: &mut FieldErrors) {
    if matches!(given, "" | "/") {
        return;
    }
    if given == "//" {
        return errors.invalid(path, given, "segment[0] may not be empty");
    }
    if !given.starts_with('/') {
        errors.invalid(path, given, "must start with a '/'");
    }
    // Upstream drops the first character, whatever it is.
    let mut rest = given.chars();
    rest.next();
    let rest = rest.as_str();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (index, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            let detail = format!("segment[{index}] may not be empty");
            errors.invalid(path, given, detail);
            continue;
        }
        for complaint in names::dns1123_subdomain(step) {
            errors.invalid(path, given, format!("segment[{index}]: {complaint}"));
        }
    }
}

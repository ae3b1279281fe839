//! The environment of a container, and the fields of its pod that it may read.

use windlass_core::{Doc, Quantity, names};

use crate::field::{FieldErrors, FieldPath};

/// Fields of a pod that a variable may show.
const VARIABLE_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of a pod that a file may show.
pub(super) const FILE_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// Fields that pods have for these purposes, whether or not all of them may show there.
const KNOWN_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "status.phase",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const HUGE_PAGES: [&str; 2] = ["limits.hugepages-", "requests.hugepages-"];
const SIZES: &[&str] = &[
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];
const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];
const KEY_BYTES_LIMIT: usize = 253;
const KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
     '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
     '[-._a-zA-Z0-9]+')";

/// Finds what is wrong with the environment of a container.
pub(super) fn validate(container: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for (index, variable) in container.at("/env").items().iter().enumerate() {
        let path = path.child("env").index(index);
        match variable.str_at("/name") {
            "" => errors.required(&path.child("name"), ""),
            name => validate_name(name, &path.child("name"), errors),
        }
        validate_source(variable, &path.child("valueFrom"), errors);
    }
    let list = path.child("envFrom");
    for (index, source) in container.at("/envFrom").items().iter().enumerate() {
        let path = list.index(index);
        validate_name(source.str_at("/prefix"), &path.child("prefix"), errors);
        validate_all(source, &list, &path, errors);
    }
}

fn validate_name(name: &str, path: &FieldPath, errors: &mut FieldErrors) {
    if name.contains('=') || name.contains(|c: char| !c.is_ascii() || c.is_control()) {
        let detail = "a valid environment variable name must consist only of printable ASCII \
                      characters other than '='";
        errors.invalid(path, name, detail);
    }
}

/// Finds what is wrong with variables made of all keys of an object.
fn validate_all(source: &Doc, list: &FieldPath, path: &FieldPath, errors: &mut FieldErrors) {
    let mut count = 0;
    for key in ["configMapRef", "secretRef"] {
        let Some(given) = source.get(key).filter(|given| !given.is_null()) else {
            continue;
        };
        count += 1;
        let path = path.child(key).child("name");
        match given.str_at("/name") {
            "" => errors.required(&path, ""),
            name => errors.invalid_each(&path, name, names::dns1123_subdomain(name)),
        }
    }
    match count {
        0 => errors.invalid(
            list,
            "",
            "must specify one of: `configMapRef` or `secretRef`",
        ),
        1 => {}
        _ => errors.invalid(
            list,
            "",
            "may not have more than one field specified at a time",
        ),
    }
}

fn validate_source(variable: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let source = variable.at("/valueFrom");
    if source.is_null() {
        return;
    }
    let mut count = 0;
    for key in SOURCES {
        let Some(given) = source.get(key).filter(|given| !given.is_null()) else {
            continue;
        };
        count += 1;
        let path = path.child(key);
        match key {
            "fieldRef" => validate_field(given, VARIABLE_FIELDS, &path, errors),
            "resourceFieldRef" => validate_resource(given, &path, errors),
            "fileKeyRef" => {}
            _ => validate_key(given, &path, errors),
        }
    }
    if count == 0 {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                      `secretKeyRef` or `fileKeyRef`";
        errors.invalid(path, "", detail);
    } else if !variable.str_at("/value").is_empty() {
        errors.invalid(path, "", "may not be specified when `value` is not empty");
    } else if count > 1 {
        errors.invalid(
            path,
            "",
            "may not have more than one field specified at a time",
        );
    }
}

/// Finds what is wrong with a key of a config map or secret.
fn validate_key(given: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let (name, key) = (given.str_at("/name"), given.str_at("/key"));
    // A name that is missing is one that cannot be, too.
    errors.invalid_each(&path.child("name"), name, names::dns1123_subdomain(name));
    let path = path.child("key");
    if key.is_empty() {
        return errors.required(&path, "");
    }
    if key.len() > KEY_BYTES_LIMIT {
        let detail = format!("must be no more than {KEY_BYTES_LIMIT} characters");
        errors.invalid(&path, key, detail);
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !key.bytes().all(is_plain) {
        errors.invalid(&path, key, KEY_RULE);
    }
    match key {
        "." | ".." => errors.invalid(&path, key, format!("must not be '{key}'")),
        key if key.starts_with("..") => errors.invalid(&path, key, "must not start with '..'"),
        _ => {}
    }
}

/// Finds what is wrong with a field of a pod that is to be shown.
pub(super) fn validate_field(
    given: &Doc,
    shown: &[&str],
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let field = given.str_at("/fieldPath");
    let place = path.child("fieldPath");
    if field.is_empty() {
        return errors.required(&place, "");
    }
    let version = given.str_at("/apiVersion");
    if version != "v1" {
        let detail = format!("error converting fieldPath: unsupported pod version: {version}");
        return errors.invalid(&place, field, detail);
    }
    let subscript = field
        .strip_suffix("']")
        .and_then(|field| field.split_once("['"));
    match subscript {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            errors.invalid_each(path, &key, names::qualified_name(&key));
        }
        Some(("metadata.labels", key)) => {
            errors.invalid_each(path, key, names::qualified_name(key));
        }
        Some(_) => {
            let detail = format!(
                "error converting fieldPath: field label does not support subscript: {field}"
            );
            errors.invalid(&place, field, detail);
        }
        None if shown.contains(&field) => {}
        None if is_known(field) => errors.not_supported(&place, field, shown),
        None => {
            let detail = format!("error converting fieldPath: field label not supported: {field}");
            errors.invalid(&place, field, detail);
        }
    }
}

fn is_known(field: &str) -> bool {
    let lists = [VARIABLE_FIELDS, FILE_FIELDS, KNOWN_FIELDS];
    lists.iter().any(|list| list.contains(&field))
}

/// Finds what is wrong with a resource of a container that is to be shown.
pub(super) fn validate_resource(given: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let resource = given.str_at("/resource");
    let is_huge = HUGE_PAGES.iter().any(|start| resource.starts_with(start));
    if resource.is_empty() {
        errors.required(&path.child("resource"), "");
    } else if !RESOURCES.contains(&resource) && !is_huge {
        errors.not_supported(&path.child("resource"), resource, RESOURCES);
    }
    let divisor = given.at("/divisor").as_str().unwrap_or_default();
    let divisor = divisor.parse::<Quantity>().ok();
    let Some(divisor) = divisor.filter(|divisor| !divisor.is_zero()) else {
        return;
    };
    let divisor = divisor.to_string();
    let (known, what) = match resource.split_once('.') {
        Some((_, "cpu")) => (&["1m", "1"][..], "1m and 1 are supported with the cpu"),
        Some((_, "memory")) => (SIZES, "memory"),
        Some((_, "ephemeral-storage")) => (SIZES, "local ephemeral storage"),
        _ if is_huge => (SIZES, "hugepages"),
        _ => return,
    };
    if !known.contains(&&*divisor) {
        let words = match known.len() {
            2 => what.to_owned(),
            _ => format!("{} are supported with the {what}", SIZES.join(", ")),
        };
        let detail = format!("only divisor's values {words} resource");
        errors.invalid(&path.child("divisor"), resource, detail);
    }
}

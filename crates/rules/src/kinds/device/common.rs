//! What claims, classes and slices have in common: names, expressions and settings.

use windlass_core::{Doc, names};

use crate::field::{FieldErrors, FieldPath};

/// Limits of upstream.
pub(super) const SELECTORS_MAX: usize = 32;
pub(super) const CONFIG_MAX: usize = 32;
const REFERENCES_MAX: usize = 32;
const EXPRESSION_BYTES_MAX: usize = 10 * 1024;
const PARAMETERS_BYTES_MAX: usize = 10 * 1024;
const DRIVER_MAX: usize = 63;
const DOMAIN_MAX: usize = 63;
const IDENTIFIER_MAX: usize = 32;

/// A driver is named like a domain, in any case.
pub(super) fn validate_driver(driver: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    match driver.as_str().unwrap_or("") {
        "" => errors.required(path, ""),
        name => {
            if name.len() > DRIVER_MAX {
                errors.too_long(path, DRIVER_MAX);
            }
            let problems = names::dns1123_subdomain(&name.to_lowercase());
            errors.invalid_each(path, name, problems);
        }
    }
}

/// `identifier`, or `domain/identifier`.
pub(super) fn validate_qualified(name: &str, path: &FieldPath, errors: &mut FieldErrors) {
    let (domain, identifier) = match name.split_once('/') {
        Some((domain, identifier)) => (Some(domain), identifier),
        None => (None, name),
    };
    if let Some(domain) = domain {
        match domain {
            "" => errors.required(path, "the domain must not be empty"),
            domain => {
                if domain.len() > DOMAIN_MAX {
                    errors.too_long(path, DOMAIN_MAX);
                }
                let problems = names::dns1123_subdomain(&domain.to_lowercase());
                errors.invalid_each(path, domain, problems);
            }
        }
    }
    validate_identifier(identifier, path, errors);
}

/// As [`validate_qualified`], with a domain.
pub(super) fn validate_fully_qualified(name: &str, path: &FieldPath, errors: &mut FieldErrors) {
    validate_qualified(name, path, errors);
    if !name.contains('/') {
        errors.invalid(path, name, "must include a domain");
    }
}

fn validate_identifier(identifier: &str, path: &FieldPath, errors: &mut FieldErrors) {
    if identifier.is_empty() {
        errors.required(path, "");
        return;
    }
    if identifier.len() > IDENTIFIER_MAX {
        errors.too_long(path, IDENTIFIER_MAX);
    }
    let mut chars = identifier.chars();
    let is_start = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !is_start || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let detail = "a valid C identifier must start with alphabetic character or '_', followed \
                      by a string of alphanumeric characters or '_' (e.g. 'my_name',  or \
                      'MY_NAME',  or 'MyName', regex used for validation is \
                      '[A-Za-z_][A-Za-z0-9_]*')";
        errors.invalid(path, identifier, detail);
    }
}

/// The selectors of a request or a class.
pub(super) fn validate_selectors(holder: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let path = path.child("selectors");
    let selectors = holder.at("/selectors").items();
    if selectors.len() > SELECTORS_MAX {
        errors.too_many(&path, selectors.len(), SELECTORS_MAX);
        return;
    }
    for (index, selector) in selectors.iter().enumerate() {
        let path = path.index(index).child("cel");
        match selector.at("/cel").is_null() {
            true => errors.required(&path, ""),
            false => validate_expression(selector.str_at("/cel/expression"), &path, errors),
        }
    }
}

fn validate_expression(expression: &str, path: &FieldPath, errors: &mut FieldErrors) {
    let path = path.child("expression");
    if expression.len() > EXPRESSION_BYTES_MAX {
        errors.too_long(&path, EXPRESSION_BYTES_MAX);
        return;
    }
    let program = match windlass_cel::device_environment().compile(expression) {
        Ok(program) => program,
        Err(error) => {
            errors.invalid(&path, expression, format!("compilation failed: {error}"));
            return;
        }
    };
    let result = program.result_type();
    if !result.may_be_bool() {
        let detail = format!("must evaluate to bool or the unknown type, not {result}");
        errors.invalid(&path, expression, detail);
        return;
    }
    if program.estimated_cost().max > windlass_cel::CALL_COST_LIMIT {
        errors.forbidden(&path, "too complex, exceeds cost limit");
    }
}

/// The settings for drivers. `requests` are the names that settings may refer to; `None` where
/// they refer to none.
pub(super) fn validate_configs(
    holder: &Doc,
    path: &FieldPath,
    limit: usize,
    requests: Option<&[String]>,
    errors: &mut FieldErrors,
) {
    let path = path.child("config");
    let configs = holder.at("/config").items();
    if configs.len() > limit {
        errors.too_many(&path, configs.len(), limit);
        return;
    }
    for (index, config) in configs.iter().enumerate() {
        let path = path.index(index);
        if let Some(requests) = requests {
            validate_references(config, &path, requests, errors);
        }
        validate_opaque(config, &path, errors);
    }
}

/// The requests that a constraint or settings are about, as `request` or `request/subrequest`.
pub(super) fn validate_references(
    holder: &Doc,
    path: &FieldPath,
    requests: &[String],
    errors: &mut FieldErrors,
) {
    let path = path.child("requests");
    let names = holder.at("/requests").items();
    if names.len() > REFERENCES_MAX {
        errors.too_many(&path, names.len(), REFERENCES_MAX);
        return;
    }
    for (index, name) in names.iter().enumerate() {
        let text = name.as_str().unwrap_or("");
        if names[..index].contains(name) {
            errors.duplicate(&path.index(index), text);
        }
        validate_reference(text, &path.index(index), requests, errors);
    }
}

/// One reference to a request.
pub(super) fn validate_reference(
    name: &str,
    path: &FieldPath,
    requests: &[String],
    errors: &mut FieldErrors,
) {
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() > 2 {
        let detail = "must be the name of a request in the claim or the name of a request and a \
                      subrequest separated by '/'";
        errors.invalid(path, name, detail);
        return;
    }
    for part in parts {
        errors.invalid_each(path, part, names::dns1123_label(part));
    }
    if !requests.iter().any(|known| known == name) {
        let detail = "must be the name of a request in the claim or the name of a request and a \
                      subrequest separated by '/'";
        errors.invalid(path, name, detail);
    }
}

fn validate_opaque(config: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let path = path.child("opaque");
    let opaque = config.at("/opaque");
    if opaque.is_null() {
        errors.required(&path, "");
        return;
    }
    validate_driver(opaque.at("/driver"), &path.child("driver"), errors);
    validate_raw(
        opaque.at("/parameters"),
        &path.child("parameters"),
        true,
        errors,
    );
}

/// An object that only a driver understands.
pub(super) fn validate_raw(
    value: &Doc,
    path: &FieldPath,
    is_required: bool,
    errors: &mut FieldErrors,
) {
    if value.is_null() {
        if is_required {
            errors.required(path, "");
        }
        return;
    }
    let json = value.to_json();
    if json.len() > PARAMETERS_BYTES_MAX {
        errors.too_long(path, PARAMETERS_BYTES_MAX);
        return;
    }
    if value.as_object().is_none() {
        let detail = "error parsing data as JSON: json: cannot unmarshal value into Go value of \
                      type map[string]interface {}";
        errors.invalid(path, "<value omitted>", detail);
    }
}

//! Configurations of admission webhooks: defaults and validation.

use std::collections::HashSet;

use windlass_core::{Doc, names};

use super::pod_terms::validate_selector;
use crate::client_config;
use crate::edit::edit;
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;
use crate::match_conditions;

/// Hooks of MutatingWebhookConfigurations.
#[derive(Debug)]
pub struct MutatingWebhooks;

/// Hooks of ValidatingWebhookConfigurations.
#[derive(Debug)]
pub struct ValidatingWebhooks;

const TIMEOUT_SECONDS: i64 = 10;
const TIMEOUT_SECONDS_MAX: i64 = 30;
const CONDITIONS_LIMIT: usize = 64;
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];

/// The rules that count: a change may keep what was wrong before.
#[derive(Clone, Copy)]
struct Strictness {
    is_mutating: bool,
    unique_names: bool,
    no_side_effects: bool,
    known_versions: bool,
    conditions: bool,
}

impl Hooks for MutatingWebhooks {
    fn default(&self, configuration: Doc) -> Doc {
        defaulted(&configuration, true)
    }

    fn validate_create(&self, configuration: &Doc, errors: &mut FieldErrors) {
        Strictness::of_create(true).validate(configuration, errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        Strictness::of_update(true, new, old).validate(new, errors);
    }
}

impl Hooks for ValidatingWebhooks {
    fn default(&self, configuration: Doc) -> Doc {
        defaulted(&configuration, false)
    }

    fn validate_create(&self, configuration: &Doc, errors: &mut FieldErrors) {
        Strictness::of_create(false).validate(configuration, errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        Strictness::of_update(false, new, old).validate(new, errors);
    }
}

fn defaulted(configuration: &Doc, is_mutating: bool) -> Doc {
    let rule = |rule: &Doc| edit(rule, |rule| rule.default("scope", "*"));
    let webhook = |webhook: &Doc| {
        edit(webhook, |webhook| {
            webhook.default("failurePolicy", "Fail");
            webhook.default("matchPolicy", "Equivalent");
            webhook.default("namespaceSelector", Doc::empty_object());
            webhook.default("objectSelector", Doc::empty_object());
            webhook.default("timeoutSeconds", TIMEOUT_SECONDS);
            if is_mutating {
                webhook.default("reinvocationPolicy", "Never");
            }
            webhook.each("rules", rule);
            webhook.inside("clientConfig", client_config::defaulted);
        })
    };
    edit(configuration, |configuration| {
        configuration.each("webhooks", webhook);
    })
}

impl Strictness {
    /// The rules for a new configuration.
    fn of_create(is_mutating: bool) -> Self {
        Self {
            is_mutating,
            unique_names: true,
            no_side_effects: true,
            known_versions: true,
            conditions: true,
        }
    }

    /// The rules for a change. Each is decided once: there may be many webhooks.
    fn of_update(is_mutating: bool, new: &Doc, old: &Doc) -> Self {
        let (new, old) = (new.at("/webhooks").items(), old.at("/webhooks").items());
        let mut seen = HashSet::new();
        let is_known = |version: &Doc| REVIEW_VERSIONS.iter().any(|known| *version == *known);
        let has_known = |webhook: &Doc| {
            let versions = webhook.at("/admissionReviewVersions").items();
            versions.is_empty() || versions.iter().any(is_known)
        };
        let has_no_side_effects =
            |webhook: &Doc| NO_SIDE_EFFECTS.contains(&webhook.str_at("/sideEffects"));
        let conditions = |webhook: &Doc| webhook.at("/matchConditions").clone();
        let mut pairs = old.iter().zip(new);
        let same = old.len() == new.len() && pairs.all(|(a, b)| conditions(a) == conditions(b));
        Self {
            is_mutating,
            unique_names: old.iter().all(|it| seen.insert(it.str_at("/name"))),
            no_side_effects: old.iter().all(has_no_side_effects),
            known_versions: old.iter().all(has_known),
            conditions: !same,
        }
    }

    fn validate(self, configuration: &Doc, errors: &mut FieldErrors) {
        let mut seen = HashSet::new();
        for (index, webhook) in configuration.at("/webhooks").items().iter().enumerate() {
            let path = FieldPath::new("webhooks").index(index);
            self.webhook(webhook, &path, errors);
            let versions = webhook.at("/admissionReviewVersions");
            let at = path.child("admissionReviewVersions");
            validate_review_versions(versions, self.known_versions, &at, errors);
            let name = webhook.str_at("/name");
            if self.unique_names && !name.is_empty() && !seen.insert(name) {
                errors.duplicate(&path.child("name"), name);
            }
        }
    }

    fn webhook(self, webhook: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
        validate_name(webhook.str_at("/name"), &path.child("name"), errors);
        for (index, rule) in webhook.at("/rules").items().iter().enumerate() {
            validate_rule(rule, &path.child("rules").index(index), errors);
        }
        let choice = |key: &str, known: &[&str], errors: &mut FieldErrors| {
            let value = webhook.get(key).and_then(Doc::as_str).unwrap_or_default();
            if webhook.get(key).is_some() && !known.contains(&value) {
                errors.not_supported(&path.child(key), value, known);
            }
        };
        choice("failurePolicy", &["Fail", "Ignore"], errors);
        choice("matchPolicy", &["Equivalent", "Exact"], errors);
        self.side_effects(webhook, &path.child("sideEffects"), errors);
        let timeout = webhook.at("/timeoutSeconds").as_i64();
        if let Some(timeout) = timeout.filter(|it| !(1..=TIMEOUT_SECONDS_MAX).contains(it)) {
            let detail = "the timeout value must be between 1 and 30 seconds";
            errors.invalid(&path.child("timeoutSeconds"), timeout, detail);
        }
        for key in ["namespaceSelector", "objectSelector"] {
            validate_selector(webhook.get(key), &path.child(key), errors);
        }
        if self.is_mutating {
            choice("reinvocationPolicy", &["IfNeeded", "Never"], errors);
        }
        let config = webhook.at("/clientConfig");
        client_config::validate(config, &path.child("clientConfig"), errors);
        if self.conditions {
            let conditions = webhook.at("/matchConditions").items();
            let compile = |text: &str| match_conditions::compile(text).map(drop);
            let path = path.child("matchConditions");
            validate_conditions(conditions, &path, &compile, errors);
        }
    }

    fn side_effects(self, webhook: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
        let known: &[&str] = match self.no_side_effects {
            true => &NO_SIDE_EFFECTS,
            false => &SIDE_EFFECTS,
        };
        match webhook.at("/sideEffects").as_str() {
            None => {
                let detail = format!("must specify one of {}", known.join(", "));
                errors.required(path, detail);
            }
            Some(value) if !known.contains(&value) => errors.not_supported(path, value, known),
            Some(_) => {}
        }
    }
}

/// Finds what is wrong with the versions of reviews that a webhook or a converter understands.
pub fn validate_review_versions(
    versions: &Doc,
    needs_known: bool,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let known = REVIEW_VERSIONS.join(", ");
    let list = versions.items();
    if list.is_empty() {
        return errors.required(path, format!("must specify one of {known}"));
    }
    let mut seen = HashSet::new();
    for (index, version) in list.iter().enumerate() {
        let text = version.as_str().unwrap_or_default();
        if !seen.insert(text) {
            errors.invalid(&path.index(index), text, "duplicate version");
            continue;
        }
        errors.invalid_each(&path.index(index), text, names::dns1035_label(text));
    }
    if needs_known && !REVIEW_VERSIONS.iter().any(|version| seen.contains(version)) {
        let detail = format!("must include at least one of {known}");
        errors.invalid(path, versions.clone(), detail);
    }
}

/// The name of a webhook is that of a domain.
fn validate_name(name: &str, path: &FieldPath, errors: &mut FieldErrors) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    let complaints = names::dns1123_subdomain(name);
    if !complaints.is_empty() {
        errors.invalid(path, name, complaints.join(","));
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.invalid(path, name, detail);
    }
}

/// Finds what is wrong with a rule of a webhook.
pub(super) fn validate_rule(rule: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let operations = rule.at("/operations");
    only_wildcard(operations, &path.child("operations"), "operations", errors);
    for (index, operation) in operations.items().iter().enumerate() {
        let text = operation.as_str().unwrap_or_default();
        if !OPERATIONS.contains(&text) {
            let path = path.child("operations").index(index);
            errors.not_supported(&path, text, &OPERATIONS);
        }
    }
    only_wildcard(
        rule.at("/apiGroups"),
        &path.child("apiGroups"),
        "API groups",
        errors,
    );
    let versions = rule.at("/apiVersions");
    only_wildcard(versions, &path.child("apiVersions"), "API versions", errors);
    for (index, version) in versions.items().iter().enumerate() {
        if *version == "" {
            errors.required(&path.child("apiVersions").index(index), "");
        }
    }
    validate_resources(rule.at("/resources"), &path.child("resources"), errors);
    let scope = rule.at("/scope").as_str();
    if let Some(scope) = scope.filter(|it| !["*", "Cluster", "Namespaced"].contains(it)) {
        errors.not_supported(&path.child("scope"), scope, &["*", "Cluster", "Namespaced"]);
    }
}

/// A list must have an item, and a wildcard no company.
fn only_wildcard(list: &Doc, path: &FieldPath, what: &str, errors: &mut FieldErrors) {
    let items = list.items();
    if items.is_empty() {
        errors.required(path, "");
    }
    if items.len() > 1 && items.iter().any(|item| *item == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.invalid(path, list.clone(), detail);
    }
}

fn validate_resources(list: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let items = list.items();
    if items.is_empty() {
        errors.required(path, "");
    }
    let (mut all_parts, mut all_resources) = (HashSet::new(), HashSet::new());
    let mut has_plain = false;
    for (index, item) in items.iter().enumerate() {
        let (text, path) = (item.as_str().unwrap_or_default(), path.index(index));
        let Some((resource, part)) = text.split_once('/') else {
            match text {
                "" => errors.required(&path, ""),
                // As upstream has it, the last of them decides.
                text => has_plain = text != "*",
            }
            continue;
        };
        if all_parts.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            errors.invalid(&path, text, detail);
        }
        if all_resources.contains(part) {
            let detail = format!("if '*/{part}' is present, must not specify {text}");
            errors.invalid(&path, text, detail);
        }
        if part == "*" {
            all_parts.insert(resource);
        }
        if resource == "*" {
            all_resources.insert(part);
        }
    }
    let has = |text: &str| items.iter().any(|item| *item == text);
    if items.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.invalid(path, list.clone(), detail);
    }
    if has("*") && has_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(path, list.clone(), detail);
    }
}

/// Finds what is wrong with match conditions; `compile` compiles one of them.
pub(super) fn validate_conditions(
    conditions: &[Doc],
    path: &FieldPath,
    compile: &dyn Fn(&str) -> Result<(), String>,
    errors: &mut FieldErrors,
) {
    if conditions.len() > CONDITIONS_LIMIT {
        errors.too_many(path, conditions.len(), CONDITIONS_LIMIT);
    }
    let mut seen = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let expression = condition.str_at("/expression").trim();
        let at = path.child("expression");
        if expression.is_empty() {
            errors.required(&at, "");
        } else if index < CONDITIONS_LIMIT
            && let Err(why) = compile(expression)
        {
            errors.invalid(&at, expression, why);
        }
        let (name, at) = (condition.str_at("/name"), path.child("name"));
        match name {
            "" => errors.required(&at, ""),
            name => errors.invalid_each(&at, name, names::qualified_name(name)),
        }
        if !name.is_empty() && !seen.insert(name) {
            errors.duplicate(&at, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn defaults_are_upstreams() {
        let given = doc!({ "webhooks": [{
            "clientConfig": { "service": { "name": "a", "namespace": "b" } },
            "rules": [{ "operations": ["*"] }]
        }] });
        let expected = doc!({ "webhooks": [{
            "clientConfig": { "service": { "name": "a", "namespace": "b", "port": 443 } },
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {},
            "objectSelector": {}, "timeoutSeconds": 10, "reinvocationPolicy": "Never",
            "rules": [{ "operations": ["*"], "scope": "*" }]
        }] });
        assert_eq!(MutatingWebhooks.default(given), expected);
    }
}

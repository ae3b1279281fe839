//! Admission policies and their bindings: defaults and validation.

mod expressions;

use std::collections::HashSet;

use windlass_core::{Doc, names};

use super::pod_terms::validate_selector;
use super::webhooks::validate_rule;
use crate::edit::edit;
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;
use expressions::Expressions;

/// Hooks of ValidatingAdmissionPolicies.
#[derive(Debug)]
pub struct ValidatingPolicies;

/// Hooks of MutatingAdmissionPolicies.
#[derive(Debug)]
pub struct MutatingPolicies;

/// Hooks of ValidatingAdmissionPolicyBindings.
#[derive(Debug)]
pub struct ValidatingPolicyBindings;

/// Hooks of MutatingAdmissionPolicyBindings.
#[derive(Debug)]
pub struct MutatingPolicyBindings;

/// The two kinds of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PolicySort {
    Validating,
    Mutating,
}

/// Operations that a mutating policy can see: a DELETE has nothing to change.
const MUTABLE_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const VALIDATION_ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

impl Hooks for ValidatingPolicies {
    fn default(&self, policy: Doc) -> Doc {
        defaulted_policy(&policy)
    }

    fn validate_create(&self, policy: &Doc, errors: &mut FieldErrors) {
        validate_policy(PolicySort::Validating, policy, None, errors);
        Expressions::new(policy).validations(policy, errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        validate_policy(PolicySort::Validating, new, Some(old), errors);
        Expressions::new(new).validations(new, errors);
    }

    fn validate_status(&self, new: &Doc, _: &Doc, errors: &mut FieldErrors) {
        let warnings = new.at("/status/typeChecking/expressionWarnings");
        let path = FieldPath::new("status")
            .child("typeChecking")
            .child("expressionWarnings");
        for (index, warning) in warnings.items().iter().enumerate() {
            for (key, text) in [
                ("warning", warning.str_at("/warning")),
                ("fieldRef", warning.str_at("/fieldRef").trim()),
            ] {
                if text.is_empty() {
                    errors.required(&path.index(index).child(key), "");
                }
            }
        }
    }
}

impl Hooks for MutatingPolicies {
    fn default(&self, policy: Doc) -> Doc {
        defaulted_policy(&policy)
    }

    fn validate_create(&self, policy: &Doc, errors: &mut FieldErrors) {
        validate_mutating(policy, None, errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        validate_mutating(new, Some(old), errors);
    }
}

impl Hooks for ValidatingPolicyBindings {
    fn default(&self, binding: Doc) -> Doc {
        defaulted_binding(&binding)
    }

    fn validate(&self, policy_binding: &Doc, errors: &mut FieldErrors) {
        validate_binding(policy_binding, errors);
        let path = FieldPath::new("spec").child("validationActions");
        validate_actions(policy_binding.at("/spec/validationActions"), &path, errors);
    }
}

impl Hooks for MutatingPolicyBindings {
    fn default(&self, binding: Doc) -> Doc {
        defaulted_binding(&binding)
    }

    fn validate(&self, policy_binding: &Doc, errors: &mut FieldErrors) {
        validate_binding(policy_binding, errors);
        let rules = policy_binding.at("/spec/matchResources/resourceRules");
        let path = FieldPath::new("spec").child("matchResources");
        validate_mutable(rules, &path, errors);
    }
}

fn defaulted_policy(policy: &Doc) -> Doc {
    edit(policy, |policy| {
        policy.inside("spec", |spec| {
            edit(spec, |spec| {
                spec.default("failurePolicy", "Fail");
                spec.inside("matchConstraints", defaulted_resources);
            })
        });
    })
}

fn defaulted_binding(binding: &Doc) -> Doc {
    edit(binding, |binding| {
        binding.inside("spec", |spec| {
            edit(spec, |spec| {
                spec.inside("matchResources", defaulted_resources)
            })
        });
    })
}

fn defaulted_resources(resources: &Doc) -> Doc {
    let rule = |rule: &Doc| edit(rule, |rule| rule.default("scope", "*"));
    edit(resources, |resources| {
        resources.default("matchPolicy", "Equivalent");
        resources.default("namespaceSelector", Doc::empty_object());
        resources.default("objectSelector", Doc::empty_object());
        resources.each("resourceRules", rule);
        resources.each("excludeResourceRules", rule);
    })
}

/// Validates the parts that both kinds of policies have.
fn validate_policy(sort: PolicySort, policy: &Doc, old: Option<&Doc>, errors: &mut FieldErrors) {
    let (spec, path) = (policy.at("/spec"), FieldPath::new("spec"));
    let failure = spec.str_at("/failurePolicy");
    if !["Fail", "Ignore"].contains(&failure) {
        errors.not_supported(&path.child("failurePolicy"), failure, &["Fail", "Ignore"]);
    }
    if !spec.at("/paramKind").is_null() {
        validate_param_kind(spec.at("/paramKind"), &path.child("paramKind"), errors);
    }
    let constraints = path.child("matchConstraints");
    match spec.at("/matchConstraints") {
        absent if absent.is_null() => errors.required(&constraints, ""),
        given => {
            validate_resources(given, &constraints, errors);
            if given.at("/resourceRules").items().is_empty() {
                errors.required(&constraints.child("resourceRules"), "");
            }
        }
    }
    if sort == PolicySort::Mutating {
        validate_mutable(
            spec.at("/matchConstraints/resourceRules"),
            &constraints,
            errors,
        );
    }
    let conditions = spec.at("/matchConditions");
    // What was accepted before stays accepted.
    let is_known = old.is_some_and(|old| {
        old.at("/spec/matchConditions") == conditions
            && old.at("/spec/paramKind").is_null() == spec.at("/paramKind").is_null()
    });
    if !is_known {
        Expressions::conditions(spec, &path.child("matchConditions"), errors);
    }
}

fn validate_mutating(policy: &Doc, old: Option<&Doc>, errors: &mut FieldErrors) {
    validate_policy(PolicySort::Mutating, policy, old, errors);
    Expressions::new(policy).mutations(policy, errors);
    let path = FieldPath::new("spec").child("reinvocationPolicy");
    match policy.str_at("/spec/reinvocationPolicy") {
        "" => errors.required(&path, ""),
        "IfNeeded" | "Never" => {}
        other => errors.not_supported(&path, other, &["IfNeeded", "Never"]),
    }
}

fn validate_param_kind(kind: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let at = path.child("apiVersion");
    let api_version = kind.str_at("/apiVersion");
    match api_version.matches('/').count() {
        _ if api_version.is_empty() => errors.required(&at, ""),
        0 | 1 => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let complaints = names::dns1123_subdomain(group);
            if !group.is_empty() && !complaints.is_empty() {
                errors.invalid(&at, group, complaints.join(","));
            }
            let complaints = names::dns1035_label(version);
            if version.is_empty() {
                errors.invalid(&at, api_version, "version must be specified");
            } else if !complaints.is_empty() {
                errors.invalid(&at, version, complaints.join(","));
            }
        }
        _ => {
            let detail = format!("unexpected GroupVersion string: {api_version}");
            errors.invalid(&at, api_version, detail);
        }
    }
    let at = path.child("kind");
    let name = kind.str_at("/kind");
    let complaints = names::dns1035_label(&name.to_lowercase());
    if name.is_empty() {
        errors.required(&at, "");
    } else if !complaints.is_empty() {
        let complaints = complaints.join(",");
        let detail = format!("may have mixed case, but should otherwise match: {complaints}");
        errors.invalid(&at, name, detail);
    }
}

/// Validates the `matchConstraints` of a policy, or the `matchResources` of a binding.
fn validate_resources(resources: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let policy = resources.str_at("/matchPolicy");
    if !["Equivalent", "Exact"].contains(&policy) {
        errors.not_supported(&path.child("matchPolicy"), policy, &["Equivalent", "Exact"]);
    }
    for key in ["namespaceSelector", "objectSelector"] {
        validate_selector(resources.get(key), &path.child(key), errors);
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        let rules = resources.get(key).map(Doc::items).unwrap_or_default();
        for (index, rule) in rules.iter().enumerate() {
            let path = path.child(key).index(index);
            validate_names(
                rule.at("/resourceNames"),
                &path.child("resourceNames"),
                errors,
            );
            validate_rule(rule, &path, errors);
        }
    }
}

fn validate_names(list: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for (index, name) in list.items().iter().enumerate() {
        let (name, at) = (name.as_str().unwrap_or_default(), path.index(index));
        errors.invalid_each(&at, name, names::path_segment(name));
        if !seen.insert(name) {
            errors.duplicate(&at, name);
        }
    }
}

/// Refuses operations that mutating policies do not see.
fn validate_mutable(rules: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let path = path.child("resourceRules").child("operations");
    let rules = rules.items().iter();
    for operation in rules.flat_map(|rule| rule.at("/operations").items()) {
        let operation = operation.as_str().unwrap_or_default();
        if !MUTABLE_OPERATIONS.contains(&operation) {
            errors.not_supported(&path, operation, &MUTABLE_OPERATIONS);
        }
    }
}

/// Validates the parts that both kinds of bindings have.
fn validate_binding(policy_binding: &Doc, errors: &mut FieldErrors) {
    let (spec, path) = (policy_binding.at("/spec"), FieldPath::new("spec"));
    match spec.str_at("/policyName") {
        "" => errors.required(&path.child("policyName"), ""),
        name => {
            let complaints = names::dns1123_subdomain(name);
            errors.invalid_each(&path.child("policyName"), name, complaints);
        }
    }
    let params = spec.at("/paramRef");
    if !params.is_null() {
        validate_param_ref(params, &path.child("paramRef"), errors);
    }
    let resources = spec.at("/matchResources");
    if !resources.is_null() {
        validate_resources(resources, &path.child("matchResources"), errors);
    }
}

fn validate_param_ref(params: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let (name, selector) = (params.str_at("/name"), params.get("selector"));
    let exclusive = "name and selector are mutually exclusive";
    if !name.is_empty() {
        errors.invalid_each(&path.child("name"), name, names::path_segment(name));
        if selector.is_some() {
            errors.forbidden(&path.child("name"), exclusive);
        }
    }
    validate_selector(selector, &path.child("selector"), errors);
    match (name.is_empty(), selector) {
        (false, Some(_)) => errors.forbidden(&path.child("selector"), exclusive),
        (true, None) => errors.required(path, "one of name or selector must be specified"),
        _ => {}
    }
    let at = path.child("parameterNotFoundAction");
    match params.str_at("/parameterNotFoundAction") {
        "" => errors.required(&at, ""),
        "Allow" | "Deny" => {}
        other => errors.not_supported(&at, other, &["Deny", "Allow"]),
    }
}

fn validate_actions(list: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for (index, action) in list.items().iter().enumerate() {
        let (action, at) = (action.as_str().unwrap_or_default(), path.index(index));
        if !VALIDATION_ACTIONS.contains(&action) {
            errors.not_supported(&at, action, &VALIDATION_ACTIONS);
        }
        if !seen.insert(action) {
            errors.duplicate(&at, action);
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure \
                      information in the API response and headers serves no purpose)";
        errors.invalid(path, list.clone(), detail);
    }
    if seen.is_empty() {
        errors.required(path, "at least one validation action is required");
    }
}

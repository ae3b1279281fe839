//! Roles and their bindings.

use windlass_core::Doc;

use crate::edit::edit;
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Hooks of roles, in a namespace or for the cluster.
#[derive(Debug)]
pub struct Roles;

/// Hooks of role bindings, in a namespace or for the cluster.
#[derive(Debug)]
pub struct RoleBindings;

impl Hooks for Roles {
    fn validate(&self, role: &Doc, errors: &mut FieldErrors) {
        let aggregation = role.at("/aggregationRule");
        let selectors = aggregation.at("/clusterRoleSelectors");
        if !aggregation.is_null() && selectors.items().is_empty() {
            let path = FieldPath::new("aggregationRule.clusterRoleSelectors");
            let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            errors.required(&path, detail);
        }
        for (index, rule) in role.at("/rules").items().iter().enumerate() {
            let path = FieldPath::new("rules").index(index);
            let has = |key: &str| !rule.get(key).map(Doc::items).unwrap_or_default().is_empty();
            if !has("verbs") {
                errors.required(
                    &path.child("verbs"),
                    "verbs must contain at least one value",
                );
            }
            if has("nonResourceURLs") {
                let path = path.child("nonResourceURLs");
                if role.meta().namespace().is_empty() {
                    if has("apiGroups") || has("resources") || has("resourceNames") {
                        let detail =
                            "rules cannot apply to both regular resources and non-resource URLs";
                        errors.invalid(&path, rule.at("/nonResourceURLs"), detail);
                    }
                } else {
                    let detail = "namespaced rules cannot apply to non-resource URLs";
                    errors.invalid(&path, rule.at("/nonResourceURLs"), detail);
                }
                continue;
            }
            if !has("apiGroups") {
                errors.required(
                    &path.child("apiGroups"),
                    "resource rules must supply at least one api group",
                );
            }
            if !has("resources") {
                errors.required(
                    &path.child("resources"),
                    "resource rules must supply at least one resource",
                );
            }
        }
    }
}

impl Hooks for RoleBindings {
    fn default(&self, binding: Doc) -> Doc {
        edit(&binding, |binding| {
            binding.inside("roleRef", |role| {
                edit(role, |role| role.default("apiGroup", GROUP))
            });
            binding.each("subjects", |subject| {
                edit(subject, |subject| {
                    if subject.text("kind") != "ServiceAccount" {
                        subject.default("apiGroup", GROUP);
                    }
                })
            });
        })
    }

    fn validate(&self, binding: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("roleRef");
        let kinds: &[&str] = if binding.meta().namespace().is_empty() {
            &["ClusterRole"]
        } else {
            &["Role", "ClusterRole"]
        };
        let role = binding.at("/roleRef");
        if role.str_at("/apiGroup") != GROUP {
            errors.not_supported(&path.child("apiGroup"), role.str_at("/apiGroup"), &[GROUP]);
        }
        if !kinds.contains(&role.str_at("/kind")) {
            errors.not_supported(&path.child("kind"), role.str_at("/kind"), kinds);
        }
        if role.str_at("/name").is_empty() {
            errors.required(&path.child("name"), "");
        }
        for (index, subject) in binding.at("/subjects").items().iter().enumerate() {
            let path = FieldPath::new("subjects").index(index);
            if subject.str_at("/name").is_empty() {
                errors.required(&path.child("name"), "");
            }
            match subject.str_at("/kind") {
                "ServiceAccount"
                    if subject.str_at("/namespace").is_empty()
                        && binding.meta().namespace().is_empty() =>
                {
                    errors.required(&path.child("namespace"), "");
                }
                "ServiceAccount" | "User" | "Group" => {}
                other => errors.not_supported(
                    &path.child("kind"),
                    other,
                    &["ServiceAccount", "User", "Group"],
                ),
            }
        }
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        if new.at("/roleRef") != old.at("/roleRef") {
            errors.invalid(
                &FieldPath::new("roleRef"),
                new.at("/roleRef"),
                "cannot change roleRef",
            );
        }
    }
}

//! Nodes, leases and priority classes.

use std::collections::HashSet;

use windlass_core::Doc;

use crate::edit::edit;
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// Hooks of nodes.
#[derive(Debug)]
pub struct Nodes;

/// Hooks of leases.
#[derive(Debug)]
pub struct Leases;

/// Hooks of priority classes.
#[derive(Debug)]
pub struct PriorityClasses;

/// The classes that every cluster has.
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];
/// The highest value that users may give.
const PRIORITY_MAX: i64 = 1_000_000_000;

impl Hooks for Nodes {
    fn default(&self, node: Doc) -> Doc {
        edit(&node, |node| {
            node.default("spec", Doc::empty_object());
            node.inside("status", |status| {
                edit(status, |status| {
                    if let Some(capacity) = status.get("capacity").cloned()
                        && !status.has("allocatable")
                    {
                        status.set("allocatable", capacity);
                    }
                })
            });
        })
    }

    fn creates_with_status(&self) -> bool {
        true
    }

    fn validate(&self, node: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("metadata").child("taints");
        let mut seen = HashSet::new();
        for (index, taint) in node.at("/spec/taints").items().iter().enumerate() {
            let identity = (taint.str_at("/key"), taint.str_at("/effect"));
            if !seen.insert(identity) {
                errors.duplicate(&path.index(index), taint);
            }
        }
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let (cidrs, before) = (new.at("/spec/podCIDRs"), old.at("/spec/podCIDRs"));
        if !before.is_null() && cidrs != before {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            errors.forbidden(&FieldPath::new("spec").child("podCIDRs"), detail);
        }
    }
}

impl Hooks for Leases {
    fn validate(&self, lease: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec");
        let duration = lease.at("/spec/leaseDurationSeconds");
        if duration.as_i64().is_some_and(|seconds| seconds <= 0) {
            errors.invalid(
                &path.child("leaseDurationSeconds"),
                duration,
                "must be greater than 0",
            );
        }
        let transitions = lease.at("/spec/leaseTransitions");
        if transitions.as_i64().is_some_and(|count| count < 0) {
            let detail = "must be greater than or equal to 0";
            errors.invalid(&path.child("leaseTransitions"), transitions, detail);
        }
    }
}

impl Hooks for PriorityClasses {
    fn default(&self, class: Doc) -> Doc {
        edit(&class, |class| {
            class.default("preemptionPolicy", "PreemptLowerPriority")
        })
    }

    fn validate(&self, class: &Doc, errors: &mut FieldErrors) {
        let value = class.at("/value").as_i64().unwrap_or(0);
        let name = class.meta().name();
        if name.starts_with("system-") {
            if let Some(fault) = system_fault(name, value) {
                let detail = format!(
                    "priority class names with 'system-' prefix are reserved for system use only. \
                     error: {fault}"
                );
                errors.forbidden(&FieldPath::new("metadata").child("name"), detail);
            }
        } else if value > PRIORITY_MAX {
            let detail =
                format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
            errors.forbidden(&FieldPath::new("value"), detail);
        }
        let path = FieldPath::new("preemptionPolicy");
        match class.str_at("/preemptionPolicy") {
            "" | "PreemptLowerPriority" | "Never" => {}
            other => errors.not_supported(&path, other, &["PreemptLowerPriority", "Never"]),
        }
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        if new.at("/value") != old.at("/value") {
            let detail = "may not be changed in an update.";
            errors.forbidden(&FieldPath::new("value"), detail);
        }
        let (policy, before) = (new.at("/preemptionPolicy"), old.at("/preemptionPolicy"));
        errors.immutable(&FieldPath::new("preemptionPolicy"), policy, before);
    }
}

/// Why a class is not one of those that every cluster has.
fn system_fault(name: &str, value: i64) -> Option<String> {
    let known = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name);
    match known {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, known)) if *known != value => {
            Some(format!("value of {name} PriorityClass must be {known}"))
        }
        Some(_) => None,
    }
}

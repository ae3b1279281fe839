//! Nodes, leases and priority classes.

use windlass_core::Doc;

use super::fields::edit;
use crate::field::{FieldErrors, FieldPath};
use crate::registry::Hooks;

/// Hooks of nodes.
#[derive(Debug)]
pub(crate) struct Nodes;

/// Hooks of leases.
#[derive(Debug)]
pub(crate) struct Leases;

/// Hooks of priority classes.
#[derive(Debug)]
pub(crate) struct PriorityClasses;

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
        let mut seen = Vec::new();
        for (index, taint) in node.at("/spec/taints").items().iter().enumerate() {
            let identity = (taint.str_at("/key"), taint.str_at("/effect"));
            if seen.contains(&identity) {
                errors.duplicate(&path.index(index), taint);
            }
            seen.push(identity);
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
        if value > PRIORITY_MAX && !class.meta().name().starts_with("system-") {
            let detail =
                format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
            errors.forbidden(&FieldPath::new("value"), detail);
        }
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        if new.at("/value") != old.at("/value") {
            let detail = "may not be changed in an update.";
            errors.forbidden(&FieldPath::new("value"), detail);
        }
    }
}

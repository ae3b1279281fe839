//! Pod disruption budgets.

use windlass_core::{Doc, doc};

use super::apps::{int_or_percent, is_above_all};
use super::pod_spec::one_of;
use super::{pod_terms, workload};
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

const EVICTIONS: &[&str] = &["AlwaysAllow", "IfHealthyBudget"];

/// Hooks of pod disruption budgets.
#[derive(Debug)]
pub struct DisruptionBudgets;

impl Hooks for DisruptionBudgets {
    fn initial_status(&self) -> Doc {
        doc!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 })
    }

    fn validate(&self, budget: &Doc, errors: &mut FieldErrors) {
        let (spec, path) = (budget.at("/spec"), FieldPath::new("spec"));
        if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() {
            let detail = "minAvailable and maxUnavailable cannot be both set";
            errors.invalid_shown(&path, show(spec), detail);
        }
        for key in ["minAvailable", "maxUnavailable"] {
            let bound = int_or_percent(spec, key, &path, errors);
            if bound.as_ref().is_some_and(is_above_all) {
                let value = spec.get(key).cloned().unwrap_or_default();
                errors.invalid(&path.child(key), value, "must not be greater than 100%");
            }
        }
        pod_terms::validate_selector(spec.get("selector"), &path.child("selector"), errors);
        one_of(spec, "unhealthyPodEvictionPolicy", EVICTIONS, &path, errors);
    }
}

/// A spec as messages show it: with upstream's own names, in its order.
fn show(spec: &Doc) -> String {
    let selector = match spec.at("/selector") {
        selector if selector.is_null() => "null".to_owned(),
        selector => workload::show_selector(selector),
    };
    format!(
        "{{\"MinAvailable\":{},\"Selector\":{selector},\"MaxUnavailable\":{},\
         \"UnhealthyPodEvictionPolicy\":{}}}",
        spec.at("/minAvailable"),
        spec.at("/maxUnavailable"),
        spec.at("/unhealthyPodEvictionPolicy")
    )
}

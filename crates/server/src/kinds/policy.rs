//! Pod disruption budgets.

use windlass_core::{Doc, doc};

use crate::field::{FieldErrors, FieldPath};
use crate::registry::Hooks;

/// Hooks of pod disruption budgets.
#[derive(Debug)]
pub(crate) struct DisruptionBudgets;

impl Hooks for DisruptionBudgets {
    fn initial_status(&self) -> Doc {
        doc!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 })
    }

    fn validate(&self, budget: &Doc, errors: &mut FieldErrors) {
        let spec = budget.at("/spec");
        if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() {
            let detail = "minAvailable and maxUnavailable cannot be both set";
            errors.invalid(&FieldPath::new("spec"), spec, detail);
        }
    }
}

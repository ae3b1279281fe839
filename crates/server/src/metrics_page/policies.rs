//! Figures of admission policies.

use super::Page;
use crate::metrics::PolicyMetrics;

pub(super) fn write(page: &mut Page, metrics: &PolicyMetrics) {
    let validating = metrics.validating.lock();
    let name = "apiserver_validating_admission_policy_check_total";
    let help = "Validation admission policy check total, labeled by policy and further identified \
                by binding and enforcement action taken.";
    page.head(name, "counter", help);
    for (labels, count) in validating.iter() {
        page.row(name, labels, count);
    }
    drop(validating);
    let mutating = metrics.mutating.lock();
    let name = "apiserver_mutating_admission_policy_check_total";
    let help = "Mutation admission policy check total, labeled by policy and further identified by \
                binding.";
    page.head(name, "counter", help);
    for (labels, count) in mutating.iter() {
        page.row(name, labels, count);
    }
}

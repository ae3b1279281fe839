//! Checks of admission policies.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Combinations of labels that are counted apart in one metric. Further ones are not counted.
const SORTS_LIMIT: usize = 4096;

/// The counts of policy checks, each by its labels as they are written.
#[derive(Debug, Default)]
pub(crate) struct PolicyMetrics {
    pub(crate) validating: Mutex<BTreeMap<String, u64>>,
    pub(crate) mutating: Mutex<BTreeMap<String, u64>>,
}

impl PolicyMetrics {
    /// Counts a validation that did not hold, or the error of one that could not be evaluated.
    pub(crate) fn validated(&self, policy: &str, binding: &str, error: &str, enforcement: &str) {
        let labels = labels(
            (policy, binding),
            error_type(error, "invalid_error"),
            enforcement,
        );
        add(&self.validating, labels);
    }

    /// Counts a mutation, or its error.
    pub(crate) fn mutated(&self, policy: &str, binding: &str, error: &str, enforcement: &str) {
        let labels = labels(
            (policy, binding),
            error_type(error, "invalid_error"),
            enforcement,
        );
        add(&self.mutating, labels);
    }
}

/// The sort of an error, by the beginning of its text as upstream has it.
fn error_type(error: &str, other: &'static str) -> &'static str {
    match error {
        "" => "no_error",
        error if error.starts_with("compilation") => "compile_error",
        error if error.starts_with("validation failed due to running out of cost budget") => {
            "out_of_budget"
        }
        _ => other,
    }
}

fn labels((policy, binding): (&str, &str), error: &str, enforcement: &str) -> String {
    format!(
        "enforcement_action=\"{enforcement}\",error_type=\"{error}\",policy=\"{policy}\",\
         policy_binding=\"{binding}\""
    )
}

fn add(counts: &Mutex<BTreeMap<String, u64>>, labels: String) {
    let mut counts = counts.lock();
    if counts.len() < SORTS_LIMIT || counts.contains_key(&labels) {
        *counts.entry(labels).or_default() += 1;
    }
}

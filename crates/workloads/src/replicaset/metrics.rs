//! What this controller counts beside what all controllers do.

use std::fmt;

use prometheus_client::{metrics::histogram::Histogram, registry::Registry};

/// Upper bounds of the ages, as upstream has them: a quarter, doubled five times.
const AGE_RATIOS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

/// The metrics of one controller.
#[derive(Clone)]
pub(super) struct Metrics {
    age_ratios: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            age_ratios: Histogram::new(AGE_RATIOS),
        }
    }
}

impl Metrics {
    /// A ready pod was chosen for deletion, so many times as old as the youngest one.
    pub(super) fn deleted_at_age(&self, ratio: f64) {
        self.age_ratios.observe(ratio);
    }

    /// Makes the metrics part of what a registry prints, under names that start with `prefix`.
    pub(super) fn registration(
        &self,
        prefix: &'static str,
    ) -> impl Fn(&mut Registry) + Send + Sync + 'static {
        let metrics = self.clone();
        move |registry| {
            registry.register(
                format!("{prefix}_sorting_deletion_age_ratio"),
                "The ratio of chosen deleted pod's ages to the current youngest pod's age",
                metrics.age_ratios.clone(),
            );
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

//! The metrics of taint eviction, under upstream's names.

use std::{fmt, sync::Arc, time::Duration};

use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram},
    registry::Registry,
};

/// Upstream's upper bounds.
const BUCKETS: [f64; 12] = [
    0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0,
];

/// The metrics. Clones count together.
#[derive(Clone)]
pub(super) struct Metrics(Arc<Series>);

struct Series {
    deletions: Counter,
    latency: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(Series {
            deletions: Counter::default(),
            latency: Histogram::new(BUCKETS),
        }))
    }
}

impl Metrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let all = &self.0;
        registry.register(
            "taint_eviction_controller_pod_deletions",
            "Total number of Pods deleted by TaintEvictionController since its start",
            all.deletions.clone(),
        );
        registry.register(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "Latency, in seconds, between the time when a taint effect has been activated for the Pod and its deletion via TaintEvictionController",
            all.latency.clone(),
        );
    }

    /// Counts a pod that was deleted so long after its time was over.
    pub(super) fn deleted(&self, late: Duration) {
        self.0.deletions.inc();
        self.0.latency.observe(late.as_secs_f64());
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

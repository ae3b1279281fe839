//! What the collector counts, under upstream's names.

use std::{fmt, sync::Arc};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::Reason;

/// The metrics. Clones count together.
#[derive(Clone, Default)]
pub(super) struct Metrics(Arc<Series>);

#[derive(Default)]
struct Series {
    removed: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    namespace: String,
    reason: &'static str,
}

impl Metrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        // The encoder adds `_total` to the names of counters.
        registry.register(
            "pod_gc_collector_force_delete_pods",
            "Number of pods that are being forcefully deleted since the Pod GC Controller started",
            self.0.removed.clone(),
        );
        registry.register(
            "pod_gc_collector_force_delete_pod_errors",
            "Number of errors encountered when forcefully deleting the pods since the Pod GC Controller started",
            self.0.errors.clone(),
        );
    }

    pub(super) fn removing(&self, namespace: &str, reason: Reason) {
        self.0
            .removed
            .get_or_create(&labels(namespace, reason))
            .inc();
    }

    pub(super) fn failed(&self, namespace: &str, reason: Reason) {
        self.0
            .errors
            .get_or_create(&labels(namespace, reason))
            .inc();
    }
}

fn labels(namespace: &str, reason: Reason) -> Labels {
    Labels {
        namespace: namespace.to_owned(),
        reason: reason.as_str(),
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

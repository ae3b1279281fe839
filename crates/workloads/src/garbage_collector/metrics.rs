//! What the garbage collector counts.

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// The metrics of the garbage collector. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics {
    sync_errors: Counter,
}

impl Metrics {
    /// Discovery failed, or a kind could not be watched.
    pub(super) fn sync_failed(&self) {
        self.sync_errors.inc();
    }

    /// Prints the counters and the size of the graph.
    pub(super) fn register(&self, registry: &mut Registry, (nodes, virtual_nodes): (usize, usize)) {
        // The encoder adds `_total` to the names of counters.
        registry.register(
            "garbagecollector_controller_resources_sync_error",
            "Number of garbage collector resources sync errors",
            self.sync_errors.clone(),
        );
        let gauge = |value: usize| {
            let gauge = Gauge::<i64>::default();
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            gauge
        };
        registry.register(
            "garbagecollector_controller_graph_nodes",
            "Number of objects in the graph of owners and dependents",
            gauge(nodes),
        );
        registry.register(
            "garbagecollector_controller_graph_virtual_nodes",
            "Number of owners that are known from references only",
            gauge(virtual_nodes),
        );
    }
}

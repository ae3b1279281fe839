//! The metrics of node lifecycle, under upstream's names.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Upper bounds of the time that a look takes: a millisecond, quadrupled seven times.
const BUCKETS: [f64; 8] = [0.001, 0.004, 0.016, 0.064, 0.256, 1.024, 4.096, 16.384];

/// The metrics. Clones count together.
#[derive(Clone)]
pub(super) struct Metrics(Arc<Series>);

struct Series {
    health: Family<Labels, Gauge<f64, AtomicU64>>,
    size: Family<Labels, Gauge>,
    unhealthy: Family<Labels, Gauge>,
    evictions: Family<Labels, Counter>,
    all_nodes: Histogram,
    one_node: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    zone: String,
}

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(Series {
            health: Family::default(),
            size: Family::default(),
            unhealthy: Family::default(),
            evictions: Family::default(),
            all_nodes: Histogram::new(BUCKETS),
            one_node: Histogram::new(BUCKETS),
        }))
    }
}

impl Metrics {
    pub(super) fn registration(&self) -> impl Fn(&mut Registry) + Send + Sync + 'static {
        let metrics = self.clone();
        move |registry| metrics.register(registry)
    }

    fn register(&self, registry: &mut Registry) {
        let all = &self.0;
        registry.register(
            "node_collector_zone_health",
            "Gauge measuring percentage of healthy nodes per zone",
            all.health.clone(),
        );
        registry.register(
            "node_collector_zone_size",
            "Gauge measuring number of registered Nodes per zones",
            all.size.clone(),
        );
        registry.register(
            "node_collector_unhealthy_nodes_in_zone",
            "Gauge measuring number of not Ready Nodes per zones",
            all.unhealthy.clone(),
        );
        registry.register(
            "node_collector_evictions",
            "Number of Node evictions that happened since current instance of NodeController started",
            all.evictions.clone(),
        );
        registry.register(
            "node_collector_update_all_nodes_health_duration_seconds",
            "Duration in seconds for NodeController to update the health of all nodes",
            all.all_nodes.clone(),
        );
        registry.register(
            "node_collector_update_node_health_duration_seconds",
            "Duration in seconds for NodeController to update the health of a single node",
            all.one_node.clone(),
        );
    }

    pub(super) fn zone(&self, zone: &str, ready: usize, not_ready: usize) {
        let labels = labels(zone);
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let size = ready + not_ready;
        let health = match size {
            0 => 100.0,
            _ => 100.0 * ready as f64 / size as f64,
        };
        self.0.health.get_or_create(&labels).set(health);
        self.0.size.get_or_create(&labels).set(number(size));
        let unhealthy = self.0.unhealthy.get_or_create(&labels);
        unhealthy.set(number(not_ready));
    }

    pub(super) fn tainted(&self, zone: &str) {
        self.0.evictions.get_or_create(&labels(zone)).inc();
    }

    pub(super) fn looked_at_all(&self, time: Duration) {
        self.0.all_nodes.observe(time.as_secs_f64());
    }

    pub(super) fn looked_at_one(&self, time: Duration) {
        self.0.one_node.observe(time.as_secs_f64());
    }
}

fn labels(zone: &str) -> Labels {
    Labels {
        zone: zone.to_owned(),
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

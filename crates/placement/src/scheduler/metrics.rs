//! What the scheduler counts, under upstream's names.

use std::{fmt, sync::Arc, time::Duration};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::queue::Depths;

/// Upper bounds in seconds: a millisecond, doubled fifteen times.
const SECONDS_MIN: f64 = 0.001;
const SECONDS_BUCKETS: u16 = 15;

/// The metrics of a scheduler. Clones count together.
#[derive(Clone, Default)]
pub(super) struct Metrics(Arc<Families>);

struct Families {
    attempts: Family<ResultLabels, Counter>,
    attempt_seconds: Family<ResultLabels, Histogram, fn() -> Histogram>,
    algorithm_seconds: Histogram,
    attempts_of_pod: Histogram,
    waiting_seconds: Histogram,
    pending: Family<QueueLabels, Gauge>,
    cache: Family<TypeLabels, Gauge>,
    unschedulable: Family<PluginLabels, Gauge>,
    events: Gauge,
    evaluations: Counter,
    preemptions: Counter,
    victims: Histogram,
    evictions: Family<EvictionLabels, Counter>,
    eviction_seconds: Family<EvictionLabels, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
    profile: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    queue: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabels {
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PluginLabels {
    plugin: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EvictionLabels {
    result: &'static str,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Scheduled,
    Unschedulable,
    Error,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Unschedulable => "unschedulable",
            Self::Error => "error",
        }
    }
}

impl Default for Families {
    fn default() -> Self {
        let seconds = seconds as fn() -> Histogram;
        Self {
            attempts: Family::default(),
            attempt_seconds: Family::new_with_constructor(seconds),
            algorithm_seconds: seconds(),
            attempts_of_pod: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0]),
            waiting_seconds: seconds(),
            pending: Family::default(),
            cache: Family::default(),
            unschedulable: Family::default(),
            events: Gauge::default(),
            evaluations: Counter::default(),
            preemptions: Counter::default(),
            victims: Histogram::new(victim_buckets()),
            evictions: Family::default(),
            eviction_seconds: Family::new_with_constructor(seconds),
        }
    }
}

/// Upper bounds of the number of victims: one, doubled six times.
fn victim_buckets() -> impl Iterator<Item = f64> {
    prometheus_client::metrics::histogram::exponential_buckets(1.0, 2.0, 7)
}

fn seconds() -> Histogram {
    use prometheus_client::metrics::histogram::exponential_buckets;
    Histogram::new(exponential_buckets(SECONDS_MIN, 2.0, SECONDS_BUCKETS))
}

impl Metrics {
    /// Shows the metrics in a registry.
    #[rustfmt::skip] // One metric per line reads as a table.
    pub(super) fn register(&self, registry: &mut Registry) {
        let all = &*self.0;
        registry.register("scheduler_schedule_attempts", "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an internal scheduler problem", all.attempts.clone());
        registry.register("scheduler_scheduling_attempt_duration_seconds", "Scheduling attempt latency in seconds (scheduling algorithm + binding)", all.attempt_seconds.clone());
        registry.register("scheduler_scheduling_algorithm_duration_seconds", "Scheduling algorithm latency in seconds", all.algorithm_seconds.clone());
        registry.register("scheduler_pod_scheduling_attempts", "Number of attempts to successfully schedule a pod", all.attempts_of_pod.clone());
        registry.register("scheduler_pod_scheduling_sli_duration_seconds", "Latency of a pod being scheduled, from the time the pod enters the scheduling queue", all.waiting_seconds.clone());
        registry.register("scheduler_pending_pods", "Number of pending pods, by the queue type: active, backoff, unschedulable or gated", all.pending.clone());
        registry.register("scheduler_cache_size", "Number of nodes, pods, and assumed (bound) pods in the scheduler cache", all.cache.clone());
        registry.register("scheduler_unschedulable_pods", "The number of unschedulable pods broken down by plugin name", all.unschedulable.clone());
        registry.register("scheduler_inflight_events", "Number of events currently tracked in the scheduling queue", all.events.clone());
        registry.register("scheduler_node_evaluations", "Number of times a node was compared with a pod by a plug-in", all.evaluations.clone());
        registry.register("scheduler_preemption_attempts", "Total preemption attempts in the cluster till now", all.preemptions.clone());
        registry.register("scheduler_preemption_victims", "Number of selected preemption victims", all.victims.clone());
        registry.register("scheduler_preemption_goroutines_execution", "Number of preemption goroutines executed", all.evictions.clone());
        registry.register("scheduler_preemption_goroutines_duration_seconds", "Duration in seconds for running goroutines for the preemption", all.eviction_seconds.clone());
    }

    pub(super) fn attempted(&self, outcome: Outcome, profile: &str, took: Duration) {
        let labels = ResultLabels {
            result: outcome.as_str(),
            profile: profile.to_owned(),
        };
        self.0.attempts.get_or_create(&labels).inc();
        let seconds = self.0.attempt_seconds.get_or_create(&labels);
        seconds.observe(took.as_secs_f64());
    }

    pub(super) fn scheduled(&self, attempts: u32, waited: Duration) {
        self.0.attempts_of_pod.observe(f64::from(attempts));
        self.0.waiting_seconds.observe(waited.as_secs_f64());
    }

    pub(super) fn decided(&self, took: Duration) {
        self.0.algorithm_seconds.observe(took.as_secs_f64());
    }

    pub(super) fn asked_plugins(&self, nodes: usize) {
        self.0.evaluations.inc_by(nodes as u64);
    }

    /// Counts a search for victims.
    pub(super) fn preemption_attempted(&self) {
        self.0.preemptions.inc();
    }

    /// Counts the victims of a preemption.
    pub(super) fn preempted(&self, victims: usize) {
        let victims = u32::try_from(victims).unwrap_or(u32::MAX);
        self.0.victims.observe(f64::from(victims));
    }

    /// Counts the end of an eviction.
    pub(super) fn preemption_ended(&self, is_done: bool, took: Duration) {
        let result = if is_done { "success" } else { "error" };
        let labels = EvictionLabels { result };
        self.0.evictions.get_or_create(&labels).inc();
        let seconds = self.0.eviction_seconds.get_or_create(&labels);
        seconds.observe(took.as_secs_f64());
    }

    pub(super) fn depths(&self, depths: Depths, events: usize) {
        let parts = [
            ("active", depths.active),
            ("backoff", depths.backoff),
            ("unschedulable", depths.unschedulable),
            ("gated", depths.gated),
        ];
        for (queue, depth) in parts {
            set(&self.0.pending.get_or_create(&QueueLabels { queue }), depth);
        }
        set(&self.0.events, events);
    }

    pub(super) fn unschedulable(&self, plugin: &'static str, count: usize) {
        let labels = PluginLabels { plugin };
        set(&self.0.unschedulable.get_or_create(&labels), count);
    }

    pub(super) fn cache(&self, nodes: usize, pods: usize, assumed: usize) {
        for (r#type, size) in [("nodes", nodes), ("pods", pods), ("assumed_pods", assumed)] {
            set(&self.0.cache.get_or_create(&TypeLabels { r#type }), size);
        }
    }
}

fn set(gauge: &Gauge, value: usize) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

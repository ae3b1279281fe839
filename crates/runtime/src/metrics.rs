//! The metrics of the runtime, under upstream's names where upstream has one.

mod caches;
mod queues;

use std::{fmt, sync::Arc, time::Duration};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use windlass_core::GroupResource;

pub(crate) use caches::{CacheSize, register_cache_sizes};
pub(crate) use queues::QueueCollector;

/// Upper bounds in seconds, as controller-runtime has them.
const SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];

/// The metrics of all controllers of a process. Clones count together.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Families>);

struct Families {
    reconciles: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    terminal: Family<ControllerLabels, Counter>,
    panics: Family<ControllerLabels, Counter>,
    timeouts: Family<ControllerLabels, Counter>,
    dropped: Family<ControllerLabels, Counter>,
    seconds: Family<ControllerLabels, Histogram, fn() -> Histogram>,
    workers: Family<ControllerLabels, Gauge>,
    active: Family<ControllerLabels, Gauge>,
    stale: Family<StaleLabels, Counter>,
    leads: Family<NameLabels, Gauge>,
    slow_renewals: Family<NameLabels, Counter>,
    events_dropped: Family<ComponentLabels, Counter>,
    events_lost: Family<ComponentLabels, Counter>,
    events_held_back: Family<ReasonLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    controller: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StaleLabels {
    controller: String,
    group: String,
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NameLabels {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ComponentLabels {
    component: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    component: String,
    reason: String,
}

impl Default for Families {
    fn default() -> Self {
        Self {
            reconciles: Family::default(),
            errors: Family::default(),
            terminal: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            dropped: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            workers: Family::default(),
            active: Family::default(),
            stale: Family::default(),
            leads: Family::default(),
            slow_renewals: Family::default(),
            events_dropped: Family::default(),
            events_lost: Family::default(),
            events_held_back: Family::default(),
        }
    }
}

impl Metrics {
    /// Makes the metrics part of what a registry prints.
    #[rustfmt::skip] // One metric per line reads as a table.
    pub fn register(&self, registry: &mut Registry) {
        let all = &*self.0;
        // The encoder adds `_total` to the names of counters.
        registry.register("controller_runtime_reconcile", "Total number of reconciliations per controller", all.reconciles.clone());
        registry.register("controller_runtime_reconcile_errors", "Total number of reconciliation errors per controller", all.errors.clone());
        registry.register("controller_runtime_terminal_reconcile_errors", "Total number of terminal reconciliation errors per controller", all.terminal.clone());
        registry.register("controller_runtime_reconcile_panics", "Total number of reconciliation panics per controller", all.panics.clone());
        registry.register("controller_runtime_reconcile_timeouts", "Total number of reconciliation timeouts per controller", all.timeouts.clone());
        registry.register("controller_runtime_reconcile_time_seconds", "Length of time per reconciliation per controller", all.seconds.clone());
        registry.register("controller_runtime_max_concurrent_reconciles", "Maximum number of concurrent reconciles per controller", all.workers.clone());
        registry.register("controller_runtime_active_workers", "Number of currently used workers per controller", all.active.clone());
        registry.register("controller_dropped_keys", "Total number of keys that were given up after too many retries", all.dropped.clone());
        registry.register("controller_stale_sync_skips", "Total number of reconciliations put off because a cache was behind", all.stale.clone());
        registry.register("leader_election_master_status", "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master", all.leads.clone());
        registry.register("leader_election_slowpath", "Total number of slow path exercised in renewing leader leases", all.slow_renewals.clone());
        registry.register("event_recorder_dropped_events", "Total number of events that found a full queue", all.events_dropped.clone());
        registry.register("event_recorder_lost_events", "Total number of events that could not be stored", all.events_lost.clone());
        registry.register("event_recorder_held_back_events", "Total number of events of objects that are too loud", all.events_held_back.clone());
    }

    pub(crate) fn controller(&self, name: &str, workers: usize) -> ControllerMetrics {
        let metrics = ControllerMetrics(Arc::new(Series::of(&self.0, name)));
        metrics
            .0
            .workers
            .set(i64::try_from(workers).unwrap_or(i64::MAX));
        metrics
    }

    pub(crate) fn events(&self) -> EventMetrics {
        EventMetrics(self.clone())
    }

    pub(crate) fn election(&self) -> ElectionMetrics {
        ElectionMetrics(self.clone())
    }
}

/// The metrics of one controller, all made at once so that they show from the start.
#[derive(Clone)]
pub(crate) struct ControllerMetrics(Arc<Series>);

struct Series {
    name: String,
    results: [(Outcome, Counter); 4],
    errors: Counter,
    terminal: Counter,
    panics: Counter,
    timeouts: Counter,
    dropped: Counter,
    seconds: Histogram,
    workers: Gauge,
    active: Gauge,
    stale: Family<StaleLabels, Counter>,
}

/// The result of a reconcile, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Error,
    Requeue,
    RequeueAfter,
}

impl Outcome {
    const ALL: [Self; 4] = [
        Self::Success,
        Self::Error,
        Self::Requeue,
        Self::RequeueAfter,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Requeue => "requeue",
            Self::RequeueAfter => "requeue_after",
        }
    }
}

impl Series {
    fn of(all: &Families, name: &str) -> Self {
        let labels = ControllerLabels {
            controller: name.to_owned(),
        };
        let results = Outcome::ALL.map(|outcome| {
            let (controller, result) = (name.to_owned(), outcome.as_str());
            (
                outcome,
                all.reconciles
                    .get_or_create_owned(&ResultLabels { controller, result }),
            )
        });
        Self {
            name: name.to_owned(),
            results,
            errors: all.errors.get_or_create_owned(&labels),
            terminal: all.terminal.get_or_create_owned(&labels),
            panics: all.panics.get_or_create_owned(&labels),
            timeouts: all.timeouts.get_or_create_owned(&labels),
            dropped: all.dropped.get_or_create_owned(&labels),
            seconds: all.seconds.get_or_create_owned(&labels),
            workers: all.workers.get_or_create_owned(&labels),
            active: all.active.get_or_create_owned(&labels),
            stale: all.stale.clone(),
        }
    }
}

impl ControllerMetrics {
    /// A reconcile has begun; dropping what this returns says that it has ended.
    pub(crate) fn begin(&self) -> Active {
        self.0.active.inc();
        Active(self.0.active.clone())
    }

    pub(crate) fn reconciled(&self, outcome: Outcome, took: Duration) {
        self.0.seconds.observe(took.as_secs_f64());
        for (_, counter) in self.0.results.iter().filter(|(of, _)| *of == outcome) {
            counter.inc();
        }
        if outcome == Outcome::Error {
            self.0.errors.inc();
        }
    }

    pub(crate) fn terminal(&self) {
        self.0.terminal.inc();
    }

    pub(crate) fn panicked(&self) {
        self.0.panics.inc();
    }

    pub(crate) fn timed_out(&self) {
        self.0.timeouts.inc();
    }

    pub(crate) fn dropped(&self) {
        self.0.dropped.inc();
    }

    pub(crate) fn stale(&self, resource: &GroupResource) {
        let labels = StaleLabels {
            controller: self.0.name.clone(),
            group: resource.group().to_owned(),
            resource: resource.resource().to_owned(),
        };
        self.0.stale.get_or_create(&labels).inc();
    }
}

/// A reconcile in progress.
pub(crate) struct Active(Gauge);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Metrics of events.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventMetrics(Metrics);

impl EventMetrics {
    pub(crate) fn all(&self) -> &Metrics {
        &self.0
    }

    pub(crate) fn dropped(&self, component: &str) {
        let labels = ComponentLabels {
            component: component.to_owned(),
        };
        self.0.0.events_dropped.get_or_create(&labels).inc();
    }

    pub(crate) fn lost(&self, component: &str) {
        let labels = ComponentLabels {
            component: component.to_owned(),
        };
        self.0.0.events_lost.get_or_create(&labels).inc();
    }

    pub(crate) fn held_back(&self, component: &str, reason: &str) {
        let labels = ReasonLabels {
            component: component.to_owned(),
            reason: reason.to_owned(),
        };
        let series = self.0.0.events_held_back.get_or_create(&labels);
        if series.inc() == 0 {
            tracing::warn!(
                component,
                reason,
                "events are held back: their object is too loud"
            );
        }
    }
}

/// Metrics of leadership.
#[derive(Clone, Debug, Default)]
pub(crate) struct ElectionMetrics(Metrics);

impl ElectionMetrics {
    pub(crate) fn leads(&self, lease: &str, leads: bool) {
        let labels = NameLabels {
            name: lease.to_owned(),
        };
        self.0.0.leads.get_or_create(&labels).set(i64::from(leads));
    }

    pub(crate) fn slow_renewal(&self, lease: &str) {
        let labels = NameLabels {
            name: lease.to_owned(),
        };
        self.0.0.slow_renewals.get_or_create(&labels).inc();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

impl fmt::Debug for ControllerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ControllerMetrics({})", self.0.name)
    }
}

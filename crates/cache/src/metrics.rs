//! Metrics of informers, under upstream's names.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use windlass_core::{Gvr, Revision};

use crate::source::Reason;

/// Upper bounds of the buckets, as upstream has them.
const LATENCY: [f64; 12] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
const SECONDS: [f64; 12] = [
    0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1200.0,
];
const ITEMS: [f64; 8] = [
    1.0,
    10.0,
    100.0,
    500.0,
    1_000.0,
    10_000.0,
    100_000.0,
    1_000_000.0,
];

/// Ten to the number of digits that a float holds exactly. The gauge shows the last digits of longer
/// versions.
const EXACT_DIGITS: u64 = 1_000_000_000_000_000;

type Histograms = Family<InformerLabels, Histogram, fn() -> Histogram>;

/// The metrics of all informers of a process. Clones count together.
#[derive(Clone)]
pub struct Metrics(Arc<Families>);

struct Families {
    queued: Family<InformerLabels, Gauge>,
    latency: Histograms,
    store_version: Family<InformerLabels, Gauge>,
    objects: Family<InformerLabels, Gauge>,
    coalesced: Family<InformerLabels, Counter>,
    panics: Family<InformerLabels, Counter>,
    unreadable: Family<InformerLabels, Counter>,
    lists: Family<InformerLabels, Counter>,
    list_duration: Histograms,
    items_per_list: Histograms,
    watches: Family<InformerLabels, Counter>,
    short_watches: Family<InformerLabels, Counter>,
    watch_duration: Histograms,
    items_per_watch: Histograms,
    last_version: Family<InformerLabels, Gauge>,
    failures: Family<FailureLabels, Counter>,
    /// The labels in use. Two informers must not write to one series.
    taken: Mutex<BTreeSet<InformerLabels>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct InformerLabels {
    name: String,
    group: String,
    version: String,
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    name: String,
    resource: String,
    reason: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let histograms = |buckets: fn() -> Histogram| Histograms::new_with_constructor(buckets);
        Self(Arc::new(Families {
            queued: Family::default(),
            latency: histograms(|| Histogram::new(LATENCY)),
            store_version: Family::default(),
            objects: Family::default(),
            coalesced: Family::default(),
            panics: Family::default(),
            unreadable: Family::default(),
            lists: Family::default(),
            list_duration: histograms(|| Histogram::new(SECONDS)),
            items_per_list: histograms(|| Histogram::new(ITEMS)),
            watches: Family::default(),
            short_watches: Family::default(),
            watch_duration: histograms(|| Histogram::new(SECONDS)),
            items_per_watch: histograms(|| Histogram::new(ITEMS)),
            last_version: Family::default(),
            failures: Family::default(),
            taken: Mutex::default(),
        }))
    }
}

impl Metrics {
    /// Metrics that nobody sees until they are registered.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the metrics part of what a registry prints.
    #[rustfmt::skip] // One metric per line reads as a table.
    pub fn register(&self, registry: &mut Registry) {
        let all = &*self.0;
        // The encoder adds `_total` to the names of counters.
        registry.register("informer_queued_items", "Number of items currently queued in the informer", all.queued.clone());
        registry.register("informer_processing_latency_seconds", "Time to apply a batch and hand it to the handlers, in seconds", all.latency.clone());
        registry.register("informer_store_resource_version", "Last 15 digits of the resource version that the store reflects", all.store_version.clone());
        registry.register("informer_objects", "Number of objects in the store", all.objects.clone());
        registry.register("informer_coalesced_notifications", "Number of notifications that were merged because a handler is slow", all.coalesced.clone());
        registry.register("informer_handler_panics", "Number of panics in handlers", all.panics.clone());
        registry.register("informer_unreadable_objects", "Number of objects that could not be decoded or transformed", all.unreadable.clone());
        registry.register("reflector_lists", "Total number of lists", all.lists.clone());
        registry.register("reflector_list_duration_seconds", "How long a list takes, in seconds", all.list_duration.clone());
        registry.register("reflector_items_per_list", "How many objects a list returns", all.items_per_list.clone());
        registry.register("reflector_watches", "Total number of watches", all.watches.clone());
        registry.register("reflector_short_watches", "Total number of watches that ended at once", all.short_watches.clone());
        registry.register("reflector_watch_duration_seconds", "How long a watch lasts, in seconds", all.watch_duration.clone());
        registry.register("reflector_items_per_watch", "How many events a watch returns", all.items_per_watch.clone());
        registry.register("reflector_last_resource_version", "Last 15 digits of the resource version that was seen last", all.last_version.clone());
        registry.register("reflector_failures", "Total number of failed lists and watches, by reason", all.failures.clone());
    }

    /// The metrics of one informer. If the name is taken for this resource, what it counts is not
    /// shown.
    pub(crate) fn informer(&self, name: &str, resource: &Gvr) -> InformerMetrics {
        let labels = InformerLabels {
            name: name.to_owned(),
            group: resource.group().to_owned(),
            version: resource.version().to_owned(),
            resource: resource.resource().to_owned(),
        };
        if self.0.taken.lock().insert(labels.clone()) {
            return InformerMetrics(Arc::new(Series::of(&self.0, Some(self.clone()), labels)));
        }
        tracing::error!(name, %resource, "an informer of this name has metrics already");
        InformerMetrics::default()
    }
}

/// The metrics of one informer and its reflector.
#[derive(Clone)]
pub(crate) struct InformerMetrics(Arc<Series>);

struct Series {
    queued: Gauge,
    latency: Histogram,
    store_version: Gauge,
    objects: Gauge,
    coalesced: Counter,
    panics: Counter,
    unreadable: Counter,
    lists: Counter,
    list_duration: Histogram,
    items_per_list: Histogram,
    watches: Counter,
    short_watches: Counter,
    watch_duration: Histogram,
    items_per_watch: Histogram,
    last_version: Gauge,
    failures: Family<FailureLabels, Counter>,
    labels: InformerLabels,
    /// The metrics in which the labels are taken, until this is dropped.
    owner: Option<Metrics>,
}

impl Series {
    fn of(all: &Families, owner: Option<Metrics>, labels: InformerLabels) -> Self {
        Self {
            queued: all.queued.get_or_create_owned(&labels),
            latency: all.latency.get_or_create_owned(&labels),
            store_version: all.store_version.get_or_create_owned(&labels),
            objects: all.objects.get_or_create_owned(&labels),
            coalesced: all.coalesced.get_or_create_owned(&labels),
            panics: all.panics.get_or_create_owned(&labels),
            unreadable: all.unreadable.get_or_create_owned(&labels),
            lists: all.lists.get_or_create_owned(&labels),
            list_duration: all.list_duration.get_or_create_owned(&labels),
            items_per_list: all.items_per_list.get_or_create_owned(&labels),
            watches: all.watches.get_or_create_owned(&labels),
            short_watches: all.short_watches.get_or_create_owned(&labels),
            watch_duration: all.watch_duration.get_or_create_owned(&labels),
            items_per_watch: all.items_per_watch.get_or_create_owned(&labels),
            last_version: all.last_version.get_or_create_owned(&labels),
            failures: all.failures.clone(),
            labels,
            owner,
        }
    }
}

impl Drop for Series {
    fn drop(&mut self) {
        let Some(Metrics(all)) = &self.owner else {
            return;
        };
        let labels = &self.labels;
        all.taken.lock().remove(labels);
        all.queued.remove(labels);
        all.latency.remove(labels);
        all.store_version.remove(labels);
        all.objects.remove(labels);
        all.last_version.remove(labels);
        // Counters stay: a counter that comes back smaller would look like a restart.
    }
}

impl Default for InformerMetrics {
    /// Metrics that nobody sees.
    fn default() -> Self {
        let hidden = Metrics::default();
        Self(Arc::new(Series::of(
            &hidden.0,
            None,
            InformerLabels::default(),
        )))
    }
}

impl InformerMetrics {
    pub(crate) fn queued(&self, items: usize) {
        self.0.queued.set(signed(items));
    }

    pub(crate) fn processed(&self, took: Duration) {
        self.0.latency.observe(took.as_secs_f64());
    }

    pub(crate) fn stored(&self, objects: usize, revision: Option<&Revision>) {
        self.0.objects.set(signed(objects));
        set_version(&self.0.store_version, revision);
    }

    pub(crate) fn coalesced(&self, notifications: u64) {
        self.0.coalesced.inc_by(notifications);
    }

    pub(crate) fn panicked(&self) {
        self.0.panics.inc();
    }

    pub(crate) fn unreadable(&self) {
        self.0.unreadable.inc();
    }

    pub(crate) fn listed(&self, took: Duration, items: usize) {
        self.0.lists.inc();
        self.0.list_duration.observe(took.as_secs_f64());
        self.0.items_per_list.observe(items as f64);
    }

    pub(crate) fn watched(&self, took: Duration, items: usize) {
        self.0.watches.inc();
        self.0.watch_duration.observe(took.as_secs_f64());
        self.0.items_per_watch.observe(items as f64);
    }

    pub(crate) fn short_watch(&self) {
        self.0.short_watches.inc();
    }

    pub(crate) fn reached(&self, revision: Option<&Revision>) {
        set_version(&self.0.last_version, revision);
    }

    pub(crate) fn failed(&self, reason: Reason) {
        let labels = FailureLabels {
            name: self.0.labels.name.clone(),
            resource: self.0.labels.resource.clone(),
            reason: reason.as_str().to_owned(),
        };
        self.0.failures.get_or_create(&labels).inc();
    }
}

fn set_version(gauge: &Gauge, revision: Option<&Revision>) {
    if let Some(version) = revision.and_then(Revision::as_u64) {
        gauge.set((version % EXACT_DIGITS).cast_signed());
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

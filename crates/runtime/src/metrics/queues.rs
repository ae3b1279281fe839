//! The work queues, read when somebody asks.

use std::fmt;

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};
use windlass_queue::{Histogram, Snapshot};

/// Prints the metrics of queues under upstream's names.
#[derive(Default)]
pub(crate) struct QueueCollector(Mutex<Vec<(String, SnapshotFn)>>);

/// A snapshot of a queue, whatever its keys are.
type SnapshotFn = Box<dyn Fn() -> Snapshot + Send + Sync>;

type Labels = [(&'static str, String); 1];

impl QueueCollector {
    pub(crate) fn add(&self, name: &str, look: impl Fn() -> Snapshot + Send + Sync + 'static) {
        self.0.lock().push((name.to_owned(), Box::new(look)));
    }

    /// Every queue by its name, as it is now.
    pub(crate) fn queues(&self) -> Vec<(String, Snapshot)> {
        let queues = self.0.lock();
        queues
            .iter()
            .map(|(name, look)| (name.clone(), look()))
            .collect()
    }

    fn snapshots(&self) -> Vec<(Labels, Snapshot)> {
        let queues = self.queues().into_iter();
        queues.map(|(name, now)| ([("name", name)], now)).collect()
    }
}

impl Collector for QueueCollector {
    #[rustfmt::skip] // One metric per line reads as a table.
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.snapshots();
        gauge(&mut to, "workqueue_depth", "Current depth of workqueue", &all, |s| s.depth as f64)?;
        counter(&mut to, "workqueue_adds", "Total number of adds handled by workqueue", &all, |s| s.adds)?;
        counter(&mut to, "workqueue_retries", "Total number of retries handled by workqueue", &all, |s| s.retries)?;
        gauge(&mut to, "workqueue_unfinished_work_seconds", "How many seconds of work has been done that is in progress and hasn't been observed by work_duration", &all, |s| s.unfinished_work.as_secs_f64())?;
        gauge(&mut to, "workqueue_longest_running_processor_seconds", "How many seconds has the longest running processor for workqueue been running", &all, |s| s.longest_running.as_secs_f64())?;
        histogram(&mut to, "workqueue_queue_duration_seconds", "How long in seconds an item stays in workqueue before being requested", &all, |s| &s.queue_duration)?;
        histogram(&mut to, "workqueue_work_duration_seconds", "How long in seconds processing an item from workqueue takes", &all, |s| &s.work_duration)
    }
}

fn gauge(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    all: &[(Labels, Snapshot)],
    value: impl Fn(&Snapshot) -> f64,
) -> fmt::Result {
    let encoder = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
    each(encoder, all, |series, snapshot| {
        series.encode_gauge(&value(snapshot))
    })
}

fn counter(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    all: &[(Labels, Snapshot)],
    value: impl Fn(&Snapshot) -> u64,
) -> fmt::Result {
    let encoder = to.encode_descriptor(name, help, None, MetricType::Counter)?;
    each(encoder, all, |series, snapshot| {
        series.encode_counter::<NoLabelSet, _, u64>(&value(snapshot), None)
    })
}

fn histogram(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    all: &[(Labels, Snapshot)],
    value: impl Fn(&Snapshot) -> &Histogram,
) -> fmt::Result {
    let encoder = to.encode_descriptor(name, help, None, MetricType::Histogram)?;
    each(encoder, all, |series, snapshot| {
        let histogram = value(snapshot);
        let buckets: Vec<(f64, u64)> = histogram.buckets().collect();
        let (sum, count) = (histogram.sum_seconds(), histogram.count());
        series.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    })
}

fn each(
    mut encoder: MetricEncoder<'_>,
    all: &[(Labels, Snapshot)],
    encode: impl Fn(&mut MetricEncoder<'_>, &Snapshot) -> fmt::Result,
) -> fmt::Result {
    for (labels, snapshot) in all {
        encode(&mut encoder.encode_family(labels)?, snapshot)?;
    }
    Ok(())
}

impl fmt::Debug for QueueCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.queues().into_iter().map(|(name, _)| name))
            .finish()
    }
}

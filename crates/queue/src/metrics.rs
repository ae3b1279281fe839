//! The metrics of a named queue.
//!
//! The numbers are plain integers that change inside the queue's own critical sections, so that
//! counting costs no synchronization. [`WorkQueue::snapshot`](crate::WorkQueue::snapshot) copies
//! them; the layer that owns the metrics registry publishes them under upstream's names.

use std::time::Duration;

use crate::slots::List;

/// Upper bounds of the histogram buckets in nanoseconds: powers of ten from 10 ns to 10 s, as
/// upstream has them (`component-base/metrics/prometheus/workqueue`).
const BUCKET_BOUNDS_NS: [u64; 10] = {
    let mut bounds = [10; 10];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * 10;
        at += 1;
    }
    bounds
};

/// A distribution of durations in exponential buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Observations per bucket, not cumulative; the last one is unbounded.
    buckets: [u64; BUCKET_BOUNDS_NS.len() + 1],
    sum_ns: u128,
}

/// The state of a queue at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Accepted adds that were not handed out yet (`workqueue_depth`). A key that was added again
    /// while a worker holds it counts.
    pub depth: usize,
    /// Number of ready keys per priority, from the highest down.
    pub depth_by_priority: Vec<(i32, usize)>,
    /// Keys that a worker holds.
    pub running: usize,
    /// Accepted adds, duplicates excluded (`workqueue_adds_total`).
    pub adds: u64,
    /// Adds that asked for a delay (`workqueue_retries_total`).
    pub retries: u64,
    /// From the accepted add to the hand-out (`workqueue_queue_duration_seconds`).
    pub queue_duration: Histogram,
    /// From the hand-out to `done` (`workqueue_work_duration_seconds`).
    pub work_duration: Histogram,
    /// Sum of the ages of all current hand-outs (`workqueue_unfinished_work_seconds`).
    pub unfinished_work: Duration,
    /// Age of the oldest current hand-out (`workqueue_longest_running_processor_seconds`).
    pub longest_running: Duration,
}

/// The counters inside the queue.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) depth: usize,
    pub(crate) adds: u64,
    pub(crate) retries: u64,
    pub(crate) queue_duration: Histogram,
    pub(crate) work_duration: Histogram,
    /// The running keys from the oldest hand-out on, linked through their slots: a running key is
    /// on no ready list.
    pub(crate) running: List,
}

impl Histogram {
    /// Number of observations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Sum of all observations in seconds.
    #[must_use]
    pub fn sum_seconds(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// Upper bound in seconds and number of observations of each bucket, not cumulative. The last
    /// bound is infinite.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let bounds = BUCKET_BOUNDS_NS.iter().map(|&ns| ns as f64 / 1e9);
        bounds.chain([f64::INFINITY]).zip(self.buckets)
    }

    fn observe(&mut self, ns: u64) {
        let bucket = BUCKET_BOUNDS_NS.partition_point(|&bound| bound < ns);
        self.buckets[bucket] += 1;
        self.sum_ns += u128::from(ns);
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            depth: 0,
            adds: 0,
            retries: 0,
            queue_duration: Histogram::default(),
            work_duration: Histogram::default(),
            running: List::EMPTY,
        }
    }

    pub(crate) fn accepted(&mut self) {
        self.adds += 1;
        self.depth += 1;
    }

    pub(crate) fn handed_out(&mut self, waited_ns: u64) {
        self.depth -= 1;
        self.queue_duration.observe(waited_ns);
    }

    pub(crate) fn finished(&mut self, worked_ns: u64) {
        self.work_duration.observe(worked_ns);
    }
}

//! Figures of one flow schema in one priority level.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Upper bounds of the waits that are told apart, in seconds: upstream's, after the zero.
pub(crate) const WAIT_BOUNDS: [f64; 12] = [
    0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0,
];

/// Reasons to refuse a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The level has no queues, and no free seat.
    ConcurrencyLimit,
    /// The queue of the flow is full.
    QueueFull,
    /// No seat became free in time.
    TimeOut,
    /// The client, or the time limit of the request, gave up.
    Cancelled,
}

/// Upstream's words for [`Rejection`], in order.
const REJECTIONS: [&str; 4] = ["concurrency-limit", "queue-full", "time-out", "cancelled"];

/// The figures.
#[derive(Debug, Default)]
pub(crate) struct FlowStats {
    pub(super) dispatched: AtomicU64,
    rejected: [AtomicU64; REJECTIONS.len()],
    pub(super) waiting: AtomicI64,
    pub(super) waiting_seats: AtomicI64,
    pub(super) executing: AtomicI64,
    pub(super) executing_seats: AtomicI64,
    /// Requests that waited and ran.
    waits: Mutex<WaitHistogram>,
    /// Requests that waited and were refused.
    vain_waits: Mutex<WaitHistogram>,
}

/// A histogram of waits that are longer than nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitHistogram {
    pub(crate) buckets: [u64; WAIT_BOUNDS.len()],
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

/// Counts a request in two figures as long as it is held.
#[derive(Debug)]
pub(super) struct Counted<'a> {
    requests: &'a AtomicI64,
    seats: &'a AtomicI64,
    width: i64,
}

impl<'a> Counted<'a> {
    pub(super) fn new(requests: &'a AtomicI64, seats: &'a AtomicI64, width: usize) -> Self {
        let width = i64::try_from(width).unwrap_or(i64::MAX);
        requests.fetch_add(1, Ordering::Relaxed);
        seats.fetch_add(width, Ordering::Relaxed);
        Self {
            requests,
            seats,
            width,
        }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
        self.seats.fetch_sub(self.width, Ordering::Relaxed);
    }
}

impl FlowStats {
    /// Counts a request that was refused.
    pub(super) fn reject(&self, why: Rejection) {
        self.rejected[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a wait that ended well.
    pub(super) fn waited(&self, wait: Duration) {
        self.waits.lock().note(wait.as_secs_f64());
    }

    /// Notes a wait that ended with a refusal.
    pub(super) fn waited_in_vain(&self, wait: Duration) {
        self.vain_waits.lock().note(wait.as_secs_f64());
    }

    /// Requests that ran, or run.
    pub(crate) fn dispatched(&self) -> u64 {
        self.dispatched.load(Ordering::Relaxed)
    }

    /// Requests that were refused, by reason.
    pub(crate) fn rejected(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self
            .rejected
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        REJECTIONS.into_iter().zip(counts)
    }

    /// Requests that wait, and the seats that they want.
    pub(crate) fn waiting(&self) -> (i64, i64) {
        let requests = self.waiting.load(Ordering::Relaxed);
        (requests, self.waiting_seats.load(Ordering::Relaxed))
    }

    /// Requests that run, and the seats that they have.
    pub(crate) fn executing(&self) -> (i64, i64) {
        let requests = self.executing.load(Ordering::Relaxed);
        (requests, self.executing_seats.load(Ordering::Relaxed))
    }

    /// WaitHistogram of requests that ran, and of those that were refused.
    pub(crate) fn waits(&self) -> (WaitHistogram, WaitHistogram) {
        (*self.waits.lock(), *self.vain_waits.lock())
    }
}

impl WaitHistogram {
    fn note(&mut self, seconds: f64) {
        if let Some(at) = WAIT_BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.buckets[at] += 1;
        }
        self.count += 1;
        self.seconds += seconds;
    }
}

//! Counters and histograms under the names that upstream gives them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds of the buckets, as in upstream's component-base.
const SECONDS: [f64; 12] = [
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
];
const BYTES: [f64; 11] = [
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// What clients count. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<ResultLabels, Counter>,
    retries: Family<RetryLabels, Counter>,
    duration: Family<VerbLabels, Histogram, fn() -> Histogram>,
    throttle: Family<VerbLabels, Histogram, fn() -> Histogram>,
    request_size: Family<VerbLabels, Histogram, fn() -> Histogram>,
    response_size: Family<VerbLabels, Histogram, fn() -> Histogram>,
    answers: Arc<Answers>,
}

/// Requests that are no watches, and how long their answers take.
#[derive(Debug, Default)]
struct Answers {
    in_flight: AtomicUsize,
    /// Microseconds, as an average that forgets.
    time: AtomicU64,
}

/// A request on its way, until it is dropped.
pub(crate) struct InFlight<'a>(&'a Answers);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    code: String,
    method: String,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RetryLabels {
    code: String,
    verb: String,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: String,
    host: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS);
        let bytes: fn() -> Histogram = || Histogram::new(BYTES);
        Self {
            requests: Family::default(),
            retries: Family::default(),
            duration: Family::new_with_constructor(seconds),
            throttle: Family::new_with_constructor(seconds),
            request_size: Family::new_with_constructor(bytes),
            response_size: Family::new_with_constructor(bytes),
            answers: Arc::default(),
        }
    }
}

impl Metrics {
    /// Makes the metrics part of what a registry prints.
    pub fn register(&self, registry: &mut Registry) {
        // The encoder adds `_total` to the names of counters.
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host",
            self.requests.clone(),
        );
        registry.register(
            "rest_client_request_retries",
            "Number of request retries, partitioned by status code, verb, and host",
            self.retries.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Request latency in seconds, by verb and host",
            self.duration.clone(),
        );
        registry.register(
            "rest_client_rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds, by verb and host",
            self.throttle.clone(),
        );
        registry.register(
            "rest_client_request_size_bytes",
            "Request size in bytes, by verb and host",
            self.request_size.clone(),
        );
        registry.register(
            "rest_client_response_size_bytes",
            "Response size in bytes, by verb and host",
            self.response_size.clone(),
        );
    }

    /// How long the server takes to answer a request that is no watch, on average and lately. Zero
    /// before the first answer.
    #[must_use]
    pub fn answer_time(&self) -> Duration {
        Duration::from_micros(self.answers.time.load(Ordering::Relaxed))
    }

    /// How many requests that are no watches wait for their answers.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.answers.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn sent(&self) -> InFlight<'_> {
        self.answers.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(&self.answers)
    }

    pub(crate) fn request(&self, code: &str, method: &Method, host: &str) {
        let (code, method, host) = (code.to_owned(), method.to_string(), host.to_owned());
        self.requests
            .get_or_create(&ResultLabels { code, method, host })
            .inc();
    }

    pub(crate) fn retry(&self, code: &str, method: &Method, host: &str) {
        let (code, verb, host) = (code.to_owned(), method.to_string(), host.to_owned());
        self.retries
            .get_or_create(&RetryLabels { code, verb, host })
            .inc();
    }

    pub(crate) fn request_duration(&self, method: &Method, host: &str, took: Duration) {
        self.duration
            .get_or_create(&labels(method, host))
            .observe(took.as_secs_f64());
    }

    pub(crate) fn throttled(&self, method: &Method, host: &str, waited: Duration) {
        self.throttle
            .get_or_create(&labels(method, host))
            .observe(waited.as_secs_f64());
    }

    pub(crate) fn request_size(&self, method: &Method, host: &str, bytes: usize) {
        self.request_size
            .get_or_create(&labels(method, host))
            .observe(bytes as f64);
    }

    pub(crate) fn response_size(&self, method: &Method, host: &str, bytes: usize) {
        self.response_size
            .get_or_create(&labels(method, host))
            .observe(bytes as f64);
    }
}

impl InFlight<'_> {
    /// The weight of the last answer is one in so many.
    const WEIGHT: u64 = 8;

    /// The answer has come.
    pub(crate) fn answered(self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let before = self.0.time.load(Ordering::Relaxed);
        let now = match before {
            0 => took,
            before => before - before / Self::WEIGHT + took / Self::WEIGHT,
        };
        // Of two answers at the same moment one may be lost, which an average bears.
        self.0.time.store(now, Ordering::Relaxed);
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

fn labels(method: &Method, host: &str) -> VerbLabels {
    VerbLabels {
        verb: method.to_string(),
        host: host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_time_follows_the_answers_and_forgets() {
        let metrics = Metrics::default();
        let answered = |took| metrics.sent().answered(took);
        assert_eq!(metrics.answer_time(), Duration::ZERO);
        answered(Duration::from_millis(80));
        assert_eq!(metrics.answer_time(), Duration::from_millis(80));
        answered(Duration::ZERO);
        assert_eq!(metrics.answer_time(), Duration::from_millis(70));
        for _ in 0..100 {
            answered(Duration::from_millis(1));
        }
        let micros = metrics.answer_time().as_micros();
        assert!((990..=1_010).contains(&micros), "{micros}");
        answered(Duration::MAX);
        assert!(metrics.answer_time() > Duration::from_secs(1));
    }

    #[test]
    fn a_request_is_in_flight_until_it_is_answered_or_given_up() {
        let metrics = Metrics::default();
        let (first, second) = (metrics.sent(), metrics.clone());
        let second = second.sent();
        assert_eq!(metrics.in_flight(), 2);
        first.answered(Duration::from_millis(1));
        assert_eq!(metrics.in_flight(), 1);
        drop(second);
        assert_eq!(metrics.in_flight(), 0);
    }
}

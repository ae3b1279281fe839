//! Counters and histograms under the names that upstream gives them.

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

/// The metrics of clients. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: Family<ResultLabels, Counter>,
    retries: Family<RetryLabels, Counter>,
    duration: Family<VerbLabels, Histogram, fn() -> Histogram>,
    throttle: Family<VerbLabels, Histogram, fn() -> Histogram>,
    request_size: Family<VerbLabels, Histogram, fn() -> Histogram>,
    response_size: Family<VerbLabels, Histogram, fn() -> Histogram>,
}

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

fn labels(method: &Method, host: &str) -> VerbLabels {
    VerbLabels {
        verb: method.to_string(),
        host: host.to_owned(),
    }
}

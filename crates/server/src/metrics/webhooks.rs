//! Calls of admission webhooks.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

/// Upper bounds of the durations of admission webhooks, in seconds: upstream's.
pub(crate) const WEBHOOK_DURATIONS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Sorts of calls that are told apart in one metric. Further ones are not counted.
const SORTS_LIMIT: usize = 4096;
/// Higher codes count as this one.
const CODE_LIMIT: u16 = 600;

/// The counts of webhooks, each by its labels as they are written.
#[derive(Debug, Default)]
pub(crate) struct WebhookMetrics {
    pub(crate) durations: Mutex<BTreeMap<String, WebhookDurations>>,
    pub(crate) requests: Mutex<BTreeMap<String, u64>>,
    pub(crate) rejections: Mutex<BTreeMap<String, u64>>,
    pub(crate) fail_open: Mutex<BTreeMap<String, u64>>,
    pub(crate) condition_errors: Mutex<BTreeMap<String, u64>>,
    pub(crate) exclusions: Mutex<BTreeMap<String, u64>>,
}

/// Durations of calls of one sort.
#[derive(Debug, Default)]
pub(crate) struct WebhookDurations {
    pub(crate) buckets: [u64; WEBHOOK_DURATIONS.len()],
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

/// One call of an admission webhook.
#[derive(Debug)]
pub(crate) struct WebhookCall<'a> {
    pub(crate) name: &'a str,
    /// `admit` or `validating`.
    pub(crate) sort: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) took: Duration,
    pub(crate) code: u16,
    /// The sort of error that the request was rejected for.
    pub(crate) rejection: Option<&'static str>,
    /// True if the call failed and that was ignored.
    pub(crate) is_open: bool,
}

impl WebhookMetrics {
    /// Counts a call of an admission webhook.
    pub(crate) fn called(&self, call: &WebhookCall<'_>) {
        let WebhookCall {
            name,
            sort,
            operation,
            ..
        } = call;
        let code = call.code.min(CODE_LIMIT);
        let rejected = call.rejection.is_some();
        let kind = format!("name=\"{name}\",operation=\"{operation}\"");
        let labels = format!("{kind},rejected=\"{rejected}\",type=\"{sort}\"");
        note(&self.durations, labels, call.took);
        let labels = format!("code=\"{code}\",{kind},rejected=\"{rejected}\",type=\"{sort}\"");
        add(&self.requests, labels);
        if let Some(error) = call.rejection {
            let labels =
                format!("error_type=\"{error}\",{kind},rejection_code=\"{code}\",type=\"{sort}\"");
            add(&self.rejections, labels);
        }
        if call.is_open {
            add(&self.fail_open, format!("name=\"{name}\",type=\"{sort}\""));
        }
    }

    /// Counts match conditions that have no value.
    pub(crate) fn condition_failed(&self, name: &str, sort: &str, operation: &str) {
        add(&self.condition_errors, condition(name, sort, operation));
    }

    /// Counts a request that match conditions exclude.
    pub(crate) fn excluded(&self, name: &str, sort: &str, operation: &str) {
        add(&self.exclusions, condition(name, sort, operation));
    }
}

fn condition(name: &str, sort: &str, operation: &str) -> String {
    format!("kind=\"webhook\",name=\"{name}\",operation=\"{operation}\",type=\"{sort}\"")
}

fn add(counts: &Mutex<BTreeMap<String, u64>>, labels: String) {
    let mut counts = counts.lock();
    if counts.len() < SORTS_LIMIT || counts.contains_key(&labels) {
        *counts.entry(labels).or_default() += 1;
    }
}

fn note(durations: &Mutex<BTreeMap<String, WebhookDurations>>, labels: String, took: Duration) {
    let mut durations = durations.lock();
    if durations.len() >= SORTS_LIMIT && !durations.contains_key(&labels) {
        return;
    }
    let row = durations.entry(labels).or_default();
    let seconds = took.as_secs_f64();
    if let Some(slot) = WEBHOOK_DURATIONS.iter().position(|bound| seconds <= *bound) {
        row.buckets[slot] += 1;
    }
    row.count += 1;
    row.seconds += seconds;
}

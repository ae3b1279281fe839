//! Figures of webhooks, under upstream's names.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::Page;
use crate::metrics::{WEBHOOK_DURATIONS, WebhookDurations, WebhookMetrics};

/// Writes the figures of all webhooks.
pub(super) fn write(page: &mut Page, metrics: &WebhookMetrics) {
    let name = "apiserver_admission_webhook_admission_duration_seconds";
    page.head(
        name,
        "histogram",
        "Admission webhook latency histogram in seconds, by name, operation and type.",
    );
    durations(page, name, &metrics.durations.lock());
    let name = "apiserver_admission_webhook_request_total";
    page.head(
        name,
        "counter",
        "Admission webhook request total, by name, operation, type, code and rejection.",
    );
    counts(page, name, &metrics.requests);
    let name = "apiserver_admission_webhook_rejection_count";
    page.head(
        name,
        "counter",
        "Admission webhook rejection count, by name, operation, type, error and code.",
    );
    counts(page, name, &metrics.rejections);
    let name = "apiserver_admission_webhook_fail_open_count";
    page.head(
        name,
        "counter",
        "Admission webhook fail open count, by name and type.",
    );
    counts(page, name, &metrics.fail_open);
    let name = "apiserver_admission_match_condition_evaluation_errors_total";
    page.head(
        name,
        "counter",
        "Admission match condition evaluation errors count, by name, operation and type.",
    );
    counts(page, name, &metrics.condition_errors);
    let name = "apiserver_admission_match_condition_exclusions_total";
    page.head(
        name,
        "counter",
        "Admission match condition evaluation exclusions count, by name, operation and type.",
    );
    counts(page, name, &metrics.exclusions);
}

fn counts(page: &mut Page, name: &str, counts: &Mutex<BTreeMap<String, u64>>) {
    for (labels, count) in counts.lock().iter() {
        page.row(name, labels, count);
    }
}

fn durations(page: &mut Page, name: &str, rows: &BTreeMap<String, WebhookDurations>) {
    for (labels, row) in rows {
        let mut below = 0;
        for (bound, count) in WEBHOOK_DURATIONS.iter().zip(&row.buckets) {
            below += count;
            let labels = format!("{labels},le=\"{bound}\"");
            page.row(&format!("{name}_bucket"), &labels, below);
        }
        let all = format!("{labels},le=\"+Inf\"");
        page.row(&format!("{name}_bucket"), &all, row.count);
        page.row(&format!("{name}_sum"), labels, row.seconds);
        page.row(&format!("{name}_count"), labels, row.count);
    }
}

//! Figures of webhooks, under upstream's names.

use std::collections::BTreeMap;

use super::Page;
use crate::metrics::{WEBHOOK_DURATIONS, WebhookDurations, WebhookMetrics};

/// Writes the figures of all webhooks.
pub(super) fn write(page: &mut Page, metrics: &WebhookMetrics) {
    durations(
        page,
        "apiserver_admission_webhook_admission_duration_seconds",
        "Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
        &metrics.durations.lock(),
    );
    for (name, help, counts) in [
        (
            "apiserver_admission_webhook_request_total",
            "Admission webhook request total, identified by name and broken out for each admission type (validating or admit) and operation.",
            &metrics.requests,
        ),
        (
            "apiserver_admission_webhook_rejection_count",
            "Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation.",
            &metrics.rejections,
        ),
        (
            "apiserver_admission_webhook_fail_open_count",
            "Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).",
            &metrics.fail_open,
        ),
        (
            "apiserver_admission_match_condition_evaluation_errors_total",
            "Admission match condition evaluation errors count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).",
            &metrics.condition_errors,
        ),
        (
            "apiserver_admission_match_condition_exclusions_total",
            "Admission match condition evaluation exclusions count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).",
            &metrics.exclusions,
        ),
    ] {
        page.head(name, "counter", help);
        for (labels, count) in counts.lock().iter() {
            page.row(name, labels, count);
        }
    }
}

fn durations(page: &mut Page, name: &str, help: &str, rows: &BTreeMap<String, WebhookDurations>) {
    page.head(name, "histogram", help);
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

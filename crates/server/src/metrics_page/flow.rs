//! Figures of priority and fairness, under upstream's names.

use super::Page;
use crate::flow::{Flow, SchemaReport, WAIT_BOUNDS, WaitHistogram};

/// A figure of a flow schema: its name, sort and help, and its value.
type SchemaFigure = (
    &'static str,
    &'static str,
    &'static str,
    fn(&SchemaReport) -> i64,
);

const SCHEMA_FIGURES: [SchemaFigure; 4] = [
    (
        "apiserver_flowcontrol_current_executing_requests",
        "gauge",
        "Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem",
        |schema| schema.stats.executing().0,
    ),
    (
        "apiserver_flowcontrol_current_executing_seats",
        "gauge",
        "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem",
        |schema| schema.stats.executing().1,
    ),
    (
        "apiserver_flowcontrol_current_inqueue_requests",
        "gauge",
        "Number of requests currently pending in queues of the API Priority and Fairness subsystem",
        |schema| schema.stats.waiting().0,
    ),
    (
        "apiserver_flowcontrol_current_inqueue_seats",
        "gauge",
        "Number of seats currently pending in queues of the API Priority and Fairness subsystem",
        |schema| schema.stats.waiting().1,
    ),
];

pub(super) fn write(page: &mut Page, flow: &Flow) {
    let schemas = flow.schemas();
    for (name, sort, help, figure) in SCHEMA_FIGURES {
        page.head(name, sort, help);
        for schema in &schemas {
            page.row(name, &labels(schema), figure(schema));
        }
    }
    totals(page, &schemas);
    waits(page, &schemas);
    levels(page, flow);
}

/// The labels of a flow schema.
fn labels(schema: &SchemaReport) -> String {
    let (level, name) = (&schema.level, &schema.name);
    format!("flow_schema=\"{name}\",priority_level=\"{level}\"")
}

fn totals(page: &mut Page, schemas: &[SchemaReport]) {
    let name = "apiserver_flowcontrol_dispatched_requests_total";
    let help = "Number of requests executed by API Priority and Fairness subsystem";
    page.head(name, "counter", help);
    for schema in schemas {
        page.row(name, &labels(schema), schema.stats.dispatched());
    }
    let name = "apiserver_flowcontrol_rejected_requests_total";
    let help = "Number of requests rejected by API Priority and Fairness subsystem";
    page.head(name, "counter", help);
    for schema in schemas {
        for (reason, count) in schema.stats.rejected().filter(|(_, count)| *count > 0) {
            let labels = format!("{},reason=\"{reason}\"", labels(schema));
            page.row(name, &labels, count);
        }
    }
}

fn waits(page: &mut Page, schemas: &[SchemaReport]) {
    let name = "apiserver_flowcontrol_request_wait_duration_seconds";
    let help = "Length of time a request spent waiting in its queue";
    page.head(name, "histogram", help);
    for schema in schemas {
        let (served, refused) = schema.stats.waits();
        let at_once = schema.stats.dispatched().saturating_sub(served.count);
        for (execute, at_once, waits) in [("true", at_once, served), ("false", 0, refused)] {
            if at_once + waits.count > 0 {
                let labels = format!("execute=\"{execute}\",{}", labels(schema));
                histogram(page, name, &labels, at_once, &waits);
            }
        }
    }
}

/// Waits, with those that waited for nothing in a bucket of their own.
fn histogram(page: &mut Page, name: &str, labels: &str, at_once: u64, waits: &WaitHistogram) {
    let bucket = format!("{name}_bucket");
    page.row(&bucket, &format!("{labels},le=\"0\""), at_once);
    let mut below = at_once;
    for (bound, count) in WAIT_BOUNDS.iter().zip(&waits.buckets) {
        below += count;
        page.row(&bucket, &format!("{labels},le=\"{bound}\""), below);
    }
    let count = at_once + waits.count;
    page.row(&bucket, &format!("{labels},le=\"+Inf\""), count);
    page.row(&format!("{name}_sum"), labels, waits.seconds);
    page.row(&format!("{name}_count"), labels, count);
}

fn levels(page: &mut Page, flow: &Flow) {
    let levels = flow.levels();
    let limits = [
        (
            "apiserver_flowcontrol_nominal_limit_seats",
            "Nominal number of execution seats configured for each priority level",
        ),
        (
            "apiserver_flowcontrol_lower_limit_seats",
            "Configured lower bound on number of execution seats available to each priority level",
        ),
        (
            "apiserver_flowcontrol_upper_limit_seats",
            "Configured upper bound on number of execution seats available to each priority level",
        ),
    ];
    for (at, (name, help)) in limits.into_iter().enumerate() {
        page.head(name, "gauge", help);
        for level in &levels {
            let value = [level.nominal, level.lower, level.upper][at];
            page.row(name, &format!("priority_level=\"{}\"", level.name), value);
        }
    }
}

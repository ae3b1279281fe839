//! The page of figures, in the format of Prometheus.

mod flow;
mod policies;
mod webhooks;

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use windlass_store::{ResourceStats, Stats};

use crate::audit::Audit;
use crate::body::BodyStats;
use crate::metrics::{ConnectionMetrics, DURATIONS, Labels, Metrics, Requests, SIZES, Sizes};
use crate::server::Server;
use crate::version;

/// The smallest bound of durations that count for service levels, upstream's.
const SLI_DURATION_MIN: f64 = 0.05;

/// A page in the making. Writing to text does not fail.
pub(super) struct Page(String);

/// All figures of a server.
pub(crate) fn page(server: &Server) -> String {
    let inner = server.inner();
    let mut page = Page(String::new());
    page.requests(&inner.metrics);
    page.watches(&inner.metrics);
    page.in_flight(server);
    flow::write(&mut page, &inner.flow);
    page.watch_slots(inner.watches.counts());
    page.connections(&inner.metrics.connections);
    page.bodies(inner.bodies.stats());
    webhooks::write(&mut page, &inner.metrics.webhooks);
    page.audit(&inner.audit);
    policies::write(&mut page, &inner.metrics.policies);
    let stats = inner.storage.stats();
    page.storage(&stats);
    page.caches(&inner.metrics, &stats);
    page.build();
    page.process(server);
    page.0
}

impl Page {
    pub(super) fn head(&mut self, name: &str, sort: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {sort}");
    }

    pub(super) fn row(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = match labels.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn requests(&mut self, metrics: &Metrics) {
        let requests = metrics.requests.lock();
        let name = "apiserver_request_total";
        self.head(name, "counter", "Counter of apiserver requests.");
        for (labels, row) in requests.iter() {
            for (code, count) in &row.codes {
                let labels = format!("code=\"{code}\",{}", common(labels));
                self.row(name, &labels, count);
            }
        }
        let name = "apiserver_request_duration_seconds";
        self.head(
            name,
            "histogram",
            "Response latency distribution in seconds.",
        );
        for (labels, row) in requests.iter().filter(|(_, row)| row.count > 0) {
            self.durations(name, &common(labels), row, 0.0);
        }
        // Upstream leaves out the time in queues and webhooks; here it counts.
        let name = "apiserver_request_sli_duration_seconds";
        self.head(
            name,
            "histogram",
            "Response latency distribution in seconds, for service levels.",
        );
        for (labels, row) in requests.iter().filter(|(_, row)| row.count > 0) {
            self.durations(name, &place(labels), row, SLI_DURATION_MIN);
        }
        let name = "apiserver_response_sizes";
        self.head(name, "histogram", "Response size distribution in bytes.");
        for (labels, row) in requests.iter().filter(|(_, row)| row.sizes.count > 0) {
            self.sizes(name, &place(labels), &row.sizes);
        }
    }

    fn sizes(&mut self, name: &str, labels: &str, sizes: &Sizes) {
        let mut below = 0;
        for (bound, count) in SIZES.iter().zip(&sizes.below) {
            below += count;
            let labels = format!("{labels},le=\"{bound}\"");
            self.row(&format!("{name}_bucket"), &labels, below);
        }
        let labels_of_all = format!("{labels},le=\"+Inf\"");
        self.row(&format!("{name}_bucket"), &labels_of_all, sizes.count);
        self.row(&format!("{name}_sum"), labels, sizes.bytes);
        self.row(&format!("{name}_count"), labels, sizes.count);
    }

    fn durations(&mut self, name: &str, labels: &str, row: &Requests, least: f64) {
        let mut below = 0;
        for (bound, count) in DURATIONS.iter().zip(&row.durations) {
            below += count;
            if *bound < least {
                continue;
            }
            let labels = format!("{labels},le=\"{bound}\"");
            self.row(&format!("{name}_bucket"), &labels, below);
        }
        let labels_of_all = format!("{labels},le=\"+Inf\"");
        self.row(&format!("{name}_bucket"), &labels_of_all, row.count);
        self.row(&format!("{name}_sum"), labels, row.seconds);
        self.row(&format!("{name}_count"), labels, row.count);
    }

    fn watches(&mut self, metrics: &Metrics) {
        let watches = metrics.watches.lock();
        let name = "apiserver_longrunning_requests";
        self.head(name, "gauge", "Gauge of all active long-running requests.");
        for (labels, count) in watches.iter() {
            self.row(name, &place(labels), count.open.load(Ordering::Relaxed));
        }
        let name = "apiserver_watch_events_total";
        self.head(name, "counter", "Number of events sent in watch clients.");
        let mut events: Vec<(String, u64)> = Vec::new();
        for (labels, count) in watches.iter() {
            let key = kind(labels);
            let sent = count.events.load(Ordering::Relaxed);
            match events.iter_mut().find(|(known, _)| *known == key) {
                Some((_, sum)) => *sum += sent,
                None => events.push((key, sent)),
            }
        }
        for (labels, sent) in events {
            self.row(name, &labels, sent);
        }
    }

    fn in_flight(&mut self, server: &Server) {
        let name = "apiserver_current_inflight_requests";
        self.head(name, "gauge", "Number of requests in flight, by kind.");
        let (reads, writes) = server.in_flight();
        self.row(name, "request_kind=\"mutating\"", writes);
        self.row(name, "request_kind=\"readOnly\"", reads);
    }

    fn watch_slots(&mut self, (open, refused): (usize, u64)) {
        let name = "windlass_watches";
        self.head(name, "gauge", "Open watches of users.");
        self.row(name, "", open);
        let name = "windlass_watches_refused_total";
        self.head(name, "counter", "Watches refused by a limit.");
        self.row(name, "", refused);
    }

    fn connections(&mut self, connections: &ConnectionMetrics) {
        let name = "windlass_connections";
        self.head(name, "gauge", "Open connections, by credentials shown.");
        for (label, count) in connections.open() {
            self.row(name, &format!("authenticated=\"{label}\""), count);
        }
        let name = "windlass_connections_shed_total";
        let help = "Connections ended for others, by the limit reached.";
        self.head(name, "counter", help);
        for (reason, count) in connections.shed_by_reason() {
            self.row(name, &format!("reason=\"{reason}\""), count);
        }
        let name = "windlass_connections_ended_total";
        self.head(name, "counter", "Connections ended by a deadline.");
        for (reason, count) in connections.ended_by_reason() {
            self.row(name, &format!("reason=\"{reason}\""), count);
        }
    }

    fn bodies(&mut self, bodies: BodyStats) {
        let name = "windlass_request_body_bytes";
        self.head(name, "gauge", "Bytes of request bodies in memory.");
        self.row(name, "", bodies.held);
        let name = "windlass_request_bodies_refused_total";
        self.head(name, "counter", "Requests refused for their body.");
        self.row(name, "reason=\"memory\"", bodies.refused);
        self.row(name, "reason=\"time\"", bodies.late);
    }

    fn audit(&mut self, audit: &Audit) {
        let Some(counts) = audit.counts() else { return };
        let name = "apiserver_audit_event_total";
        self.head(
            name,
            "counter",
            "Counter of audit events generated and sent to the audit backend.",
        );
        self.row(name, "", counts.events.load(Ordering::Relaxed));
        let name = "apiserver_audit_error_total";
        self.head(
            name,
            "counter",
            "Counter of audit events that failed to be audited properly.",
        );
        let errors = counts.errors.load(Ordering::Relaxed);
        self.row(name, "plugin=\"log\"", errors);
        let name = "apiserver_audit_level_total";
        self.head(
            name,
            "counter",
            "Counter of policy levels for audit events (1 per request).",
        );
        for (level, count) in counts.by_level() {
            self.row(name, &format!("level=\"{level}\""), count);
        }
        let name = "apiserver_audit_requests_rejected_total";
        self.head(
            name,
            "counter",
            "Counter of apiserver requests rejected due to an error in audit logging backend.",
        );
        self.row(name, "", 0);
    }

    fn storage(&mut self, stats: &Stats) {
        let name = "apiserver_resource_objects";
        self.head(name, "gauge", "Number of stored objects by resource.");
        for row in &stats.resources {
            let (group, resource) = (row.resource.group(), row.resource.name());
            let labels = format!("group=\"{group}\",resource=\"{resource}\"");
            self.row(name, &labels, row.objects);
        }
        let name = "apiserver_storage_objects";
        self.head(name, "gauge", "Number of stored objects by resource.");
        for row in &stats.resources {
            let (group, resource) = (row.resource.group(), row.resource.name());
            let dot = if group.is_empty() { "" } else { "." };
            let labels = format!("resource=\"{resource}{dot}{group}\"");
            self.row(name, &labels, row.objects);
        }
        let name = "apiserver_storage_size_bytes";
        self.head(name, "gauge", "Size of the storage file in bytes.");
        self.row(name, "storage_cluster_id=\"windlass-0\"", stats.disk_bytes);
        let name = "windlass_store_used_bytes";
        self.head(name, "gauge", "Bytes of stored objects and history.");
        self.row(name, "", stats.used_bytes);
        let name = "windlass_store_quota_bytes";
        self.head(
            name,
            "gauge",
            "Bytes of objects and history that may be stored.",
        );
        self.row(name, "", stats.quota_bytes);
        let name = "windlass_store_history_bytes";
        self.head(
            name,
            "gauge",
            "Bytes of memory held for watches that are behind.",
        );
        self.row(name, "", stats.history_bytes);
        let name = "windlass_store_revision";
        self.head(name, "gauge", "Newest revision.");
        self.row(name, "", stats.revision);
        let name = "windlass_store_queued_writes";
        self.head(name, "gauge", "Writes that wait for the disk.");
        self.row(name, "", stats.queued);
    }

    /// What is held beside the objects themselves. Each has a bound; what grows without one shows
    /// here.
    fn caches(&mut self, metrics: &Metrics, stats: &Stats) {
        let sum = |count: fn(&ResourceStats) -> usize| stats.resources.iter().map(count).sum();
        let caches: [(&str, usize); 5] = [
            ("list_snapshots", sum(|row| row.snapshots)),
            ("request_series", metrics.requests.lock().len()),
            ("store_leases", stats.leases),
            ("watch_history", sum(|row| row.events)),
            ("watch_series", metrics.watches.lock().len()),
        ];
        let name = "windlass_cache_entries";
        self.head(name, "gauge", "Entries of a cache inside of the server.");
        for (cache, entries) in caches {
            self.row(name, &format!("cache=\"{cache}\""), entries);
        }
        let name = "windlass_tasks";
        self.head(name, "gauge", "Asynchronous tasks of the process.");
        // Without a runtime nothing runs.
        let runtime = tokio::runtime::Handle::try_current();
        let tasks = runtime.map_or(0, |runtime| runtime.metrics().num_alive_tasks());
        self.row(name, "", tasks);
    }

    fn build(&mut self) {
        let name = "kubernetes_build_info";
        self.head(name, "gauge", "A metric with a constant 1 and the version.");
        let labels = format!(
            "git_version=\"{}\",major=\"{}\",minor=\"{}\",platform=\"{}\"",
            version::GIT_VERSION,
            version::MAJOR,
            version::MINOR,
            version::platform()
        );
        self.row(name, &labels, 1);
    }

    fn process(&mut self, server: &Server) {
        let name = "process_start_time_seconds";
        self.head(
            name,
            "gauge",
            "Start time of the server since 1970 in seconds.",
        );
        self.row(name, "", server.inner().started.unix());
        // Where the system does not tell, there is no figure.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|text| text.trim().strip_suffix(" kB"));
        if let Some(kilobytes) = resident.and_then(|text| text.trim().parse::<u64>().ok()) {
            let name = "process_resident_memory_bytes";
            self.head(name, "gauge", "Resident memory size in bytes.");
            self.row(name, "", kilobytes * 1024);
        }
    }
}

/// Group, resource and version.
fn kind(labels: &Labels) -> String {
    let (group, resource, version) = (&labels.group, &labels.resource, &labels.version);
    format!("group=\"{group}\",resource=\"{resource}\",version=\"{version}\"")
}

/// Where a request goes, in the labels of upstream.
fn place(labels: &Labels) -> String {
    let component = match labels.resource.is_empty() {
        true => "",
        false => "apiserver",
    };
    let (subresource, scope, verb) = (&labels.subresource, labels.scope, labels.verb);
    let (group, resource, version) = (&labels.group, &labels.resource, &labels.version);
    format!(
        "component=\"{component}\",group=\"{group}\",resource=\"{resource}\",scope=\"{scope}\",\
         subresource=\"{subresource}\",verb=\"{verb}\",version=\"{version}\""
    )
}

fn common(labels: &Labels) -> String {
    let dry_run = if labels.is_dry_run { "All" } else { "" };
    format!("dry_run=\"{dry_run}\",{}", place(labels))
}

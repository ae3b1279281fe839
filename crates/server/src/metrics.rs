//! What is counted, under the names that upstream has for it.

mod connections;
mod policies;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::request::{ResourcePath, Target, Verb};

pub(crate) use connections::{ConnectionMetrics, EndReason, ShedReason};
pub(crate) use policies::PolicyMetrics;
pub(crate) use webhooks::{WEBHOOK_DURATIONS, WebhookCall, WebhookDurations, WebhookMetrics};

/// Upper bounds of the durations that are told apart, in seconds: upstream's.
pub(crate) const DURATIONS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

/// Upper bounds of the sizes of answers that are told apart, in bytes: upstream's.
pub(crate) const SIZES: [u64; 7] = [
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
];

/// Sorts of requests that are told apart. Those that come after count as one without a name, so
/// that nobody fills the memory with odd paths.
const SORTS_LIMIT: usize = 4096;

/// What is counted in one server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) requests: Mutex<BTreeMap<Labels, Requests>>,
    pub(crate) watches: Mutex<BTreeMap<Labels, Arc<WatchCount>>>,
    /// Connections of the sockets.
    pub(crate) connections: Arc<ConnectionMetrics>,
    /// Checks of admission policies.
    pub(crate) policies: PolicyMetrics,
    /// Calls of webhooks.
    pub(crate) webhooks: WebhookMetrics,
}

/// What tells sorts of requests apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels {
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) scope: &'static str,
    pub(crate) is_dry_run: bool,
}

/// Requests of one sort.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// How many were answered with which code.
    pub(crate) codes: BTreeMap<u16, u64>,
    /// How many took no longer than each bound, and longer than the one before.
    pub(crate) durations: [u64; DURATIONS.len()],
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    /// Sizes of the answers to reads.
    pub(crate) sizes: Sizes,
}

/// Sizes of answers.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    /// The answers that are no larger than each bound, and larger than the one before.
    pub(crate) below: [u64; SIZES.len()],
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

/// Watches of one sort.
#[derive(Debug, Default)]
pub(crate) struct WatchCount {
    pub(crate) open: AtomicI64,
    pub(crate) events: AtomicU64,
}

/// Counts one watch as open as long as it is held.
#[derive(Debug)]
pub(crate) struct OpenWatch(Arc<WatchCount>);

impl Metrics {
    /// Counts an answered request.
    pub(crate) fn answered(&self, labels: Labels, code: u16, took: Duration) {
        let mut requests = self.requests.lock();
        let labels = if requests.len() < SORTS_LIMIT || requests.contains_key(&labels) {
            labels
        } else {
            Labels::default()
        };
        let is_watch = labels.verb == "WATCH";
        let row = requests.entry(labels).or_default();
        *row.codes.entry(code).or_default() += 1;
        // A watch takes as long as its client likes.
        if !is_watch {
            row.note(took.as_secs_f64());
        }
    }

    /// Counts the bytes of an answer that was sent.
    pub(crate) fn sent(&self, labels: &Labels, bytes: u64) {
        let mut requests = self.requests.lock();
        let Some(row) = requests.get_mut(labels) else {
            return;
        };
        if let Some(slot) = SIZES.iter().position(|bound| bytes <= *bound) {
            row.sizes.below[slot] += 1;
        }
        row.sizes.count += 1;
        row.sizes.bytes += bytes;
    }

    /// Counts a watch that is opened.
    pub(crate) fn open_watch(&self, path: &ResourcePath) -> OpenWatch {
        let labels = Labels::of_resource(path, false);
        let count = Arc::clone(self.watches.lock().entry(labels).or_default());
        count.open.fetch_add(1, Ordering::Relaxed);
        OpenWatch(count)
    }
}

impl Requests {
    fn note(&mut self, seconds: f64) {
        if let Some(slot) = DURATIONS.iter().position(|bound| seconds <= *bound) {
            self.durations[slot] += 1;
        }
        self.count += 1;
        self.seconds += seconds;
    }
}

impl OpenWatch {
    /// Counts an event that was sent.
    pub(crate) fn sent(&self) {
        self.0.events.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Labels {
    /// Returns true if the sizes of the answers are counted: of reads of resources.
    pub(crate) fn is_sized(&self) -> bool {
        !self.resource.is_empty() && matches!(self.verb, "GET" | "LIST")
    }

    /// The sort of a request; `is_known` says whether its resource exists.
    pub(crate) fn of(target: &Target, is_known: bool, is_dry_run: bool) -> Self {
        match target {
            Target::Resource(path) if is_known => Self::of_resource(path, is_dry_run),
            // What does not exist has any name.
            Target::Resource(_) => Self::default(),
            Target::Path { path, .. } => Self::of_page(path),
        }
    }

    fn of_resource(path: &ResourcePath, is_dry_run: bool) -> Self {
        let is_one = !path.name.is_empty() || path.verb == Some(Verb::Create);
        Self {
            verb: path.verb.map_or("", word),
            group: path.group.clone(),
            version: path.version.clone(),
            resource: path.resource.clone(),
            subresource: path.subresource.clone(),
            scope: match (is_one, path.namespace.is_empty()) {
                (true, _) => "resource",
                (false, false) => "namespace",
                (false, true) => "cluster",
            },
            is_dry_run,
        }
    }

    fn of_page(path: &str) -> Self {
        const PAGES: &[&str] = &["/healthz", "/livez", "/metrics", "/readyz", "/version"];
        let known = PAGES.iter().find(|page| **page == path);
        Self {
            verb: "GET",
            subresource: known.map_or(String::new(), |page| (*page).to_owned()),
            ..Self::default()
        }
    }
}

/// A verb in the word that upstream counts it by.
fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "POST",
        Verb::Delete => "DELETE",
        Verb::DeleteCollection => "DELETECOLLECTION",
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Patch => "PATCH",
        Verb::Update => "PUT",
        Verb::Watch => "WATCH",
    }
}

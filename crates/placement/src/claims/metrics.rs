//! What the controller counts, under upstream's names of today and of 1.26.

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, counter::Counter, family::Family, gauge::ConstGauge},
    registry::Registry,
};
use windlass_cache::Lister;
use windlass_core::Doc;

use super::{EXTENDED_RESOURCE_CLAIM, POD_CLAIM_NAME, is_allocated};

/// The metrics of the claim controller. Clones count together.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Series>);

#[derive(Default)]
struct Series {
    creates: Family<CreateLabels, Counter>,
    attempts: Counter,
    failures: Counter,
    /// Where the claims that are counted when somebody asks come from.
    claims: Arc<Mutex<Option<Lister>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CreateLabels {
    status: &'static str,
    admin_access: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct ClaimLabels {
    allocated: &'static str,
    admin_access: &'static str,
    source: &'static str,
}

impl Metrics {
    /// Makes the metrics part of what a registry prints.
    #[rustfmt::skip] // One metric per line reads as a table.
    pub fn register(&self, registry: &mut Registry) {
        let all = &*self.0;
        // The encoder adds `_total` to the names of counters.
        registry.register("resourceclaim_controller_creates", "Number of ResourceClaims creation requests, categorized by creation status and admin access", all.creates.clone());
        registry.register("resourceclaim_controller_create_attempts", "Number of ResourceClaims creation requests", all.attempts.clone());
        registry.register("resourceclaim_controller_create_failures", "Number of ResourceClaims creation request failures", all.failures.clone());
        registry.register_collector(Box::new(ClaimCollector(all.claims.clone())));
    }

    /// How many claims were created, or not, for templates that ask for administrative access, or
    /// that do not.
    #[must_use]
    pub fn creates(&self, is_success: bool, is_admin: bool) -> u64 {
        let labels = CreateLabels::of(is_success, is_admin);
        self.0.creates.get_or_create(&labels).get()
    }

    pub(super) fn created(&self, is_success: bool, is_admin: bool) {
        let labels = CreateLabels::of(is_success, is_admin);
        self.0.creates.get_or_create(&labels).inc();
        self.0.attempts.inc();
        if !is_success {
            self.0.failures.inc();
        }
    }

    pub(super) fn read_from(&self, claims: Lister) {
        *self.0.claims.lock() = Some(claims);
    }
}

impl CreateLabels {
    fn of(is_success: bool, is_admin: bool) -> Self {
        Self {
            status: if is_success { "success" } else { "failure" },
            admin_access: text(is_admin),
        }
    }
}

/// Counts the claims in the cache when somebody asks.
#[derive(Debug)]
struct ClaimCollector(Arc<Mutex<Option<Lister>>>);

impl ClaimCollector {
    fn counts(&self) -> BTreeMap<ClaimLabels, i64> {
        let mut counts = BTreeMap::new();
        let Some(claims) = self.0.lock().clone() else {
            return counts;
        };
        for claim in claims.snapshot().iter() {
            *counts.entry(labels_of(claim.doc())).or_default() += 1;
        }
        counts
    }
}

impl Collector for ClaimCollector {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Number of ResourceClaims, categorized by allocation status and admin access";
        let name = "resourceclaim_controller_resource_claims";
        let mut encoder = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, count) in self.counts() {
            ConstGauge::new(count).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn labels_of(claim: &Doc) -> ClaimLabels {
    let annotation = |key| claim.meta().annotation(key).unwrap_or("");
    let source = if annotation(EXTENDED_RESOURCE_CLAIM) == "true" {
        "extended_resource"
    } else if annotation(POD_CLAIM_NAME).is_empty() {
        ""
    } else {
        "resource_claim_template"
    };
    ClaimLabels {
        allocated: text(is_allocated(claim)),
        admin_access: text(asks_for_admin_access(claim.at("/spec"))),
        source,
    }
}

/// Whether any request of a claim's spec asks for administrative access.
pub(super) fn asks_for_admin_access(spec: &Doc) -> bool {
    let mut requests = spec.at("/devices/requests").items().iter();
    requests.any(|request| request.at("/exactly/adminAccess").as_bool() == Some(true))
}

fn text(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

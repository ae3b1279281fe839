//! What the claim controller counts is what there is, and what it has done.

use std::{collections::BTreeMap, sync::Arc};

use http::Method;
use parking_lot::Mutex;
use prometheus_client::{encoding::text::encode, registry::Registry};
use windlass_core::Doc;
use windlass_placement::claims::{Metrics, POD_CLAIM_NAME, is_allocated};
use windlass_testing::{Fault, Seen, Stage};

const GAUGE: &str = "resourceclaim_controller_resource_claims";

/// One life of a claim controller, from a start to the next.
pub(crate) struct Life {
    /// The number of the first call that it can have made.
    pub(crate) first_call: usize,
    pub(crate) metrics: Metrics,
}

/// The present lives of processes, by name.
pub(crate) type Lives = Arc<Mutex<BTreeMap<String, Life>>>;

/// What a claim controller that is alive has counted.
pub(crate) fn check(
    process: &str,
    life: &Life,
    claims: &[Doc],
    stage: &Stage,
) -> Result<(), String> {
    let mut registry = Registry::default();
    life.metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| error.to_string())?;
    gauges_are_the_counts(&text, claims)?;
    let seen = stage.faults().seen();
    let own = seen.iter().filter(|seen| {
        let is_own = *seen.call.process == *process && seen.call.number >= life.first_call;
        is_own && is_create(seen)
    });
    creates_are_counted(&life.metrics, own)
}

fn is_create(seen: &Seen) -> bool {
    seen.call.method == Method::POST && seen.call.path.ends_with("/resourceclaims")
}

/// The claims by whether they have devices and whether they were made from a template.
fn gauges_are_the_counts(text: &str, claims: &[Doc]) -> Result<(), String> {
    let mut expected: BTreeMap<String, usize> = BTreeMap::new();
    for claim in claims {
        let is_made = claim.meta().annotation(POD_CLAIM_NAME).is_some();
        let source = if is_made {
            "resource_claim_template"
        } else {
            ""
        };
        let allocated = is_allocated(claim);
        let line = format!(
            "{GAUGE}{{allocated=\"{allocated}\",admin_access=\"false\",source=\"{source}\"}}"
        );
        *expected.entry(line).or_default() += 1;
    }
    let lines = text.lines().filter(|line| line.starts_with(GAUGE));
    let found: BTreeMap<String, usize> = lines
        .filter_map(|line| {
            let (name, count) = line.rsplit_once(' ')?;
            Some((name.to_owned(), count.parse().ok()?))
        })
        .collect();
    match found == expected {
        true => Ok(()),
        false => Err(format!("the gauges are {found:?} and not {expected:?}")),
    }
}

/// Every attempt is counted as what its answer said.
fn creates_are_counted<'a>(
    metrics: &Metrics,
    creates: impl Iterator<Item = &'a Seen>,
) -> Result<(), String> {
    let (mut made, mut refused) = (0, 0);
    for seen in creates {
        let is_made = seen.answer.as_ref().is_some_and(|it| it.code == 201);
        match &seen.fault {
            // The client has asked again by itself.
            Fault::Throttle(_) => {}
            Fault::None | Fault::Delay(_) | Fault::DelayAnswer(_) if is_made => made += 1,
            _ => refused += 1,
        }
    }
    let counted = (metrics.creates(true, false), metrics.creates(false, false));
    match counted == (made, refused) {
        true => Ok(()),
        false => Err(format!(
            "{counted:?} creates are counted, and not {:?}",
            (made, refused)
        )),
    }
}

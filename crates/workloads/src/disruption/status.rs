//! The status of a budget.

use std::{collections::BTreeMap, time::Duration};

use windlass_cache::Obj;
use windlass_core::{Condition, Doc, EditError, MicroTime, Object, Time, doc, with_condition};

use super::{DELETION_TIMEOUT, Expected};
use crate::is_pod_ready;

const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";

/// Pods that were evicted and not deleted yet, with the time of that.
pub(super) struct Disrupted(BTreeMap<String, Time>);

/// The evicted pods of a budget whose time is not over. `overdue` hears of the others.
pub(super) fn disrupted(
    budget: &Doc,
    pods: &[Obj],
    now: MicroTime,
    mut overdue: impl FnMut(&Obj),
) -> Disrupted {
    let noted = budget.at("/status/disruptedPods");
    let mut kept = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !pod.meta().is_deleting()) {
        let at: Option<Time> = noted
            .get(pod.name())
            .and_then(|at| at.as_str()?.parse().ok());
        let Some(at) = at else { continue };
        match deadline(at) < now {
            true => overdue(pod),
            false => drop(kept.insert(pod.name().to_owned(), at)),
        }
    }
    Disrupted(kept)
}

fn deadline(at: Time) -> MicroTime {
    MicroTime::from(at + DELETION_TIMEOUT)
}

impl Disrupted {
    /// The time until the first of them is overdue.
    pub(super) fn next_expiry(&self, now: MicroTime) -> Option<Duration> {
        let first = self.0.values().map(|at| deadline(*at)).min()?;
        // At the deadline itself a pod is not overdue yet.
        Some(first.since(now) + Duration::from_millis(1))
    }

    /// The number of healthy pods: ready, and neither deleted nor about to be.
    pub(super) fn healthy(&self, pods: &[Obj], now: MicroTime) -> i64 {
        let is_going = |pod: &Obj| {
            let at = self.0.get(pod.name());
            pod.meta().is_deleting() || at.is_some_and(|at| deadline(*at) > now)
        };
        let healthy = pods
            .iter()
            .filter(|pod| !is_going(pod) && is_pod_ready(pod.doc()));
        i64::try_from(healthy.count()).unwrap_or(i64::MAX)
    }

    fn to_doc(&self) -> Doc {
        let entries = self.0.iter();
        let entries = entries.map(|(name, at)| (name.as_str(), Doc::from(at.to_string())));
        entries.collect::<Object>().into()
    }
}

/// The numbers that a sync has found.
pub(super) struct BudgetStatus {
    healthy: i64,
    desired: i64,
    expected: i64,
    allowed: i64,
    generation: i64,
    disrupted: Disrupted,
}

impl BudgetStatus {
    pub(super) fn new(
        budget: &Doc,
        expected: &Expected,
        healthy: i64,
        disrupted: Disrupted,
    ) -> Self {
        // A budget without pods allows nothing, so that the first ones are safe.
        let allowed = match expected.pods > 0 {
            true => (healthy - expected.healthy).max(0),
            false => 0,
        };
        Self {
            healthy,
            desired: expected.healthy,
            expected: expected.pods,
            allowed,
            generation: budget.meta().generation(),
            disrupted,
        }
    }

    /// The budget with this status; `None` if it says so already.
    pub(super) fn written_to(&self, budget: &Doc, now: Time) -> Result<Option<Doc>, EditError> {
        let before = budget.at("/status");
        let number = |at: &str| before.at(at).as_i64().unwrap_or(0);
        let noted = before.at("/disruptedPods");
        let noted = match noted.is_null() {
            true => Doc::empty_object(),
            false => noted.clone(),
        };
        let is_same = number("/currentHealthy") == self.healthy
            && number("/desiredHealthy") == self.desired
            && number("/expectedPods") == self.expected
            && number("/disruptionsAllowed") == self.allowed
            && number("/observedGeneration") == self.generation
            && noted == self.disrupted.to_doc()
            && self.is_condition_current(before);
        if is_same {
            return Ok(None);
        }
        let mut status = doc!({
            "currentHealthy": (self.healthy),
            "desiredHealthy": (self.desired),
            "expectedPods": (self.expected),
            "disruptionsAllowed": (self.allowed),
            "observedGeneration": (self.generation),
            "conditions": (before.at("/conditions").items().to_vec()),
        });
        if !self.disrupted.0.is_empty() {
            status = status.with("/disruptedPods", self.disrupted.to_doc())?;
        }
        let budget = budget.with("/status", status)?;
        let condition = Condition::new(DISRUPTION_ALLOWED, self.allowed > 0, self.reason(), "");
        observed(&with_condition(&budget, &condition, now), self.generation).map(Some)
    }

    fn reason(&self) -> &'static str {
        match self.allowed > 0 {
            true => "SufficientPods",
            false => "InsufficientPods",
        }
    }

    fn is_condition_current(&self, status: &Doc) -> bool {
        let conditions = status.at("/conditions").items();
        let Some(found) = conditions
            .iter()
            .find(|it| it.str_at("/type") == DISRUPTION_ALLOWED)
        else {
            return false;
        };
        let wanted = if self.allowed > 0 { "True" } else { "False" };
        found.at("/observedGeneration").as_i64().unwrap_or(0) == self.generation
            && found.str_at("/status") == wanted
            && found.str_at("/reason") == self.reason()
    }
}

/// A budget that allows nothing because its sync failed.
pub(super) fn failed(budget: &Doc, text: &str, now: Time) -> Result<Doc, EditError> {
    let generation = budget.at("/status/observedGeneration").as_i64();
    let number = |at: &str| budget.at("/status").at(at).as_i64().unwrap_or(0);
    // A budget that was never synced has no status yet, and its numbers are required.
    let changed = budget
        .with("/status/disruptionsAllowed", 0)?
        .with("/status/currentHealthy", number("/currentHealthy"))?
        .with("/status/desiredHealthy", number("/desiredHealthy"))?
        .with("/status/expectedPods", number("/expectedPods"))?;
    let condition = Condition::new(DISRUPTION_ALLOWED, false, "SyncFailed", text);
    let changed = with_condition(&changed, &condition, now);
    observed(&changed, generation.unwrap_or(0))
}

/// Notes in the condition which generation it is about.
fn observed(budget: &Doc, generation: i64) -> Result<Doc, EditError> {
    let conditions = budget.at("/status/conditions").items().iter();
    let conditions = conditions.map(|it| match it.str_at("/type") == DISRUPTION_ALLOWED {
        true if generation == 0 => match it.get("observedGeneration") {
            Some(_) => it.without("/observedGeneration"),
            None => Ok(it.clone()),
        },
        true => it.with("/observedGeneration", generation),
        false => Ok(it.clone()),
    });
    let conditions: Vec<Doc> = conditions.collect::<Result<_, _>>()?;
    budget.with("/status/conditions", conditions)
}

//! One attempt to place one pod.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use windlass_client::WriteOptions;
use windlass_core::{Doc, doc};
use windlass_runtime::EventType;

use super::{MANAGER, Shared, deallocated};
use crate::{
    allocator::{self, AllocateError, Deadline, DeviceId, Outcome, Plan},
    claims::{FINALIZER, is_allocated, is_reserved_for},
    scheduler::{NodeView, PluginFuture, PodCycle, Refusal, Verdict},
};

/// How many nodes the explanation of a refusal tells about.
const EXPLAINED_LIMIT: usize = 3;

/// What a refused pod hears when nothing more can be done for it.
const STILL_NOT: &str = "still not schedulable";

pub(super) struct Cycle {
    pub(super) shared: Arc<Shared>,
    pub(super) pod: Doc,
    pub(super) claims: Vec<CycleClaim>,
    /// What the claims without devices ask for; `None` if all have theirs.
    plan: Option<Result<Plan, AllocateError>>,
    /// What was found on each node: allocations in the order of the open claims, and a score.
    found: HashMap<String, (Vec<Doc>, i64)>,
    /// The claims whose devices are elsewhere, for some node.
    elsewhere: BTreeSet<usize>,
    /// Why nodes were refused, the first of them in words.
    refusals: Vec<String>,
    refused_count: usize,
}

/// A claim in a cycle.
pub(super) struct CycleClaim {
    /// As it was when the cycle began, or as it was written last.
    pub(super) claim: Doc,
    /// The devices that it is to get; with the finalizer.
    pub(super) planned: Option<Doc>,
    /// Whether a reservation may have been written.
    pub(super) may_be_reserved: bool,
    /// Whether devices may have been written with it.
    pub(super) is_allocated_here: bool,
}

impl CycleClaim {
    pub(super) fn new(claim: Doc) -> Self {
        Self {
            claim,
            planned: None,
            may_be_reserved: false,
            is_allocated_here: false,
        }
    }
}

impl Cycle {
    pub(super) fn new(
        shared: Arc<Shared>,
        pod: &Doc,
        claims: Vec<CycleClaim>,
        plan: Option<Result<Plan, AllocateError>>,
    ) -> Self {
        Self {
            shared,
            pod: pod.clone(),
            claims,
            plan,
            found: HashMap::new(),
            elsewhere: BTreeSet::new(),
            refusals: Vec::new(),
            refused_count: 0,
        }
    }

    /// Whether the devices of a claim can be used on a node.
    fn is_available(claim: &Doc, node: &Doc) -> Result<bool, Refusal> {
        let selector = claim.at("/status/allocation/nodeSelector");
        if selector.is_null() {
            return Ok(true);
        }
        allocator::node_matches(selector, node).map_err(|error| Refusal::Error(error.to_string()))
    }

    fn allocate(&mut self, node: &NodeView) -> Verdict {
        let plan = match &self.plan {
            None => return Ok(()),
            Some(Ok(plan)) => plan,
            Some(Err(error)) => return Err(Refusal::Error(error.to_string())),
        };
        let is_explained = self.shared.options.explains && self.refusals.len() < EXPLAINED_LIMIT;
        let (outcome, explanation) = {
            let inventory = self.shared.inventory.read();
            let tracker = self.shared.tracker.lock();
            let in_use = |device: &DeviceId| tracker.is_in_use(device);
            let elapsed = || self.shared.env.elapsed();
            let deadline = Deadline::after(self.shared.options.filter_timeout, &elapsed);
            let outcome = plan.allocate(&inventory, &in_use, &node.node, &deadline);
            let is_refused = matches!(outcome, Ok(Outcome::Refused));
            let explain = || plan.explain(&inventory, &in_use, &node.node).ok();
            let explanation = (is_refused && is_explained).then(explain).flatten();
            (outcome, explanation)
        };
        self.refusals.extend(explanation.map(|why| why.to_string()));
        match outcome {
            Ok(Outcome::Fits { allocations, score }) => {
                let found = (allocations, score);
                self.found.insert(node.name().to_owned(), found);
                Ok(())
            }
            Ok(Outcome::Refused) => {
                self.refused_count += 1;
                Err(Refusal::Unresolvable(
                    "cannot allocate all claims".to_owned(),
                ))
            }
            Err(AllocateError::InvalidPools) => Err(Refusal::Unresolvable(
                AllocateError::InvalidPools.to_string(),
            )),
            Err(AllocateError::TimedOut) => {
                let (node, error) = (node.name(), AllocateError::TimedOut);
                Err(Refusal::Error(format!("node {node}: {error}")))
            }
            Err(error) => Err(Refusal::Error(error.to_string())),
        }
    }

    /// Takes the devices of an idle claim of the pod that are on a node where it cannot go.
    async fn free_elsewhere(&mut self) -> String {
        for at in std::mem::take(&mut self.elsewhere) {
            let claim = &self.claims[at].claim;
            let consumers = claim.at("/status/reservedFor").items();
            let is_idle =
                consumers.is_empty() || (consumers.len() == 1 && is_reserved_for(claim, &self.pod));
            if !is_idle {
                continue;
            }
            let options = WriteOptions::manager(MANAGER);
            let changed = deallocated(claim);
            match self
                .shared
                .api(claim)
                .update_status(&changed, &options)
                .await
            {
                Ok(_) => return "deallocation of ResourceClaim completed".to_owned(),
                Err(error) => {
                    let claim = claim.meta().key();
                    tracing::warn!(%claim, %error, "an idle claim keeps its devices");
                }
            }
        }
        self.explain();
        STILL_NOT.to_owned()
    }

    /// Tells the owner of the pod what the short reason does not.
    fn explain(&self) {
        if self.refusals.is_empty() {
            return;
        }
        let mut text = self.refusals.join(" | ");
        let more = self.refused_count - self.refusals.len();
        if more > 0 {
            text = format!("{text} | and {more} more nodes");
        }
        let typed = self.pod.with("/apiVersion", "v1");
        let typed = typed.and_then(|pod| pod.with("/kind", "Pod"));
        if let Ok(pod) = typed {
            let reason = "DevicesUnavailable";
            self.shared
                .recorder
                .event(&pod, EventType::Normal, reason, &text);
        }
    }
}

impl PodCycle for Cycle {
    fn filter(&mut self, node: &NodeView) -> Verdict {
        let mut is_here = true;
        for (at, claim) in self.claims.iter().enumerate() {
            if is_allocated(&claim.claim) && !Self::is_available(&claim.claim, &node.node)? {
                self.elsewhere.insert(at);
                is_here = false;
            }
        }
        self.allocate(node)?;
        if !is_here {
            let reason = "resourceclaim not available on the node";
            return Err(Refusal::Unresolvable(reason.to_owned()));
        }
        Ok(())
    }

    fn has_scores(&self) -> bool {
        matches!(&self.plan, Some(Ok(plan)) if plan.has_choices())
    }

    fn score(&mut self, node: &NodeView) -> i64 {
        self.found.get(node.name()).map_or(0, |(_, score)| *score)
    }

    fn post_filter(&mut self) -> PluginFuture<'_, String> {
        Box::pin(self.free_elsewhere())
    }

    fn reserve(&mut self, node: &NodeView) -> Verdict {
        if self.plan.is_none() {
            return Ok(());
        }
        let Some((allocations, _)) = self.found.remove(node.name()) else {
            let reason = "claim allocation not found for node";
            return Err(Refusal::Error(reason.to_owned()));
        };
        let open = self.claims.iter().enumerate();
        let open = open.filter(|(_, claim)| !is_allocated(&claim.claim));
        let open: Vec<usize> = open.map(|(at, _)| at).collect();
        if open.len() != allocations.len() {
            let (found, wanted) = (allocations.len(), open.len());
            return Err(Refusal::Error(format!(
                "{found} allocations were found for {wanted} claims"
            )));
        }
        let planned = open.iter().zip(allocations).map(|(at, allocation)| {
            let claim = self.claims[*at].claim.with_finalizer(FINALIZER);
            claim
                .with("/status/allocation", allocation)
                .unwrap_or(claim)
        });
        let planned: Vec<Doc> = planned.collect();
        let taken = self.shared.tracker.lock().take(&planned);
        taken.map_err(Refusal::Error)?;
        for (at, planned) in open.into_iter().zip(planned) {
            self.claims[at].planned = Some(planned);
        }
        Ok(())
    }

    fn pre_bind(&mut self) -> PluginFuture<'_, Result<(), String>> {
        Box::pin(async move {
            for at in 0..self.claims.len() {
                if !is_reserved_for(&self.claims[at].claim, &self.pod) {
                    self.bind(at).await?;
                }
            }
            Ok(())
        })
    }

    fn unreserve(&mut self) -> PluginFuture<'_, ()> {
        Box::pin(async move {
            for at in 0..self.claims.len() {
                self.give_back(at).await;
            }
        })
    }
}

/// What is written about new devices: also since when the claim has them.
pub(super) fn stamped(allocation: &Doc, now: &str) -> Doc {
    let stamped = allocation.with("/allocationTimestamp", doc!(now));
    stamped.unwrap_or_else(|_| allocation.clone())
}

//! Why claims cannot be met on a node, in words.

use std::fmt;

use windlass_core::{Doc, Key};

use super::{
    candidates::{Candidates, Use, Uses},
    plan::{Amount, Plan},
    pools::{Pool, PoolState},
};

/// How many free devices a refusal names.
const NAMED_LIMIT: usize = 8;

/// Why the claims of a pod cannot be met on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The node.
    pub node: String,
    /// The requests that cannot be met by themselves; empty if they only cannot be met together.
    pub requests: Vec<RequestRefusal>,
    /// The pools of the node whose slices are not all there, as `driver/pool`.
    pub incomplete_pools: Vec<String>,
    /// Devices that some request could have, some of them by name.
    pub free: Vec<String>,
    /// How many devices some request could have.
    pub free_count: usize,
}

/// Why a request cannot be met on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRefusal {
    /// The claim.
    pub claim: Key,
    /// The request, or `request/subrequest`.
    pub request: String,
    /// How many devices it needs; `None` for all that match.
    pub needed: Option<usize>,
    /// How many devices of the node it could have.
    pub free: usize,
    /// How many others have, or that its own claim has.
    pub in_use: usize,
    /// How many do not match its selectors or those of its class.
    pub unmatched: usize,
    /// How many have a taint that it does not tolerate.
    pub tainted: usize,
    /// How many need a feature that is absent.
    pub unsupported: usize,
}

impl Refusal {
    pub(super) fn new(
        plan: &Plan,
        candidates: &Candidates<'_>,
        pools: &[Pool],
        node: &Doc,
    ) -> Self {
        let mut requests = Vec::new();
        for claim in &plan.claims {
            for request in &claim.requests {
                let refused: Vec<RequestRefusal> = request
                    .alternatives
                    .iter()
                    .filter_map(|alternative| {
                        let uses = &candidates.uses[alternative.id];
                        let needed = match alternative.amount {
                            Amount::Exactly(count) => Some(count),
                            Amount::All => None,
                        };
                        RequestRefusal::of(&claim.key, &alternative.name, needed, uses)
                    })
                    .collect();
                if refused.len() == request.alternatives.len() {
                    requests.extend(refused);
                }
            }
        }
        let is_free = |at: &usize| candidates.uses.iter().any(|uses| uses.of[*at] == Use::Free);
        let free = (0..candidates.devices.len()).filter(is_free);
        let name = |at: usize| candidates.devices[at].0.id.to_string();
        let incomplete = pools
            .iter()
            .filter(|pool| pool.state == PoolState::Incomplete);
        Self {
            node: node.meta().name().to_owned(),
            requests,
            incomplete_pools: incomplete
                .map(|pool| format!("{}/{}", pool.driver, pool.name))
                .collect(),
            free: free.clone().take(NAMED_LIMIT).map(name).collect(),
            free_count: free.count(),
        }
    }
}

impl RequestRefusal {
    /// The refusal of an alternative that cannot be met even alone.
    fn of(claim: &Key, request: &str, needed: Option<usize>, uses: &Uses) -> Option<Self> {
        let refusal = Self {
            claim: claim.clone(),
            request: request.to_owned(),
            needed,
            free: uses.count(|one| *one == Use::Free),
            in_use: uses.count(|one| *one == Use::Taken),
            unmatched: uses.count(|one| *one == Use::Unmatched),
            tainted: uses.count(|one| *one == Use::Tainted),
            unsupported: uses.count(|one| *one == Use::Unsupported),
        };
        let is_met = match needed {
            Some(needed) => refusal.free >= needed,
            None => refusal.free > 0 && refusal.in_use == 0 && refusal.tainted == 0,
        };
        (!is_met).then_some(refusal)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}: ", self.node)?;
        for (at, request) in self.requests.iter().enumerate() {
            let separator = if at > 0 { "; " } else { "" };
            write!(f, "{separator}{request}")?;
        }
        if self.requests.is_empty() {
            f.write_str("no combination of devices meets all requests and constraints together")?;
        }
        if !self.incomplete_pools.is_empty() {
            write!(
                f,
                "; pools being updated: {}",
                self.incomplete_pools.join(", ")
            )?;
        }
        match self.free_count {
            0 => f.write_str("; no device is free"),
            count => {
                write!(f, "; free: {}", self.free.join(", "))?;
                match count - self.free.len() {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}

impl fmt::Display for RequestRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claim {}, request {} needs ", self.claim, self.request)?;
        match self.needed {
            Some(1) => f.write_str("1 device")?,
            Some(needed) => write!(f, "{needed} devices")?,
            None => f.write_str("all matching devices")?,
        }
        write!(f, ", {} free", self.free)?;
        let others = [
            (self.in_use, "in use"),
            (self.unmatched, "not matching"),
            (self.tainted, "tainted"),
            (self.unsupported, "not supported"),
        ];
        for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {what}")?;
        }
        Ok(())
    }
}

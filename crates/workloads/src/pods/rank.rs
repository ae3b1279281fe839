//! Which pod goes first when there are too many.

use std::cmp::Reverse;

use windlass_core::{Doc, Time, Uid};

use super::{is_pod_ready, ready_since};

/// The annotation by which a pod says how much its loss would cost.
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The place of a pod in the order of deletion: the smallest goes first.
///
/// Pods without a node go before others, then pending before unknown before running, those that
/// are not ready, those of a lower deletion cost, those on crowded nodes, those that became ready
/// last, those with more restarts, and the youngest. Times are compared by the order of magnitude
/// of their age, so that small differences do not decide. The UID ends every tie: this is a total
/// order, which upstream's comparison of pairs is not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeletionRank {
    is_assigned: bool,
    phase: u8,
    is_ready: bool,
    cost: i32,
    related: Reverse<usize>,
    ready_age: u32,
    restarts: Reverse<i64>,
    sidecar_restarts: Reverse<i64>,
    age: u32,
    uid: Uid,
}

impl DeletionRank {
    /// The rank of a pod, of which `related` others are on the same node.
    #[must_use]
    pub fn of(pod: &Doc, related: usize, now: Time) -> Self {
        let is_ready = is_pod_ready(pod);
        let ready_age = if is_ready {
            magnitude(ready_since(pod), now)
        } else {
            0
        };
        Self {
            is_assigned: !pod.str_at("/spec/nodeName").is_empty(),
            phase: phase(pod.str_at("/status/phase")),
            is_ready,
            cost: cost(pod),
            related: Reverse(related),
            ready_age,
            restarts: Reverse(most_restarts(pod.at("/status/containerStatuses"), |_| true)),
            sidecar_restarts: Reverse(sidecar_restarts(pod)),
            age: magnitude(pod.meta().creation_timestamp(), now),
            uid: pod.meta().uid(),
        }
    }
}

/// The place of an active pod in the order in which Jobs delete what is too much: the smallest goes
/// first.
///
/// As [`DeletionRank`], but deletion costs and neighbours do not matter, and times are compared
/// exactly.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActiveRank {
    is_assigned: bool,
    phase: u8,
    is_ready: bool,
    ready_since: Option<Reverse<Time>>,
    restarts: Reverse<i64>,
    sidecar_restarts: Reverse<i64>,
    created: Option<Reverse<Time>>,
    uid: Uid,
}

impl ActiveRank {
    /// The rank of a pod.
    #[must_use]
    pub fn of(pod: &Doc) -> Self {
        let is_ready = is_pod_ready(pod);
        let since = ready_since(pod).filter(|_| is_ready);
        Self {
            is_assigned: !pod.str_at("/spec/nodeName").is_empty(),
            phase: phase(pod.str_at("/status/phase")),
            is_ready,
            ready_since: since.map(Reverse),
            restarts: Reverse(most_restarts(pod.at("/status/containerStatuses"), |_| true)),
            sidecar_restarts: Reverse(sidecar_restarts(pod)),
            created: pod.meta().creation_timestamp().map(Reverse),
            uid: pod.meta().uid(),
        }
    }
}

fn phase(phase: &str) -> u8 {
    match phase {
        "Unknown" => 1,
        "Running" => 2,
        // A phase that is not set, or not known, counts as the earliest.
        _ => 0,
    }
}

/// What is no number counts for nothing, as if it were not there. A plus sign or a leading zero
/// makes it none.
fn cost(pod: &Doc) -> i32 {
    let is_plain = |cost: &&str| *cost == "0" || cost.starts_with(|c| matches!(c, '-' | '1'..='9'));
    pod.meta()
        .annotation(POD_DELETION_COST)
        .filter(is_plain)
        .and_then(|cost| cost.parse().ok())
        .unwrap_or(0)
}

/// The order of magnitude of an age; an unknown time counts as the youngest.
fn magnitude(time: Option<Time>, now: Time) -> u32 {
    let nanos = time.map_or(0, |time| now.since(time).as_nanos());
    nanos.checked_ilog2().map_or(0, |bits| bits + 1)
}

fn most_restarts(statuses: &Doc, counts: impl Fn(&Doc) -> bool) -> i64 {
    let statuses = statuses.items().iter().filter(|status| counts(status));
    statuses
        .filter_map(|status| status.at("/restartCount").as_i64())
        .max()
        .unwrap_or(0)
}

/// Sidecars are init containers that are restarted whenever they end.
fn sidecar_restarts(pod: &Doc) -> i64 {
    let containers = pod.at("/spec/initContainers").items();
    let is_sidecar = |status: &Doc| {
        let name = status.str_at("/name");
        let mut own = containers.iter().filter(|it| it.str_at("/name") == name);
        own.any(|container| container.str_at("/restartPolicy") == "Always")
    };
    most_restarts(pod.at("/status/initContainerStatuses"), is_sidecar)
}

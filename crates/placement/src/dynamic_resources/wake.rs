//! What could help a pod that waits for its claims.

use windlass_core::Doc;

use super::Shared;
use crate::{
    claims::is_allocated,
    scheduler::{ClusterEvent, Reach},
};

/// Which pods that wait because of their claims an event could help.
pub(super) fn reach(event: &ClusterEvent) -> Reach {
    match event {
        ClusterEvent::NodeAdded(_) | ClusterEvent::NodeChanged { .. } => Reach::Tried(None),
        ClusterEvent::PodChanged { .. } => Reach::Anybody,
        ClusterEvent::Other { resource, old, new } => {
            match (*resource, new.as_ref().or(old.as_ref())) {
                ("resourceclaims", Some(claim)) => {
                    let key = claim.meta().key();
                    match gives_back(old.as_ref(), new.as_ref()) {
                        true => Reach::Tried(Some(key)),
                        false => Reach::Dependents(key),
                    }
                }
                ("resourceslices" | "deviceclasses", _) if new.is_some() => Reach::Tried(None),
                _ => Reach::Nobody,
            }
        }
        _ => Reach::Nobody,
    }
}

/// Whether a claim had devices and has them no more.
fn gives_back(old: Option<&Doc>, new: Option<&Doc>) -> bool {
    old.is_some_and(is_allocated) && !new.is_some_and(is_allocated)
}

/// Whether an event could make a pod schedulable that waits because of its claims.
pub(super) fn wakes(shared: &Shared, pod: &Doc, event: &ClusterEvent) -> bool {
    match event {
        ClusterEvent::NodeAdded(_) | ClusterEvent::NodeChanged { .. } => true,
        ClusterEvent::PodChanged { old, new } => {
            let recorded = |pod: &Doc| pod.at("/status/resourceClaimStatuses").clone();
            recorded(old) != recorded(new) && shared.claims_of(new).is_ok()
        }
        ClusterEvent::Other { resource, old, new } => match *resource {
            "resourceclaims" => wakes_claim(shared, pod, old.as_ref(), new.as_ref()),
            "resourceslices" | "deviceclasses" => new.is_some(),
            _ => false,
        },
        _ => false,
    }
}

/// Devices that were given back may be what a pod waits for. Otherwise only the pod's own claims
/// matter, and of those only their status: a finalizer helps nobody.
fn wakes_claim(shared: &Shared, pod: &Doc, old: Option<&Doc>, new: Option<&Doc>) -> bool {
    let Ok(claims) = shared.claims_of(pod) else {
        return false;
    };
    if gives_back(old, new) {
        return true;
    }
    let Some(new) = new else {
        return false;
    };
    let is_own = claims
        .iter()
        .any(|claim| claim.meta().uid() == new.meta().uid());
    is_own && old.is_none_or(|old| old.at("/status") != new.at("/status"))
}

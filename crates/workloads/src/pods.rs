//! What controllers of pods ask about pods.

mod rank;

use std::time::Duration;

use windlass_core::{Doc, Selector, Time, Uid, condition, doc};

pub use rank::{ActiveRank, DeletionRank, POD_DELETION_COST};

/// Whether a pod counts as a replica: it has not ended and is not being deleted.
#[must_use]
pub fn is_pod_active(pod: &Doc) -> bool {
    !is_pod_terminal(pod) && !pod.meta().is_deleting()
}

/// Whether a pod is being deleted and has not ended.
#[must_use]
pub fn is_pod_terminating(pod: &Doc) -> bool {
    !is_pod_terminal(pod) && pod.meta().is_deleting()
}

/// The fields of a pod's spec that the controllers of ReplicaSets and ReplicationControllers read,
/// here and in `replicaset/victims.rs`. A cache may leave out every other field of the spec.
pub const POD_SPEC_FIELDS: &[&str] = &["initContainers", "nodeName"];

/// Whether a pod has ended, for better or worse.
#[must_use]
pub fn is_pod_terminal(pod: &Doc) -> bool {
    matches!(pod.str_at("/status/phase"), "Succeeded" | "Failed")
}

/// Whether a pod belongs to an owner: managed by it, and of its labels.
#[must_use]
pub fn is_pod_claimed(pod: &Doc, owner: &Uid, selector: &Selector) -> bool {
    pod.meta().is_controlled_by(owner) && selector.matches(&pod.meta().labels())
}

/// Whether a pod says that it is ready.
#[must_use]
pub fn is_pod_ready(pod: &Doc) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.is_true())
}

/// Whether a pod has been ready for long enough.
#[must_use]
pub fn is_pod_available(pod: &Doc, min_ready: Duration, now: Time) -> bool {
    if !is_pod_ready(pod) {
        return false;
    }
    min_ready.is_zero() || ready_since(pod).is_some_and(|since| now >= since + min_ready)
}

/// In how much time a pod will have been ready for long enough; `None` if it has been already, or
/// if it is not ready.
#[must_use]
pub fn pod_available_in(pod: &Doc, min_ready: Duration, now: Time) -> Option<Duration> {
    if !is_pod_ready(pod) || min_ready.is_zero() {
        return None;
    }
    let left = (ready_since(pod)? + min_ready).since(now);
    (!left.is_zero()).then_some(left)
}

/// When a pod became ready, or ceased to be; `None` if it does not say.
fn ready_since(pod: &Doc) -> Option<Time> {
    condition(pod, "Ready")?.last_transition_time
}

#[cfg(test)]
mod tests;

/// A strategic merge patch that sets one condition of a pod and leaves the others in their order. It
/// is for this pod only, and not for another one of the same name.
pub(crate) fn condition_patch(pod: &Doc, condition: &Doc) -> Doc {
    let conditions = pod.at("/status/conditions").items().iter();
    let mut kinds: Vec<&str> = conditions.map(|it| it.str_at("/type")).collect();
    let kind = condition.str_at("/type");
    if !kinds.contains(&kind) {
        kinds.push(kind);
    }
    let order: Vec<Doc> = kinds.iter().map(|kind| doc!({ "type": (*kind) })).collect();
    doc!({
        "metadata": { "uid": (pod.meta().uid_str()) },
        "status": { "$setElementOrder/conditions": order, "conditions": [(condition.clone())] },
    })
}

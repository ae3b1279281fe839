//! Takes back the condition `DisruptionTarget` of pods that were not deleted after all.

use std::time::Duration;

use windlass_client::{Patch, WriteOptions};
use windlass_core::{Doc, Key, MicroTime, condition, doc};
use windlass_runtime::{Action, Context, Controller, Result};

use super::NAME;
use crate::{is_pod_terminal, owned::core_kind, pods::condition_patch};

const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// The reason of a condition that the kubelet sets: its pod may take any time to end.
const BY_KUBELET: &str = "TerminationByKubelet";

pub(super) fn controller(after: Duration) -> Controller {
    let reconcile = move |key: Key, cx: Context| async move { reset(&key, &cx, after).await };
    Controller::of_kind(core_kind("Pod", "pods"), reconcile)
        .filter(|change| {
            change
                .new
                .is_some_and(|pod| target_since(pod.doc()).is_some())
        })
        .named("disruption-controller-stale-pods")
        .queue_named("stale_pod_disruption")
}

async fn reset(key: &Key, cx: &Context, after: Duration) -> Result<Action> {
    let kind = core_kind("Pod", "pods");
    let Some(pod) = cx.lister_of(&kind)?.get(key) else {
        return Ok(Action::done());
    };
    let pod = pod.doc();
    let Some(since) = target_since(pod) else {
        return Ok(Action::done());
    };
    let now = cx.env().now_micro();
    let left = after.saturating_sub(now.since(since));
    if !left.is_zero() {
        return Ok(Action::requeue_after(left));
    }
    let api = cx.api(&kind, pod.meta().namespace());
    let patch = Patch::Strategic(without_target(pod, &now.to_time().to_string())?);
    let options = WriteOptions::manager(NAME);
    match api.patch_status(key.name(), &patch, &options).await {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(Action::done()),
    }
}

/// The time since which a pod that nobody deletes is the target of a disruption.
fn target_since(pod: &Doc) -> Option<MicroTime> {
    if pod.meta().is_deleting() || is_pod_terminal(pod) {
        return None;
    }
    let target = condition(pod, DISRUPTION_TARGET)?;
    let is_meant = target.is_true() && target.reason != BY_KUBELET;
    let since = is_meant.then_some(target.last_transition_time)??;
    Some(since.into())
}

/// Only the pod as it was seen is changed.
fn without_target(pod: &Doc, now: &str) -> Result<Doc> {
    let meta = pod.meta();
    let condition = doc!({
        "type": DISRUPTION_TARGET, "status": "False", "reason": null, "message": null,
        "lastTransitionTime": now, "observedGeneration": (meta.generation()),
    });
    let patch = condition_patch(pod, &condition);
    Ok(patch.with("/metadata/resourceVersion", meta.resource_version())?)
}

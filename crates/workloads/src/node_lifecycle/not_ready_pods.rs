//! Pods on a node that is not ready are not ready either.

use windlass_cache::Obj;
use windlass_client::{DynamicApi, Error, Patch, WriteOptions};
use windlass_core::{Doc, Key, doc};
use windlass_runtime::{Action, Change, Context, Controller, EventRecorder, EventType, Result};

use super::{COMPONENT, NAME, conditions::find, health::HealthMap};
use crate::{owned::core_kind, pods::condition_patch};

/// Upstream's.
const WORKERS: usize = 4;

/// Pods that come to a node after it has become silent.
pub(super) fn controller(health: HealthMap) -> Controller {
    let reconcile = move |key: Key, cx: Context| {
        let health = health.clone();
        async move { look_at(&key, &cx, &health).await }
    };
    Controller::of_kind(core_kind("Pod", "pods"), reconcile)
        .filter(is_bound)
        .named("node-lifecycle-controller-pods")
        .queue_named("node_lifecycle_controller_pods")
        .component(COMPONENT)
        .workers(WORKERS)
}

fn is_bound(change: &Change<'_>) -> bool {
    let node = |pod: &Obj| pod.doc().str_at("/spec/nodeName").to_owned();
    let new = change.new.map(node).unwrap_or_default();
    !new.is_empty() && change.old.map(node) != Some(new)
}

async fn look_at(key: &Key, cx: &Context, health: &HealthMap) -> Result<Action> {
    let kind = core_kind("Pod", "pods");
    let Some(pod) = cx.lister_of(&kind)?.get(key) else {
        return Ok(Action::done());
    };
    let health = health.get(pod.doc().str_at("/spec/nodeName"));
    let ready = health.and_then(|health| health.ready);
    if ready.is_some_and(|ready| ready.str_at("/status") != "True") {
        let api = cx.api(&kind, pod.namespace());
        let now = cx.env().now().to_string();
        mark(&api, cx.recorder(), pod.doc(), &now).await?;
    }
    Ok(Action::done())
}

/// Makes a pod unready, if it is not already.
pub(super) async fn mark(
    api: &DynamicApi,
    recorder: &EventRecorder,
    pod: &Doc,
    now: &str,
) -> Result<(), Error> {
    let is_ready = find(pod, "Ready").is_some_and(|it| it.str_at("/status") != "False");
    if !is_ready {
        return Ok(());
    }
    let meta = pod.meta();
    let condition = doc!({ "type": "Ready", "status": "False", "lastTransitionTime": now });
    let patch = condition_patch(pod, &condition);
    // Only the pod as it was seen is changed.
    let patch = patch.with("/metadata/resourceVersion", meta.resource_version());
    let patch = Patch::Strategic(patch.expect("invariant: the patch has metadata"));
    let options = WriteOptions::manager(NAME).metadata_only();
    let marked = api.patch_status(meta.name(), &patch, &options).await;
    match marked {
        Err(error) if error.is_not_found() => return Ok(()),
        marked => marked?,
    };
    let (kind, text) = (EventType::Warning, "Node is not ready");
    recorder.event(pod, kind, "NodeNotReady", text);
    Ok(())
}

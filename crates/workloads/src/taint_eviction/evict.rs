//! The eviction of one pod.

use windlass_cache::Obj;
use windlass_client::{DeleteOptions, DynamicApi, Error, Patch, WriteOptions};
use windlass_core::{Doc, Key, condition, doc};
use windlass_runtime::{Context, EventType, Result};

use super::NAME;
use crate::{owned::core_kind, pods::condition_patch};

/// The reason in the condition of a pod that is evicted.
const REASON: &str = "DeletionByTaintManager";

/// Tells of an eviction. The event names the pod without its UID, as upstream's does.
pub(super) fn tell(cx: &Context, key: &Key, what: &str) {
    let (namespace, name) = (key.namespace().unwrap_or_default(), key.name());
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": namespace, "name": name },
    });
    let text = format!("{what} {namespace}/{name}");
    cx.recorder()
        .event(&pod, EventType::Normal, "TaintManagerEviction", &text);
}

/// Marks a pod as disrupted and deletes it. Returns false if it is gone, or another one by now.
pub(super) async fn evict(cx: &Context, pod: &Obj) -> Result<bool> {
    let api = cx.api(&core_kind("Pod", "pods"), pod.namespace());
    let live = match api.get(pod.name()).await {
        Ok(live) => live,
        Err(error) if error.is_not_found() => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    if live.meta().uid() != pod.uid() {
        return Ok(false);
    }
    let deleted = match mark(&api, &live, &cx.env().now().to_string()).await {
        Ok(()) => {
            let options = DeleteOptions::uid(pod.uid().as_str());
            api.delete(pod.name(), &options).await.map(drop)
        }
        Err(error) => Err(error),
    };
    match deleted {
        Ok(()) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Says in the status that the pod is disrupted, and why, unless it does already.
async fn mark(api: &DynamicApi, pod: &Doc, now: &str) -> Result<(), Error> {
    let target = condition(pod, "DisruptionTarget");
    if target.is_some_and(|it| it.is_true() && it.reason == REASON) {
        return Ok(());
    }
    let condition = doc!({
        "type": "DisruptionTarget", "status": "True", "reason": REASON,
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": now, "observedGeneration": (pod.meta().generation()),
    });
    let patch = Patch::Strategic(condition_patch(pod, &condition));
    let options = WriteOptions::manager(NAME).metadata_only();
    api.patch_status(pod.meta().name(), &patch, &options)
        .await
        .map(drop)
}

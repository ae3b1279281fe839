//! The eviction of one pod.

use windlass_cache::Obj;
use windlass_client::{DeleteOptions, Patch, WriteOptions};
use windlass_core::{Doc, doc};
use windlass_runtime::{Context, EventType, Result};

use super::NAME;
use crate::{owned::core_kind, pods::condition_patch};

/// Tells of an eviction.
pub(super) fn tell(cx: &Context, pod: &Doc, what: &str) {
    let reason = "DeviceTaintManagerEviction";
    cx.recorder().event(pod, EventType::Normal, reason, what);
}

/// Marks a pod as disrupted and deletes it, unless it is gone, going, or another one by now.
pub(super) async fn evict(cx: &Context, pod: &Obj) -> Result<()> {
    let api = cx.api(&core_kind("Pod", "pods"), pod.namespace());
    let live = match api.get(pod.name()).await {
        Ok(live) => live,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if live.meta().uid() != pod.uid() || live.meta().is_deleting() {
        return Ok(());
    }
    tell(cx, &live, "Marking for deletion");
    let condition = doc!({
        "type": "DisruptionTarget", "status": "True",
        "reason": "DeletionByDeviceTaintManager",
        "message": "Device Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": (cx.env().now().to_string()),
    });
    let patch = Patch::Strategic(condition_patch(&live, &condition));
    let options = WriteOptions::manager(NAME);
    let patched = api.patch_status(pod.name(), &patch, &options).await;
    let deleted = match patched {
        Ok(_) => {
            let options = DeleteOptions::uid(pod.uid().as_str());
            api.delete(pod.name(), &options).await.map(drop)
        }
        Err(error) => Err(error),
    };
    match deleted {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(()),
    }
}

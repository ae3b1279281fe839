//! What a node does with pods, as far as controllers can tell.

use std::time::Duration;

use windlass_client::{DeleteOptions, Patch, WriteOptions};
use windlass_core::{Doc, GroupVersion, Key, Time, condition, doc};
use windlass_runtime::{Action, Context, Controller, Manager, ResourceKind, Result};
use windlass_testing::Running;

use crate::stage::Stage;

/// Pods with an image of this start never become ready.
const BROKEN: &str = "broken";

impl Stage {
    /// Makes pods ready, and ends those that are being deleted.
    pub(crate) fn run_kubelet(&self) -> Running {
        self.run_slow_kubelet(Duration::ZERO)
    }

    /// Makes pods ready when they have been there for some time, and ends those that are being
    /// deleted.
    pub(crate) fn run_slow_kubelet(&self, delay: Duration) -> Running {
        let manager = self.cluster.manager("kubelet");
        let manager = manager.namespace(self.namespace.clone()).build().unwrap();
        add_to(&manager, delay);
        self.cluster.run_manager(manager)
    }
}

/// Adds to a manager what makes pods ready after some time, and ends those that are being deleted.
pub(crate) fn add_to(manager: &Manager, delay: Duration) {
    let serve = move |key, cx| serve(key, cx, delay);
    manager.add(
        Controller::of_kind(pods(), serve)
            .named("kubelet")
            .workers(4),
    );
}

fn pods() -> ResourceKind {
    ResourceKind::namespaced(GroupVersion::constant("", "v1"), "Pod", "pods")
}

async fn serve(key: Key, cx: Context, delay: Duration) -> Result<Action> {
    let kind = pods();
    let Some(pod) = cx.lister_of(&kind)?.get(&key) else {
        return Ok(Action::done());
    };
    let api = cx.api(&kind, pod.namespace());
    let is_broken = pod
        .doc()
        .str_at("/spec/containers/0/image")
        .starts_with(BROKEN);
    let is_ready = condition(pod.doc(), "Ready").is_some_and(|it| it.is_true());
    let outcome = if pod.meta().is_deleting() {
        let options = DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..DeleteOptions::uid(pod.uid().as_str())
        };
        api.delete(pod.name(), &options).await.map(drop)
    } else if is_ready || is_broken {
        Ok(())
    } else if let Some(rest) = rest_of(delay, pod.doc(), cx.env().now()) {
        return Ok(Action::requeue_after(rest));
    } else {
        let now = cx.env().now().to_string();
        let patch = doc!({
            "metadata": { "uid": (pod.uid().as_str()) },
            "status": {
                "phase": "Running",
                "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": now }]
            }
        });
        let patch = Patch::Merge(patch);
        api.patch_status(pod.name(), &patch, &WriteOptions::default())
            .await
            .map(drop)
    };
    match outcome {
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(Action::done()),
        outcome => outcome.map(|()| Action::done()).map_err(Into::into),
    }
}

/// What is left of the time that a pod takes to become ready.
fn rest_of(delay: Duration, pod: &Doc, now: Time) -> Option<Duration> {
    let age = pod
        .meta()
        .creation_timestamp()
        .map(|since| now.since(since));
    let rest = delay.checked_sub(age.unwrap_or_default())?;
    (!rest.is_zero()).then_some(rest)
}

//! What becomes of a pod that could not be placed, and how it is told.

use std::sync::Arc;

use tokio::time::Instant;
use windlass_client::{Patch, WriteOptions};
use windlass_core::{Doc, condition, doc};
use windlass_runtime::EventType;

use super::{
    cycle::AttemptError,
    metrics::Outcome,
    queue::{Failure, Popped},
    run::{Scheduler, Writes},
};

/// What a pod is told.
pub(super) struct Report {
    pod: Doc,
    reason: &'static str,
    message: String,
}

impl Scheduler {
    /// Puts a pod back into the queue and reports why.
    pub(super) fn fail(
        self: &Arc<Self>,
        popped: &Popped,
        error: &AttemptError,
        began: Instant,
        writes: &mut Writes,
    ) {
        if let Some(report) = self.settle(popped, error, began) {
            let scheduler = self.clone();
            writes.spawn(async move { scheduler.report(report).await });
        }
    }

    /// Puts a pod back into the queue, if it still wants a node.
    pub(super) fn settle(
        &self,
        popped: &Popped,
        error: &AttemptError,
        began: Instant,
    ) -> Option<Report> {
        let (failure, outcome, reason) = match error {
            AttemptError::Unfit(diagnosis) => (
                Failure::Rejected(diagnosis.rejectors),
                Outcome::Unschedulable,
                "Unschedulable",
            ),
            AttemptError::NoNodes => (Failure::Error, Outcome::Unschedulable, "Unschedulable"),
            AttemptError::Broken(_) => (Failure::Error, Outcome::Error, "SchedulerError"),
        };
        self.metrics.attempted(outcome, &self.name, began.elapsed());
        let current = self.current(popped);
        let current = current.filter(|pod| pod.str_at("/spec/nodeName").is_empty());
        let mut state = self.state.lock();
        let Some(pod) = current else {
            state.queue.done(&popped.uid);
            return None;
        };
        let still_waits = state.queue.failed(&popped.uid, failure, Instant::now());
        drop(state);
        self.news.notify_one();
        still_waits.then(|| Report {
            pod,
            reason,
            message: error.message(),
        })
    }

    /// Tells why a pod was not placed: an event, and a condition if it says something new.
    pub(super) async fn report(&self, report: Report) {
        let Report {
            pod,
            reason,
            message,
        } = report;
        self.warn(&pod, &message);
        let Some(patch) = self.condition_patch(&pod, reason, &message) else {
            return;
        };
        let meta = pod.meta();
        let api = self.pods.clone().namespaced(meta.namespace());
        let options = WriteOptions::default();
        match api.patch_status(meta.name(), &patch, &options).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => {
                tracing::error!(pod = %meta.key(), %error, "the condition of a pod was not written");
            }
            _ => {}
        }
    }

    pub(super) fn warn(&self, pod: &Doc, message: &str) {
        self.recorder
            .event(pod, EventType::Warning, "FailedScheduling", message);
    }

    fn condition_patch(&self, pod: &Doc, reason: &str, message: &str) -> Option<Patch> {
        let old = condition(pod, "PodScheduled");
        let is_same_status = old.as_ref().is_some_and(|old| old.status == "False");
        if let Some(old) = &old
            && is_same_status
            && old.reason == reason
            && old.message == message
        {
            return None;
        }
        let since = old.filter(|_| is_same_status);
        let since = since.and_then(|old| old.last_transition_time);
        let since = since.unwrap_or_else(|| self.env.now());
        Some(Patch::Strategic(doc!({
            "metadata": { "uid": (pod.meta().uid_str()) },
            "status": { "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": reason, "message": message,
                "lastProbeTime": null, "lastTransitionTime": (since.to_string()),
                "observedGeneration": (pod.meta().generation()),
            }] },
        })))
    }
}

//! What becomes of a pod that could not be placed, and how it is told.

use std::sync::Arc;

use tokio::time::Instant;
use windlass_client::{Patch, WriteOptions};
use windlass_core::{Doc, Object, condition, doc};
use windlass_runtime::EventType;

use super::{
    cycle::AttemptError,
    metrics::Outcome,
    preemption::Nominating,
    queue::{Failure, Popped},
    run::{Scheduler, Writes},
};

/// What a pod is told.
pub(super) struct Report {
    pod: Doc,
    reason: &'static str,
    message: String,
    nominating: Nominating,
}

impl Scheduler {
    /// Puts a pod back into the queue and reports why.
    pub(super) fn fail(
        self: &Arc<Self>,
        popped: &Popped,
        error: &AttemptError,
        nominating: &Nominating,
        began: Instant,
        writes: &mut Writes,
    ) {
        if let Some(report) = self.settle(popped, error, nominating, began) {
            let scheduler = self.clone();
            writes.spawn(async move { scheduler.report(report).await });
        }
    }

    /// Puts a pod back into the queue, if it still wants a node.
    pub(super) fn settle(
        &self,
        popped: &Popped,
        error: &AttemptError,
        nominating: &Nominating,
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
        if still_waits {
            state.nominate(&popped.uid, &pod, &popped.view, nominating);
        }
        drop(state);
        self.news.notify_one();
        still_waits.then(|| Report {
            pod,
            reason,
            message: error.message(),
            nominating: nominating.clone(),
        })
    }

    /// Tells why a pod was not placed: an event, and a condition if it says something new.
    pub(super) async fn report(&self, report: Report) {
        let Report { pod, message, .. } = &report;
        self.warn(pod, message);
        let Some(patch) = self.status_patch(&report) else {
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

    /// The patch of the status of a pod that was not placed, if it says something new.
    fn status_patch(&self, report: &Report) -> Option<Patch> {
        let pod = &report.pod;
        let nominated = match &report.nominating {
            Nominating::Keep => None,
            Nominating::Clear => Some(""),
            Nominating::Node(node) => Some(node.as_str()),
        };
        let nominated = nominated.filter(|new| pod.str_at("/status/nominatedNodeName") != *new);
        let nominated = nominated.map(|new| match new {
            "" => Doc::NULL,
            new => new.into(),
        });
        let condition = self.condition(report);
        if nominated.is_none() && condition.is_none() {
            return None;
        }
        let condition = condition.map(|new| ("conditions", Doc::from(vec![new])));
        let nominated = nominated.map(|node| ("nominatedNodeName", node));
        let status: Object = condition.into_iter().chain(nominated).collect();
        Some(Patch::Strategic(doc!({
            "metadata": { "uid": (pod.meta().uid_str()) }, "status": status,
        })))
    }

    /// The condition of a pod that was not placed, if it says something new.
    fn condition(&self, report: &Report) -> Option<Doc> {
        let Report {
            pod,
            reason,
            message,
            ..
        } = report;
        let old = condition(pod, "PodScheduled");
        let is_same_status = old.as_ref().is_some_and(|old| old.status == "False");
        if let Some(old) = &old
            && is_same_status
            && old.reason == *reason
            && old.message == *message
        {
            return None;
        }
        let since = old.filter(|_| is_same_status);
        let since = since.and_then(|old| old.last_transition_time);
        let since = since.unwrap_or_else(|| self.env.now());
        Some(doc!({
            "type": "PodScheduled", "status": "False", "reason": (*reason), "message": message,
            "lastProbeTime": null, "lastTransitionTime": (since.to_string()),
            "observedGeneration": (pod.meta().generation()),
        }))
    }
}

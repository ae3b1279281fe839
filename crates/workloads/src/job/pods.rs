//! The pods of a Job, as a sync looks at them.

use windlass_cache::Obj;
use windlass_core::{Doc, Time, Uid};

use super::{FINALIZER, JobSpec};
use crate::{is_pod_ready, is_pod_terminal};

/// The annotation and the label with the completion index of a pod.
pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The annotation with how often pods of the same index have failed before.
pub(super) const FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
/// The annotation with how many such failures were ignored.
pub(super) const IGNORED_COUNT: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// One pod of a Job.
#[derive(Clone, Debug)]
pub(super) struct JobPod {
    pub(super) object: Obj,
    pub(super) uid: Uid,
    pub(super) phase: Phase,
    pub(super) is_deleting: bool,
    /// True if it holds the finalizer that keeps it until it is counted.
    pub(super) is_tracked: bool,
    pub(super) index: Option<usize>,
}

/// The phase of a pod, as far as a Job cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Succeeded,
    Failed,
    /// It has not ended.
    Other,
}

impl JobPod {
    pub(super) fn new(object: Obj) -> Self {
        let doc = object.doc();
        let meta = doc.meta();
        // A pod that was just adopted has the finalizer, which the cache does not show yet.
        let is_adopted = meta.controller().is_none();
        Self {
            uid: object.uid(),
            phase: match doc.str_at("/status/phase") {
                "Succeeded" => Phase::Succeeded,
                "Failed" => Phase::Failed,
                _ => Phase::Other,
            },
            is_deleting: meta.is_deleting(),
            is_tracked: is_adopted || meta.has_finalizer(FINALIZER),
            index: completion_index(doc),
            object,
        }
    }

    pub(super) fn doc(&self) -> &Doc {
        self.object.doc()
    }

    /// Returns true if the pod runs or will.
    pub(super) fn is_active(&self) -> bool {
        self.phase == Phase::Other && !self.is_deleting
    }

    /// Returns true if the pod is being deleted and has not ended.
    pub(super) fn is_terminating(&self) -> bool {
        self.phase == Phase::Other && self.is_deleting
    }

    pub(super) fn is_ready(&self) -> bool {
        is_pod_ready(self.doc())
    }

    /// Returns true if the pod counts as failed. One that is being deleted does at once, unless the
    /// Job waits for its end.
    pub(super) fn is_failed(&self, spec: &JobSpec) -> bool {
        match self.phase {
            Phase::Failed => true,
            Phase::Succeeded => false,
            Phase::Other => self.is_deleting && !spec.replaces_only_failed,
        }
    }

    /// The index, if the Job has it.
    pub(super) fn valid_index(&self, spec: &JobSpec) -> Option<usize> {
        self.index.filter(|index| *index < spec.indexes())
    }

    /// Returns true if the pod has an index that the Job has, or needs none.
    pub(super) fn is_valid(&self, spec: &JobSpec) -> bool {
        !spec.is_indexed() || self.valid_index(spec).is_some()
    }

    /// The number of earlier failures of its index, and of those that were ignored.
    pub(super) fn index_failures(&self) -> (usize, usize) {
        let count = |key: &str| {
            let value = self.doc().meta().annotation(key)?;
            value.parse::<u32>().ok().filter(|it| *it <= MAX_COUNT)
        };
        let [failures, ignored] = [FAILURE_COUNT, IGNORED_COUNT]
            .map(|key| count(key).map_or(0, |it| usize::try_from(it).unwrap_or(0)));
        (failures, ignored)
    }

    /// When the pod ended: the last container to end says it, or the condition, or the deletion, or
    /// if nobody knows the time at which it was created.
    pub(super) fn finished_at(&self) -> Time {
        let doc = self.doc();
        containers_finished(doc)
            .or_else(|| not_ready_since(doc))
            .or_else(|| deleted_at(doc))
            .or_else(|| doc.meta().creation_timestamp())
            .unwrap_or(Time::UNSET)
    }
}

/// The most that a 32-bit count can say.
const MAX_COUNT: u32 = i32::MAX as u32;

/// The completion index that a pod says it has.
fn completion_index(pod: &Doc) -> Option<usize> {
    pod.meta().annotation(COMPLETION_INDEX)?.parse().ok()
}

/// The time at which the last container ended, if all have, sidecars among them.
fn containers_finished(pod: &Doc) -> Option<Time> {
    let sidecars = pod.at("/spec/initContainers").items().iter();
    let sidecars: Vec<&str> = sidecars
        .filter(|it| it.str_at("/restartPolicy") == "Always")
        .map(|it| it.str_at("/name"))
        .collect();
    let inits = pod.at("/status/initContainerStatuses").items().iter();
    let inits = inits.filter(|status| sidecars.contains(&status.str_at("/name")));
    let mains = pod.at("/status/containerStatuses").items().iter();
    let ends = mains.chain(inits).map(|status| {
        let end = status.str_at("/state/terminated/finishedAt");
        end.parse::<Time>().ok().filter(|end| !end.is_unset())
    });
    let ends: Option<Vec<Time>> = ends.collect();
    ends?.into_iter().max()
}

fn not_ready_since(pod: &Doc) -> Option<Time> {
    let ready = windlass_core::condition(pod, "Ready")?;
    match ready.status.as_str() {
        "False" => ready.last_transition_time,
        _ => None,
    }
}

/// The time at which somebody asked for the deletion.
fn deleted_at(pod: &Doc) -> Option<Time> {
    let grace = pod.at("/metadata/deletionGracePeriodSeconds").as_u64();
    let grace = std::time::Duration::from_secs(grace.unwrap_or(0));
    Some(pod.meta().deletion_timestamp()? - grace)
}

/// Returns true if a pod has ended and waits to be counted.
pub(super) fn is_ended_and_tracked(pod: &Doc) -> bool {
    is_pod_terminal(pod) && pod.meta().has_finalizer(FINALIZER)
}

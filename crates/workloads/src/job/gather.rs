//! The state of a Job and its pods, gathered before a sync decides anything.

use std::collections::{HashMap, HashSet};

use windlass_core::{Doc, Key, MicroTime, Uid};

use super::{
    JobSpec,
    back_off::{BackOff, BackOffStore},
    failure_policy::{FailureAction, match_failure},
    indexes::Indexes,
    pods::{JobPod, Phase},
    status::JobStatus,
};

/// One sync of a Job.
#[derive(Debug)]
pub(super) struct JobSync {
    pub(super) key: Key,
    /// The Job as it was last read or written.
    pub(super) job: Doc,
    pub(super) spec: JobSpec,
    pub(super) status: JobStatus,
    pub(super) pods: Vec<JobPod>,
    /// Pods whose finalizers were removed, which the cache may not show yet.
    pub(super) released: HashSet<Uid>,
    pub(super) active: usize,
    pub(super) ready: usize,
    pub(super) terminating: usize,
    /// Pods, or for an Indexed Job indexes, that have succeeded, counted or not.
    pub(super) succeeded: usize,
    /// Pods that have failed, counted or not.
    pub(super) failed: usize,
    /// Empty unless the Job is Indexed.
    pub(super) indexes: IndexState,
    pub(super) back_off: BackOff,
    pub(super) now: MicroTime,
}

/// The states of the indexes of an Indexed Job.
#[derive(Debug, Default)]
pub(super) struct IndexState {
    /// Those that the status already lists as completed.
    pub(super) listed: Indexes,
    /// Those and the ones whose pods have succeeded since.
    pub(super) succeeded: Indexes,
    /// `None` unless the indexes have a limit of their own.
    pub(super) failed: Option<Indexes>,
    /// By index the failed pod whose counts its replacement will take over: a position.
    pub(super) replaced: HashMap<usize, usize>,
}

/// The memory of the controller about a Job, beside the API server's.
pub(super) struct Remembered<'a> {
    pub(super) released: HashSet<Uid>,
    pub(super) back_offs: &'a BackOffStore,
}

impl JobSync {
    pub(super) fn new(
        job: &Doc,
        spec: JobSpec,
        pods: Vec<JobPod>,
        remembered: Remembered<'_>,
        now: MicroTime,
    ) -> Self {
        let mut status = JobStatus::of(job);
        if status.start_time.is_none() && !spec.is_suspended {
            status.start_time = Some(now.to_time());
        }
        let count = |holds: fn(&JobPod) -> bool| pods.iter().filter(|pod| holds(pod)).count();
        let mut sync = Self {
            key: job.meta().key(),
            job: job.clone(),
            active: count(JobPod::is_active),
            ready: count(|pod| pod.is_active() && pod.is_ready()),
            terminating: count(JobPod::is_terminating),
            succeeded: status.succeeded + status.uncounted.succeeded.len(),
            failed: status.failed + status.uncounted.failed.len(),
            released: remembered.released,
            indexes: IndexState::default(),
            back_off: BackOff::default(),
            spec,
            status,
            pods,
            now,
        };
        sync.count_finished(remembered.back_offs);
        if sync.spec.is_indexed() {
            sync.indexes = sync.index_state();
            sync.succeeded = sync.indexes.succeeded.len();
        }
        sync
    }

    /// Counts the pods that have ended since the status was written.
    fn count_finished(&mut self, back_offs: &BackOffStore) {
        let known: HashSet<&Uid> = self.status.uncounted.succeeded.iter().collect();
        let succeeded = self.unaccounted(&known, |pod| pod.phase == Phase::Succeeded);
        let known: HashSet<&Uid> = self.status.uncounted.failed.iter().collect();
        let failed = self.unaccounted(&known, |pod| pod.is_failed(&self.spec));
        let policy = &self.spec.failure_policy;
        let is_counted = |pod: &&&JobPod| match_failure(policy, pod.doc()).is_counted();
        let counted = failed.iter().filter(is_counted).count();
        let record = back_offs.next(&self.key, &succeeded, &failed);
        let completed = succeeded.len();
        self.succeeded += completed;
        self.failed += counted;
        self.back_off = record;
    }

    /// Pods that nobody has counted yet and for which something holds.
    fn unaccounted(&self, known: &HashSet<&Uid>, holds: impl Fn(&JobPod) -> bool) -> Vec<&JobPod> {
        let pods = self.pods.iter();
        let pods = pods.filter(|pod| self.is_tracked(pod) && !known.contains(&pod.uid));
        pods.filter(|pod| pod.is_valid(&self.spec) && holds(pod))
            .collect()
    }

    /// Returns true if a pod still holds its finalizer, as far as anybody knows.
    pub(super) fn is_tracked(&self, pod: &JobPod) -> bool {
        pod.is_tracked && !self.released.contains(&pod.uid)
    }

    /// The pods that run or will.
    pub(super) fn active_pods(&self) -> impl Iterator<Item = &JobPod> {
        self.pods.iter().filter(|pod| pod.is_active())
    }

    fn index_state(&self) -> IndexState {
        let (spec, pods) = (&self.spec, &self.pods);
        let listed = Indexes::parse(&self.status.completed_indexes, spec.indexes());
        let new = pods
            .iter()
            .filter(|pod| pod.is_tracked && pod.phase == Phase::Succeeded);
        let new: Indexes = new.filter_map(|pod| pod.valid_index(spec)).collect();
        let mut state = IndexState {
            succeeded: listed.union(&new),
            listed,
            ..IndexState::default()
        };
        if let Some(limit) = spec.per_index_limit {
            let text = self.status.failed_indexes.as_deref().unwrap_or("");
            let new = pods
                .iter()
                .filter(|pod| pod.is_tracked && is_index_failed(pod, spec, limit));
            let new: Indexes = new.filter_map(|pod| pod.valid_index(spec)).collect();
            state.failed = Some(Indexes::parse(text, spec.indexes()).union(&new));
            state.replaced = self.replaced_pods(&state);
        }
        state
    }

    /// For each index that will be tried again the newest pod that has failed.
    fn replaced_pods(&self, state: &IndexState) -> HashMap<usize, usize> {
        let active: HashSet<usize> = self.active_pods().filter_map(|pod| pod.index).collect();
        let mut found: HashMap<usize, usize> = HashMap::new();
        for (at, pod) in self.pods.iter().enumerate() {
            let Some(index) = pod.valid_index(&self.spec) else {
                continue;
            };
            let is_settled = state.succeeded.contains(index)
                || state.failed.as_ref().is_some_and(|it| it.contains(index))
                || active.contains(&index);
            if is_settled || !self.is_tracked(pod) || !pod.is_failed(&self.spec) {
                continue;
            }
            let is_newer = found
                .get(&index)
                .is_none_or(|known| is_newer_failure(pod, &self.pods[*known]));
            if is_newer {
                found.insert(index, at);
            }
        }
        found
    }
}

/// Returns true if a pod failed after another one of its index.
fn is_newer_failure(pod: &JobPod, other: &JobPod) -> bool {
    let failures = |pod: &JobPod| {
        let (counted, ignored) = pod.index_failures();
        counted + ignored
    };
    failures(other) <= failures(pod) && pod.finished_at() >= other.finished_at()
}

/// Returns true if the failure of a pod is the last one that its index may have.
fn is_index_failed(pod: &JobPod, spec: &JobSpec, limit: usize) -> bool {
    if !pod.is_failed(spec) {
        return false;
    }
    let found = match_failure(&spec.failure_policy, pod.doc());
    if found.action == Some(FailureAction::FailIndex) {
        return true;
    }
    found.is_counted() && pod.index_failures().0 >= limit
}

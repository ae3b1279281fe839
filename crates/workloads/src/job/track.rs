//! Counts pods that have ended, exactly once.
//!
//! A pod that ends keeps its finalizer until the status names it as uncounted. Then it loses the
//! finalizer, and then it moves from the names to the numbers. Whoever crashes in between finds in
//! the status what is still to be counted.

use std::collections::{HashMap, HashSet};

use windlass_client::WriteOptions;
use windlass_core::Uid;
use windlass_runtime::{Context, EventType, Result};

use super::{
    Engine, UNCOUNTED_LIMIT,
    decide::{Decision, Outcome},
    failure_policy::{FailureAction, match_failure},
    gather::JobSync,
    indexes::Indexes,
    pods::{JobPod, Phase},
    status::JobStatus,
};

/// The pods that one sync lets go.
#[derive(Debug, Default)]
struct Harvest {
    pods: Vec<JobPod>,
    /// The indexes that have succeeded and that the status does not list yet.
    indexes: Vec<usize>,
    /// The number of failures that each action of the policy has matched.
    actions: HashMap<FailureAction, u64>,
    /// True if there are more than one sync counts.
    is_full: bool,
}

impl Engine {
    /// Counts what has ended, and ends the Job if that was decided and nothing is left to count.
    /// `is_changed` says whether the status must be written anyway.
    pub(super) async fn track(
        &self,
        cx: &Context,
        sync: &mut JobSync,
        decision: Option<&Decision>,
        mut is_changed: bool,
    ) -> Result<()> {
        let mut tracked: HashSet<Uid> = sync.tracked();
        let before = sync.status.clone();
        is_changed |= sync.status.count_released(&tracked);
        let (harvest, has_new) = sync.harvest(decision);
        is_changed |= has_new;
        is_changed |= sync.list_indexes(&harvest.indexes);
        is_changed |= sync.record(decision);
        if is_changed {
            self.put_status(cx, sync).await?;
            self.back_offs.store(&sync.key, sync.back_off);
            self.metrics.pods_finished(sync, &before);
        }
        self.metrics.failures_handled(&harvest.actions);
        let counted = sync.status.clone();
        self.let_go(cx, sync, &harvest, &mut tracked).await?;
        let is_settled = sync.status != counted;
        let end = decision.filter(|_| !harvest.is_full && sync.may_end());
        if let Some(end) = end {
            sync.end(end);
        }
        if is_settled || end.is_some() {
            self.put_status(cx, sync).await?;
            self.metrics.pods_finished(sync, &counted);
        }
        if let Some(end) = end {
            self.tell_end(cx, sync, end);
        }
        Ok(())
    }

    /// Removes the finalizers of pods and moves them from the names to the numbers. What was
    /// achieved is written even if some failed.
    async fn let_go(
        &self,
        cx: &Context,
        sync: &mut JobSync,
        harvest: &Harvest,
        tracked: &mut HashSet<Uid>,
    ) -> Result<()> {
        let released = self.release(cx, sync, &harvest.pods).await;
        tracked.retain(|uid| !released.uids.contains(uid));
        let is_settled = sync.status.count_released(tracked);
        match released.error {
            None => Ok(()),
            Some(error) => {
                if is_settled {
                    self.put_status(cx, sync).await?;
                }
                Err(error.into())
            }
        }
    }

    /// Writes the status. What comes back is the Job to write the next one over.
    async fn put_status(&self, cx: &Context, sync: &mut JobSync) -> Result<()> {
        let written = sync.job.with("/status", sync.status.to_doc())?;
        let api = cx.api(&self.kind, sync.job.meta().namespace());
        let options = WriteOptions::default().metadata_only();
        let answer = api.update_status(&written, &options).await?;
        let version = answer.meta().resource_version();
        sync.job = written.with("/metadata/resourceVersion", version)?;
        Ok(())
    }

    fn tell_end(&self, cx: &Context, sync: &JobSync, end: &Decision) {
        let tell = |event_type, reason: &str, message: &str| {
            cx.recorder().event(&sync.job, event_type, reason, message);
        };
        self.metrics.job_finished(sync, end);
        if end.outcome == Outcome::Failure {
            return tell(EventType::Warning, &end.reason, &end.message);
        }
        let wanted = sync.spec.completions;
        if wanted.is_some_and(|wanted| sync.status.succeeded > wanted) {
            let message = "Too many succeeded pods running after completion count reached";
            tell(EventType::Warning, "TooManySucceededPods", message);
        }
        tell(EventType::Normal, "Completed", "Job completed");
    }
}

impl JobSync {
    /// The pods that still hold their finalizers.
    fn tracked(&self) -> HashSet<Uid> {
        let pods = self.pods.iter().filter(|pod| self.is_tracked(pod));
        pods.map(|pod| pod.uid.clone()).collect()
    }

    /// Chooses the pods to let go, and notes in the status those that count. Returns true if there
    /// is something to note.
    fn harvest(&mut self, decision: Option<&Decision>) -> (Harvest, bool) {
        let mut order: Vec<usize> = (0..self.pods.len()).collect();
        if self.spec.is_indexed() {
            order.sort_by_key(|at| self.pods[*at].index);
        }
        let uids = |uids: &[Uid]| uids.iter().cloned().collect::<HashSet<_>>();
        let succeeded = uids(&self.status.uncounted.succeeded);
        let failed = uids(&self.status.uncounted.failed);
        let (mut harvest, mut has_new) = (Harvest::default(), false);
        for at in order {
            let pod = &self.pods[at];
            if !self.is_tracked(pod) || !self.may_release(at, decision) {
                continue;
            }
            let pod = pod.clone();
            let is_failure = decision.is_some_and(|it| it.outcome == Outcome::Failure);
            if pod.phase == Phase::Succeeded && !failed.contains(&pod.uid) {
                has_new |= self.note_success(&pod, &succeeded, &mut harvest);
            } else if (pod.is_failed(&self.spec) || is_failure) && !failed.contains(&pod.uid) {
                has_new |= self.note_failure(&pod, &mut harvest);
            }
            harvest.pods.push(pod);
            if harvest.indexes.len() + self.status.uncounted.len() >= UNCOUNTED_LIMIT {
                harvest.is_full = true;
                break;
            }
        }
        (harvest, has_new)
    }

    /// Returns true if a pod may lose its finalizer.
    fn may_release(&self, at: usize, decision: Option<&Decision>) -> bool {
        let pod = &self.pods[at];
        let is_over = self.job.meta().is_deleting() || decision.is_some();
        if is_over || pod.phase == Phase::Succeeded {
            return true;
        }
        let replaced = pod.index.and_then(|it| self.indexes.replaced.get(&it));
        pod.is_failed(&self.spec) && replaced != Some(&at)
    }

    fn note_success(&mut self, pod: &JobPod, known: &HashSet<Uid>, harvest: &mut Harvest) -> bool {
        if self.spec.is_indexed() {
            // The index is enough to count no pod twice.
            let index = pod.valid_index(&self.spec);
            let new = index.filter(|index| !self.indexes.listed.contains(*index));
            harvest.indexes.extend(new);
            return new.is_some();
        }
        if known.contains(&pod.uid) {
            return false;
        }
        self.status.uncounted.succeeded.push(pod.uid.clone());
        true
    }

    fn note_failure(&mut self, pod: &JobPod, harvest: &mut Harvest) -> bool {
        if !pod.is_valid(&self.spec) {
            return false;
        }
        let found = match_failure(&self.spec.failure_policy, pod.doc());
        if let Some(action) = found.action {
            *harvest.actions.entry(action).or_default() += 1;
        }
        if found.is_counted() {
            self.status.uncounted.failed.push(pod.uid.clone());
        }
        found.is_counted()
    }

    /// Lists indexes that have succeeded or failed. Returns true if the lists change.
    fn list_indexes(&mut self, new: &[usize]) -> bool {
        if !self.spec.is_indexed() {
            return false;
        }
        let new: Indexes = new.iter().copied().collect();
        let listed = self.indexes.succeeded.union(&new);
        let before = (
            std::mem::take(&mut self.status.completed_indexes),
            self.status.failed_indexes.take(),
        );
        self.status.succeeded = listed.len();
        self.status.completed_indexes = listed.to_string();
        self.status.failed_indexes = self.indexes.failed.as_ref().map(ToString::to_string);
        before.0 != self.status.completed_indexes || before.1 != self.status.failed_indexes
    }

    /// Writes a decision down. Returns true if that is new.
    fn record(&mut self, decision: Option<&Decision>) -> bool {
        let Some(decision) = decision.filter(|it| !it.is_recorded) else {
            return false;
        };
        let condition = decision.interim().to_doc(self.now.to_time());
        self.status.conditions.push(condition);
        true
    }

    /// Returns true if no pod is left to count or to go.
    fn may_end(&self) -> bool {
        self.status.uncounted.len() == 0 && self.terminating == 0
    }

    fn end(&mut self, decision: &Decision) {
        let now = self.now.to_time();
        self.status.ensure(decision.terminal(), now);
        if decision.outcome == Outcome::Success {
            self.status.completion_time = Some(now);
        }
    }
}

/// The numbers of pods that have succeeded and failed between two versions of a status.
pub(super) fn counted_between(before: &JobStatus, after: &JobStatus) -> (usize, usize) {
    (
        after.succeeded.saturating_sub(before.succeeded),
        after.failed.saturating_sub(before.failed),
    )
}

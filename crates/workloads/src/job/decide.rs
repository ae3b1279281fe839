//! The end of a Job: success, failure, and their reasons.

use std::time::Duration;

use windlass_core::MicroTime;

use super::{
    failure_policy::match_failure, gather::JobSync, pods::Phase, status::JobCondition,
    success_policy::match_success,
};

pub(super) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
pub(super) const FAILURE_TARGET: &str = "FailureTarget";

/// The end of a Job. It is written down first, and takes effect once no pod is left to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) outcome: Outcome,
    pub(super) reason: String,
    pub(super) message: String,
    /// True if the status says so already.
    pub(super) is_recorded: bool,
}

/// The end of a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    Failure,
}

impl Decision {
    fn new(outcome: Outcome, reason: &str, message: impl Into<String>) -> Self {
        Self {
            outcome,
            reason: reason.to_owned(),
            message: message.into(),
            is_recorded: false,
        }
    }

    fn failure(reason: &str, message: impl Into<String>) -> Option<Self> {
        Some(Self::new(Outcome::Failure, reason, message))
    }

    /// The success of a Job whose pods have all succeeded.
    pub(super) fn completed() -> Self {
        let message = "Reached expected number of succeeded pods";
        Self::new(Outcome::Success, "CompletionsReached", message)
    }

    /// The condition that is written before the pods are counted.
    pub(super) fn interim(&self) -> JobCondition<'_> {
        self.condition(match self.outcome {
            Outcome::Success => SUCCESS_CRITERIA_MET,
            Outcome::Failure => FAILURE_TARGET,
        })
    }

    /// The condition with which the Job ends.
    pub(super) fn terminal(&self) -> JobCondition<'_> {
        self.condition(match self.outcome {
            Outcome::Success => "Complete",
            Outcome::Failure => "Failed",
        })
    }

    fn condition<'a>(&'a self, kind: &'a str) -> JobCondition<'a> {
        JobCondition {
            kind,
            is_true: true,
            reason: &self.reason,
            message: &self.message,
        }
    }
}

impl JobSync {
    /// The first reason for which the Job ends, other than that all its pods have succeeded.
    pub(super) fn decide(&self) -> Option<Decision> {
        self.recorded()
            .or_else(|| self.failed_by_policy())
            .or_else(|| self.failed_too_often())
            .or_else(|| self.failed_by_deadline())
            .or_else(|| self.failed_by_index())
            .or_else(|| self.succeeded_by_policy())
    }

    /// An earlier decision stays.
    fn recorded(&self) -> Option<Decision> {
        let kinds = [
            (SUCCESS_CRITERIA_MET, Outcome::Success),
            (FAILURE_TARGET, Outcome::Failure),
        ];
        kinds.into_iter().find_map(|(kind, outcome)| {
            let known = self.status.holding(kind)?;
            Some(Decision {
                is_recorded: true,
                ..Decision::new(outcome, known.str_at("/reason"), known.str_at("/message"))
            })
        })
    }

    fn failed_by_policy(&self) -> Option<Decision> {
        let policy = &self.spec.failure_policy;
        if policy.is_null() {
            return None;
        }
        let mut failed = self.pods.iter().filter(|pod| pod.is_failed(&self.spec));
        let message = failed.find_map(|pod| match_failure(policy, pod.doc()).job_failure)?;
        Decision::failure("PodFailurePolicy", message)
    }

    fn failed_too_often(&self) -> Option<Decision> {
        if self.failed <= self.spec.back_off_limit && !self.is_restarted_too_often() {
            return None;
        }
        let message = "Job has reached the specified backoff limit";
        Decision::failure("BackoffLimitExceeded", message)
    }

    /// Containers that their node restarts fail without their pod.
    fn is_restarted_too_often(&self) -> bool {
        if !self.spec.is_restarted_on_failure {
            return false;
        }
        let running = self.pods.iter().filter(|pod| {
            let phase = pod.doc().str_at("/status/phase");
            pod.phase == Phase::Other && matches!(phase, "Running" | "Pending")
        });
        let statuses = running.flat_map(|pod| {
            let all = ["/status/initContainerStatuses", "/status/containerStatuses"];
            all.map(|at| pod.doc().at(at).items())
        });
        let restarts = statuses.flatten().map(|it| it.at("/restartCount").as_u64());
        let restarts: u64 = restarts.flatten().sum();
        let limit = u64::try_from(self.spec.back_off_limit).unwrap_or(u64::MAX);
        restarts > 0 && restarts >= limit
    }

    fn failed_by_deadline(&self) -> Option<Decision> {
        if !self.until_deadline()?.is_zero() {
            return None;
        }
        let message = "Job was active longer than specified deadline";
        Decision::failure("DeadlineExceeded", message)
    }

    /// The time that the Job may still be active; `None` if for ever, or while it is suspended.
    pub(super) fn until_deadline(&self) -> Option<Duration> {
        if self.spec.is_suspended {
            return None;
        }
        let started = MicroTime::from(self.status.start_time?);
        Some((started + self.spec.active_deadline?).since(self.now))
    }

    fn failed_by_index(&self) -> Option<Decision> {
        let failed = self.indexes.failed.as_ref()?.len();
        if self.spec.failed_indexes_max.is_some_and(|max| failed > max) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Decision::failure("MaxFailedIndexesExceeded", message);
        }
        let settled = failed + self.indexes.succeeded.len();
        if failed > 0 && settled >= self.spec.indexes() {
            return Decision::failure("FailedIndexes", "Job has failed indexes");
        }
        None
    }

    fn succeeded_by_policy(&self) -> Option<Decision> {
        let (policy, succeeded) = (&self.spec.success_policy, &self.indexes.succeeded);
        let message = match_success(policy, self.spec.indexes(), succeeded)?;
        Some(Decision::new(Outcome::Success, "SuccessPolicy", message))
    }

    /// Returns true if as many pods have succeeded as should, and none is left.
    pub(super) fn is_complete(&self) -> bool {
        let wanted = self.spec.completions.unwrap_or(1);
        let is_enough = match self.spec.completions {
            Some(_) => self.succeeded >= wanted,
            None => self.succeeded > 0,
        };
        is_enough && self.active == 0
    }
}

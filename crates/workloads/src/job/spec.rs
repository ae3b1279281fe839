//! The specification of a Job, read once.

use std::time::Duration;

use windlass_core::Doc;

/// The name of this controller in `spec.managedBy`.
const OWN_NAME: &str = "kubernetes.io/job-controller";

/// The most that a 32-bit count can say.
const COUNT_MAX: u64 = i32::MAX as u64;

/// The specification of a Job.
#[derive(Clone, Debug)]
pub(super) struct JobSpec {
    pub(super) parallelism: usize,
    /// `None` for a Job that is complete with the first pod that succeeds.
    pub(super) completions: Option<usize>,
    pub(super) mode: CompletionMode,
    pub(super) back_off_limit: usize,
    /// The back-off limit of each index, if the indexes are counted apart.
    pub(super) per_index_limit: Option<usize>,
    pub(super) failed_indexes_max: Option<usize>,
    pub(super) is_suspended: bool,
    pub(super) active_deadline: Option<Duration>,
    /// True if a pod that is being deleted is replaced only once it has ended.
    pub(super) replaces_only_failed: bool,
    /// Null if there is none.
    pub(super) failure_policy: Doc,
    /// Null if there is none.
    pub(super) success_policy: Doc,
    /// True if containers are restarted by their node after a failure.
    pub(super) is_restarted_on_failure: bool,
}

/// The completion mode of a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompletionMode {
    /// All are alike.
    NonIndexed,
    /// Each index needs one that succeeds.
    Indexed,
    /// Nobody here knows it.
    Unknown,
}

impl CompletionMode {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Indexed => "Indexed",
            Self::NonIndexed | Self::Unknown => "NonIndexed",
        }
    }
}

impl JobSpec {
    pub(super) fn of(job: &Doc) -> Self {
        let spec = job.at("/spec");
        let count = |at: &str| spec.at(at).as_u64().map(|it| size(it.min(COUNT_MAX)));
        let failure_policy = spec.at("/podFailurePolicy").clone();
        let is_for_failed = spec.str_at("/podReplacementPolicy") == "Failed";
        Self {
            parallelism: count("/parallelism").unwrap_or(1),
            completions: count("/completions"),
            mode: match spec.str_at("/completionMode") {
                "" | "NonIndexed" => CompletionMode::NonIndexed,
                "Indexed" => CompletionMode::Indexed,
                _ => CompletionMode::Unknown,
            },
            back_off_limit: count("/backoffLimit").unwrap_or(6),
            per_index_limit: count("/backoffLimitPerIndex"),
            failed_indexes_max: count("/maxFailedIndexes"),
            is_suspended: *spec.at("/suspend") == true,
            active_deadline: spec
                .at("/activeDeadlineSeconds")
                .as_u64()
                .map(Duration::from_secs),
            replaces_only_failed: is_for_failed || !failure_policy.is_null(),
            failure_policy,
            success_policy: spec.at("/successPolicy").clone(),
            is_restarted_on_failure: spec.str_at("/template/spec/restartPolicy") == "OnFailure",
        }
    }

    pub(super) fn is_indexed(&self) -> bool {
        self.mode == CompletionMode::Indexed
    }

    /// The number of indexes.
    pub(super) fn indexes(&self) -> usize {
        self.completions.unwrap_or(0)
    }
}

/// The other controller that manages a Job, if there is one.
pub(super) fn external_manager(job: &Doc) -> Option<&str> {
    match job.str_at("/spec/managedBy") {
        "" | OWN_NAME => None,
        name => Some(name),
    }
}

/// The condition with which a Job has ended: `Complete` or `Failed`.
pub(crate) fn terminal_condition(job: &Doc) -> Option<&Doc> {
    let mut conditions = job.at("/status/conditions").items().iter();
    let is_terminal = |it: &&Doc| {
        matches!(it.str_at("/type"), "Complete" | "Failed") && it.str_at("/status") == "True"
    };
    conditions.find(is_terminal)
}

/// Returns true if a Job has ended.
pub(crate) fn is_finished(job: &Doc) -> bool {
    terminal_condition(job).is_some()
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

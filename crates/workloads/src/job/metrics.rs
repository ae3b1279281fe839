//! The metrics of the Job controller, under upstream's names.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use windlass_runtime::Change;

use super::{
    decide::{Decision, Outcome},
    failure_policy::FailureAction,
    gather::JobSync,
    manage::SyncAction,
    pods::is_ended_and_tracked,
    spec::CompletionMode,
    status::JobStatus,
    track::counted_between,
};

/// Upper bounds of the durations: four milliseconds, doubled fourteen times.
const DURATION_BUCKETS: [f64; 15] = [
    0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
    32.768, 65.536,
];

/// The metrics. Clones count together.
#[derive(Clone, Default)]
pub(super) struct Metrics(Arc<Series>);

struct Series {
    durations: Family<SyncLabels, Histogram, fn() -> Histogram>,
    syncs: Family<SyncLabels, Counter>,
    finished: Family<FinishedLabels, Counter>,
    pods_finished: Family<PodLabels, Counter>,
    failures: Family<ActionLabels, Counter>,
    tracked: Family<EventLabels, Counter>,
    indexes: Family<IndexLabels, Counter>,
    created: Family<CreatedLabels, Counter>,
    elsewhere: Family<ManagerLabels, Counter>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            durations: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)),
            syncs: Family::default(),
            finished: Family::default(),
            pods_finished: Family::default(),
            failures: Family::default(),
            tracked: Family::default(),
            indexes: Family::default(),
            created: Family::default(),
            elsewhere: Family::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SyncLabels {
    completion_mode: &'static str,
    result: &'static str,
    action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FinishedLabels {
    completion_mode: &'static str,
    result: &'static str,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PodLabels {
    completion_mode: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    event: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[expect(non_snake_case, reason = "the label has that name upstream")]
struct IndexLabels {
    status: &'static str,
    backoffLimit: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CreatedLabels {
    reason: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ManagerLabels {
    controller_name: String,
}

impl Metrics {
    /// Makes the metrics part of what a registry prints.
    pub(super) fn registration(&self) -> impl Fn(&mut Registry) + Send + Sync + 'static {
        let metrics = self.clone();
        move |registry| metrics.register(registry)
    }

    #[rustfmt::skip] // One metric per line reads as a table.
    fn register(&self, registry: &mut Registry) {
        let all = &*self.0;
        // The encoder adds `_total` to the names of counters.
        registry.register("job_controller_job_sync_duration_seconds", "The time it took to sync a job", all.durations.clone());
        registry.register("job_controller_job_syncs", "The number of job syncs", all.syncs.clone());
        registry.register("job_controller_jobs_finished", "The number of finished jobs", all.finished.clone());
        registry.register("job_controller_job_pods_finished", "The number of finished Pods that are fully tracked", all.pods_finished.clone());
        registry.register("job_controller_pod_failures_handled_by_failure_policy", "The number of failed Pods handled by failure policy, by the action of the rule", all.failures.clone());
        registry.register("job_controller_terminated_pods_tracking_finalizer", "The number of terminated pods that have the finalizer batch.kubernetes.io/job-tracking", all.tracked.clone());
        registry.register("job_controller_job_finished_indexes", "The number of finished indexes", all.indexes.clone());
        registry.register("job_controller_job_pods_creation", "The number of Pods created by the Job controller, by reason", all.created.clone());
        registry.register("job_controller_jobs_by_external_controller", "The number of Jobs managed by an external controller", all.elsewhere.clone());
    }

    pub(super) fn synced(
        &self,
        mode: CompletionMode,
        is_success: bool,
        action: SyncAction,
        took: Duration,
    ) {
        let labels = SyncLabels {
            completion_mode: mode.as_str(),
            result: if is_success { "success" } else { "error" },
            action: action.as_str(),
        };
        let all = &*self.0;
        all.durations
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
        all.syncs.get_or_create(&labels).inc();
    }

    pub(super) fn job_finished(&self, sync: &JobSync, end: &Decision) {
        let labels = FinishedLabels {
            completion_mode: sync.spec.mode.as_str(),
            result: match end.outcome {
                Outcome::Success => "succeeded",
                Outcome::Failure => "failed",
            },
            reason: end.reason.clone(),
        };
        self.0.finished.get_or_create(&labels).inc();
    }

    /// Pods were counted since a status was written.
    pub(super) fn pods_finished(&self, sync: &JobSync, before: &JobStatus) {
        let (succeeded, failed) = counted_between(before, &sync.status);
        for (result, count) in [("succeeded", succeeded), ("failed", failed)] {
            let labels = PodLabels {
                completion_mode: sync.spec.mode.as_str(),
                result,
            };
            let counter = self.0.pods_finished.get_or_create(&labels);
            counter.inc_by(wide(count));
        }
        if sync.spec.is_indexed() {
            self.index_finished(sync, "succeeded", succeeded);
        }
    }

    fn index_finished(&self, sync: &JobSync, status: &'static str, count: usize) {
        let labels = IndexLabels {
            status,
            backoffLimit: match sync.spec.per_index_limit {
                Some(_) => "perIndex",
                None => "global",
            },
        };
        self.0.indexes.get_or_create(&labels).inc_by(wide(count));
    }

    pub(super) fn failures_handled(&self, actions: &HashMap<FailureAction, u64>) {
        for (action, count) in actions {
            let labels = ActionLabels {
                action: action.as_str(),
            };
            self.0.failures.get_or_create(&labels).inc_by(*count);
        }
    }

    /// Pods that end come to wait for being counted, and leave.
    pub(super) fn pod_changed(&self, change: &Change<'_>) {
        let waits = |pod: Option<&windlass_cache::Obj>| {
            pod.is_some_and(|pod| is_ended_and_tracked(pod.doc()))
        };
        let event = match (waits(change.old), waits(change.new)) {
            (false, true) => "add",
            (true, false) => "delete",
            _ => return,
        };
        self.0.tracked.get_or_create(&EventLabels { event }).inc();
    }

    pub(super) fn pods_created(&self, sync: &JobSync, created: usize, failed: usize) {
        let is_for_failed = sync.job.str_at("/spec/podReplacementPolicy") == "Failed";
        let reason = match sync.failed > 0 {
            true if is_for_failed => "recreate_failed",
            false if sync.terminating == 0 => "new",
            _ => "recreate_terminating_or_failed",
        };
        for (status, count) in [("succeeded", created), ("failed", failed)] {
            let labels = CreatedLabels { reason, status };
            self.0.created.get_or_create(&labels).inc_by(wide(count));
        }
    }

    pub(super) fn managed_elsewhere(&self, manager: &str) {
        let labels = ManagerLabels {
            controller_name: manager.to_owned(),
        };
        self.0.elsewhere.get_or_create(&labels).inc();
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

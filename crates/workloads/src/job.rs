//! Runs the pods of a Job until as many have succeeded as it asks for.
//!
//! A sync claims the pods, decides whether the Job has come to its end, creates or deletes pods if
//! not, and counts those that have ended. Each pod carries a finalizer until it is counted, so that
//! no end is missed and none is counted twice, whoever deletes the pod and whenever this process
//! stops.

mod back_off;
mod decide;
mod delete;
mod failure_policy;
mod finalizers;
mod gather;
mod handlers;
mod indexes;
mod manage;
mod metrics;
mod orphans;
mod pods;
pub(crate) mod spec;
mod status;
mod success_policy;
mod template;
mod track;

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use windlass_cache::{Obj, SharedInformer};
use windlass_core::Key;
use windlass_queue::ItemExponential;
use windlass_runtime::{Action, Context, Controller, EventType, Manager, ResourceKind, Result};

use crate::{
    EXPECTATIONS_TIMEOUT, RefManager, UidExpectations,
    owned::{self, batch_kind, core_kind},
    replicaset,
};
use back_off::BackOffStore;
pub use back_off::{BACK_OFF_MAX, BACK_OFF_MIN};
use decide::Decision;
use finalizers::FinalizerExpectations;
use gather::{JobSync, Remembered};
use handlers::Handlers;
use manage::{Managed, SyncAction};
use metrics::Metrics;
use orphans::OrphanPods;
use pods::JobPod;
use spec::{CompletionMode, JobSpec};
use status::JobCondition;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "job-controller";

/// The finalizer of pods that are not counted yet.
pub const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = crate::POD_SPEC_FIELDS;

/// Jobs that are synced at the same time, as in kube-controller-manager.
pub const WORKERS: usize = 5;
/// The most pods that one sync creates or deletes, as upstream.
pub const BURST: usize = 500;
/// The most pods that the status names as uncounted, so that it stays small.
pub const UNCOUNTED_LIMIT: usize = 500;
/// The time for which changes of pods are collected before their Job is synced.
pub const BATCH_PERIOD: Duration = Duration::from_secs(1);
/// The back-off after the first failed sync. Each further one doubles it.
pub const RETRY_MIN: Duration = Duration::from_secs(1);
/// The longest back-off after a failed sync.
pub const RETRY_MAX: Duration = Duration::from_secs(60);

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Jobs that are synced at the same time.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { workers: WORKERS }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let (kind, pod_kind) = (batch_kind("Job", "jobs"), core_kind("Pod", "pods"));
    let (jobs, pods) = (
        manager.factory().dynamic(kind.gvr().clone()),
        manager.factory().dynamic(pod_kind.gvr().clone()),
    );
    owned::index_children(&pods);
    owned::index_owners(&jobs, owned::label_selector);
    let metrics = Metrics::default();
    manager.add_metrics(metrics.registration());
    let engine = Arc::new(Engine {
        kind,
        pod_kind,
        jobs,
        pods,
        expectations: Arc::default(),
        finalizers: Arc::default(),
        back_offs: Arc::default(),
        metrics,
    });
    manager.add(OrphanPods::of(&engine).controller(options.workers));
    manager.add(engine.controller(options.workers));
}

fn limiter() -> ItemExponential<Key> {
    ItemExponential::new(RETRY_MIN, RETRY_MAX)
}

/// The controller.
struct Engine {
    kind: ResourceKind,
    pod_kind: ResourceKind,
    jobs: SharedInformer,
    pods: SharedInformer,
    /// Written by syncs, which expect, and by handlers, which see. Bounded by the Jobs that exist.
    expectations: Arc<UidExpectations>,
    finalizers: Arc<FinalizerExpectations>,
    back_offs: Arc<BackOffStore>,
    metrics: Metrics,
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let (kind, pods) = (self.kind.clone(), self.pod_kind.clone());
        let handlers = Arc::new(Handlers::of(&self));
        let of_jobs = handlers.clone();
        let sync = move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        };
        Controller::of_kind(kind.clone(), sync)
            .filter(handlers::is_urgent)
            .named(NAME)
            .queue_named("job")
            .workers(workers)
            .rate_limiter(limiter())
            .reacts_to_kind(kind, move |change| of_jobs.on_job(change))
            .reacts_to_kind(pods, move |change| handlers.on_pod(change))
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(job) = self.jobs.lister().get(key) else {
            self.expectations.forget(key);
            self.finalizers.forget(key);
            self.back_offs.forget(key);
            return Ok(Action::done());
        };
        if spec::external_manager(job.doc()).is_some() {
            return Ok(Action::done());
        }
        if spec::is_finished(job.doc()) {
            self.back_offs.forget(key);
            return Ok(Action::done());
        }
        let spec = JobSpec::of(job.doc());
        let mode = spec.mode;
        if mode == CompletionMode::Unknown {
            let message = "Skipped Job sync because completion mode is unknown";
            cx.event(&job, EventType::Warning, "UnknownCompletionMode", message);
            return Ok(Action::done());
        }
        let (started, mut action) = (Instant::now(), SyncAction::Reconciling);
        let result = self.sync_job(cx, &job, spec, &mut action).await;
        let is_success = result.is_ok();
        self.metrics
            .synced(mode, is_success, action, started.elapsed());
        result
    }

    async fn sync_job(
        &self,
        cx: &Context,
        job: &Obj,
        spec: JobSpec,
        action: &mut SyncAction,
    ) -> Result<Action> {
        let key = job.key();
        // Asked before the pods are read: a pod that comes in between must not be missed.
        let is_satisfied = self.expectations.is_satisfied(&key);
        let remembered = Remembered {
            released: self.finalizers.pending(&key),
            back_offs: &self.back_offs,
        };
        let pods = self.claim(cx, job).await?;
        let now = cx.env().now_micro();
        let mut sync = JobSync::new(job.doc(), spec, pods, remembered, now);
        let before = sync.status.clone();
        let (decision, managed) = match sync.decide() {
            Some(decision) => self.wind_down(cx, &mut sync, decision, is_satisfied).await,
            None => self.carry_on(cx, &mut sync, is_satisfied).await,
        };
        *action = managed.action;
        sync.status.active = sync.active;
        sync.status.ready = Some(sync.ready);
        sync.status.terminating = Some(sync.terminating);
        let is_changed = sync.status != before;
        let tracked = self.track(cx, &mut sync, decision.as_ref(), is_changed);
        tracked.await.map_err(|it| it.context("tracking status"))?;
        match managed.error {
            Some(error) => Err(error),
            None => Ok(self.next(&sync, managed.again)),
        }
    }

    /// Deletes the pods of a Job that has come to its end. The decision stands only if all are gone
    /// and none can appear any more.
    async fn wind_down(
        &self,
        cx: &Context,
        sync: &mut JobSync,
        decision: Decision,
        is_satisfied: bool,
    ) -> (Option<Decision>, Managed) {
        let deleted = self.delete_active(cx, sync).await;
        let is_final = deleted.count == sync.active && is_satisfied;
        let managed = sync.note_deleted(deleted);
        let action = SyncAction::Reconciling;
        (is_final.then_some(decision), Managed { action, ..managed })
    }

    /// Manages the pods of a Job that goes on, and sees whether it is complete.
    async fn carry_on(
        &self,
        cx: &Context,
        sync: &mut JobSync,
        is_satisfied: bool,
    ) -> (Option<Decision>, Managed) {
        let is_managed = is_satisfied && !sync.job.meta().is_deleting();
        let managed = match is_managed {
            true => self.manage(cx, sync).await,
            false => Managed::none(),
        };
        if sync.is_complete() {
            return (Some(Decision::completed()), managed);
        }
        if is_managed {
            note_suspension(cx, sync);
        }
        (None, managed)
    }

    /// When to look at a Job again if nothing happens before.
    fn next(&self, sync: &JobSync, again: Option<Duration>) -> Action {
        let is_waiting = !self.expectations.is_satisfied(&sync.key);
        let expired = is_waiting.then_some(EXPECTATIONS_TIMEOUT + Duration::from_secs(1));
        // A deadline that has passed was acted on.
        let deadline = sync.until_deadline().filter(|left| !left.is_zero());
        let next = [again, expired, deadline].into_iter().flatten().min();
        next.map_or_else(Action::done, Action::requeue_after)
    }

    /// The pods of a Job, after adopting and releasing.
    async fn claim(&self, cx: &Context, job: &Obj) -> Result<Vec<JobPod>> {
        let selector = owned::label_selector(job.doc())
            .map_err(|error| error.context("couldn't convert Job selector"))?;
        let pods = self.pods.lister().snapshot();
        let mut candidates = owned::children_of(&pods, job.doc());
        candidates.extend(owned::orphans(&pods, job.namespace(), &selector));
        let manager = RefManager::new(cx, job.doc(), &self.kind, &self.pod_kind, &selector);
        let claimed = manager.finalizers([FINALIZER]).claim(candidates).await;
        if !claimed.errors.is_empty() {
            return Err(replicaset::together(&claimed.errors));
        }
        Ok(claimed.objects.into_iter().map(JobPod::new).collect())
    }
}

/// Says in the status whether a Job is suspended, once it ever was.
fn note_suspension(cx: &Context, sync: &mut JobSync) {
    let (is_true, event, reason, message) = match sync.spec.is_suspended {
        true => (true, "Suspended", "JobSuspended", "Job suspended"),
        false => (false, "Resumed", "JobResumed", "Job resumed"),
    };
    let condition = JobCondition {
        kind: "Suspended",
        is_true,
        reason,
        message,
    };
    let now = sync.now.to_time();
    if sync.status.ensure(condition, now) {
        let recorder = cx.recorder();
        recorder.event(&sync.job, EventType::Normal, event, message);
        // The time for which a Job may be active begins anew.
        sync.status.start_time = (!is_true).then_some(now);
    }
}

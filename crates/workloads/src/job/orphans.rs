//! Removes the finalizers of pods that no Job will count any more.

use std::sync::Arc;

use windlass_cache::{Obj, SharedInformer};
use windlass_core::{Doc, Key, OwnerRef};
use windlass_runtime::{Action, Change, Context, Controller, ResourceKind, Result, Trigger};

use super::{Engine, FINALIZER, delete::remove_finalizer, limiter, spec};
use crate::{PodControl, owned};

/// The name under which this half of the controller works.
const NAME: &str = "job-orphan-pods";

/// Pods whose Job has finished or is gone, or that have left it.
pub(super) struct OrphanPods {
    job_kind: ResourceKind,
    pod_kind: ResourceKind,
    jobs: SharedInformer,
    pods: SharedInformer,
}

impl OrphanPods {
    pub(super) fn of(engine: &Engine) -> Arc<Self> {
        Arc::new(Self {
            job_kind: engine.kind.clone(),
            pod_kind: engine.pod_kind.clone(),
            jobs: engine.jobs.clone(),
            pods: engine.pods.clone(),
        })
    }

    pub(super) fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let (jobs, pods) = (self.job_kind.clone(), self.pod_kind.clone());
        let (of_pods, of_jobs) = (self.clone(), self.clone());
        let sync = move |key: Key, cx: Context| {
            let orphans = self.clone();
            async move { orphans.sync(&key, &cx).await }
        };
        Controller::of_kind(pods, sync)
            .filter(move |change| of_pods.may_concern(change))
            .reacts_to_kind(jobs, move |change| of_jobs.on_job(change))
            .named(NAME)
            .queue_named("job_orphan_pod")
            .component(super::NAME)
            .workers(workers)
            .rate_limiter(limiter())
    }

    /// Returns true if a change leaves a pod whose finalizer nobody may need.
    fn may_concern(&self, change: &Change<'_>) -> bool {
        let Some(pod) = change.new else { return false };
        if !pod.meta().has_finalizer(FINALIZER) {
            return false;
        }
        match pod.meta().controller() {
            None => true,
            Some(reference) => {
                let job = self.resolve(pod.namespace(), &reference);
                job.is_none_or(|job| spec::is_finished(job.doc()))
            }
        }
    }

    /// The pods that a Job leaves behind when it finishes or goes.
    fn on_job(&self, change: &Change<'_>) -> Vec<Trigger> {
        let job = match (change.old, change.new) {
            (_, Some(job)) if spec::is_finished(job.doc()) => job,
            (Some(job), None) => job,
            _ => return Vec::new(),
        };
        let pods = self.pods.lister().snapshot();
        let left = owned::children_of(&pods, job.doc()).into_iter();
        let left = left.filter(|pod| pod.meta().has_finalizer(FINALIZER));
        left.map(|pod| Trigger::now(pod.key())).collect()
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(pod) = self.pods.lister().get(key) else {
            return Ok(Action::done());
        };
        if pod.meta().has_finalizer(FINALIZER) && !self.is_needed(cx, &pod).await? {
            remove_finalizer(&PodControl::new(cx), pod.doc()).await?;
        }
        Ok(Action::done())
    }

    /// Returns true if somebody counts the pod, or another kind of owner has it. A Job that is not in
    /// the cache may be too new for it, so the server is asked.
    async fn is_needed(&self, cx: &Context, pod: &Obj) -> Result<bool> {
        let Some(reference) = pod.meta().controller() else {
            return Ok(false);
        };
        let gvk = self.job_kind.gvk();
        if reference.kind != gvk.kind() || reference.api_version != gvk.api_version() {
            return Ok(true);
        }
        if let Some(job) = self.resolve(pod.namespace(), &reference) {
            return Ok(is_counting(job.doc()));
        }
        let api = cx.api(&self.job_kind, pod.namespace());
        match api.get(&reference.name).await {
            Ok(job) => Ok(job.meta().uid() == reference.uid && is_counting(&job)),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn resolve(&self, namespace: &str, reference: &OwnerRef) -> Option<Obj> {
        let jobs = self.jobs.lister().snapshot();
        owned::resolve(&jobs, namespace, reference, &self.job_kind)
    }
}

/// Returns true if pods of a Job are left to whoever manages it.
fn is_counting(job: &Doc) -> bool {
    spec::external_manager(job).is_some() || !spec::is_finished(job)
}

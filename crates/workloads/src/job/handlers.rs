//! From changes of Jobs and pods to the Jobs they concern.

use std::sync::Arc;

use windlass_cache::{Obj, SharedInformer};
use windlass_core::OwnerRef;
use windlass_runtime::{Change, ResourceKind, Trigger, filters};

use super::{
    BATCH_PERIOD, Engine, FINALIZER, back_off::BackOffStore, finalizers::FinalizerExpectations,
    metrics::Metrics, spec,
};
use crate::{UidExpectations, owned};

/// The state that the handlers share with the syncs.
pub(super) struct Handlers {
    kind: ResourceKind,
    jobs: SharedInformer,
    expectations: Arc<UidExpectations>,
    finalizers: Arc<FinalizerExpectations>,
    back_offs: Arc<BackOffStore>,
    metrics: Metrics,
}

/// Returns true if a change of a Job is to be looked at once: it comes, it goes, or asks for
/// something else.
pub(super) fn is_urgent(change: &Change<'_>) -> bool {
    let is_finished = change.new.is_some_and(|job| spec::is_finished(job.doc()));
    match (change.old, change.new) {
        (Some(_), Some(_)) => !is_finished && filters::generation_changed(change),
        _ => true,
    }
}

impl Handlers {
    pub(super) fn of(engine: &Engine) -> Self {
        Self {
            kind: engine.kind.clone(),
            jobs: engine.jobs.clone(),
            expectations: engine.expectations.clone(),
            finalizers: engine.finalizers.clone(),
            back_offs: engine.back_offs.clone(),
            metrics: engine.metrics.clone(),
        }
    }

    /// A new status is looked at with the changes of pods that brought it about. A Job that is gone
    /// leaves nothing behind for one that takes its name.
    pub(super) fn on_job(&self, change: &Change<'_>) -> Vec<Trigger> {
        match (change.old, change.new) {
            (Some(_), Some(job)) if !is_urgent(change) && !spec::is_finished(job.doc()) => {
                vec![Trigger::after(job.key(), BATCH_PERIOD)]
            }
            (None, Some(job)) => {
                if let Some(manager) = spec::external_manager(job.doc()) {
                    self.metrics.managed_elsewhere(manager);
                }
                Vec::new()
            }
            (Some(job), None) => {
                self.expectations.forget(&job.key());
                self.finalizers.forget(&job.key());
                self.back_offs.forget(&job.key());
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn on_pod(&self, change: &Change<'_>) -> Vec<Trigger> {
        self.metrics.pod_changed(change);
        match (change.old, change.new) {
            (None, Some(pod)) => self.added(pod),
            (Some(old), Some(new)) => self.updated(old, new),
            (Some(pod), None) => self.deleted(pod, Passing::Gone).into_iter().collect(),
            (None, None) => Vec::new(),
        }
    }

    fn added(&self, pod: &Obj) -> Vec<Trigger> {
        if pod.meta().is_deleting() {
            return self.deleted(pod, Passing::Marked).into_iter().collect();
        }
        let Some(reference) = pod.meta().controller() else {
            return self.wanted_by(pod);
        };
        let job = self.resolve(pod, &reference);
        job.map(|job| {
            self.expectations.creation_observed(&job.key());
            Trigger::after(job.key(), BATCH_PERIOD)
        })
        .into_iter()
        .collect()
    }

    fn updated(&self, old: &Obj, new: &Obj) -> Vec<Trigger> {
        if old.meta().resource_version() == new.meta().resource_version() {
            return Vec::new();
        }
        if new.meta().is_deleting() {
            return self.deleted(new, Passing::Marked).into_iter().collect();
        }
        let (before, after) = (old.meta().controller(), new.meta().controller());
        let is_handed_over = before != after;
        let mut triggers = Vec::new();
        if is_handed_over && let Some(reference) = before {
            triggers.extend(self.seen(old, new, &reference));
        }
        let is_relabelled = old.meta().field("labels") != new.meta().field("labels");
        match after {
            Some(reference) => triggers.extend(self.seen(new, new, &reference)),
            None if is_relabelled || is_handed_over => triggers.extend(self.wanted_by(new)),
            None => {}
        }
        triggers
    }

    /// The Job that a pod belongs to, or did, to be looked at soon.
    fn seen(&self, of: &Obj, pod: &Obj, reference: &OwnerRef) -> Option<Trigger> {
        let key = self.resolve(of, reference)?.key();
        if !pod.meta().has_finalizer(FINALIZER) {
            self.finalizers.observed(&key, &pod.uid());
        }
        Some(Trigger::after(key, BATCH_PERIOD))
    }

    fn deleted(&self, pod: &Obj, passing: Passing) -> Option<Trigger> {
        let reference = pod.meta().controller()?;
        let job = self.resolve(pod, &reference)?;
        let key = job.key();
        if passing == Passing::Gone || !pod.meta().has_finalizer(FINALIZER) {
            self.finalizers.observed(&key, &pod.uid());
        }
        self.expectations.deletion_observed(&key, &pod.uid());
        let is_finished = spec::is_finished(job.doc());
        (!is_finished).then(|| Trigger::after(key, BATCH_PERIOD))
    }

    fn resolve(&self, pod: &Obj, reference: &OwnerRef) -> Option<Obj> {
        let jobs = self.jobs.lister().snapshot();
        owned::resolve(&jobs, pod.namespace(), reference, &self.kind)
    }

    fn wanted_by(&self, pod: &Obj) -> Vec<Trigger> {
        let jobs = self.jobs.lister().snapshot();
        let keys = owned::owners_wanting(&jobs, pod, owned::label_selector);
        if keys.len() > 1 {
            tracing::warn!(pod = %pod.key(), jobs = keys.len(), "several selectors match one orphan");
        }
        let later = |key| Trigger::after(key, BATCH_PERIOD);
        keys.into_iter().map(later).collect()
    }
}

/// The progress of the deletion of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    /// It is being deleted.
    Marked,
    Gone,
}

//! From changes of sets and pods to the Deployments they concern.

use windlass_cache::{Obj, SharedInformer};
use windlass_core::OwnerRef;
use windlass_runtime::{Change, ResourceKind, Trigger};

use super::{Engine, limits::Strategy};
use crate::owned;

/// What the handlers read.
pub(super) struct Handlers {
    deployment_kind: ResourceKind,
    set_kind: ResourceKind,
    deployments: SharedInformer,
    sets: SharedInformer,
    pods: SharedInformer,
}

impl Handlers {
    pub(super) fn of(engine: &Engine) -> Self {
        Self {
            deployment_kind: engine.kinds.deployments.clone(),
            set_kind: engine.kinds.sets.clone(),
            deployments: engine.deployments.clone(),
            sets: engine.sets.clone(),
            pods: engine.pods.clone(),
        }
    }

    pub(super) fn on_set(&self, change: &Change<'_>) -> Vec<Trigger> {
        match (change.old, change.new) {
            (None, Some(set)) if set.meta().is_deleting() => self.owner(set).into_iter().collect(),
            (None, Some(set)) => match set.meta().controller() {
                Some(reference) => self.resolve(set, &reference).into_iter().collect(),
                None => self.wanted_by(set),
            },
            (Some(old), Some(new)) => self.set_updated(old, new),
            (Some(set), None) => self.owner(set).into_iter().collect(),
            (None, None) => Vec::new(),
        }
    }

    fn set_updated(&self, old: &Obj, new: &Obj) -> Vec<Trigger> {
        if old.meta().resource_version() == new.meta().resource_version() {
            return Vec::new();
        }
        let (before, after) = (old.meta().controller(), new.meta().controller());
        let is_handed_over = before != after;
        let mut triggers = Vec::new();
        if is_handed_over && let Some(reference) = before {
            triggers.extend(self.resolve(old, &reference));
        }
        let is_relabelled = old.meta().field("labels") != new.meta().field("labels");
        match after {
            Some(reference) => triggers.extend(self.resolve(new, &reference)),
            None if is_relabelled || is_handed_over => triggers.extend(self.wanted_by(new)),
            None => {}
        }
        triggers
    }

    /// A Deployment that recreates its pods waits for the last one to be gone.
    pub(super) fn on_pod(&self, change: &Change<'_>) -> Vec<Trigger> {
        match (change.old, change.new) {
            (Some(pod), None) => self.pod_deleted(pod).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn pod_deleted(&self, pod: &Obj) -> Option<Trigger> {
        let sets = self.sets.lister().snapshot();
        let reference = pod.meta().controller()?;
        let set = owned::resolve(&sets, pod.namespace(), &reference, &self.set_kind)?;
        let owner = set.meta().controller()?;
        let deployments = self.deployments.lister().snapshot();
        let kind = &self.deployment_kind;
        let deployment = owned::resolve(&deployments, set.namespace(), &owner, kind)?;
        if Strategy::of(deployment.doc()) != Ok(Strategy::Recreate) {
            return None;
        }
        let pods = self.pods.lister().snapshot();
        let mut all = owned::children_of(&sets, deployment.doc()).into_iter();
        let is_empty = all.all(|set| owned::children_of(&pods, set.doc()).is_empty());
        is_empty.then(|| Trigger::now(deployment.key()))
    }

    fn owner(&self, set: &Obj) -> Option<Trigger> {
        self.resolve(set, &set.meta().controller()?)
    }

    fn resolve(&self, set: &Obj, reference: &OwnerRef) -> Option<Trigger> {
        let deployments = self.deployments.lister().snapshot();
        let kind = &self.deployment_kind;
        let owner = owned::resolve(&deployments, set.namespace(), reference, kind)?;
        Some(Trigger::now(owner.key()))
    }

    fn wanted_by(&self, set: &Obj) -> Vec<Trigger> {
        let deployments = self.deployments.lister().snapshot();
        let keys = owned::owners_wanting(&deployments, set, owned::label_selector);
        if keys.len() > 1 {
            let (set, count) = (set.key(), keys.len());
            tracing::warn!(%set, deployments = count, "several selectors match one orphan");
        }
        keys.into_iter().map(Trigger::now).collect()
    }
}

#[cfg(test)]
mod tests;

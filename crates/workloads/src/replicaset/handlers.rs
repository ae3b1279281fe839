//! From changes of sets and pods to the sets they concern.

use std::time::Duration;

use windlass_cache::{Obj, SharedInformer};
use windlass_core::{Key, OwnerRef};
use windlass_runtime::{Change, ResourceKind, Trigger};

use super::{Engine, status};
use crate::is_pod_ready;
use crate::owned::{self, SelectorFn};

/// The handlers of pods for one kind of set.
pub(crate) struct Handlers {
    kind: ResourceKind,
    selector: SelectorFn,
    sets: SharedInformer,
    /// Added to the time after which a pod that became ready is looked at again.
    slack: Duration,
}

impl Handlers {
    pub(super) fn of(engine: &Engine) -> Self {
        let (kind, selector) = (&engine.variant.kind, engine.variant.selector);
        Self::new(kind, selector, &engine.sets)
    }

    pub(crate) fn new(kind: &ResourceKind, selector: SelectorFn, sets: &SharedInformer) -> Self {
        Self {
            kind: kind.clone(),
            selector,
            sets: sets.clone(),
            slack: Duration::ZERO,
        }
    }

    /// Looks at a pod that became ready so much later than its set says.
    pub(crate) fn slack(mut self, slack: Duration) -> Self {
        self.slack = slack;
        self
    }

    pub(crate) fn on_pod(&self, change: &Change<'_>) -> Vec<Trigger> {
        match (change.old, change.new) {
            (None, Some(pod)) => self.added(pod),
            (Some(old), Some(new)) => self.updated(old, new),
            (Some(old), None) => self.deleted(old).into_iter().collect(),
            (None, None) => Vec::new(),
        }
    }

    fn added(&self, pod: &Obj) -> Vec<Trigger> {
        if pod.meta().is_deleting() {
            return self.deleted(pod).into_iter().collect();
        }
        let Some(reference) = pod.meta().controller() else {
            return self.wanted_by(pod);
        };
        let Some(set) = self.resolve(pod, &reference) else {
            return Vec::new();
        };
        vec![Trigger::now(set.key())]
    }

    fn updated(&self, old: &Obj, new: &Obj) -> Vec<Trigger> {
        if old.meta().resource_version() == new.meta().resource_version() {
            return Vec::new();
        }
        let (is_relabelled, is_handed_over) = (
            old.meta().field("labels") != new.meta().field("labels"),
            differ(old, new),
        );
        if new.meta().is_deleting() {
            let before = is_relabelled.then(|| self.deleted(old)).flatten();
            return self.deleted(new).into_iter().chain(before).collect();
        }
        let mut triggers = Vec::new();
        if is_handed_over && let Some(reference) = old.meta().controller() {
            triggers.extend(
                self.resolve(old, &reference)
                    .map(|set| Trigger::now(set.key())),
            );
        }
        match new.meta().controller() {
            Some(reference) => triggers.extend(self.owner_of(old, new, &reference)),
            None if is_relabelled || is_handed_over => triggers.extend(self.wanted_by(new)),
            None => {}
        }
        triggers
    }

    /// The set of a changed pod, at once, and again when a pod that became ready is available.
    fn owner_of(&self, old: &Obj, new: &Obj, reference: &OwnerRef) -> Vec<Trigger> {
        let Some(set) = self.resolve(new, reference) else {
            return Vec::new();
        };
        let mut triggers = vec![Trigger::now(set.key())];
        let min_ready = status::min_ready(set.doc());
        let is_timed = min_ready > Duration::ZERO;
        if is_timed && !is_pod_ready(old.doc()) && is_pod_ready(new.doc()) {
            triggers.push(Trigger::after(set.key(), min_ready + self.slack));
        }
        triggers
    }

    fn deleted(&self, pod: &Obj) -> Option<Trigger> {
        let reference = pod.meta().controller()?;
        let set = self.resolve(pod, &reference)?;
        Some(Trigger::now(set.key()))
    }

    fn resolve(&self, pod: &Obj, reference: &OwnerRef) -> Option<Obj> {
        let sets = self.sets.lister().snapshot();
        owned::resolve(&sets, pod.namespace(), reference, &self.kind)
    }

    /// The sets that would adopt an orphan.
    pub(crate) fn wanted_by(&self, pod: &Obj) -> Vec<Trigger> {
        let sets = self.sets.lister().snapshot();
        let keys: Vec<Key> = owned::owners_wanting(&sets, pod, self.selector);
        if keys.len() > 1 {
            tracing::warn!(pod = %pod.key(), sets = keys.len(), "several selectors match one orphan");
        }
        keys.into_iter().map(Trigger::now).collect()
    }
}

/// Whether another owner manages the pod now.
fn differ(old: &Obj, new: &Obj) -> bool {
    old.meta().field("ownerReferences") != new.meta().field("ownerReferences")
        && old.meta().controller() != new.meta().controller()
}

#[cfg(test)]
mod tests;

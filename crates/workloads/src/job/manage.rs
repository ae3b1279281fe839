//! Creates the pods that are missing, and deletes those that are too many.

use std::{
    collections::{BTreeMap, HashSet},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use windlass_core::{Doc, OwnerRef};
use windlass_runtime::{Context, Error};

use super::{
    BATCH_PERIOD, BURST, Engine,
    back_off::BackOff,
    delete::Deleted,
    gather::JobSync,
    indexes::Indexes,
    pods::JobPod,
    template::{PodTemplate, index_prefix},
};
use crate::{
    ActiveRank, PodControl, PodControlError, PodPrototype, is_namespace_terminating, slow_start,
};

/// The result of managing the pods of a Job.
#[derive(Debug)]
pub(super) struct Managed {
    pub(super) action: SyncAction,
    /// In how much time pods may be created that must wait now.
    pub(super) again: Option<Duration>,
    pub(super) error: Option<Error>,
}

/// The action of a sync, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncAction {
    Reconciling,
    Tracking,
    PodsCreated,
    PodsDeleted,
}

impl SyncAction {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Reconciling => "reconciling",
            Self::Tracking => "tracking",
            Self::PodsCreated => "pods_created",
            Self::PodsDeleted => "pods_deleted",
        }
    }
}

impl Managed {
    /// Nothing was done.
    pub(super) fn none() -> Self {
        Self::new(SyncAction::Reconciling)
    }

    fn new(action: SyncAction) -> Self {
        Self {
            action,
            again: None,
            error: None,
        }
    }

    fn failed(action: SyncAction, error: Option<impl Into<Error>>) -> Self {
        Self {
            error: error.map(Into::into),
            ..Self::new(action)
        }
    }
}

impl Engine {
    /// Deletes what is too much, or else creates what is missing.
    pub(super) async fn manage(&self, cx: &Context, sync: &mut JobSync) -> Managed {
        let surplus = sync.surplus();
        if !surplus.is_empty() || sync.spec.is_suspended {
            let victims: Vec<&JobPod> = surplus.iter().map(|at| &sync.pods[*at]).collect();
            let deleted = self.delete_surplus(cx, sync, &victims).await;
            return sync.note_deleted(deleted);
        }
        let held = match sync.spec.replaces_only_failed {
            true => sync.terminating,
            false => 0,
        };
        let missing = sync.wanted().saturating_sub(held + sync.active);
        if missing == 0 {
            return Managed::new(SyncAction::Tracking);
        }
        self.create_missing(cx, sync, missing.min(BURST)).await
    }

    async fn create_missing(&self, cx: &Context, sync: &mut JobSync, missing: usize) -> Managed {
        let batch = match sync.batch(missing) {
            Ok(batch) => batch,
            Err(wait) => {
                return Managed {
                    again: Some(wait.max(BATCH_PERIOD)),
                    ..Managed::new(SyncAction::PodsCreated)
                };
            }
        };
        let prototypes = match sync.prototypes(&batch, self.kind.gvk()) {
            Ok(prototypes) => prototypes,
            Err(error) => return Managed::failed(SyncAction::PodsCreated, Some(error)),
        };
        let (created, error) = self.create(cx, sync, &batch, &prototypes).await;
        self.metrics
            .pods_created(sync, created, batch.len() - created);
        sync.active += created;
        Managed::failed(SyncAction::PodsCreated, error)
    }

    /// Creates pods in growing batches. Returns how many there are, and the first error.
    async fn create(
        &self,
        cx: &Context,
        sync: &JobSync,
        batch: &[Option<usize>],
        prototypes: &Prototypes,
    ) -> (usize, Option<PodControlError>) {
        let (control, key) = (PodControl::new(cx), &sync.key);
        self.expectations.expect_creations(key, batch.len());
        let create = |at: usize| {
            let prototype = prototypes.of(batch[at]);
            let control = &control;
            async move {
                let created = control.create_from(&sync.job, prototype).await;
                // What will not come is not expected, and a pod whose revision is known is waited
                // for by that.
                let is_noted = created
                    .as_ref()
                    .map_or(true, |pod| pod.meta().revision().is_some());
                if is_noted {
                    self.expectations.creations_failed(key, 1);
                }
                match created {
                    Err(PodControlError::Create(error)) if is_namespace_terminating(&error) => {
                        Ok(false)
                    }
                    other => other.map(|_| true),
                }
            }
        };
        let count = AtomicUsize::new(0);
        let counted = |at: usize| {
            let (created, count) = (create(at), &count);
            async move {
                let created = created.await;
                if matches!(created, Ok(true)) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                created
            }
        };
        let outcome = slow_start(batch.len(), counted).await;
        self.expectations.creations_failed(key, outcome.skipped);
        (count.into_inner(), outcome.error)
    }
}

/// The pods to be created, by index if they have one.
struct Prototypes(BTreeMap<Option<usize>, PodPrototype>);

impl Prototypes {
    fn of(&self, index: Option<usize>) -> &PodPrototype {
        let found = self.0.get(&index);
        found.expect("invariant: there is a prototype for each index of the batch")
    }
}

impl JobSync {
    /// The number of pods that should run now.
    fn wanted(&self) -> usize {
        match self.spec.completions {
            None if self.succeeded > 0 => self.active,
            None => self.spec.parallelism,
            Some(completions) => {
                let left = completions.saturating_sub(self.succeeded);
                left.min(self.spec.parallelism)
            }
        }
    }

    /// The positions of active pods that must go: duplicates and strangers among indexes first, then
    /// as many as are too many. A suspended Job has none left.
    fn surplus(&self) -> Vec<usize> {
        let count = match self.spec.is_suspended {
            true => self.active,
            false => self.active.saturating_sub(self.wanted()),
        };
        if count == 0 && !self.has_strangers() {
            return Vec::new();
        }
        let active = (0..self.pods.len()).filter(|at| self.pods[*at].is_active());
        let mut ranked: Vec<_> = active
            .map(|at| (ActiveRank::of(self.pods[at].doc()), at))
            .collect();
        ranked.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let (mut surplus, rest) = match self.spec.is_indexed() {
            true => self.without_duplicates(&ranked),
            false => (Vec::new(), ranked.iter().map(|(_, at)| *at).collect()),
        };
        let more = count.saturating_sub(surplus.len());
        surplus.extend(rest.iter().take(more));
        if !self.spec.is_suspended {
            surplus.truncate(BURST);
        }
        surplus
    }

    /// Returns true if an active pod of an Indexed Job has no index of it, or that of another one.
    fn has_strangers(&self) -> bool {
        let mut seen = HashSet::new();
        let is_new = |index: Option<usize>| index.is_some_and(|index| seen.insert(index));
        let mut indexes = self.active_pods().map(|pod| pod.valid_index(&self.spec));
        self.spec.is_indexed() && !indexes.all(is_new)
    }

    /// Splits ranked pods into those that no index needs, and one for each index.
    fn without_duplicates(&self, ranked: &[(ActiveRank, usize)]) -> (Vec<usize>, Vec<usize>) {
        let mut best: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, at) in ranked {
            if let Some(index) = self.pods[*at].valid_index(&self.spec) {
                // The last of the ranking is the best.
                best.insert(index, *at);
            }
        }
        let is_best = |at: usize| {
            let index = self.pods[at].valid_index(&self.spec);
            index.is_some_and(|index| best.get(&index) == Some(&at))
        };
        let all = ranked.iter().map(|(_, at)| *at);
        let (rest, surplus) = all.partition(|at| is_best(*at));
        (surplus, rest)
    }

    pub(super) fn note_deleted(&mut self, deleted: Deleted) -> Managed {
        self.active -= deleted.count;
        self.terminating += deleted.count;
        self.ready = self.ready.saturating_sub(deleted.ready);
        Managed::failed(SyncAction::PodsDeleted, deleted.error)
    }

    /// The indexes of the pods to create now, or none for pods without.
    ///
    /// # Errors
    /// With the time to wait, if all must wait.
    fn batch(&self, missing: usize) -> Result<Vec<Option<usize>>, Duration> {
        if self.spec.per_index_limit.is_none() {
            let wait = self.back_off.remaining(self.now);
            if !wait.is_zero() {
                return Err(wait);
            }
        }
        if !self.spec.is_indexed() {
            return Ok(vec![None; missing]);
        }
        let indexes = self.pending_indexes(missing);
        let waits = indexes.iter().map(|index| self.index_wait(*index));
        let waits: Vec<Duration> = waits.collect();
        let due = indexes
            .iter()
            .zip(&waits)
            .filter(|(_, wait)| wait.is_zero());
        let due: Vec<_> = due.map(|(index, _)| Some(*index)).collect();
        match waits.iter().min() {
            Some(wait) if due.is_empty() => Err(*wait),
            _ => Ok(due),
        }
    }

    /// The back-off of an index after its last failure.
    fn index_wait(&self, index: usize) -> Duration {
        let last = self.indexes.replaced.get(&index);
        last.map_or(Duration::ZERO, |at| {
            BackOff::of_index(&self.pods[*at]).remaining(self.now)
        })
    }

    /// The lowest indexes for which nothing runs and that are not settled.
    fn pending_indexes(&self, limit: usize) -> Vec<usize> {
        let busy = self.pods.iter().filter(|pod| {
            pod.is_active() || (self.spec.replaces_only_failed && pod.is_terminating())
        });
        let busy: Indexes = busy.filter_map(|pod| pod.index).collect();
        let mut taken = self.indexes.succeeded.union(&busy);
        if let Some(failed) = &self.indexes.failed {
            taken = taken.union(failed);
        }
        taken.missing(self.spec.indexes(), limit)
    }

    fn prototypes(
        &self,
        batch: &[Option<usize>],
        gvk: &windlass_core::Gvk,
    ) -> Result<Prototypes, Error> {
        let (job, spec) = (&self.job, &self.spec);
        let reference = OwnerRef::controller_of(job, gvk);
        let template = PodTemplate::of(job, spec)?;
        let of = |index: Option<usize>| -> Result<PodPrototype, Error> {
            let Some(index) = index else {
                return Ok(PodPrototype::new(job, template.doc(), &reference)?);
            };
            let replaced = self.indexes.replaced.get(&index).map(|at| &self.pods[*at]);
            let template: Doc = template.for_index(job, spec, index, replaced)?;
            let prefix = index_prefix(job.meta().name(), index);
            Ok(PodPrototype::named(&template, &reference, &prefix)?)
        };
        let mut found = BTreeMap::new();
        for index in batch {
            if !found.contains_key(index) {
                found.insert(*index, of(*index)?);
            }
        }
        Ok(Prototypes(found))
    }
}

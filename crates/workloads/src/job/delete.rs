//! Deletes pods of a Job, and removes their finalizers.

use std::collections::HashSet;

use futures_util::{StreamExt, stream::FuturesUnordered};
use windlass_client::Error as ClientError;
use windlass_core::{Doc, Uid, doc};
use windlass_runtime::Context;

use super::{BURST, Engine, FINALIZER, gather::JobSync, pods::JobPod};
use crate::{PodControl, PodControlError};

/// The result of deleting pods.
#[derive(Debug, Default)]
pub(super) struct Deleted {
    /// The number that is gone or on its way.
    pub(super) count: usize,
    /// The number of them that were ready.
    pub(super) ready: usize,
    pub(super) error: Option<PodControlError>,
}

/// The result of removing finalizers.
#[derive(Debug, Default)]
pub(super) struct Released {
    pub(super) uids: HashSet<Uid>,
    pub(super) error: Option<ClientError>,
}

impl Engine {
    /// Deletes active pods and leaves them their finalizers, so that they are counted.
    pub(super) async fn delete_active(&self, cx: &Context, sync: &JobSync) -> Deleted {
        let control = PodControl::new(cx);
        let pods: Vec<&JobPod> = sync.active_pods().collect();
        let mut deleted = Deleted::default();
        for batch in pods.chunks(BURST) {
            let deletions = batch.iter().map(|pod| {
                let control = &control;
                async move { (*pod, control.delete(&sync.job, pod.doc()).await) }
            });
            let mut deletions: FuturesUnordered<_> = deletions.collect();
            while let Some((pod, result)) = deletions.next().await {
                deleted.note(pod, result.map(drop));
            }
        }
        deleted
    }

    /// Deletes pods that are too many, without counting them: they lose their finalizers first.
    pub(super) async fn delete_surplus(
        &self,
        cx: &Context,
        sync: &JobSync,
        pods: &[&JobPod],
    ) -> Deleted {
        let control = PodControl::new(cx);
        let uids = pods.iter().map(|pod| pod.uid.clone());
        self.expectations.expect_deletions(&sync.key, uids);
        let mut deleted = Deleted::default();
        for batch in pods.chunks(BURST) {
            let deletions = batch.iter().map(|pod| {
                let control = &control;
                async move { (*pod, delete_uncounted(control, &sync.job, pod).await) }
            });
            let mut deletions: FuturesUnordered<_> = deletions.collect();
            while let Some((pod, result)) = deletions.next().await {
                if result.is_err() {
                    // Nobody will see this deletion.
                    self.expectations.deletion_observed(&sync.key, &pod.uid);
                }
                deleted.note(pod, result);
            }
        }
        deleted
    }

    /// Removes the finalizers of pods. Those that are gone have lost theirs.
    pub(super) async fn release(&self, cx: &Context, sync: &JobSync, pods: &[JobPod]) -> Released {
        let control = PodControl::new(cx);
        let uids = pods.iter().map(|pod| pod.uid.clone());
        self.finalizers.expect(&sync.key, uids);
        let mut released = Released::default();
        for batch in pods.chunks(BURST) {
            let removals = batch.iter().map(|pod| {
                let control = &control;
                async move { (pod, remove_finalizer(control, pod.doc()).await) }
            });
            let mut removals: FuturesUnordered<_> = removals.collect();
            while let Some((pod, result)) = removals.next().await {
                if !matches!(result, Ok(Removal::Done)) {
                    // Nobody will see a pod without the finalizer.
                    self.finalizers.observed(&sync.key, &pod.uid);
                }
                match result {
                    Ok(_) => drop(released.uids.insert(pod.uid.clone())),
                    Err(error) => drop(released.error.get_or_insert(error)),
                }
            }
        }
        released
    }
}

impl Deleted {
    fn note(&mut self, pod: &JobPod, result: Result<(), PodControlError>) {
        match result {
            Ok(()) | Err(PodControlError::NotFound(_)) => {
                self.count += 1;
                self.ready += usize::from(pod.is_ready());
            }
            Err(error) => drop(self.error.get_or_insert(error)),
        }
    }
}

async fn delete_uncounted(
    control: &PodControl,
    job: &Doc,
    pod: &JobPod,
) -> Result<(), PodControlError> {
    if pod.is_tracked {
        let removed = remove_finalizer(control, pod.doc()).await;
        removed.map_err(PodControlError::Delete)?;
    }
    control.delete(job, pod.doc()).await.map(drop)
}

/// The result of removing a finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    Done,
    /// The pod does not exist, or another one has its name.
    Gone,
}

/// Removes the finalizer of a pod. The UID makes it fail if the name belongs to another one.
pub(super) async fn remove_finalizer(
    control: &PodControl,
    pod: &Doc,
) -> Result<Removal, ClientError> {
    let patch = doc!({ "metadata": {
        "uid": (pod.meta().uid_str()), "$deleteFromPrimitiveList/finalizers": [FINALIZER]
    } });
    match control.patch(pod, patch).await {
        Ok(_) => Ok(Removal::Done),
        Err(error) if error.is_not_found() || error.is_invalid() => Ok(Removal::Gone),
        Err(error) => Err(error),
    }
}

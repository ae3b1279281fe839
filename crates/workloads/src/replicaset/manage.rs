//! Creates the pods that are missing, and deletes those that are too many.

use futures_util::{StreamExt, stream::FuturesUnordered};
use windlass_cache::Obj;
use windlass_core::{Doc, Key, OwnerRef};
use windlass_runtime::Context;

use super::{Engine, claim::Claimed};
use crate::{PodControl, PodControlError, PodPrototype, is_namespace_terminating, slow_start};

/// What came of managing the pods of a set.
pub(super) enum Managed {
    /// Pods that were asked for have not been seen yet, or the set is being deleted.
    NotTried,
    /// There are as many as there should be, or the requests to get there were answered.
    Done,
    /// A request failed.
    Failed {
        /// The reason of the condition.
        reason: &'static str,
        error: PodControlError,
    },
}

/// What became of one creation.
enum Created {
    /// The cache will show it by its revision.
    Noted,
    /// The cache will show it, but there is no revision to wait for.
    Unnoted,
    /// The namespace is going; there will be no pod.
    Pointless,
}

impl Engine {
    pub(super) async fn manage(
        &self,
        key: &Key,
        cx: &Context,
        set: &Obj,
        claimed: &Claimed,
    ) -> Managed {
        let wanted = wanted(set.doc());
        let found = claimed.active.len();
        let (reason, result) = if found < wanted {
            let count = (wanted - found).min(self.options.burst);
            ("FailedCreate", self.create(key, cx, set.doc(), count).await)
        } else if found > wanted {
            let count = (found - wanted).min(self.options.burst);
            let victims = self.victims(cx, set, claimed, count);
            (
                "FailedDelete",
                self.delete(key, cx, set.doc(), &victims).await,
            )
        } else {
            return Managed::Done;
        };
        match result {
            Ok(()) => Managed::Done,
            Err(error) => Managed::Failed { reason, error },
        }
    }

    async fn create(
        &self,
        key: &Key,
        cx: &Context,
        set: &Doc,
        count: usize,
    ) -> Result<(), PodControlError> {
        let reference = OwnerRef::controller_of(set, self.variant.kind.gvk());
        let prototype = PodPrototype::new(set, set.at("/spec/template"), &reference)?;
        let control = PodControl::new(cx);
        self.expectations.expect_creations(key, count);
        let create = |_| async {
            let created = self.classify(control.create_from(set, &prototype).await);
            // What will not come is not expected, and a pod whose revision is known is waited for
            // by that: it cannot be missed, while a notification of it can.
            if !matches!(created, Ok(Created::Unnoted)) {
                self.expectations.creations_failed(key, 1);
            }
            created
        };
        let outcome = slow_start(count, create).await;
        self.expectations.creations_failed(key, outcome.skipped);
        outcome.error.map_or(Ok(()), Err)
    }

    fn classify(&self, created: Result<Doc, PodControlError>) -> Result<Created, PodControlError> {
        match created {
            Ok(pod) if self.options.waits_for_caches && pod.meta().revision().is_some() => {
                Ok(Created::Noted)
            }
            Ok(_) => Ok(Created::Unnoted),
            Err(PodControlError::Create(error)) if is_namespace_terminating(&error) => {
                Ok(Created::Pointless)
            }
            Err(error) => Err(error),
        }
    }

    async fn delete(
        &self,
        key: &Key,
        cx: &Context,
        set: &Doc,
        victims: &[Obj],
    ) -> Result<(), PodControlError> {
        let control = PodControl::new(cx);
        let uids = victims.iter().map(Obj::uid);
        self.expectations.expect_deletions(key, uids);
        let deletions = victims.iter().map(|pod| {
            let control = &control;
            async move { (pod, control.delete(set, pod.doc()).await) }
        });
        let mut deletions: FuturesUnordered<_> = deletions.collect();
        let mut first = None;
        while let Some((pod, result)) = deletions.next().await {
            let Err(error) = result else { continue };
            self.expectations.deletion_observed(key, &pod.uid());
            if !is_gone(&error) {
                first.get_or_insert(error);
            }
        }
        first.map_or(Ok(()), Err)
    }
}

/// Whether the pod that was meant does not exist any more. Nothing but its UID was demanded of it,
/// so a conflict says that another pod has its name.
fn is_gone(error: &PodControlError) -> bool {
    match error {
        PodControlError::NotFound(_) => true,
        PodControlError::Delete(error) => error.is_conflict(),
        _ => false,
    }
}

/// How many pods a set asks for.
pub(super) fn wanted(set: &Doc) -> usize {
    let replicas = set.at("/spec/replicas").as_u64().unwrap_or(0);
    usize::try_from(replicas).unwrap_or(usize::MAX)
}

//! Creates the pods that are missing, and deletes those that are too many.

use futures_util::{StreamExt, stream::FuturesUnordered};
use windlass_cache::Obj;
use windlass_core::{Doc, OwnerRef};
use windlass_runtime::Context;

use super::{Engine, claim::Claimed};
use crate::{PodControl, PodControlError, PodPrototype, is_namespace_terminating, slow_start};

/// What came of managing the pods of a set.
pub(super) enum Managed {
    /// The set is being deleted.
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

impl Engine {
    pub(super) async fn manage(&self, cx: &Context, set: &Obj, claimed: &Claimed) -> Managed {
        let wanted = wanted(set.doc());
        let found = claimed.active.len();
        let (reason, result) = if found < wanted {
            let count = (wanted - found).min(self.options.burst);
            ("FailedCreate", self.create(cx, set.doc(), count).await)
        } else if found > wanted {
            let count = (found - wanted).min(self.options.burst);
            let victims = self.victims(cx, set, claimed, count);
            ("FailedDelete", delete(cx, set.doc(), &victims).await)
        } else {
            return Managed::Done;
        };
        match result {
            Ok(()) => Managed::Done,
            Err(error) => Managed::Failed { reason, error },
        }
    }

    async fn create(&self, cx: &Context, set: &Doc, count: usize) -> Result<(), PodControlError> {
        let reference = OwnerRef::controller_of(set, self.variant.kind.gvk());
        let prototype = PodPrototype::new(set, set.at("/spec/template"), &reference)?;
        let control = PodControl::new(cx);
        let create = |_| async {
            match control.create_from(set, &prototype).await {
                // The namespace is going; there will be no pod, and it is no failure.
                Err(PodControlError::Create(error)) if is_namespace_terminating(&error) => Ok(()),
                created => created.map(drop),
            }
        };
        slow_start(count, create).await.error.map_or(Ok(()), Err)
    }
}

async fn delete(cx: &Context, set: &Doc, victims: &[Obj]) -> Result<(), PodControlError> {
    let control = PodControl::new(cx);
    let deletions = victims.iter().map(|pod| control.delete(set, pod.doc()));
    let mut deletions: FuturesUnordered<_> = deletions.collect();
    let mut first = None;
    while let Some(result) = deletions.next().await {
        if let Err(error) = result
            && !is_gone(&error)
        {
            first.get_or_insert(error);
        }
    }
    first.map_or(Ok(()), Err)
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

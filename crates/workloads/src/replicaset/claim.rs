//! Which pods belong to a set.

use std::time::Duration;

use windlass_cache::Obj;
use windlass_client::Error as ClientError;
use windlass_core::{MicroTime, Selector};
use windlass_runtime::{Context, Error, Result};

use super::{
    Engine,
    tally::{Counts, Look, Reader, Readiness},
};
use crate::owned;
use crate::{ClaimError, RefManager};

/// The pods of a set.
pub(super) struct Claimed {
    /// Those that count as replicas.
    pub(super) active: Vec<Replica>,
    /// How many are being deleted.
    pub(super) terminating: usize,
}

/// A pod that counts as a replica.
pub(super) struct Replica {
    pub(super) pod: Obj,
    pub(super) readiness: Readiness,
    /// Whether it has every label of the template.
    is_fully_labeled: bool,
}

impl Replica {
    fn new(pod: Obj, look: &Look) -> Self {
        Self {
            pod,
            readiness: look.standing.readiness,
            is_fully_labeled: look.labelling.is_full,
        }
    }
}

impl Claimed {
    pub(super) fn counts(&self, min_ready: Duration, now: MicroTime) -> Counts {
        let mut counts = Counts::with_terminating(self.terminating);
        for replica in &self.active {
            let (readiness, is_full) = (replica.readiness, replica.is_fully_labeled);
            counts.add(readiness, is_full, min_ready, now);
        }
        counts
    }
}

impl Engine {
    /// Claims the pods of a set. Its own ones with the right labels, which are nearly all, are
    /// told at a glance; the others are adopted or released.
    pub(super) async fn claim(
        &self,
        cx: &Context,
        set: &Obj,
        selector: &Selector,
    ) -> Result<Claimed> {
        let pods = self.pods.lister().snapshot();
        let mut reader = Reader::new(set.doc(), &self.variant.kind, selector);
        let mut claimed = Claimed {
            active: Vec::new(),
            terminating: 0,
        };
        let mut others = Vec::new();
        let owned = owned::children_of(&pods, set.doc());
        claimed.active.reserve_exact(owned.len());
        for pod in owned {
            let look = reader.look(pod.doc());
            if look.standing.is_terminal || !look.is_own {
                continue;
            }
            match (look.labelling.is_match, look.is_deleting) {
                (true, true) => claimed.terminating += 1,
                (true, false) => claimed.active.push(Replica::new(pod, &look)),
                (false, true) => {}
                (false, false) => others.push(pod),
            }
        }
        let orphans = owned::orphans(&pods, set.namespace(), selector);
        let is_active = |pod: &Obj| crate::is_pod_active(pod.doc());
        others.extend(orphans.into_iter().filter(is_active));
        if !others.is_empty() {
            self.adopt_or_release(cx, set, selector, others, &mut claimed)
                .await?;
        }
        Ok(claimed)
    }

    async fn adopt_or_release(
        &self,
        cx: &Context,
        set: &Obj,
        selector: &Selector,
        pods: Vec<Obj>,
        claimed: &mut Claimed,
    ) -> Result<()> {
        let (kind, pod_kind) = (&self.variant.kind, &self.pod_kind);
        let manager = RefManager::new(cx, set.doc(), kind, pod_kind, selector);
        let outcome = manager.claim(pods).await;
        if !outcome.errors.is_empty() {
            return Err(together(&outcome.errors));
        }
        let mut reader = Reader::new(set.doc(), kind, selector);
        for pod in outcome.objects {
            let look = reader.look(pod.doc());
            claimed.active.push(Replica::new(pod, &look));
        }
        Ok(())
    }
}

/// All that went wrong, as one error, each text once.
pub(crate) fn together(errors: &[ClaimError]) -> Error {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = match error {
            ClaimError::Request(error) => ClientError::cause(error).to_string(),
            other => other.to_string(),
        };
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    Error::msg(match &texts[..] {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    })
}

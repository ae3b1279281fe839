//! Which pods belong to a set.

use std::time::Duration;

use windlass_cache::Obj;
use windlass_client::Error as ClientError;
use windlass_core::{Doc, MicroTime, Selector};
use windlass_runtime::{ClaimError, Context, Error, RefManager, Result};

use super::{
    Engine,
    tally::{Counts, Reader, Readiness, TemplateLabels},
};
use crate::owned;

/// The pods of a set.
pub(super) struct Claimed {
    /// Those that count as replicas, each with its readiness.
    pub(super) active: Vec<(Obj, Readiness)>,
    /// How many are being deleted.
    pub(super) terminating: usize,
}

impl Claimed {
    pub(super) fn counts(&self, set: &Doc, min_ready: Duration, now: MicroTime) -> Counts {
        let mut counts = Counts::with_terminating(self.terminating);
        let mut template = TemplateLabels::of(set);
        for (pod, readiness) in &self.active {
            counts.add(*readiness, template.are_on(pod.doc()), min_ready, now);
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
        let mut reader = Reader::new(selector);
        let mut claimed = Claimed {
            active: Vec::new(),
            terminating: 0,
        };
        let mut others = Vec::new();
        let owned = owned::children_of(&pods, set.doc());
        claimed.active.reserve_exact(owned.len());
        for pod in owned {
            let standing = reader.standing(pod.doc());
            if standing.is_terminal {
                continue;
            }
            match (reader.is_match(pod.doc()), pod.meta().is_deleting()) {
                (true, true) => claimed.terminating += 1,
                (true, false) => claimed.active.push((pod, standing.readiness)),
                (false, true) => {}
                (false, false) => others.push(pod),
            }
        }
        let orphans = owned::orphans(&pods, set.namespace(), selector);
        let is_active = |pod: &Obj| windlass_runtime::is_pod_active(pod.doc());
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
        let mut reader = Reader::new(selector);
        for pod in outcome.objects {
            let readiness = reader.standing(pod.doc()).readiness;
            claimed.active.push((pod, readiness));
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

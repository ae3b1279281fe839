//! The eviction of the victims of a preemption.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::Instant;
use windlass_client::{DeleteOptions, Error, Patch, WriteOptions};
use windlass_core::{Doc, Str, condition, doc};
use windlass_runtime::EventType;

use super::{PREEMPTED, PreemptionCandidate, Victim};
use crate::scheduler::{
    queue::Popped,
    run::{Scheduler, Writes},
    state::State,
};

/// Victims that are evicted at once.
const EVICTIONS_LIMIT: usize = 16;

/// A preemption that is under way.
struct Eviction {
    preemptor: Popped,
    node: Str,
    /// Those that are not yet being deleted; one at least.
    victims: Vec<Victim>,
    /// Pods of lower priority whose nomination for the node is over.
    outranked: Vec<Doc>,
}

impl Scheduler {
    /// Begins to evict. Until it is done, the preemptor is not tried again.
    pub(super) fn begin_eviction(
        self: &Arc<Self>,
        state: &mut State,
        preemptor: &Popped,
        candidate: PreemptionCandidate,
        writes: &mut Writes,
    ) {
        let PreemptionCandidate { node, victims, .. } = candidate;
        let count = victims.len();
        let mut left = Vec::new();
        for victim in victims {
            // A pod that is not bound yet goes back into the queue instead.
            if state.reject(&victim.uid) {
                self.tell_preempted(
                    &victim.pod,
                    preemptor,
                    &node,
                    " (in kube-scheduler memory).",
                );
            } else if !victim.pod.meta().is_deleting() {
                left.push(victim);
            }
        }
        if left.is_empty() {
            return;
        }
        let outranked = state.outranked(&node, preemptor.view.priority);
        self.metrics.preempted(count);
        state.queue.begin_preemption(&preemptor.uid);
        let eviction = Eviction {
            preemptor: preemptor.clone(),
            node,
            victims: left,
            outranked,
        };
        let scheduler = self.clone();
        writes.spawn(async move { scheduler.evict_all(eviction).await });
    }

    async fn evict_all(&self, eviction: Eviction) {
        let began = Instant::now();
        let mut is_done = self.clear_nominations(&eviction.outranked).await;
        for some in eviction.victims.chunks(EVICTIONS_LIMIT) {
            let evicted = join_all(some.iter().map(|one| self.evict(&eviction, one))).await;
            if evicted.iter().any(Result::is_err) {
                is_done = false;
                break;
            }
        }
        self.metrics.preemption_ended(is_done, began.elapsed());
        let uid = &eviction.preemptor.uid;
        let mut state = self.state.lock();
        state.queue.end_preemption(uid, is_done, Instant::now());
        drop(state);
        self.news.notify_one();
    }

    /// Takes the nominations of pods back that have a lower priority than the preemptor.
    async fn clear_nominations(&self, pods: &[Doc]) -> bool {
        let mut is_done = true;
        for pod in pods {
            let meta = pod.meta();
            let patch = Patch::Strategic(doc!({
                "metadata": { "uid": (meta.uid_str()) }, "status": { "nominatedNodeName": null },
            }));
            let api = self.pods.clone().namespaced(meta.namespace());
            let options = WriteOptions::default();
            let patched = api.patch_status(meta.name(), &patch, &options).await;
            if let Err(error) = patched
                && !is_gone(&error)
            {
                tracing::error!(pod = %meta.key(), %error, "a nominated node was not cleared");
                is_done = false;
            }
        }
        is_done
    }

    /// Marks a victim as a target of a disruption and deletes it, with the grace period that it
    /// asks for.
    async fn evict(&self, eviction: &Eviction, victim: &Victim) -> Result<(), Error> {
        let pod = &victim.pod;
        match self.mark_and_delete(pod).await {
            Ok(()) => {
                self.tell_preempted(pod, &eviction.preemptor, &eviction.node, "");
                Ok(())
            }
            Err(error) if is_gone(&error) => Ok(()),
            Err(error) => {
                let (preemptor, victim) = (eviction.preemptor.pod.meta().key(), pod.meta().key());
                tracing::error!(%preemptor, %victim, %error, "a pod could not be preempted");
                Err(error)
            }
        }
    }

    async fn mark_and_delete(&self, pod: &Doc) -> Result<(), Error> {
        let meta = pod.meta();
        let api = self.pods.clone().namespaced(meta.namespace());
        if let Some(patch) = self.disruption_patch(pod) {
            let options = WriteOptions::default();
            api.patch_status(meta.name(), &patch, &options).await?;
        }
        let options = DeleteOptions::uid(meta.uid_str());
        api.delete(meta.name(), &options).await.map(drop)
    }

    /// The condition `DisruptionTarget`, unless it is there already.
    fn disruption_patch(&self, pod: &Doc) -> Option<Patch> {
        let name = &self.name;
        let message = format!("{name}: preempting to accommodate a higher priority pod");
        let is_said = condition(pod, "DisruptionTarget").is_some_and(|found| {
            found.is_true() && found.reason == PREEMPTED && found.message == message
        });
        (!is_said).then(|| {
            Patch::Strategic(doc!({
                "metadata": { "uid": (pod.meta().uid_str()) },
                "status": { "conditions": [{
                    "type": "DisruptionTarget", "status": "True", "reason": PREEMPTED,
                    "message": message, "lastProbeTime": null,
                    "lastTransitionTime": (self.env.now().to_string()),
                    "observedGeneration": (pod.meta().generation()),
                }] },
            }))
        })
    }

    fn tell_preempted(&self, victim: &Doc, preemptor: &Popped, node: &Str, how: &str) {
        let message = format!("Preempted by pod {} on node {node}{how}", preemptor.uid);
        self.recorder
            .event(victim, EventType::Normal, "Preempted", &message);
    }
}

/// Returns true if the server says that a pod is gone, or that another one has its name.
fn is_gone(error: &Error) -> bool {
    error.is_not_found() || error.is_conflict()
}

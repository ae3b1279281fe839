//! Creates the pods that nodes lack, and deletes those that should not be there.

use std::time::Duration;

use futures_util::{StreamExt, stream::FuturesUnordered};
use windlass_core::{Doc, OwnerRef};
use windlass_runtime::{EventType, Result};

use super::{
    BURST, Sync,
    back_off::Failure,
    eligibility::Eligibility,
    template::{self, HASH_LABEL},
};
use crate::{
    PodControl, PodControlError, PodPrototype, is_namespace_terminating, is_pod_available,
    is_pod_ready, slow_start,
};

/// Pods to be created and deleted.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// The nodes that get a pod.
    pub(super) create: Vec<String>,
    pub(super) delete: Vec<Doc>,
}

impl Work {
    pub(super) fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }
}

impl Sync<'_> {
    /// The pods that nodes lack and those that should not be there, and the time until pods that
    /// have failed may be deleted.
    pub(super) fn missing_and_surplus(&self) -> (Work, Option<Duration>) {
        let (mut work, mut again) = (Work::default(), None::<Duration>);
        for node in &self.nodes {
            let verdict = self.placement.eligibility(node.doc());
            let pods = self.pods.get(node.name());
            match pods {
                None if verdict.should_run => work.create.push(node.name().to_owned()),
                None => {}
                Some(pods) if verdict.should_continue => {
                    let delay = self.tend(node.name(), verdict, pods, &mut work);
                    again = again.into_iter().chain(delay).min();
                }
                Some(pods) => work.delete.extend(live(pods).cloned()),
            }
        }
        work.delete.extend(self.stranded());
        (work, again)
    }

    /// Looks after the pods of a node that may stay there: those that have ended are deleted, and
    /// one is left, or two while a new one is about to take the place of an old one.
    fn tend(
        &self,
        node: &str,
        verdict: Eligibility,
        pods: &[Doc],
        work: &mut Work,
    ) -> Option<Duration> {
        let (mut running, mut again) = (Vec::new(), None);
        for pod in live(pods) {
            match pod.str_at("/status/phase") {
                "Failed" => {
                    let failure = Failure::of(self.set, node);
                    match self.engine.failed_pods.try_next(failure) {
                        Err(delay) => again = Some(delay),
                        Ok(()) => self.remove_ended(node, pod, work),
                    }
                }
                "Succeeded" => self.remove_ended(node, pod, work),
                _ => running.push(pod),
            }
        }
        if !self.allows_surge() {
            work.delete.extend(running.into_iter().skip(1).cloned());
        } else if running.is_empty() && verdict.should_run {
            work.create.push(node.to_owned());
        } else {
            self.keep_old_and_new(&running, work);
        }
        again
    }

    /// Keeps the oldest pod of the current template, and beside it the oldest of another one as long
    /// as that is ready and the new one is not available.
    fn keep_old_and_new(&self, running: &[&Doc], work: &mut Work) {
        if running.len() <= 1 {
            return;
        }
        let (mut new, mut old) = (None, None);
        for pod in running {
            let is_new = pod.meta().label(HASH_LABEL) == Some(self.hash.as_str());
            let kept = if is_new { &mut new } else { &mut old };
            match kept {
                None => *kept = Some(*pod),
                Some(_) => work.delete.push((*pod).clone()),
            }
        }
        if let (Some(new), Some(old)) = (new, old)
            && (!is_pod_ready(old) || is_pod_available(new, self.min_ready, self.now))
        {
            work.delete.push(old.clone());
        }
    }

    fn remove_ended(&self, node: &str, pod: &Doc, work: &mut Work) {
        let key = pod.meta().key();
        let (event_type, reason, text) = match pod.str_at("/status/phase") {
            "Failed" => (
                EventType::Warning,
                "FailedDaemonPod",
                format!("Found failed daemon pod {key} on node {node}, will try to kill it"),
            ),
            _ => (
                EventType::Normal,
                "SucceededDaemonPod",
                format!("Found succeeded daemon pod {key} on node {node}, will try to delete it"),
            ),
        };
        let recorder = self.cx.recorder();
        recorder.event(self.set, event_type, reason, &text);
        work.delete.push(pod.clone());
    }

    /// Pods that wait for nodes that do not exist. Nobody else deletes them.
    fn stranded(&self) -> impl Iterator<Item = Doc> {
        let is_known = |name: &str| {
            let found = self.nodes.binary_search_by(|node| node.name().cmp(name));
            found.is_ok()
        };
        let gone = self.pods.iter().filter(move |(node, _)| !is_known(node));
        let pods = gone.flat_map(|(_, pods)| pods);
        pods.filter(|pod| pod.str_at("/spec/nodeName").is_empty())
            .cloned()
    }

    /// Creates and deletes pods, a limited number at a time.
    pub(super) async fn carry_out(&self, work: Work) -> Result<()> {
        let created = self.create(&work.create).await;
        let deleted = self.delete(&work.delete).await;
        created?;
        Ok(deleted?)
    }

    async fn create(&self, nodes: &[String]) -> Result<()> {
        if nodes.is_empty() {
            return Ok(());
        }
        let template = template::of(self.set, &self.hash)?;
        let reference = OwnerRef::controller_of(self.set, self.engine.kinds.sets.gvk());
        let control = PodControl::new(self.cx);
        let (template, reference, control) = (&template, &reference, &control);
        let create = |at: usize| async move {
            let template = template::for_node(template, &nodes[at])?;
            let prototype = PodPrototype::new(self.set, &template, reference)?;
            match control.create_from(self.set, &prototype).await {
                // The namespace is going; there will be no pod, and it is no failure.
                Err(PodControlError::Create(error)) if is_namespace_terminating(&error) => Ok(()),
                created => Ok::<_, windlass_runtime::Error>(created.map(drop)?),
            }
        };
        let outcome = slow_start(nodes.len().min(BURST), create).await;
        outcome.error.map_or(Ok(()), Err)
    }

    async fn delete(&self, pods: &[Doc]) -> Result<(), PodControlError> {
        let control = PodControl::new(self.cx);
        let pods = pods.iter().take(BURST);
        let deletions = pods.map(|pod| control.delete(self.set, pod));
        let mut deletions: FuturesUnordered<_> = deletions.collect();
        let mut first = None;
        while let Some(result) = deletions.next().await {
            match result {
                Ok(_) | Err(PodControlError::NotFound(_)) => {}
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
        first.map_or(Ok(()), Err)
    }
}

/// The pods that are not being deleted.
pub(super) fn live(pods: &[Doc]) -> impl Iterator<Item = &Doc> {
    pods.iter().filter(|pod| !pod.meta().is_deleting())
}

//! What the scheduler knows: the nodes, the pods on them, and the pods that wait.

mod nominated;

use std::{collections::BTreeSet, sync::Arc};

use hashbrown::HashMap;
use tokio::time::Instant;
use windlass_core::{Doc, Str};

use super::{
    evaluate::{Evaluation, Evaluations, Fit, Scale},
    hints::Hints,
    nodes::{Nodes, Placed, Slot, is_like},
    nominations::Nominations,
    plugin::ClusterEvent,
    pod_terms::Namespaces,
    queue::Queue,
    reasons::{Diagnosis, Refused},
    spec::{SpecView, Specs},
    surroundings::Surroundings,
};
use crate::pod::is_pod_terminal;

/// Everything under the one lock of the scheduler. The handlers of the informers write it, and the
/// scheduling loop.
#[derive(Debug)]
pub(super) struct State {
    pub(super) queue: Queue,
    specs: Specs,
    pub(super) nodes: Nodes,
    pub(super) evaluations: Evaluations,
    pub(super) nominations: Nominations,
    /// The pods on nodes, by UID; bounded by the pods of the cluster.
    placed: HashMap<Str, Home, foldhash::fast::RandomState>,
    /// Their UIDs by node, for preemption.
    by_node: HashMap<Str, BTreeSet<Str>, foldhash::fast::RandomState>,
    /// How many of them were not seen there yet.
    assumed: usize,
    scheduler_name: String,
}

/// Where a pod is.
#[derive(Debug)]
pub(super) struct Home {
    node: Str,
    pub(super) pod: Doc,
    pub(super) placed: Placed,
    /// True if this scheduler put it there and has not seen it there yet.
    is_assumed: bool,
    /// The way of an assumed pod to its node.
    binding: Binding,
}

/// How far the binding of an assumed pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    /// It is being prepared and can still be given up.
    Prepared,
    /// A preemption has given it up.
    Rejected,
    /// It is written.
    Written,
}

/// A node that takes a pod.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) slot: Slot,
    pub(super) score: i64,
}

/// The nodes that take a pod.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    pub(super) all: Vec<Candidate>,
    /// What keeps the pod off nodes that would take it by themselves.
    pub(super) around: Vec<Refused>,
    /// True if the first one is the nominated node of the pod, which gets it before all others.
    pub(super) is_nominated_first: bool,
}

impl Candidates {
    /// The nominated node of the pod, if it takes it.
    pub(super) fn nominated(&self) -> Option<&Candidate> {
        self.all.first().filter(|_| self.is_nominated_first)
    }
}

impl State {
    pub(super) fn new(hints: Hints, scheduler_name: String, now: Instant) -> Self {
        Self {
            queue: Queue::new(hints, now),
            specs: Specs::default(),
            nodes: Nodes::default(),
            evaluations: Evaluations::default(),
            nominations: Nominations::default(),
            placed: HashMap::default(),
            by_node: HashMap::default(),
            assumed: 0,
            scheduler_name,
        }
    }

    /// A pod was added or has changed.
    pub(super) fn pod_seen(&mut self, pod: &Doc, now: Instant) {
        let Some(uid) = uid_of(pod) else {
            return;
        };
        if is_pod_terminal(pod) {
            return self.pod_gone(&uid, now);
        }
        match pod.at("/spec/nodeName").shared_str() {
            Some(node) if !node.is_empty() => self.pod_assigned(uid, pod, node, now),
            _ => self.pod_waits(&uid, pod, now),
        }
    }

    fn pod_waits(&mut self, uid: &Str, pod: &Doc, now: Instant) {
        let is_ours = pod.str_at("/spec/schedulerName") == self.scheduler_name;
        // A pod that is assumed to be on a node is still in the queue until it is bound.
        let is_bound = self.placed.contains_key(uid) && !self.queue.contains(uid);
        if is_ours && !is_bound {
            let view = self.specs.view(pod);
            self.nomination_seen(uid, pod, &view, now);
            self.queue.set(uid, pod, &view, now);
        }
    }

    /// The pods on a node, by UID.
    pub(super) fn homes_on(&self, node: &str) -> impl Iterator<Item = (&Str, &Home)> {
        let uids = self.by_node.get(node).into_iter().flatten();
        uids.filter_map(|uid| Some((uid, self.placed.get(uid)?)))
    }

    /// Gives up the binding of a pod that is not written yet. Returns false if it is too late.
    pub(super) fn reject(&mut self, uid: &Str) -> bool {
        let home = self.placed.get_mut(uid).filter(|home| home.is_assumed);
        let Some(home) = home.filter(|home| home.binding != Binding::Written) else {
            return false;
        };
        home.binding = Binding::Rejected;
        true
    }

    /// Begins to write the binding of a pod. Returns false if it was given up.
    pub(super) fn begin_binding(&mut self, uid: &Str) -> bool {
        match self.placed.get_mut(uid) {
            Some(home) if home.binding == Binding::Rejected => false,
            Some(home) => {
                home.binding = Binding::Written;
                true
            }
            None => true,
        }
    }

    fn house(&mut self, uid: Str, home: Home) {
        self.nodes.add_pod(&home.node, &home.placed);
        let on_node = self.by_node.entry(home.node.clone()).or_default();
        on_node.insert(uid.clone());
        self.placed.insert(uid, home);
    }

    fn leave_node(&mut self, uid: &Str, node: &Str, placed: &Placed) {
        self.nodes.remove_pod(node, placed);
        if let Some(on_node) = self.by_node.get_mut(node) {
            on_node.remove(uid);
            if on_node.is_empty() {
                self.by_node.remove(node);
            }
        }
    }

    fn pod_assigned(&mut self, uid: Str, pod: &Doc, node: Str, now: Instant) {
        self.queue.remove(&uid);
        self.nominations.remove(&uid);
        let known = self.placed.get(&uid);
        // Most changes of a pod on a node are of its status.
        let known = known.filter(|home| home.pod.at("/spec") == pod.at("/spec"));
        let view = match known {
            Some(home) => home.placed.view.clone(),
            None => self.specs.view(pod),
        };
        let placed = Placed::of(pod, view);
        let event = match self.placed.get_mut(&uid) {
            None => Some(ClusterEvent::PodAssigned(pod.clone())),
            Some(home) => {
                let was_assumed = std::mem::take(&mut home.is_assumed);
                self.assumed -= usize::from(was_assumed);
                let old = std::mem::replace(&mut home.pod, pod.clone());
                if home.node == node && home.placed.is_like(&placed) {
                    if was_assumed {
                        let event = ClusterEvent::PodAssigned(pod.clone());
                        self.queue.wake(&event, now);
                    }
                    return;
                }
                let (from, what) = (home.node.clone(), home.placed.clone());
                self.leave_node(&uid, &from, &what);
                let new = pod.clone();
                Some(ClusterEvent::AssignedPodChanged { old, new })
            }
        };
        let home = Home {
            node,
            pod: pod.clone(),
            placed,
            is_assumed: false,
            binding: Binding::Written,
        };
        self.house(uid, home);
        if let Some(event) = event {
            self.queue.wake(&event, now);
        }
    }

    /// A pod is gone, or has ended.
    pub(super) fn pod_gone(&mut self, uid: &Str, now: Instant) {
        self.queue.remove(uid);
        let nominated = self
            .nominations
            .remove(uid)
            .map(|nomination| nomination.pod);
        if let Some(pod) = self.unplace(uid).or(nominated) {
            self.queue.wake(&ClusterEvent::AssignedPodDeleted(pod), now);
        }
    }

    fn unplace(&mut self, uid: &Str) -> Option<Doc> {
        let home = self.placed.remove(uid)?;
        self.assumed -= usize::from(home.is_assumed);
        self.leave_node(uid, &home.node, &home.placed);
        Some(home.pod)
    }

    /// A node was added or has changed.
    pub(super) fn node_seen(&mut self, old: Option<&Doc>, node: &Doc, now: Instant) {
        self.nodes.set(node);
        let event = match old {
            None => ClusterEvent::NodeAdded(node.clone()),
            Some(old) if is_like(old, node) => return,
            Some(old) => ClusterEvent::NodeChanged {
                old: old.clone(),
                new: node.clone(),
            },
        };
        self.queue.wake(&event, now);
    }

    /// A node is gone.
    pub(super) fn node_gone(&mut self, node: &Doc, now: Instant) {
        self.nodes.unset(node.meta().name());
        let event = ClusterEvent::NodeDeleted(node.clone());
        self.queue.wake(&event, now);
    }

    /// Takes a pod to be on a node from now on.
    pub(super) fn assume(&mut self, uid: &Str, pod: &Doc, view: &Arc<SpecView>, node: &Str) {
        // Another assignment was seen meanwhile, or the pod is gone.
        if self.placed.contains_key(uid) || !self.queue.contains(uid) {
            return;
        }
        self.assumed += 1;
        self.nominations.remove(uid);
        let home = Home {
            node: node.clone(),
            pod: pod.clone(),
            placed: Placed::of(pod, view.clone()),
            is_assumed: true,
            binding: Binding::Prepared,
        };
        self.house(uid.clone(), home);
    }

    /// A pod is not on the node after all on which it was taken to be.
    pub(super) fn forget(&mut self, uid: &Str, now: Instant) {
        let is_assumed = self.placed.get(uid).is_some_and(|home| home.is_assumed);
        if is_assumed && let Some(pod) = self.unplace(uid) {
            self.queue.wake(&ClusterEvent::AssignedPodDeleted(pod), now);
        }
    }

    /// How many nodes there are.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// How many pods are on nodes, and how many of them were not seen there yet.
    pub(super) fn pods(&self) -> (usize, usize) {
        (self.placed.len(), self.assumed)
    }

    /// The Node object in a slot.
    pub(super) fn node(&self, slot: Slot) -> Option<&Doc> {
        self.nodes.get(slot).map(|(_, node)| node)
    }

    /// The nodes that take a pod, with their scores; or why none does.
    pub(super) fn candidates(
        &mut self,
        uid: &Str,
        pod: &Doc,
        view: &Arc<SpecView>,
        namespaces: &dyn Namespaces,
    ) -> Result<Candidates, Diagnosis> {
        let placed = Placed::of(pod, view.clone());
        let kept = self.kept_for_others(uid, &placed, namespaces);
        let is_kept = |slot: Slot| kept.iter().any(|(other, _)| *other == slot);
        let evaluations = self.evaluations.of(view, &self.nodes);
        let found = evaluations.iter().enumerate();
        let fitting: Vec<(Slot, &Fit)> = found
            .filter_map(|(slot, found)| match found {
                Evaluation::Fits(fit) if !is_kept(slot) => Some((slot, fit)),
                Evaluation::Absent | Evaluation::Refused(_) | Evaluation::Fits(_) => None,
            })
            .collect();
        let around = Surroundings::look(&placed, &self.nodes, namespaces);
        let mut candidates = match around {
            None => scored(&fitting, None),
            Some(around) => narrow(&self.nodes, &fitting, &around),
        };
        let fits_alone = |slot: Slot| matches!(evaluations.get(slot), Some(Evaluation::Fits(_)));
        let kept = kept.into_iter().filter(|(slot, _)| fits_alone(*slot));
        candidates.around.extend(kept.map(|(_, refused)| refused));
        if !candidates.all.is_empty() {
            return Ok(candidates);
        }
        let mut diagnosis = diagnose(self.nodes.len(), evaluations);
        for refused in &candidates.around {
            diagnosis.refused(refused);
        }
        Err(diagnosis)
    }

    /// What the nodes say that do not take a pod, before plug-ins are asked.
    pub(super) fn diagnosis(&mut self, view: &SpecView) -> Diagnosis {
        let evaluations = self.evaluations.of(view, &self.nodes);
        diagnose(self.nodes.len(), evaluations)
    }
}

/// Those of the nodes that also suit the pods around.
fn narrow(nodes: &Nodes, fitting: &[(Slot, &Fit)], around: &Surroundings<'_>) -> Candidates {
    let (mut kept, mut suitable, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    for (slot, fit) in fitting {
        let Some((_, node)) = nodes.get(*slot) else {
            continue;
        };
        match around.refuse(node) {
            Some(refused) => refusals.push(refused),
            None => {
                kept.push((*slot, *fit));
                suitable.push(node);
            }
        }
    }
    let extra = around.scores(&suitable);
    Candidates {
        around: refusals,
        ..scored(&kept, Some(&extra))
    }
}

fn scored(fitting: &[(Slot, &Fit)], extra: Option<&[i64]>) -> Candidates {
    let scale = Scale::of(fitting.iter().map(|(_, fit)| *fit));
    let candidates = fitting
        .iter()
        .enumerate()
        .map(|(at, (slot, fit))| Candidate {
            slot: *slot,
            score: scale.score(fit) + extra.map_or(0, |extra| extra[at]),
        });
    Candidates {
        all: candidates.collect(),
        ..Candidates::default()
    }
}

fn diagnose(nodes: usize, evaluations: &[Evaluation]) -> Diagnosis {
    let mut diagnosis = Diagnosis::of_nodes(nodes);
    for evaluation in evaluations {
        if let Evaluation::Refused(refused) = evaluation {
            diagnosis.refused(refused);
        }
    }
    diagnosis
}

/// The UID of a pod.
pub(super) fn uid_of(pod: &Doc) -> Option<Str> {
    pod.meta().field("uid").and_then(Doc::shared_str)
}

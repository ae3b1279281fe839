//! One attempt to place one pod.

use std::{cmp::Reverse, sync::Arc};

use tokio::time::Instant;
use windlass_core::{Doc, Str};

use super::{
    bind::Assignment,
    evaluate::SCORE_MAX,
    nodes::Slot,
    plugin::{NodeView, PodCycle, Refusal},
    preemption::Nominating,
    queue::Popped,
    reasons::{Diagnosis, Filter, Refused},
    run::{Scheduler, Writes},
    state::{Candidate, Candidates},
};

/// Up to how many nodes all of them are asked. In larger clusters plug-ins are asked about the
/// best nodes first, and not about all.
const NODES_ALL_ASKED: usize = 100;

/// What is left of a cluster without nodes.
const NO_NODES: &str = "no nodes available to schedule pods";

/// A plug-in that has something to say about a pod, by its place.
pub(super) type Cycles = Vec<(usize, Box<dyn PodCycle>)>;

/// The nodes that take a pod if the plug-ins agree.
struct Offers {
    /// With their scores, the best first.
    views: Vec<(i64, NodeView)>,
    /// What keeps the pod off other nodes.
    around: Vec<Refused>,
}

/// Why an attempt failed.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// No node takes the pod.
    Unfit(Box<Diagnosis>),
    /// There are no nodes.
    NoNodes,
    /// Something went wrong.
    Broken(String),
}

impl AttemptError {
    fn plugin(plugin: &str, step: &str, reason: &str) -> Self {
        Self::Broken(format!("running {plugin:?} {step} plugin: {reason}"))
    }

    /// The message for people.
    pub(super) fn message(&self) -> String {
        match self {
            Self::Unfit(diagnosis) => diagnosis.message(),
            Self::NoNodes => NO_NODES.to_owned(),
            Self::Broken(message) => message.clone(),
        }
    }
}

impl Scheduler {
    /// Tries to place a pod. The binding, or the report of the failure, happens meanwhile.
    pub(super) async fn attempt(self: &Arc<Self>, popped: Popped, writes: &mut Writes) {
        let began = Instant::now();
        if popped.pod.meta().is_deleting() {
            return self.skip_deleting(&popped);
        }
        let mut cycles = Cycles::new();
        let chosen = self.choose(&popped, &mut cycles);
        self.metrics.decided(began.elapsed());
        let node = match chosen {
            Ok(node) => node,
            Err(mut error) => {
                let nominating = match &mut error {
                    AttemptError::Unfit(diagnosis) => {
                        self.make_room(&popped, &mut cycles, diagnosis, writes)
                            .await
                    }
                    AttemptError::NoNodes | AttemptError::Broken(_) => Nominating::Clear,
                };
                return self.fail(&popped, &error, &nominating, began, writes);
            }
        };
        let name = Str::new(node.name());
        self.state
            .lock()
            .assume(&popped.uid, &popped.pod, &popped.view, &name);
        let assignment = Assignment {
            popped,
            node: name,
            cycles,
            began,
        };
        match self.reserve(assignment, &node).await {
            Err((popped, error)) => {
                self.fail(&popped, &error, &Nominating::Clear, began, writes);
            }
            Ok(assignment) => {
                let scheduler = self.clone();
                writes.spawn(async move { scheduler.bind(assignment).await });
            }
        }
    }

    /// The best node for a pod.
    fn choose(&self, popped: &Popped, cycles: &mut Cycles) -> Result<NodeView, AttemptError> {
        let nodes = self.state.lock().nodes();
        if nodes == 0 {
            return Err(AttemptError::NoNodes);
        }
        if popped.view.demand.is_conflicting() {
            let mut diagnosis = Diagnosis::of_nodes(nodes);
            diagnosis.refused_at_once(Filter::NodeAffinity, "pod affinity terms conflict");
            return Err(AttemptError::Unfit(Box::new(diagnosis)));
        }
        self.pre_filter(popped, nodes, cycles)?;
        let mut state = self.state.lock();
        let found = state.candidates(&popped.uid, &popped.pod, &popped.view, &self.namespaces);
        let found = found.map_err(|diagnosis| AttemptError::Unfit(Box::new(diagnosis)))?;
        let nominated = state.nominated_slot(&popped.uid, &popped.pod);
        let found = with_nominated_first(found, nominated.map(|(slot, _)| slot));
        if cycles.is_empty() {
            let nominated = found.nominated();
            let best = nominated.or_else(|| self.pick(&found.all));
            let node = best.and_then(|best| state.node(best.slot)).cloned();
            return node
                .map(|node| NodeView { node })
                .ok_or(AttemptError::NoNodes);
        }
        if let Some(nominated) = found.nominated()
            && let Some(node) = state.node(nominated.slot).cloned()
        {
            let view = NodeView { node };
            if self.filter(cycles, &view)?.is_none() {
                return Ok(view);
            }
        }
        let around = found.around;
        let ranked = self.ranked(found.all);
        let view = |one: &Candidate| {
            let node = state.node(one.slot)?.clone();
            Some((one.score, NodeView { node }))
        };
        let views = ranked.iter().filter_map(view).collect();
        drop(state);
        let offers = Offers { views, around };
        self.ask_plugins(popped, nodes, offers, cycles)
    }

    /// Begins the attempt for all plug-ins that the pod concerns.
    fn pre_filter(
        &self,
        popped: &Popped,
        nodes: usize,
        cycles: &mut Cycles,
    ) -> Result<(), AttemptError> {
        for (at, plugin) in self.plugins.iter().enumerate() {
            let (reason, is_unresolvable) = match plugin.pre_filter(&popped.pod) {
                Ok(cycle) => {
                    cycles.extend(cycle.map(|cycle| (at, cycle)));
                    continue;
                }
                Err(Refusal::Error(reason)) => {
                    return Err(AttemptError::plugin(plugin.name(), "prefilter", &reason));
                }
                Err(Refusal::Unresolvable(reason)) => (reason, true),
                Err(Refusal::Unschedulable(reason)) => (reason, false),
            };
            let mut diagnosis = Diagnosis::of_nodes(nodes);
            diagnosis.refused_everywhere(at, &reason, is_unresolvable);
            return Err(AttemptError::Unfit(Box::new(diagnosis)));
        }
        Ok(())
    }

    /// One of the best candidates, each equally likely.
    fn pick<'a>(&self, candidates: &'a [Candidate]) -> Option<&'a Candidate> {
        let best = candidates.iter().map(|one| one.score).max()?;
        let mut ties = candidates.iter().filter(|one| one.score == best);
        let count = ties.clone().count();
        let at = match count {
            1 => 0,
            count => self.env.random_below(count as u64),
        };
        ties.nth(usize::try_from(at).unwrap_or(0))
    }

    /// The candidates from the best to the worst, equal ones in an order that changes.
    fn ranked(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        let start = self.env.random_below(candidates.len() as u64);
        candidates.rotate_left(usize::try_from(start).unwrap_or(0));
        candidates.sort_by_key(|one| Reverse(one.score));
        candidates
    }

    /// Asks the plug-ins about nodes that would take the pod otherwise, from the best to the worst.
    fn ask_plugins(
        &self,
        popped: &Popped,
        nodes: usize,
        offers: Offers,
        cycles: &mut Cycles,
    ) -> Result<NodeView, AttemptError> {
        let has_scores = cycles.iter().any(|(_, cycle)| cycle.has_scores());
        let wanted = match (nodes <= NODES_ALL_ASKED, has_scores) {
            (true, _) => usize::MAX,
            (false, true) => nodes_to_find(nodes),
            (false, false) => 1,
        };
        let (mut fitting, mut refusals, mut asked) = (Vec::new(), Vec::new(), 0);
        for (score, view) in offers.views {
            asked += 1;
            match self.filter(cycles, &view)? {
                None => fitting.push((score, view)),
                Some(refusal) => refusals.push((Str::new(view.name()), refusal)),
            }
            if fitting.len() >= wanted {
                break;
            }
        }
        self.metrics.asked_plugins(asked);
        if !fitting.is_empty() {
            return Ok(self.best_for_plugins(fitting, cycles));
        }
        let mut diagnosis = self.state.lock().diagnosis(&popped.view);
        for refused in &offers.around {
            diagnosis.refused(refused);
        }
        for (node, (at, reason, is_unresolvable)) in refusals {
            diagnosis.refused_by_plugin(&node, at, &reason, is_unresolvable);
        }
        Err(AttemptError::Unfit(Box::new(diagnosis)))
    }

    /// Why a node does not fit, and whether it would not even without other pods.
    pub(super) fn filter(
        &self,
        cycles: &mut Cycles,
        view: &NodeView,
    ) -> Result<Option<(usize, String, bool)>, AttemptError> {
        for (at, cycle) in cycles {
            match cycle.filter(view) {
                Ok(()) => {}
                Err(Refusal::Unresolvable(reason)) => return Ok(Some((*at, reason, true))),
                Err(Refusal::Unschedulable(reason)) => return Ok(Some((*at, reason, false))),
                Err(Refusal::Error(reason)) => {
                    let name = self.plugins[*at].name();
                    return Err(AttemptError::plugin(name, "filter", &reason));
                }
            }
        }
        Ok(None)
    }

    /// The best of the nodes that the plug-ins let pass.
    fn best_for_plugins(&self, fitting: Vec<(i64, NodeView)>, cycles: &mut Cycles) -> NodeView {
        let mut totals: Vec<i64> = fitting.iter().map(|(score, _)| *score).collect();
        for (at, cycle) in cycles {
            if !cycle.has_scores() || fitting.len() == 1 {
                continue;
            }
            let raw: Vec<i64> = fitting.iter().map(|(_, view)| cycle.score(view)).collect();
            let max = raw.iter().copied().max().unwrap_or(0);
            let weight = self.plugins[*at].weight();
            for (total, raw) in totals.iter_mut().zip(raw) {
                *total += if max <= 0 {
                    0
                } else {
                    weight * (raw * SCORE_MAX / max)
                };
            }
        }
        let best = totals.iter().copied().max();
        let at = totals.iter().position(|total| Some(*total) == best);
        let mut fitting = fitting;
        fitting.swap_remove(at.unwrap_or(0)).1
    }

    /// Lets the plug-ins give up what blocks the pod, and lets pods of lower priority leave.
    async fn make_room(
        self: &Arc<Self>,
        popped: &Popped,
        cycles: &mut Cycles,
        diagnosis: &mut Diagnosis,
        writes: &mut Writes,
    ) -> Nominating {
        for (at, plugin) in self.plugins.iter().enumerate() {
            let cycle = cycles.iter_mut().find(|(of, _)| *of == at);
            let message = match cycle {
                Some((_, cycle)) => cycle.post_filter().await,
                None => plugin.idle_message().to_owned(),
            };
            diagnosis.tried(message);
        }
        self.preempt(popped, cycles, diagnosis, writes)
    }

    /// Lets the plug-ins take what the pod needs.
    async fn reserve(
        &self,
        mut assignment: Assignment,
        node: &NodeView,
    ) -> Result<Assignment, (Popped, AttemptError)> {
        for reserved in 0..assignment.cycles.len() {
            let (at, cycle) = &mut assignment.cycles[reserved];
            let Err(refusal) = cycle.reserve(node) else {
                continue;
            };
            let plugin = self.plugins[*at].name();
            let error = AttemptError::Broken(format!(
                "running Reserve plugin {plugin:?}: {}",
                refusal.reason()
            ));
            assignment.cycles.truncate(reserved);
            let popped = self.undo(assignment).await;
            return Err((popped, error));
        }
        Ok(assignment)
    }

    /// A pod that is going needs no node.
    fn skip_deleting(&self, popped: &Popped) {
        self.state.lock().queue.done(&popped.uid);
        self.warn(&popped.pod, &skipped(&popped.pod));
    }
}

/// The candidates, with the nominated node of the pod first if it is one of them.
fn with_nominated_first(mut found: Candidates, nominated: Option<Slot>) -> Candidates {
    let at = found.all.iter().position(|one| Some(one.slot) == nominated);
    if let Some(at) = at {
        found.all.swap(0, at);
        found.is_nominated_first = true;
    }
    found
}

fn skipped(pod: &Doc) -> String {
    format!("skip schedule deleting pod: {}", pod.meta().key())
}

/// After how many nodes that fit no more are asked, as upstream has it: half of a small cluster, a
/// twentieth of a very large one, a hundred at least.
fn nodes_to_find(nodes: usize) -> usize {
    let percent = 50_usize.saturating_sub(nodes / 125).max(5);
    (nodes * percent / 100).max(NODES_ALL_ASKED)
}

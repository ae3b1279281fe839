//! Preemption: pods of lower priority make room for a pod that no node takes.
//!
//! Follows upstream's `DefaultPreemption`: a dry run on each node that could take the pod if others
//! left, the choice of the least harm, and then, while other pods are scheduled, the eviction. The
//! pod itself keeps the node as its nominated node and is tried again when the victims are gone.

mod budgets;
mod evict;

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use windlass_core::{Doc, Str, Time, condition};

pub(super) use budgets::Budgets;

use super::{
    cycle::Cycles,
    evaluate::Evaluation,
    nodes::{Placed, Slot, Trial},
    plugin::NodeView,
    pod_terms::Namespaces,
    queue::Popped,
    reasons::Diagnosis,
    run::{Scheduler, Writes},
    spec::SpecView,
    state::State,
    surroundings::Surroundings,
};

/// The reason of the condition `DisruptionTarget` of a victim.
const PREEMPTED: &str = "PreemptionByScheduler";
/// Candidates after which the search ends: so many of a hundred nodes, and so many at least.
const CANDIDATES_PERCENT: usize = 10;
const CANDIDATES_MIN: usize = 100;

const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

/// The change of a pod's nominated node that an attempt asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nominating {
    /// It stays as it is.
    Keep,
    /// The pod has none any more.
    Clear,
    /// This one.
    Node(Str),
}

/// A pod that would have to leave.
#[derive(Clone, Debug)]
pub(super) struct Victim {
    pub(super) uid: Str,
    pub(super) pod: Doc,
    placed: Placed,
    started: Time,
}

impl Victim {
    fn priority(&self) -> i32 {
        self.placed.view.priority
    }

    /// The most important first: by priority, then by age.
    fn rank(&self) -> (Reverse<i32>, Time) {
        (Reverse(self.priority()), self.started)
    }
}

/// A node, and the pods that would have to leave it.
#[derive(Clone, Debug)]
struct PreemptionCandidate {
    node: Str,
    /// The most important first, one at least.
    victims: Vec<Victim>,
    /// How many of them leave against a disruption budget.
    violations: usize,
}

impl PreemptionCandidate {
    /// The harm that is done. Compared part by part, less is better: violated budgets, the priority
    /// of the first victim, the sum of priorities, the number of victims, and the time for which
    /// the oldest of the most important ones has run.
    fn harm(&self) -> (usize, i32, i64, usize, Reverse<Time>) {
        let top = self.victims.first().map_or(i32::MIN, Victim::priority);
        // Moved above zero, so that two pods of negative priority are more than one.
        let sum = self.victims.iter().fold(0_i64, |sum, victim| {
            sum + i64::from(victim.priority()) + (1_i64 << 31)
        });
        let tops = self.victims.iter().filter(|one| one.priority() == top);
        let oldest = tops.map(|victim| victim.started).min();
        let oldest = oldest.unwrap_or_else(|| Time::from_unix(0));
        let count = self.victims.len();
        (self.violations, top, sum, count, Reverse(oldest))
    }
}

/// The question of one dry run.
struct Search<'a> {
    uid: &'a Str,
    pod: &'a Doc,
    view: &'a Arc<SpecView>,
    namespaces: &'a dyn Namespaces,
    budgets: &'a Budgets,
    now: Time,
    /// A number for the node with which the search begins.
    start: u64,
    /// The nodes that a plug-in has refused in this attempt: the reason, and true if victims
    /// cannot help.
    refused_by_plugin: BTreeMap<Str, (Str, bool)>,
}

/// The answer of a dry run.
#[derive(Debug, Default)]
struct DryRun {
    candidates: Vec<PreemptionCandidate>,
    /// The reasons why preemption does not help on nodes, counted.
    reasons: BTreeMap<Str, usize>,
    /// Nodes that were worth a dry run.
    potential: usize,
}

impl DryRun {
    fn is_enough(&self, limit: usize) -> bool {
        let has_harmless = self.candidates.iter().any(|one| one.violations == 0);
        has_harmless && self.candidates.len() >= limit
    }

    /// The least harm; the first of equal ones.
    fn best(self) -> Option<PreemptionCandidate> {
        let mut best: Option<PreemptionCandidate> = None;
        for candidate in self.candidates {
            if best
                .as_ref()
                .is_none_or(|best| candidate.harm() < best.harm())
            {
                best = Some(candidate);
            }
        }
        best
    }
}

impl Scheduler {
    /// Looks for pods that could leave in favour of one that no node takes, and begins to evict
    /// them.
    pub(super) fn preempt(
        self: &Arc<Self>,
        popped: &Popped,
        cycles: &mut Cycles,
        diagnosis: &mut Diagnosis,
        writes: &mut Writes,
    ) -> Nominating {
        self.metrics.preemption_attempted();
        if popped.view.never_preempts {
            diagnosis.tried("preemption: not eligible due to preemptionPolicy=Never.".to_owned());
            return Nominating::Keep;
        }
        let Some(pod) = self.current(popped) else {
            return Nominating::Keep;
        };
        let mut state = self.state.lock();
        if state.waits_for_victims(&popped.uid, &pod, &popped.view) {
            let message = "not eligible due to a terminating pod on the nominated node.";
            diagnosis.tried(format!("preemption: {message}"));
            return Nominating::Keep;
        }
        if diagnosis.is_general() {
            diagnosis.without_preemption();
            return Nominating::Clear;
        }
        let budgets = Budgets::of(&self.budgets);
        let search = Search {
            uid: &popped.uid,
            pod: &pod,
            view: &popped.view,
            namespaces: &self.namespaces,
            budgets: &budgets,
            now: self.env.now(),
            start: self.env.random_u64(),
            refused_by_plugin: diagnosis.plugin_refusals(),
        };
        let mut ask = |node: &Doc| self.refused_by_plugins(cycles, node);
        let found = state.dry_run(&search, &mut ask);
        if found.candidates.is_empty() {
            diagnosis.preemption_failed(found.potential, found.reasons);
            return Nominating::Clear;
        }
        let Some(best) = found.best() else {
            return Nominating::Clear;
        };
        diagnosis.preempted();
        let node = best.node.clone();
        self.begin_eviction(&mut state, popped, best, writes);
        Nominating::Node(node)
    }

    /// The reason for which a plug-in refuses a node, whoever leaves it.
    fn refused_by_plugins(&self, cycles: &mut Cycles, node: &Doc) -> Option<Str> {
        let view = NodeView { node: node.clone() };
        match self.filter(cycles, &view) {
            Ok(None) => None,
            Ok(Some((_, reason, _))) => Some(Str::new(&reason)),
            Err(error) => Some(Str::new(&error.message())),
        }
    }
}

impl State {
    /// Returns true if pods already leave the nominated node of a pod because of a preemption.
    fn waits_for_victims(&mut self, uid: &Str, pod: &Doc, view: &SpecView) -> bool {
        let Some((slot, name)) = self.nominated_slot(uid, pod) else {
            return false;
        };
        let evaluations = self.evaluations.of(view, &self.nodes);
        // Nothing comes of waiting for a node that does not take the pod anyway.
        if let Some(Evaluation::Refused(refused)) = evaluations.get(slot)
            && refused.is_unresolvable
        {
            return false;
        }
        let mut there = self.homes_on(&name);
        there.any(|(_, home)| {
            home.placed.view.priority < view.priority && is_leaving_by_preemption(&home.pod)
        })
    }

    fn dry_run(&mut self, search: &Search<'_>, ask: &mut dyn FnMut(&Doc) -> Option<Str>) -> DryRun {
        let mut potential = self.potential_nodes(search);
        let mut found = DryRun {
            potential: potential.len(),
            ..DryRun::default()
        };
        if potential.is_empty() {
            return found;
        }
        let count = potential.len() as u64;
        let start = usize::try_from(search.start % count).unwrap_or(0);
        potential.rotate_left(start);
        let limit = (potential.len() * CANDIDATES_PERCENT / 100).max(CANDIDATES_MIN);
        let limit = limit.min(potential.len());
        for slot in potential {
            match self.victims_on(slot, search, ask) {
                Ok(candidate) => found.candidates.push(candidate),
                Err(reasons) => {
                    for reason in reasons {
                        *found.reasons.entry(reason).or_default() += 1;
                    }
                }
            }
            if found.is_enough(limit) {
                break;
            }
        }
        found
    }

    /// The nodes that could take the pod if other pods left.
    fn potential_nodes(&mut self, search: &Search<'_>) -> Vec<Slot> {
        let placed = Placed::of(search.pod, search.view.clone());
        let evaluations = self.evaluations.of(search.view, &self.nodes);
        let around = Surroundings::look(&placed, &self.nodes, search.namespaces);
        let is_potential = |slot: Slot, found: &Evaluation| match found {
            Evaluation::Absent => false,
            Evaluation::Refused(refused) => !refused.is_unresolvable,
            Evaluation::Fits(_) => {
                let Some((info, node)) = self.nodes.get(slot) else {
                    return false;
                };
                let around = around.as_ref().and_then(|around| around.refuse(node));
                let by_plugin = search.refused_by_plugin.get(&info.name);
                around.is_none_or(|refused| !refused.is_unresolvable)
                    && by_plugin.is_none_or(|(_, is_unresolvable)| !is_unresolvable)
            }
        };
        let all = evaluations.iter().enumerate();
        all.filter(|(slot, found)| is_potential(*slot, found))
            .map(|(slot, _)| slot)
            .collect()
    }

    /// The pods that must leave a node so that it takes the pod; or why that does not help.
    fn victims_on(
        &mut self,
        slot: Slot,
        search: &Search<'_>,
        ask: &mut dyn FnMut(&Doc) -> Option<Str>,
    ) -> Result<PreemptionCandidate, Vec<Str>> {
        let Some((info, node)) = self.nodes.get(slot) else {
            return Err(vec![Str::new(NO_VICTIMS)]);
        };
        let (name, node) = (info.name.clone(), node.clone());
        let priority = search.view.priority;
        let mut potential = self.victims_below(&name, priority, search.now);
        if potential.is_empty() {
            return Err(vec![Str::new(NO_VICTIMS)]);
        }
        if let Some((reason, _)) = search.refused_by_plugin.get(&name) {
            return Err(vec![reason.clone()]);
        }
        let nominated = self.nominations.ahead_of(&name, search.uid, priority);
        let placed = Placed::of(search.pod, search.view.clone());
        let mut trial = self.nodes.trial(slot);
        for victim in &potential {
            trial.remove(&victim.placed);
        }
        let refuse = |trial: &mut Trial<'_>| trial.refuse(&placed, &nominated, search.namespaces);
        if let Some(refused) = refuse(&mut trial) {
            return Err(refused.reasons);
        }
        if let Some(reason) = ask(&node) {
            return Err(vec![reason]);
        }
        potential.sort_by_key(Victim::rank);
        let (violating, others) = search.budgets.split(potential);
        let (mut victims, mut violations) = (Vec::new(), 0);
        let all = violating.into_iter().map(|victim| (true, victim));
        // As many as possible stay, the most important ones first, those with a budget before all.
        for (is_violating, victim) in all.chain(others.into_iter().map(|victim| (false, victim))) {
            trial.add(&victim.placed);
            if refuse(&mut trial).is_some() {
                trial.remove(&victim.placed);
                violations += usize::from(is_violating);
                victims.push(victim);
            }
        }
        victims.sort_by_key(Victim::rank);
        Ok(PreemptionCandidate {
            node: name,
            victims,
            violations,
        })
    }

    /// The pods of lower priority on a node.
    fn victims_below(&self, node: &Str, priority: i32, now: Time) -> Vec<Victim> {
        let there = self.homes_on(node);
        let below = there.filter(|(_, home)| home.placed.view.priority < priority);
        let victims = below.map(|(uid, home)| Victim {
            uid: uid.clone(),
            pod: home.pod.clone(),
            placed: home.placed.clone(),
            started: home.pod.str_at("/status/startTime").parse().unwrap_or(now),
        });
        victims.collect()
    }
}

/// Returns true if a pod is being deleted because a scheduler preempts it.
fn is_leaving_by_preemption(pod: &Doc) -> bool {
    pod.meta().is_deleting()
        && condition(pod, "DisruptionTarget")
            .is_some_and(|found| found.is_true() && found.reason == PREEMPTED)
}

//! Whether a pod fits on a node, and how well, by what the two say themselves.

use hashbrown::HashMap;
use windlass_core::{Doc, Str};

use super::{
    node_terms::NodeWish,
    nodes::{NodeInfo, Nodes, Slot, together},
    reasons::{Filter, Refused},
    resources::Resources,
    spec::SpecView,
    taints::Toleration,
};

/// The best score.
pub(super) const SCORE_MAX: i64 = 100;

/// How much the scores count.
const TAINTS_WEIGHT: i64 = 3;
const AFFINITY_WEIGHT: i64 = 2;

/// Evaluations that are kept, of all classes together. Beyond that all are forgotten and made
/// again.
const EVALUATIONS_LIMIT: usize = 1 << 20;

/// What a pod of one class would find on a node.
#[derive(Clone, Debug)]
pub(super) enum Evaluation {
    /// There is no node here.
    Absent,
    Refused(Refused),
    Fits(Fit),
}

/// The scores of a node before they are compared with those of other nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fit {
    /// What counts as it is.
    base: i64,
    /// Taints that would rather keep the pod away.
    taints: i64,
    /// Weights of the wishes that the node fulfils.
    wishes: i64,
}

/// The evaluations of all classes, brought up to date as far as nodes have changed.
#[derive(Debug, Default)]
pub(super) struct Evaluations {
    classes: HashMap<u64, Class, foldhash::fast::RandomState>,
}

#[derive(Debug, Default)]
struct Class {
    /// Changes of the nodes that are in.
    seen: Option<u64>,
    slots: Vec<Evaluation>,
}

impl Evaluations {
    /// What a pod would find on each node.
    pub(super) fn of(&mut self, view: &SpecView, nodes: &Nodes) -> &[Evaluation] {
        let evaluations = (self.classes.len() + 1).saturating_mul(nodes.slots());
        if evaluations > EVALUATIONS_LIMIT && !self.classes.contains_key(&view.class) {
            self.classes.clear();
        }
        let class = self.classes.entry(view.class).or_default();
        class.refresh(view, nodes);
        &class.slots
    }
}

impl Class {
    fn refresh(&mut self, view: &SpecView, nodes: &Nodes) {
        self.slots.resize(nodes.slots(), Evaluation::Absent);
        match self.seen.and_then(|seen| nodes.changes_since(seen)) {
            Some(changes) => {
                for slot in changes {
                    self.slots[slot] = evaluate(view, nodes, slot);
                }
            }
            None => {
                for slot in 0..nodes.slots() {
                    self.slots[slot] = evaluate(view, nodes, slot);
                }
            }
        }
        self.seen = Some(nodes.now());
    }
}

fn evaluate(view: &SpecView, nodes: &Nodes, slot: Slot) -> Evaluation {
    let Some((info, node)) = nodes.get(slot) else {
        return Evaluation::Absent;
    };
    match refuse(view, info, node) {
        Some(refused) => Evaluation::Refused(refused),
        None => Evaluation::Fits(Fit {
            base: least_allocated(view, info) + balanced_allocation(view, info),
            taints: Toleration::count_unwelcome(&view.tolerations, &info.taints),
            wishes: NodeWish::sum(&view.wishes, node),
        }),
    }
}

/// The first reason that keeps a pod off a node.
pub(super) fn refuse(view: &SpecView, info: &NodeInfo, node: &Doc) -> Option<Refused> {
    if view.demand.names_others(node) {
        return Some(Refused::unresolvable(
            Filter::NodeAffinity,
            "node(s) didn't satisfy plugin(s) [NodeAffinity]",
        ));
    }
    if info.is_unschedulable && !view.tolerates_unschedulable {
        return Some(Refused::unresolvable(
            Filter::NodeUnschedulable,
            "node(s) were unschedulable",
        ));
    }
    if !Toleration::admit(&view.tolerations, &info.taints) {
        return Some(Refused::unresolvable(
            Filter::TaintToleration,
            "node(s) had untolerated taint(s)",
        ));
    }
    if !view.demand.matches(node) {
        return Some(Refused::unresolvable(
            Filter::NodeAffinity,
            "node(s) didn't match Pod's node affinity/selector",
        ));
    }
    let is_taken = |port| info.ports.iter().any(|taken| taken.conflicts(port));
    if view.ports.iter().any(is_taken) {
        return Some(Refused::new(
            Filter::NodePorts,
            "node(s) didn't have free ports for the requested pod ports",
        ));
    }
    lacking(view, info)
}

/// What a node lacks for a pod.
fn lacking(view: &SpecView, info: &NodeInfo) -> Option<Refused> {
    let (wants, has, used) = (&view.requests, &info.allocatable, &info.used);
    let mut lacks = Lacks::default();
    if info.pods + 1 > info.pods_limit {
        lacks.reasons.push(Str::new("Too many pods"));
    }
    if !wants.is_zero() {
        lacks.compare("cpu", wants.cpu_milli, has.cpu_milli, used.cpu_milli);
        lacks.compare("memory", wants.memory, has.memory, used.memory);
        lacks.compare(
            "ephemeral-storage",
            wants.storage,
            has.storage,
            used.storage,
        );
        for (name, amount) in &wants.others {
            lacks.compare(name, *amount, has.amount(name), used.amount(name));
        }
    }
    (!lacks.reasons.is_empty()).then(|| Refused {
        filter: Filter::NodeResourcesFit,
        is_unresolvable: lacks.is_unresolvable,
        reasons: lacks.reasons,
    })
}

#[derive(Default)]
struct Lacks {
    reasons: Vec<Str>,
    /// Whether even the empty node has too little.
    is_unresolvable: bool,
}

impl Lacks {
    fn compare(&mut self, name: &str, wants: i64, has: i64, used: i64) {
        if wants > 0 && wants > has.saturating_sub(used) {
            self.reasons.push(Str::new(&format!("Insufficient {name}")));
            self.is_unresolvable |= wants > has;
        }
    }
}

/// Whether the node would take the pod if it were empty.
pub(super) fn fits_empty(view: &SpecView, allocatable: &Resources) -> bool {
    let (wants, has) = (&view.requests, allocatable);
    wants.cpu_milli <= has.cpu_milli
        && wants.memory <= has.memory
        && wants.storage <= has.storage
        && wants
            .others
            .iter()
            .all(|(name, amount)| *amount <= has.amount(name))
}

/// Favours nodes with much left, by the mean over processor and memory.
fn least_allocated(view: &SpecView, info: &NodeInfo) -> i64 {
    let left = |has: i64, wants: i64| {
        if has == 0 || wants > has {
            0
        } else {
            percent(has - wants, has)
        }
    };
    let (cpu, memory) = together(info.scored, view.scored);
    let parts = [
        (info.allocatable.cpu_milli, cpu),
        (info.allocatable.memory, memory),
    ];
    // A node that has none of a resource is judged by the other.
    let known = parts.iter().filter(|(has, _)| *has > 0);
    let (sum, count) = known.fold((0, 0), |(sum, count), (has, wants)| {
        (sum + left(*has, *wants), count + 1)
    });
    if count == 0 { 0 } else { sum / count }
}

/// The hundredths of a whole, rounded down, which do not overflow.
fn percent(part: i64, whole: i64) -> i64 {
    let share = i128::from(part) * i128::from(SCORE_MAX) / i128::from(whole);
    i64::try_from(share).unwrap_or(SCORE_MAX)
}

/// Favours nodes on which the pod makes the use of processor and memory more even.
fn balanced_allocation(view: &SpecView, info: &NodeInfo) -> i64 {
    let (cpu, memory) = (view.requests.cpu_milli, view.requests.memory);
    if cpu == 0 && memory == 0 {
        return 0;
    }
    let (has, used) = (&info.allocatable, &info.used);
    let now = (used.cpu_milli, used.memory);
    let total = (has.cpu_milli, has.memory);
    let (before, after) = (
        evenness(now, total),
        evenness(together(now, (cpu, memory)), total),
    );
    SCORE_MAX / 2 + (SCORE_MAX / 2 + after - before) / 2
}

/// How near the shares of two resources that are in use are to each other.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a score between 0 and 100"
)]
fn evenness(used: (i64, i64), has: (i64, i64)) -> i64 {
    if has.0 == 0 || has.1 == 0 {
        return SCORE_MAX;
    }
    let share = |used: i64, has: i64| (used as f64 / has as f64).min(1.0);
    let apart = (share(used.0, has.0) - share(used.1, has.1)).abs() / 2.0;
    ((1.0 - apart) * SCORE_MAX as f64) as i64
}

/// The scores of nodes that fit, on one scale.
#[derive(Debug, Default)]
pub(super) struct Scale {
    taints_max: i64,
    wishes_max: i64,
}

impl Scale {
    pub(super) fn of<'a>(fits: impl Iterator<Item = &'a Fit>) -> Self {
        fits.fold(Self::default(), |scale, fit| Self {
            taints_max: scale.taints_max.max(fit.taints),
            wishes_max: scale.wishes_max.max(fit.wishes),
        })
    }

    pub(super) fn score(&self, fit: &Fit) -> i64 {
        let share = |of: i64, max: i64| if max == 0 { 0 } else { of * SCORE_MAX / max };
        fit.base
            + TAINTS_WEIGHT * (SCORE_MAX - share(fit.taints, self.taints_max))
            + AFFINITY_WEIGHT * share(fit.wishes, self.wishes_max)
    }
}

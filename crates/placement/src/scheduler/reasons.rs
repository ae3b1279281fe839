//! Why pods are refused, and how that is told.

use std::{collections::BTreeMap, fmt::Write};

use windlass_core::Str;

/// The parts of the scheduler that refuse pods, under upstream's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Filter {
    NodeUnschedulable,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    PodTopologySpread,
    InterPodAffinity,
}

impl Filter {
    pub(super) const ALL: [Self; 7] = [
        Self::NodeUnschedulable,
        Self::TaintToleration,
        Self::NodeAffinity,
        Self::NodePorts,
        Self::NodeResourcesFit,
        Self::PodTopologySpread,
        Self::InterPodAffinity,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NodeUnschedulable => "NodeUnschedulable",
            Self::TaintToleration => "TaintToleration",
            Self::NodeAffinity => "NodeAffinity",
            Self::NodePorts => "NodePorts",
            Self::NodeResourcesFit => "NodeResourcesFit",
            Self::PodTopologySpread => "PodTopologySpread",
            Self::InterPodAffinity => "InterPodAffinity",
        }
    }
}

/// Plug-ins that a scheduler can have.
pub(super) const PLUGINS_LIMIT: usize = 24;

/// A set of filters and plug-ins: those that have refused a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rejectors(u32);

impl Rejectors {
    /// More than the members of any set.
    pub(super) const BITS: usize = 32;

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn add(&mut self, filter: Filter) {
        self.0 |= 1 << filter as u32;
    }

    /// Adds the plug-in that stands at this place.
    pub(super) fn add_plugin(&mut self, at: usize) {
        self.0 |= 1 << (Filter::ALL.len() + at.min(PLUGINS_LIMIT));
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The members, each as a number below [`Self::BITS`].
    pub(super) fn bits(self) -> impl Iterator<Item = usize> {
        (0..Self::BITS).filter(move |bit| self.0 & 1 << bit != 0)
    }

    pub(super) fn filters(self) -> impl Iterator<Item = Filter> {
        let all = Filter::ALL.into_iter();
        all.filter(move |filter| self.0 & 1 << *filter as u32 != 0)
    }

    pub(super) fn has_plugin(self, at: usize) -> bool {
        self.0 & 1 << (Filter::ALL.len() + at.min(PLUGINS_LIMIT)) != 0
    }
}

/// A node that does not take a pod.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) filter: Filter,
    /// Whether it would still not take the pod if other pods left.
    pub(super) is_unresolvable: bool,
    pub(super) reasons: Vec<Str>,
}

impl Refused {
    pub(super) fn new(filter: Filter, reason: &str) -> Self {
        Self {
            filter,
            is_unresolvable: false,
            reasons: vec![Str::new(reason)],
        }
    }

    pub(super) fn unresolvable(filter: Filter, reason: &str) -> Self {
        Self {
            is_unresolvable: true,
            ..Self::new(filter, reason)
        }
    }
}

/// What an attempt found out about the nodes.
#[derive(Debug, Default)]
pub(super) struct Diagnosis {
    pub(super) rejectors: Rejectors,
    nodes: usize,
    reasons: BTreeMap<Str, usize>,
    /// Nodes that could take the pod if other pods left.
    resolvable: usize,
    /// What was said about the pod before any node was looked at.
    general: Option<String>,
    /// What was tried to make room.
    attempts: Vec<String>,
    /// The nodes that a plug-in has refused: the reason, and true if victims cannot help.
    by_plugin: BTreeMap<Str, (Str, bool)>,
}

impl Diagnosis {
    pub(super) fn of_nodes(nodes: usize) -> Self {
        Self {
            nodes,
            ..Self::default()
        }
    }

    pub(super) fn refused(&mut self, refused: &Refused) {
        self.rejectors.add(refused.filter);
        self.resolvable += usize::from(!refused.is_unresolvable);
        for reason in &refused.reasons {
            *self.reasons.entry(reason.clone()).or_default() += 1;
        }
    }

    /// A plug-in has refused a node.
    pub(super) fn refused_by_plugin(
        &mut self,
        node: &str,
        plugin: usize,
        reason: &str,
        is_unresolvable: bool,
    ) {
        let refusal = (Str::new(reason), is_unresolvable);
        self.by_plugin.insert(Str::new(node), refusal);
        self.rejectors.add_plugin(plugin);
        self.resolvable += usize::from(!is_unresolvable);
        *self.reasons.entry(Str::new(reason)).or_default() += 1;
    }

    /// A plug-in has refused the pod on all nodes.
    pub(super) fn refused_everywhere(
        &mut self,
        plugin: usize,
        reason: &str,
        is_unresolvable: bool,
    ) {
        self.rejectors.add_plugin(plugin);
        self.resolvable = if is_unresolvable { 0 } else { self.nodes };
        self.general = Some(reason.to_owned());
    }

    /// A filter has refused the pod before any node was looked at, for good.
    pub(super) fn refused_at_once(&mut self, filter: Filter, reason: &str) {
        self.rejectors.add(filter);
        self.resolvable = 0;
        self.general = Some(reason.to_owned());
    }

    /// A plug-in has tried to make room.
    pub(super) fn tried(&mut self, message: String) {
        if !message.is_empty() {
            self.attempts.push(message);
        }
    }

    /// The nodes that a plug-in has refused.
    pub(super) fn plugin_refusals(&self) -> BTreeMap<Str, (Str, bool)> {
        self.by_plugin.clone()
    }

    /// Returns true if the pod was refused before any node was looked at.
    pub(super) fn is_general(&self) -> bool {
        self.general.is_some()
    }

    /// Preemption makes room: nothing is said of other attempts.
    pub(super) fn preempted(&mut self) {
        self.attempts.clear();
    }

    /// Says why preemption is no help, with the reasons of the nodes that were worth a dry run.
    pub(super) fn preemption_failed(
        &mut self,
        potential: usize,
        mut reasons: BTreeMap<Str, usize>,
    ) {
        let helpless = self.nodes - potential.min(self.nodes);
        if helpless > 0 {
            let reason = Str::new("Preemption is not helpful for scheduling");
            reasons.insert(reason, helpless);
        }
        let message = format!("preemption: {}", histogram(self.nodes, &reasons));
        self.attempts.push(message);
    }

    /// Says why preemption is no help to a pod that was refused before any node was looked at.
    pub(super) fn without_preemption(&mut self) {
        let mut reasons = BTreeMap::new();
        if self.resolvable > 0 {
            let reason = Str::new("No preemption victims found for incoming pod");
            reasons.insert(reason, self.resolvable);
        }
        self.preemption_failed(self.resolvable, reasons);
    }

    /// The whole, for the condition and the event.
    pub(super) fn message(&self) -> String {
        let mut message = match &self.general {
            Some(general) => format!("0/{} nodes are available: {general}.", self.nodes),
            None => histogram(self.nodes, &self.reasons),
        };
        if !self.attempts.is_empty() {
            let _ = write!(message, " {}", self.attempts.join(", "));
        }
        message
    }
}

/// How many nodes have which reason, sorted as text.
fn histogram(nodes: usize, reasons: &BTreeMap<Str, usize>) -> String {
    let mut lines: Vec<String> = reasons
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    lines.sort();
    let mut message = format!("0/{nodes} nodes are available:");
    if !lines.is_empty() {
        let _ = write!(message, " {}.", lines.join(", "));
    }
    message
}

//! Which events could help which waiting pods.

use std::sync::Arc;

use windlass_core::{Doc, Key};

use super::{
    evaluate::fits_empty,
    plugin::{ClusterEvent, Plugin, Reach},
    reasons::{Filter, Rejectors},
    resources::Resources,
    spec::SpecView,
    taints::{Taint, Toleration},
};

/// What keeps a pod from being tried at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// Its own scheduling gates.
    Own,
    /// Other pods are being evicted for it.
    Preemption,
    /// A plug-in.
    Plugin(usize),
}

/// A waiting pod, as far as events are judged by it.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    pub(super) pod: &'a Doc,
    pub(super) view: &'a SpecView,
    pub(super) rejectors: Rejectors,
    pub(super) gate: Option<Gate>,
}

/// Whom an event could interest.
#[derive(Debug, Default)]
pub(super) struct Interest {
    /// The filters and plug-ins.
    pub(super) who: Rejectors,
    /// Pods that depend on these objects.
    pub(super) objects: Vec<Key>,
    /// All pods that were tried.
    pub(super) tried: bool,
    /// All pods that were not.
    pub(super) gated: bool,
}

/// Judges events for waiting pods, with the help of the plug-ins.
#[derive(Clone)]
pub(super) struct Hints {
    plugins: Arc<[Arc<dyn Plugin>]>,
}

impl Hints {
    pub(super) fn new(plugins: Arc<[Arc<dyn Plugin>]>) -> Self {
        Self { plugins }
    }

    /// What keeps a pod from being tried at all.
    pub(super) fn gate(&self, pod: &Doc) -> Option<Gate> {
        if !pod.at("/spec/schedulingGates").items().is_empty() {
            return Some(Gate::Own);
        }
        let mut plugins = self.plugins.iter();
        let at = plugins.position(|plugin| plugin.pre_enqueue(pod).is_err())?;
        Some(Gate::Plugin(at))
    }

    /// Whom an event could interest at all.
    pub(super) fn interested(&self, event: &ClusterEvent) -> Interest {
        let mut interest = Interest::default();
        let filters = Filter::ALL.into_iter();
        for filter in filters.filter(|filter| is_interested(*filter, event)) {
            interest.who.add(filter);
            interest.tried = true;
        }
        for (at, plugin) in self.plugins.iter().enumerate() {
            let reach = plugin.reach(event);
            if reach != Reach::Nobody {
                interest.who.add_plugin(at);
            }
            match reach {
                Reach::Nobody => {}
                Reach::Dependents(object) => interest.objects.push(object),
                Reach::Tried(object) => {
                    interest.tried = true;
                    interest.objects.extend(object);
                }
                Reach::Anybody => (interest.tried, interest.gated) = (true, true),
            }
        }
        interest
    }

    /// The objects that a pod depends on, which waits because of these.
    pub(super) fn dependencies(&self, pod: &Doc, blamed: Rejectors) -> Vec<Key> {
        let plugins = self.plugins.iter().enumerate();
        let blamed = plugins.filter(|(at, _)| blamed.has_plugin(*at));
        blamed
            .flat_map(|(_, plugin)| plugin.depends_on(pod))
            .collect()
    }

    /// Whether an event could help a pod.
    pub(super) fn helps(&self, waiter: &Waiter<'_>, event: &ClusterEvent) -> bool {
        if let ClusterEvent::PodChanged { new, .. } = event
            && new.meta().uid_str() != waiter.pod.meta().uid_str()
        {
            return false;
        }
        match waiter.gate {
            Some(Gate::Own) => matches!(event, ClusterEvent::PodChanged { .. }),
            Some(Gate::Preemption) => false,
            Some(Gate::Plugin(at)) => self.plugin_wakes(at, waiter.pod, event),
            None => {
                let mut filters = waiter.rejectors.filters();
                let is_rejector = |at: &usize| waiter.rejectors.has_plugin(*at);
                filters.any(|filter| wakes(filter, waiter, event))
                    || (0..self.plugins.len())
                        .filter(is_rejector)
                        .any(|at| self.plugin_wakes(at, waiter.pod, event))
            }
        }
    }

    fn plugin_wakes(&self, at: usize, pod: &Doc, event: &ClusterEvent) -> bool {
        let plugin = self.plugins.get(at);
        plugin
            .is_some_and(|plugin| plugin.reach(event) != Reach::Nobody && plugin.wakes(pod, event))
    }
}

impl std::fmt::Debug for Hints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.plugins.iter().map(|plugin| plugin.name());
        f.debug_list().entries(names).finish()
    }
}

fn is_interested(filter: Filter, event: &ClusterEvent) -> bool {
    let is_around = matches!(filter, Filter::PodTopologySpread | Filter::InterPodAffinity);
    match event {
        ClusterEvent::NodeAdded(_)
        | ClusterEvent::NodeChanged { .. }
        | ClusterEvent::PodChanged { .. } => true,
        ClusterEvent::NodeDeleted(_) => filter == Filter::PodTopologySpread,
        ClusterEvent::PodAssigned(_) => is_around,
        ClusterEvent::AssignedPodChanged { .. } => is_around || filter == Filter::NodeResourcesFit,
        ClusterEvent::AssignedPodDeleted(_) => {
            is_around || matches!(filter, Filter::NodeResourcesFit | Filter::NodePorts)
        }
        ClusterEvent::Other { .. } => false,
    }
}

/// Whether an event could help a pod that a filter has refused.
fn wakes(filter: Filter, waiter: &Waiter<'_>, event: &ClusterEvent) -> bool {
    match event {
        ClusterEvent::NodeAdded(node) => suits(filter, waiter.view, node),
        ClusterEvent::NodeChanged { old, new } => {
            is_changed_for(filter, old, new) && suits(filter, waiter.view, new)
        }
        ClusterEvent::PodChanged { old, new } => is_pod_changed_for(filter, old, new),
        ClusterEvent::AssignedPodChanged { old, new } => match filter {
            Filter::NodeResourcesFit => old.at("/spec/containers") != new.at("/spec/containers"),
            _ => is_interested(filter, event) && has_other_labels(old, new),
        },
        ClusterEvent::NodeDeleted(_)
        | ClusterEvent::PodAssigned(_)
        | ClusterEvent::AssignedPodDeleted(_)
        | ClusterEvent::Other { .. } => is_interested(filter, event),
    }
}

fn has_other_labels(old: &Doc, new: &Doc) -> bool {
    old.at("/metadata/labels") != new.at("/metadata/labels")
        || old.meta().is_deleting() != new.meta().is_deleting()
}

/// Whether a filter lets the pod pass to a node, as far as that can be told from the node alone.
fn suits(filter: Filter, view: &SpecView, node: &Doc) -> bool {
    match filter {
        Filter::NodeUnschedulable => {
            node.at("/spec/unschedulable").as_bool() != Some(true) || view.tolerates_unschedulable
        }
        Filter::TaintToleration => Toleration::admit(&view.tolerations, &Taint::all_of(node)),
        Filter::NodeAffinity => view.demand.matches(node),
        Filter::NodeResourcesFit => {
            fits_empty(view, &Resources::of(node.at("/status/allocatable")))
        }
        Filter::NodePorts | Filter::PodTopologySpread | Filter::InterPodAffinity => true,
    }
}

/// Whether a node has changed in what a filter looks at.
fn is_changed_for(filter: Filter, old: &Doc, new: &Doc) -> bool {
    let differs = |pointer: &str| old.at(pointer) != new.at(pointer);
    match filter {
        Filter::NodeUnschedulable => differs("/spec/unschedulable"),
        Filter::TaintToleration => differs("/spec/taints"),
        Filter::NodeAffinity | Filter::InterPodAffinity => differs("/metadata/labels"),
        Filter::PodTopologySpread => differs("/metadata/labels") || differs("/spec/taints"),
        Filter::NodeResourcesFit => differs("/status/allocatable"),
        Filter::NodePorts => false,
    }
}

/// Whether the waiting pod has changed in what a filter looks at.
fn is_pod_changed_for(filter: Filter, old: &Doc, new: &Doc) -> bool {
    let differs = |pointer: &str| old.at(pointer) != new.at(pointer);
    match filter {
        Filter::NodeUnschedulable | Filter::TaintToleration => differs("/spec/tolerations"),
        Filter::NodeAffinity => differs("/spec/nodeSelector") || differs("/spec/affinity"),
        Filter::NodePorts => false,
        Filter::NodeResourcesFit => differs("/spec/containers") || differs("/spec/resources"),
        Filter::PodTopologySpread | Filter::InterPodAffinity => differs("/metadata/labels"),
    }
}

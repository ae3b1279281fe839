//! What the scheduler reads from the spec of a pod, once for all pods that agree in it.

use std::sync::Arc;

use hashbrown::HashMap;
use windlass_core::{Doc, Str};

use super::{
    node_terms::{NodeDemand, NodeWish},
    pod_terms::{PodAffinity, Spread},
    resources::{Resources, requests_of, scored_requests_of},
    taints::Toleration,
};

/// Specs that are remembered. Beyond that all are forgotten and read again.
const SPECS_LIMIT: usize = 16_384;

/// What the scheduler reads from the spec of a pod.
#[derive(Debug)]
pub(super) struct SpecView {
    /// The same for all pods that nodes cannot tell apart; never used twice.
    pub(super) class: u64,
    pub(super) requests: Resources,
    /// Processor and memory for scores.
    pub(super) scored: (i64, i64),
    pub(super) demand: NodeDemand,
    pub(super) wishes: Vec<NodeWish>,
    pub(super) tolerations: Vec<Toleration>,
    /// Whether the pod may come to a node that takes no new pods.
    pub(super) tolerates_unschedulable: bool,
    pub(super) ports: Vec<HostPort>,
    pub(super) affinity: PodAffinity,
    pub(super) spread: Vec<Spread>,
    pub(super) priority: i32,
    pub(super) never_preempts: bool,
}

/// The parts of a spec that matter. Two specs that agree in them have one view, though other parts
/// (such as the generated names of volumes) differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Parts {
    requests: Resources,
    scored: (i64, i64),
    node_selector: Doc,
    affinity: Doc,
    tolerations: Doc,
    spread: Doc,
    ports: Vec<HostPort>,
    priority: i32,
    never_preempts: bool,
}

/// A port of the node that a container takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HostPort {
    address: Str,
    protocol: Str,
    port: i64,
}

/// The address that stands for all addresses.
const ANY_ADDRESS: &str = "0.0.0.0";

impl HostPort {
    fn all_of(spec: &Doc) -> Vec<Self> {
        let is_on_host = spec.at("/hostNetwork").as_bool() == Some(true);
        let side_cars = spec.at("/initContainers").items().iter();
        let side_cars = side_cars.filter(|one| one.str_at("/restartPolicy") == "Always");
        let containers = spec.at("/containers").items().iter().chain(side_cars);
        let ports = containers.flat_map(|container| container.at("/ports").items());
        let mut read: Vec<Self> = ports
            .filter_map(|port| Self::of(port, is_on_host))
            .collect();
        read.dedup();
        read
    }

    fn of(port: &Doc, is_on_host: bool) -> Option<Self> {
        let given = port.at("/hostPort").as_i64().filter(|number| *number > 0);
        let fallback = || port.at("/containerPort").as_i64().filter(|_| is_on_host);
        let or = |text: &str, other: &str| Str::new(if text.is_empty() { other } else { text });
        Some(Self {
            address: or(port.str_at("/hostIP"), ANY_ADDRESS),
            protocol: or(port.str_at("/protocol"), "TCP"),
            port: given.or_else(fallback)?,
        })
    }

    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let is_any = |port: &Self| port.address.as_str() == ANY_ADDRESS;
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == other.address || is_any(self) || is_any(other))
    }
}

impl SpecView {
    fn new(spec: &Doc, parts: &Parts, class: u64) -> Self {
        let tolerations = Toleration::all_of(spec);
        Self {
            class,
            requests: parts.requests.clone(),
            scored: parts.scored,
            demand: NodeDemand::of(spec),
            wishes: NodeWish::all_of(spec),
            tolerates_unschedulable: Toleration::admit_unschedulable(&tolerations),
            tolerations,
            ports: parts.ports.clone(),
            affinity: PodAffinity::of(spec),
            spread: Spread::all_of(spec),
            priority: parts.priority,
            never_preempts: parts.never_preempts,
        }
    }

    /// Whether other pods on other nodes have a say in where this pod may go.
    pub(super) fn looks_around(&self) -> bool {
        !self.affinity.is_empty() || !self.spread.is_empty()
    }
}

impl Parts {
    fn of(spec: &Doc) -> Self {
        let priority = spec.at("/priority").as_i64().unwrap_or(0);
        Self {
            requests: requests_of(spec),
            scored: scored_requests_of(spec),
            node_selector: spec.at("/nodeSelector").clone(),
            affinity: spec.at("/affinity").clone(),
            tolerations: spec.at("/tolerations").clone(),
            spread: spec.at("/topologySpreadConstraints").clone(),
            ports: HostPort::all_of(spec),
            priority: i32::try_from(priority).unwrap_or(if priority < 0 {
                i32::MIN
            } else {
                i32::MAX
            }),
            never_preempts: spec.str_at("/preemptionPolicy") == "Never",
        }
    }
}

/// The views that are in use, by the spec and by what matters in it.
#[derive(Debug, Default)]
pub(super) struct Specs {
    by_spec: HashMap<Doc, Arc<SpecView>, foldhash::fast::RandomState>,
    by_parts: HashMap<Parts, Arc<SpecView>, foldhash::fast::RandomState>,
    classes: u64,
}

impl Specs {
    /// The view of the spec of a pod.
    pub(super) fn view(&mut self, pod: &Doc) -> Arc<SpecView> {
        let spec = pod.at("/spec");
        // Pods of one template differ in their node and in nothing else.
        let unplaced = spec.without("/nodeName").unwrap_or_else(|_| spec.clone());
        if let Some(view) = self.by_spec.get(&unplaced) {
            return view.clone();
        }
        self.make_room();
        let parts = Parts::of(&unplaced);
        let view = match self.by_parts.get(&parts) {
            Some(view) => view.clone(),
            None => {
                self.classes += 1;
                let view = Arc::new(SpecView::new(&unplaced, &parts, self.classes));
                self.by_parts.insert(parts, view.clone());
                view
            }
        };
        self.by_spec.insert(unplaced, view.clone());
        view
    }

    fn make_room(&mut self) {
        if self.by_spec.len() >= SPECS_LIMIT {
            self.by_spec.clear();
        }
        if self.by_parts.len() >= SPECS_LIMIT {
            self.by_parts.clear();
        }
    }
}

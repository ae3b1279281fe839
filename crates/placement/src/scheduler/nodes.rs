//! The nodes with what is taken of them, and which of them have changed since when.

mod trial;

use std::{collections::VecDeque, sync::Arc};

use hashbrown::HashMap;
use windlass_core::{Doc, Str};

use super::{
    resources::{Resources, quantity},
    spec::{HostPort, SpecView},
    taints::Taint,
};

pub(super) use trial::Trial;

/// Changes that are remembered. Who has missed more looks at all nodes again.
const CHANGES_LIMIT: usize = 8192;

/// A node, and the pods on it as far as they matter to other pods.
#[derive(Clone, Debug)]
pub(super) struct NodeInfo {
    pub(super) name: Str,
    /// `None` while pods say that they are here but there is no such node.
    pub(super) node: Option<Doc>,
    pub(super) allocatable: Resources,
    pub(super) pods_limit: i64,
    pub(super) taints: Vec<Taint>,
    pub(super) is_unschedulable: bool,
    pub(super) used: Resources,
    /// Processor and memory for scores.
    pub(super) scored: (i64, i64),
    pub(super) pods: i64,
    pub(super) ports: Vec<HostPort>,
    pub(super) groups: Vec<PodGroup>,
}

/// Pods of one node that other pods cannot tell apart.
#[derive(Clone, Debug)]
pub(super) struct PodGroup {
    pub(super) namespace: Str,
    pub(super) labels: Doc,
    pub(super) view: Arc<SpecView>,
    /// Pods that are on their way out do not count for spreading.
    pub(super) is_deleting: bool,
    pub(super) count: i64,
}

/// What other pods see of a pod.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) namespace: Str,
    /// The labels: an object of strings, or null.
    pub(super) labels: Doc,
    pub(super) view: Arc<SpecView>,
    pub(super) is_deleting: bool,
}

impl Placed {
    pub(super) fn of(pod: &Doc, view: Arc<SpecView>) -> Self {
        let meta = pod.meta();
        Self {
            namespace: meta
                .field("namespace")
                .and_then(Doc::shared_str)
                .unwrap_or_else(|| Str::new("")),
            labels: meta.field("labels").cloned().unwrap_or_default(),
            view,
            is_deleting: meta.is_deleting(),
        }
    }

    /// Whether nothing differs that other pods could see.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.view, &other.view)
            && self.labels == other.labels
            && self.is_deleting == other.is_deleting
    }
}

impl PodGroup {
    fn holds(&self, pod: &Placed) -> bool {
        Arc::ptr_eq(&self.view, &pod.view)
            && self.labels == pod.labels
            && self.namespace == pod.namespace
            && self.is_deleting == pod.is_deleting
    }
}

impl NodeInfo {
    fn new(name: &str) -> Self {
        Self {
            name: Str::new(name),
            node: None,
            allocatable: Resources::default(),
            pods_limit: 0,
            taints: Vec::new(),
            is_unschedulable: false,
            used: Resources::default(),
            scored: (0, 0),
            pods: 0,
            ports: Vec::new(),
            groups: Vec::new(),
        }
    }

    fn set(&mut self, node: Option<&Doc>) {
        let absent = Doc::NULL;
        let read = node.unwrap_or(&absent);
        let allocatable = read.at("/status/allocatable");
        self.allocatable = Resources::of(allocatable);
        self.pods_limit = quantity(allocatable.at("/pods")).value();
        self.taints = Taint::all_of(read);
        self.is_unschedulable = read.at("/spec/unschedulable").as_bool() == Some(true);
        self.node = node.cloned();
    }

    fn add(&mut self, pod: &Placed) {
        let view = &pod.view;
        self.used.add(&view.requests);
        self.scored = together(self.scored, view.scored);
        self.pods += 1;
        self.ports.extend(view.ports.iter().cloned());
        match self.groups.iter_mut().find(|group| group.holds(pod)) {
            Some(group) => group.count += 1,
            None => self.groups.push(PodGroup {
                namespace: pod.namespace.clone(),
                labels: pod.labels.clone(),
                view: view.clone(),
                is_deleting: pod.is_deleting,
                count: 1,
            }),
        }
    }

    fn remove(&mut self, pod: &Placed) {
        let view = &pod.view;
        self.used.subtract(&view.requests);
        self.scored = together(self.scored, (-view.scored.0, -view.scored.1));
        self.pods -= 1;
        for port in &view.ports {
            if let Some(at) = self.ports.iter().position(|taken| taken == port) {
                self.ports.swap_remove(at);
            }
        }
        if let Some(at) = self.groups.iter().position(|group| group.holds(pod)) {
            self.groups[at].count -= 1;
            if self.groups[at].count == 0 {
                self.groups.swap_remove(at);
            }
        }
    }
}

/// Amounts of processor and memory, added.
pub(super) fn together(some: (i64, i64), more: (i64, i64)) -> (i64, i64) {
    (some.0.saturating_add(more.0), some.1.saturating_add(more.1))
}

/// Where a node stands; stays the same as long as the node or a pod on it is known.
pub(super) type Slot = usize;

/// All nodes.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    slots: Vec<Option<NodeInfo>>,
    free: Vec<Slot>,
    by_name: HashMap<Str, Slot, foldhash::fast::RandomState>,
    /// Nodes that exist.
    present: usize,
    /// Changes until now, of which the last ones are remembered.
    changes_total: u64,
    changes: VecDeque<Slot>,
    /// Pods on nodes whose affinity could concern other pods.
    pods_with_affinity: usize,
}

impl Nodes {
    /// How many nodes exist.
    pub(super) fn len(&self) -> usize {
        self.present
    }

    /// How many places there are, most of them taken.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The node in a slot, if it exists.
    pub(super) fn get(&self, slot: Slot) -> Option<(&NodeInfo, &Doc)> {
        let info = self.slots.get(slot)?.as_ref()?;
        Some((info, info.node.as_ref()?))
    }

    /// The slot of a node that exists.
    pub(super) fn slot_named(&self, name: &str) -> Option<Slot> {
        let slot = *self.by_name.get(name)?;
        self.get(slot).map(|_| slot)
    }

    /// The nodes that exist.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Slot, &NodeInfo, &Doc)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, info)| {
            let info = info.as_ref()?;
            Some((slot, info, info.node.as_ref()?))
        })
    }

    /// Whether the affinity of a pod on a node could concern other pods.
    pub(super) fn has_affinity(&self) -> bool {
        self.pods_with_affinity > 0
    }

    /// The point in time that [`changes_since`](Self::changes_since) understands.
    pub(super) fn now(&self) -> u64 {
        self.changes_total
    }

    /// The slots that have changed since, some perhaps twice; `None` if that is too long ago.
    pub(super) fn changes_since(&self, then: u64) -> Option<impl Iterator<Item = Slot>> {
        let missed = usize::try_from(self.changes_total - then).ok()?;
        let skip = self.changes.len().checked_sub(missed)?;
        Some(self.changes.iter().skip(skip).copied())
    }

    fn changed(&mut self, slot: Slot) {
        self.changes_total += 1;
        if self.changes.len() == CHANGES_LIMIT {
            self.changes.pop_front();
        }
        self.changes.push_back(slot);
    }

    /// Sets a node. Only what matters to the scheduler counts as a change.
    pub(super) fn set(&mut self, node: &Doc) {
        let slot = self.slot_of(node.meta().name());
        let Some(info) = self.slots[slot].as_mut() else {
            return;
        };
        match &mut info.node {
            Some(old) if is_like(old, node) => *old = node.clone(),
            _ => {
                self.present += usize::from(info.node.is_none());
                info.set(Some(node));
                self.changed(slot);
            }
        }
    }

    /// Removes a node. Pods that are on it stay known.
    pub(super) fn unset(&mut self, name: &str) {
        let Some(&slot) = self.by_name.get(name) else {
            return;
        };
        if let Some(info) = self.slots[slot].as_mut() {
            self.present -= usize::from(info.node.is_some());
            info.set(None);
        }
        self.changed(slot);
        self.release(slot);
    }

    /// Puts a pod on a node.
    pub(super) fn add_pod(&mut self, node: &str, pod: &Placed) {
        let slot = self.slot_of(node);
        if let Some(info) = self.slots[slot].as_mut() {
            info.add(pod);
            self.pods_with_affinity += usize::from(!pod.view.affinity.is_empty());
            self.changed(slot);
        }
    }

    /// Takes a pod off a node.
    pub(super) fn remove_pod(&mut self, node: &str, pod: &Placed) {
        let Some(&slot) = self.by_name.get(node) else {
            return;
        };
        if let Some(info) = self.slots[slot].as_mut() {
            info.remove(pod);
            self.pods_with_affinity -= usize::from(!pod.view.affinity.is_empty());
            self.changed(slot);
        }
        self.release(slot);
    }

    fn slot_of(&mut self, name: &str) -> Slot {
        if let Some(&slot) = self.by_name.get(name) {
            return slot;
        }
        let info = NodeInfo::new(name);
        let name = info.name.clone();
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = Some(info);
                slot
            }
            None => {
                self.slots.push(Some(info));
                self.slots.len() - 1
            }
        };
        self.by_name.insert(name, slot);
        slot
    }

    /// Forgets a node that does not exist and has no pods.
    fn release(&mut self, slot: Slot) {
        let entry = &mut self.slots[slot];
        if entry
            .as_ref()
            .is_some_and(|info| info.node.is_none() && info.pods == 0)
            && let Some(info) = entry.take()
        {
            self.by_name.remove(&info.name);
            self.free.push(slot);
        }
    }
}

/// Whether two states of a node are the same to the scheduler.
pub(super) fn is_like(old: &Doc, new: &Doc) -> bool {
    let same = |pointer: &str| old.at(pointer) == new.at(pointer);
    same("/spec") && same("/metadata/labels") && same("/status/allocatable")
}

//! The nominated pods: pods that wait, for which a node is being freed.

use hashbrown::HashMap;
use windlass_core::{Doc, Str};

use super::nodes::Placed;

/// The nominated node of every pod that has one: by `status.nominatedNodeName`, or by a preemption
/// that the watch does not show yet. Written under the lock of the scheduler; bounded by the pods
/// that wait.
#[derive(Debug, Default)]
pub(super) struct Nominations {
    by_pod: HashMap<Str, Nomination, foldhash::fast::RandomState>,
    /// The UIDs of the pods by node, none of them empty.
    by_node: HashMap<Str, Vec<Str>, foldhash::fast::RandomState>,
}

/// A pod and the node that is kept for it.
#[derive(Clone, Debug)]
pub(super) struct Nomination {
    pub(super) node: Str,
    pub(super) pod: Doc,
    pub(super) placed: Placed,
}

impl Nominations {
    /// Nominates a pod, in place of its earlier nomination.
    pub(super) fn set(&mut self, uid: &Str, nomination: Nomination) {
        self.remove(uid);
        let on_node = self.by_node.entry(nomination.node.clone()).or_default();
        on_node.push(uid.clone());
        self.by_pod.insert(uid.clone(), nomination);
    }

    /// Takes a nomination back.
    pub(super) fn remove(&mut self, uid: &Str) -> Option<Nomination> {
        let old = self.by_pod.remove(uid)?;
        if let Some(on_node) = self.by_node.get_mut(&old.node) {
            on_node.retain(|other| other != uid);
            if on_node.is_empty() {
                self.by_node.remove(&old.node);
            }
        }
        Some(old)
    }

    /// The nominated node of a pod.
    pub(super) fn node_of(&self, uid: &Str) -> Option<&Str> {
        self.by_pod.get(uid).map(|nomination| &nomination.node)
    }

    /// The nodes that are kept for pods.
    pub(super) fn nodes(&self) -> Vec<Str> {
        let mut nodes: Vec<Str> = self.by_node.keys().cloned().collect();
        nodes.sort_unstable();
        nodes
    }

    /// The pods that are nominated for a node.
    pub(super) fn at(&self, node: &str) -> impl Iterator<Item = (&Str, &Nomination)> {
        let on_node = self.by_node.get(node).into_iter().flatten();
        on_node.filter_map(|uid| Some((uid, self.by_pod.get(uid)?)))
    }

    /// The pods that another pod of this priority must leave room for.
    pub(super) fn ahead_of(&self, node: &str, uid: &Str, priority: i32) -> Vec<Placed> {
        let others = self.at(node).filter(|(other, _)| *other != uid);
        let ahead = others.filter(|(_, nomination)| nomination.placed.view.priority >= priority);
        ahead
            .map(|(_, nomination)| nomination.placed.clone())
            .collect()
    }
}

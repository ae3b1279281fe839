//! A node with pods added or taken away, for a question only.

use super::{NodeInfo, Nodes, Placed, Slot};
use crate::scheduler::{
    evaluate::refuse, pod_terms::Namespaces, reasons::Refused, surroundings::Surroundings,
};

/// A dry run on one node. The node is restored when the trial is dropped, and nothing of it counts
/// as a change.
#[derive(Debug)]
pub(in crate::scheduler) struct Trial<'a> {
    nodes: &'a mut Nodes,
    slot: Slot,
    before: Option<NodeInfo>,
    pods_with_affinity: usize,
}

impl Nodes {
    /// Begins a dry run on a node.
    pub(in crate::scheduler) fn trial(&mut self, slot: Slot) -> Trial<'_> {
        Trial {
            before: self.slots.get(slot).cloned().flatten(),
            pods_with_affinity: self.pods_with_affinity,
            slot,
            nodes: self,
        }
    }
}

impl Trial<'_> {
    /// Adds a pod.
    pub(in crate::scheduler) fn add(&mut self, pod: &Placed) {
        if let Some(Some(info)) = self.nodes.slots.get_mut(self.slot) {
            info.add(pod);
            self.nodes.pods_with_affinity += usize::from(!pod.view.affinity.is_empty());
        }
    }

    /// Takes away a pod.
    pub(in crate::scheduler) fn remove(&mut self, pod: &Placed) {
        if let Some(Some(info)) = self.nodes.slots.get_mut(self.slot) {
            info.remove(pod);
            self.nodes.pods_with_affinity -= usize::from(!pod.view.affinity.is_empty());
        }
    }

    /// The first reason that keeps a pod off the node as it is now, with and without the pods that
    /// are nominated for it.
    pub(in crate::scheduler) fn refuse(
        &mut self,
        pod: &Placed,
        nominated: &[Placed],
        namespaces: &dyn Namespaces,
    ) -> Option<Refused> {
        if !nominated.is_empty() {
            nominated.iter().for_each(|other| self.add(other));
            let refused = self.refuse_now(pod, namespaces);
            nominated.iter().for_each(|other| self.remove(other));
            if refused.is_some() {
                return refused;
            }
        }
        self.refuse_now(pod, namespaces)
    }

    fn refuse_now(&self, pod: &Placed, namespaces: &dyn Namespaces) -> Option<Refused> {
        let (info, node) = self.nodes.get(self.slot)?;
        refuse(&pod.view, info, node).or_else(|| {
            let around = Surroundings::look(pod, self.nodes, namespaces)?;
            around.refuse(node)
        })
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        self.nodes.pods_with_affinity = self.pods_with_affinity;
        if let Some(slot) = self.nodes.slots.get_mut(self.slot) {
            *slot = self.before.take();
        }
    }
}

//! The nominated nodes of waiting pods, in what the scheduler knows.

use std::sync::Arc;

use tokio::time::Instant;
use windlass_core::{Doc, Str};

use super::State;
use crate::scheduler::{
    nodes::{Placed, Slot},
    nominations::Nomination,
    plugin::ClusterEvent,
    pod_terms::Namespaces,
    preemption::Nominating,
    reasons::Refused,
    spec::SpecView,
};

/// The nominated node of a pod.
const NOMINATED: &str = "/status/nominatedNodeName";

impl State {
    /// Takes over `status.nominatedNodeName` of a pod that waits. While it says nothing, a
    /// nomination that was not written yet stays.
    pub(super) fn nomination_seen(
        &mut self,
        uid: &Str,
        pod: &Doc,
        view: &Arc<SpecView>,
        now: Instant,
    ) {
        let new = pod.str_at(NOMINATED);
        let old = self.queue.get(uid).map_or("", |old| old.str_at(NOMINATED));
        let kept = match (old, new) {
            ("", "") => self.nominations.node_of(uid).cloned(),
            (_, "") => None,
            (_, new) => Some(Str::new(new)),
        };
        let is_left = !old.is_empty() && old != new;
        match kept {
            Some(node) => self.set_nomination(uid, pod, view, node),
            None => {
                self.nominations.remove(uid);
            }
        }
        if is_left {
            // The node is free for others, as if the pod had left it.
            let event = ClusterEvent::AssignedPodDeleted(pod.clone());
            self.queue.wake(&event, now);
        }
    }

    fn set_nomination(&mut self, uid: &Str, pod: &Doc, view: &Arc<SpecView>, node: Str) {
        let placed = Placed::of(pod, view.clone());
        let pod = pod.clone();
        let nomination = Nomination { node, pod, placed };
        self.nominations.set(uid, nomination);
    }

    /// Changes the nominated node of a pod that was tried.
    pub(in crate::scheduler) fn nominate(
        &mut self,
        uid: &Str,
        pod: &Doc,
        view: &Arc<SpecView>,
        nominating: &Nominating,
    ) {
        match nominating {
            Nominating::Keep => {}
            Nominating::Clear => {
                self.nominations.remove(uid);
            }
            Nominating::Node(node) => self.set_nomination(uid, pod, view, node.clone()),
        }
    }

    /// The slot and the name of the node that is kept for a pod, if it exists.
    pub(in crate::scheduler) fn nominated_slot(&self, uid: &Str, pod: &Doc) -> Option<(Slot, Str)> {
        let written = pod.at(NOMINATED).shared_str();
        let written = written.filter(|name| !name.is_empty());
        let name = self.nominations.node_of(uid).cloned().or(written)?;
        Some((self.nodes.slot_named(&name)?, name))
    }

    /// Takes the nominations for a node back that have a lower priority, and returns their pods.
    pub(in crate::scheduler) fn outranked(&mut self, node: &str, priority: i32) -> Vec<Doc> {
        let all = self.nominations.at(node);
        let below = all.filter(|(_, one)| one.placed.view.priority < priority);
        let below: Vec<(Str, Doc)> = below
            .map(|(uid, one)| (uid.clone(), one.pod.clone()))
            .collect();
        let removed = below.into_iter().map(|(uid, pod)| {
            self.nominations.remove(&uid);
            pod
        });
        removed.collect()
    }

    /// The nodes that would take a pod if they were not kept for others, by slot.
    pub(super) fn kept_for_others(
        &mut self,
        uid: &Str,
        placed: &Placed,
        namespaces: &dyn Namespaces,
    ) -> Vec<(Slot, Refused)> {
        let mut refused = Vec::new();
        for node in self.nominations.nodes() {
            let priority = placed.view.priority;
            let nominated = self.nominations.ahead_of(&node, uid, priority);
            let Some(slot) = self
                .nodes
                .slot_named(&node)
                .filter(|_| !nominated.is_empty())
            else {
                continue;
            };
            let found = self
                .nodes
                .trial(slot)
                .refuse(placed, &nominated, namespaces);
            refused.extend(found.map(|found| (slot, found)));
        }
        refused
    }
}

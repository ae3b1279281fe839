//! From changes of pods, revisions and nodes to the DaemonSets that they concern.

use std::{collections::HashSet, time::Duration};

use windlass_cache::{Obj, SharedInformer};
use windlass_core::Uid;
use windlass_runtime::{Change, Trigger};

use super::{BY_NODE, Engine, eligibility::Placement};
use crate::{owned, replicaset::handlers::Handlers};

/// The time by which a pod that became ready is looked at later than its set says, as upstream.
const SLACK: Duration = Duration::from_secs(1);

/// The handlers of changes.
pub(super) struct DaemonHandlers {
    of_pods: Handlers,
    sets: SharedInformer,
    pods: SharedInformer,
}

impl DaemonHandlers {
    pub(super) fn of(engine: &Engine) -> Self {
        let of_pods = Handlers::new(&engine.kinds.sets, owned::label_selector, &engine.sets);
        Self {
            of_pods: of_pods.slack(SLACK),
            sets: engine.sets.clone(),
            pods: engine.pods.clone(),
        }
    }

    pub(super) fn on_pod(&self, change: &Change<'_>) -> Vec<Trigger> {
        self.of_pods.on_pod(change)
    }

    /// A revision concerns a set as a pod does, but a new one that has an owner comes from there.
    pub(super) fn on_revision(&self, change: &Change<'_>) -> Vec<Trigger> {
        match (change.old, change.new) {
            (None, Some(new)) if new.meta().controller().is_some() => Vec::new(),
            _ => self.of_pods.on_pod(change),
        }
    }

    /// The sets that a new node, or one with other labels or taints, makes a difference to. A pod
    /// that may stay on a node that it would not be created on makes none until something else
    /// happens, as upstream.
    pub(super) fn on_node(&self, change: &Change<'_>) -> Vec<Trigger> {
        let Some(node) = change.new else {
            return Vec::new();
        };
        let is_same = |old: &Obj| {
            let (old, new) = (old.doc(), node.doc());
            let fields = ["/metadata/labels", "/spec/taints"];
            fields.iter().all(|at| old.at(at) == new.at(at))
        };
        if change.old.is_some_and(is_same) {
            return Vec::new();
        }
        let owners = self.owners_on(node.name());
        let sets = self.sets.lister().snapshot();
        let concerned = sets.iter().filter(|set| {
            let verdict = Placement::of(set.doc()).eligibility(node.doc());
            let misscheduled = set.doc().at("/status/numberMisscheduled").as_i64();
            match owners.contains(&set.uid()) {
                false => verdict.should_run,
                true => !verdict.should_continue || misscheduled.unwrap_or(0) > 0,
            }
        });
        concerned.map(|set| Trigger::now(set.key())).collect()
    }

    /// The UIDs of the owners of the pods on a node.
    fn owners_on(&self, node: &str) -> HashSet<Uid> {
        let pods = self.pods.lister().snapshot().by_index(BY_NODE, node);
        let pods = pods.expect("invariant: the index was added with the controller");
        let owners = pods.iter().filter_map(|pod| pod.meta().controller());
        owners.map(|owner| owner.uid).collect()
    }
}

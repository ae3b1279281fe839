//! The last signs of life of each node.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use windlass_core::{Doc, MicroTime};

use super::conditions::find;

/// A node's last sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeHealth {
    /// The time at which the last sign was seen, by the clock of this process.
    pub(super) probed: MicroTime,
    /// The condition `Ready` as it was seen last.
    pub(super) ready: Option<Doc>,
    /// The renewal of the Lease as it was seen last.
    pub(super) renewed: Option<MicroTime>,
}

impl NodeHealth {
    /// The health after another look at a node and its Lease. A sign of life counts from
    /// when it is seen, so that the clocks of nodes do not matter.
    pub(super) fn seen(
        before: Option<Self>,
        node: &Doc,
        lease: Option<&Doc>,
        now: MicroTime,
    ) -> Self {
        let ready = find(node, "Ready").cloned();
        let created = node.meta().creation_timestamp().map(MicroTime::from);
        let renewed = before.as_ref().and_then(|it| it.renewed);
        let heartbeat = |ready: &Option<Doc>| {
            let ready = ready.as_ref()?;
            Some(ready.at("/lastHeartbeatTime").clone())
        };
        let mut health = match before {
            Some(before) if heartbeat(&before.ready) == heartbeat(&ready) => {
                Self { ready, ..before }
            }
            // A node that has never posted a status is as old as its object.
            None if ready.is_none() => Self {
                probed: created.unwrap_or(now),
                ready,
                renewed: None,
            },
            _ => Self {
                probed: now,
                ready,
                renewed: None,
            },
        };
        let observed: Option<MicroTime> =
            lease.and_then(|it| it.str_at("/spec/renewTime").parse().ok());
        if observed.is_some() && observed > renewed {
            health.renewed = observed;
            health.probed = now;
        } else {
            health.renewed = health.renewed.or(renewed);
        }
        health
    }
}

/// The health of all nodes. Written by the monitor; read by the controller of pods as well.
/// Bounded by the nodes that exist. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct HealthMap(Arc<Mutex<BTreeMap<String, NodeHealth>>>);

impl HealthMap {
    pub(super) fn get(&self, node: &str) -> Option<NodeHealth> {
        self.0.lock().get(node).cloned()
    }

    pub(super) fn set(&self, node: &str, health: NodeHealth) {
        self.0.lock().insert(node.to_owned(), health);
    }

    pub(super) fn remove(&self, node: &str) {
        self.0.lock().remove(node);
    }

    /// Counts all nodes as alive now.
    pub(super) fn restart(&self, now: MicroTime) {
        self.0.lock().values_mut().for_each(|it| it.probed = now);
    }
}

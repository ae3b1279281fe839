//! Nodes that an annotation stops: they renew no Lease, and say nothing of themselves or their pods.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Notify;
use windlass_cache::{Deleted, Handler, Obj};
use windlass_core::{Doc, Selector};

use super::Agent;
use crate::node::STOPPED;

/// The nodes that have stopped. The handler of nodes writes it, all others read it.
#[derive(Debug, Default)]
pub(in crate::node) struct StoppedNodes {
    names: Mutex<BTreeSet<String>>,
    /// Given when a node is back.
    pub(in crate::node) is_back: Notify,
}

impl StoppedNodes {
    pub(in crate::node) fn contains(&self, name: &str) -> bool {
        self.names.lock().contains(name)
    }
}

/// Returns true if an annotation says that a node has stopped.
pub(in crate::node) fn is_stopped(node: &Doc) -> bool {
    node.meta().annotation(STOPPED) == Some("true")
}

pub(super) struct NodeHandler(pub(super) Arc<Agent>);

impl NodeHandler {
    fn seen(&self, node: &Doc) {
        let (agent, name) = (&self.0, node.meta().name());
        if !agent.hosts.contains_key(name) {
            return;
        }
        if is_stopped(node) {
            agent.stopped.names.lock().insert(name.to_owned());
        } else if agent.stopped.names.lock().remove(name) {
            agent.stopped.is_back.notify_one();
            for pod in agent.lister.list(&Selector::everything()) {
                if pod.doc().str_at("/spec/nodeName") == name {
                    agent.queue.add(pod.key());
                }
            }
        }
    }
}

impl Handler<Doc> for NodeHandler {
    async fn on_add(&self, node: Obj, _is_initial: bool) {
        self.seen(node.doc());
    }

    async fn on_update(&self, _old: Obj, new: Obj) {
        self.seen(new.doc());
    }

    async fn on_delete(&self, deleted: Deleted) {
        let name = deleted.object().meta().name();
        self.0.stopped.names.lock().remove(name);
    }
}

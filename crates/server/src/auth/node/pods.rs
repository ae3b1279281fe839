//! The index of pods by the node they run on.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use windlass_store::{Entry, Snapshot};

use crate::storage::Storage;

/// The pods of the store by node and namespace, brought up to date by whoever asks. It is empty
/// until a node does.
#[derive(Debug, Default)]
pub(crate) struct PodIndex(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    seen: Option<Snapshot>,
    /// By node, then by key, which begins with the namespace.
    rows: BTreeMap<String, BTreeMap<String, Arc<Entry>>>,
}

impl PodIndex {
    /// The pods on a node, of one namespace or of all (empty).
    pub(super) fn on(&self, node: &str, namespace: &str, storage: &Storage) -> Vec<Arc<Entry>> {
        let now = storage.snapshot_of("", "pods");
        let mut state = self.0.lock();
        state.advance(now);
        let Some(pods) = state.rows.get(node) else {
            return Vec::new();
        };
        if namespace.is_empty() {
            return pods.values().cloned().collect();
        }
        let prefix = format!("{namespace}/");
        let from = pods.range(prefix.clone()..);
        from.take_while(|(key, _)| key.starts_with(&prefix))
            .map(|(_, pod)| pod.clone())
            .collect()
    }
}

impl State {
    fn advance(&mut self, now: Snapshot) {
        let (gone, come) = match &self.seen {
            Some(seen) if seen.is_same(&now) || seen.revision() >= now.revision() => return,
            Some(seen) => (seen.not_in(&now), now.not_in(seen)),
            None => (Vec::new(), now.iter().cloned().collect()),
        };
        for pod in gone {
            let node = pod.doc().str_at("/spec/nodeName");
            let Some(pods) = self.rows.get_mut(node) else {
                continue;
            };
            pods.remove(pod.key.as_str());
            if pods.is_empty() {
                self.rows.remove(node);
            }
        }
        for pod in come {
            let node = pod.doc().str_at("/spec/nodeName");
            if !node.is_empty() {
                let pods = self.rows.entry(node.to_owned()).or_default();
                pods.insert(pod.key.to_string(), pod.clone());
            }
        }
        self.seen = Some(now);
    }
}

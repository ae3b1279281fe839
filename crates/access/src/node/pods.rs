//! The index of pods by the node they run on.

use std::collections::BTreeMap;

use windlass_core::Doc;

/// Pods by node and namespace. Whoever stores the pods keeps it up to date.
#[derive(Debug, Default)]
pub struct PodTable {
    /// By node, then by key, which begins with the namespace.
    rows: BTreeMap<String, BTreeMap<String, Doc>>,
}

impl PodTable {
    /// The pods on a node, of one namespace or of all (empty).
    #[must_use]
    pub fn on(&self, node: &str, namespace: &str) -> Vec<Doc> {
        let Some(pods) = self.rows.get(node) else {
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

    /// Takes a pod in.
    pub fn add(&mut self, pod: &Doc) {
        let node = pod.str_at("/spec/nodeName");
        if !node.is_empty() {
            let pods = self.rows.entry(node.to_owned()).or_default();
            pods.insert(key_of(pod), pod.clone());
        }
    }

    /// Takes a pod out, as it was when it was taken in.
    pub fn remove(&mut self, pod: &Doc) {
        let node = pod.str_at("/spec/nodeName");
        let Some(pods) = self.rows.get_mut(node) else {
            return;
        };
        pods.remove(&key_of(pod));
        if pods.is_empty() {
            self.rows.remove(node);
        }
    }
}

fn key_of(pod: &Doc) -> String {
    let meta = pod.meta();
    format!("{}/{}", meta.namespace(), meta.name())
}

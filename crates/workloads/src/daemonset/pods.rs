//! The pods of a DaemonSet by node.

use std::collections::BTreeMap;

use windlass_core::Doc;

use crate::is_pod_terminal;

/// The pods of a DaemonSet.
pub(super) struct DaemonPods(Vec<Doc>);

/// Pods by the node that they are bound to or meant for, the one that counts first.
pub(super) type NodePods = BTreeMap<String, Vec<Doc>>;

impl DaemonPods {
    pub(super) fn new(pods: impl Iterator<Item = Doc>) -> Self {
        Self(pods.collect())
    }

    pub(super) fn all(&self) -> &[Doc] {
        &self.0
    }

    /// Pods by node. Those that have ended and are being deleted are left to whoever deletes them.
    pub(super) fn by_node(&self) -> NodePods {
        let mut nodes = NodePods::new();
        for pod in &self.0 {
            let is_over = is_pod_terminal(pod) && pod.meta().is_deleting();
            match target_node(pod) {
                Some(node) if !is_over => {
                    nodes.entry(node.to_owned()).or_default().push(pod.clone());
                }
                _ => {}
            }
        }
        for pods in nodes.values_mut() {
            pods.sort_by_cached_key(|pod| {
                let meta = pod.meta();
                let is_unbound = pod.str_at("/spec/nodeName").is_empty();
                (
                    is_unbound,
                    meta.creation_timestamp(),
                    meta.name().to_owned(),
                )
            });
        }
        nodes
    }
}

/// The node that a pod is bound to, or the one that its node affinity names.
pub(super) fn target_node(pod: &Doc) -> Option<&str> {
    let bound = pod.str_at("/spec/nodeName");
    if !bound.is_empty() {
        return Some(bound);
    }
    let required = pod.at(
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
         /nodeSelectorTerms",
    );
    let mut fields = required
        .items()
        .iter()
        .flat_map(|it| it.at("/matchFields").items());
    let named = fields.find(|field| {
        field.str_at("/key") == "metadata.name" && field.str_at("/operator") == "In"
    })?;
    match named.at("/values").items() {
        [only] => only.as_str(),
        _ => None,
    }
}

//! A node is not ready before somebody says so.

use windlass_core::{Doc, doc};

use super::Request;
use super::plugin::Admit;
use windlass_rules::edit::put;
use windlass_rules::status::Status;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Taints new nodes as not ready.
pub(super) struct TaintNodesByCondition;

impl Admit for TaintNodesByCondition {
    fn create(&self, request: &Request<'_>, node: Doc) -> Result<Doc, Status> {
        Ok(admit(request, node))
    }
}

fn admit(request: &Request<'_>, node: Doc) -> Doc {
    if !request.rules.node_taints {
        return node;
    }
    let mut taints = node.at("/spec/taints").items().to_vec();
    let is_there =
        |taint: &Doc| taint.str_at("/key") == NOT_READY && taint.str_at("/effect") == "NoSchedule";
    if taints.iter().any(is_there) {
        return node;
    }
    taints.push(doc!({ "key": NOT_READY, "effect": "NoSchedule" }));
    put(node, "/spec/taints", taints)
}

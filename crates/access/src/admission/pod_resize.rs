//! A resized pod fits on its node.

use windlass_core::{Doc, Quantity};
use windlass_quota::pod_amounts;

use super::Request;
use super::plugin::Admit;
use windlass_rules::field::Cause;
use windlass_rules::status::Status;

/// Refuses to resize pods beyond their node.
pub(super) struct PodResizeValidator;

impl Admit for PodResizeValidator {
    fn validate_part(&self, request: &Request<'_>, new: &Doc, old: &Doc) -> Result<(), Status> {
        let name = new.str_at("/spec/nodeName");
        let is_resize = request.subresource == "resize" && !name.is_empty();
        if !is_resize || new.at("/spec") == old.at("/spec") {
            return Ok(());
        }
        let Some(node) = request.objects.find("", "nodes", "", name) else {
            return Err(request.forbid(new, &format!("node {name:?} not found")));
        };
        let system = node.at("/metadata/labels").get("kubernetes.io/os");
        let system = system.and_then(Doc::as_str).unwrap_or("linux");
        if system != "linux" {
            let why =
                format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
            return Err(request
                .forbid(new, &why)
                .with_cause(cause("UnsupportedPlatform")));
        }
        match missing(new, &node) {
            None => Ok(()),
            Some(why) => Err(request.forbid(new, &why).with_cause(cause("NodeCapacity"))),
        }
    }
}

/// A cause that is about no field.
fn cause(reason: &'static str) -> Cause {
    Cause {
        reason,
        message: String::new(),
        field: String::new(),
    }
}

/// The resources of which a node has less than a pod asks for.
fn missing(pod: &Doc, node: &Doc) -> Option<String> {
    let requests = pod_amounts(pod, "requests");
    let mut lacking = Vec::new();
    for name in ["cpu", "memory"] {
        let asked = requests.get(name).cloned().unwrap_or_default();
        let allocatable = node.at("/status/allocatable").get(name);
        let text = allocatable.map(ToString::to_string).unwrap_or_default();
        let has: Quantity = text.trim_matches('"').parse().unwrap_or_default();
        if asked > has {
            let (asked, has) = match name {
                "cpu" => (asked.milli_value(), has.milli_value()),
                _ => (asked.value(), has.value()),
            };
            lacking.push(format!("{name}, requested: {asked}, allocatable: {has}"));
        }
    }
    let lacking = (!lacking.is_empty()).then(|| lacking.join("; "))?;
    Some(format!(
        "node didn't have enough allocatable resources: {lacking}"
    ))
}

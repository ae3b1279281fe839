//! The conditions of nodes.

use windlass_core::{Doc, EditError, doc};

/// The conditions that a silent node loses.
const KUBELET_CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// A condition of an object by its type.
pub(super) fn find<'d>(object: &'d Doc, kind: &str) -> Option<&'d Doc> {
    let mut conditions = object.at("/status/conditions").items().iter();
    conditions.find(|it| it.str_at("/type") == kind)
}

/// The status of the condition `Ready`; `None` if there is no such condition.
pub(super) fn ready_status(node: &Doc) -> Option<&str> {
    find(node, "Ready").map(|it| it.str_at("/status"))
}

/// A node of which nobody knows how it is.
pub(super) fn unknown(node: &Doc, now: &str) -> Result<Doc, EditError> {
    let mut conditions = node.at("/status/conditions").items().to_vec();
    let created = node.str_at("/metadata/creationTimestamp");
    for kind in KUBELET_CONDITIONS {
        let found = conditions.iter_mut().find(|it| it.str_at("/type") == kind);
        match found {
            None => conditions.push(doc!({
                "type": kind, "status": "Unknown", "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": created, "lastTransitionTime": now,
            })),
            Some(found) if found.str_at("/status") != "Unknown" => {
                *found = found
                    .with("/status", "Unknown")?
                    .with("/reason", "NodeStatusUnknown")?
                    .with("/message", "Kubelet stopped posting node status.")?
                    .with("/lastTransitionTime", now)?;
            }
            Some(_) => {}
        }
    }
    node.with("/status/conditions", conditions)
}

//! Facts about a pod that several controllers here ask for.

use windlass_core::Doc;

/// Returns true if a pod has succeeded or failed: it runs no more and holds no devices.
pub(crate) fn is_pod_terminal(pod: &Doc) -> bool {
    matches!(pod.str_at("/status/phase"), "Succeeded" | "Failed")
}

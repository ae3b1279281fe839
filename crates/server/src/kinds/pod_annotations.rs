//! Annotations of pods that others act on.

use windlass_core::Doc;

use crate::field::{FieldErrors, FieldPath};

/// What it costs to delete a pod when there are too many.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Marks a pod that stands for one which a node runs by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Finds what is wrong with the annotations of a pod or of a template of pods. As upstream in
/// `pkg/apis/core/validation`.
pub(super) fn validate(pod: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if let Some(value) = pod.meta().annotation(MIRROR)
        && pod.str_at("/spec/nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid(&path.key(MIRROR), value, detail);
    }
    if let Some(cost) = pod.meta().annotation(DELETION_COST)
        && !is_cost(cost)
    {
        errors.invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer");
    }
}

/// Whether a text is a number in its shortest spelling.
fn is_cost(text: &str) -> bool {
    let is_plain = text == "0" || text.starts_with(|first| matches!(first, '-' | '1'..='9'));
    is_plain && text.parse::<i32>().is_ok()
}

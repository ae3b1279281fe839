//! Annotations of pods that others act on.

use windlass_core::Doc;

use super::{pod_nodes, pod_security};
use crate::field::{FieldErrors, FieldPath};

/// What it costs to delete a pod when there are too many.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Marks a pod that stands for one which a node runs by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Tolerations, written as JSON.
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";

/// The profile of a pod's system calls, and those of its containers.
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const SECCOMP_PROFILES: [&str; 3] = ["runtime/default", "docker/default", "unconfined"];

/// The AppArmor profiles of a pod's containers.
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const APP_ARMOR_PROFILES: [&str; 3] = ["", "runtime/default", "unconfined"];

/// Before the name of a profile that the node has.
const LOCAL: &str = "localhost/";

/// Finds what is wrong with the annotations of a pod or of a template of pods. As upstream in
/// `pkg/apis/core/validation`.
pub(super) fn validate(pod: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if let Some(value) = pod.meta().annotation(MIRROR)
        && pod.str_at("/spec/nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid(&path.key(MIRROR), value, detail);
    }
    if let Some(tolerations) = pod.meta().annotation(TOLERATIONS)
        && let Ok(tolerations) = Doc::parse(tolerations.as_bytes())
    {
        pod_nodes::validate_tolerations(&tolerations, &path.child(TOLERATIONS), errors);
    }
    if let Some(cost) = pod.meta().annotation(DELETION_COST)
        && !is_cost(cost)
    {
        errors.invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer");
    }
    if let Some(profile) = pod.meta().annotation(SECCOMP) {
        validate_seccomp(profile, &path.child(SECCOMP), errors);
    }
    let annotations = pod.at("/metadata/annotations").as_object();
    for (key, value) in annotations.into_iter().flat_map(|all| all.iter()) {
        let profile = value.as_str().unwrap_or_default();
        if key.starts_with(SECCOMP_OF_CONTAINER) {
            validate_seccomp(profile, &path.child(key), errors);
        }
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            validate_app_armor(container, profile, pod, &path.key(key), errors);
        }
    }
}

/// Finds a mark of a pod that a node runs by itself which comes, goes or changes.
pub(super) fn validate_update(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    let path = FieldPath::new("metadata").child("annotations").key(MIRROR);
    match (old.meta().annotation(MIRROR), new.meta().annotation(MIRROR)) {
        (None, Some(_)) => errors.forbidden(&path, "may not add mirror pod annotation"),
        (Some(before), after) if after != Some(before) => {
            errors.forbidden(&path, "may not remove or update mirror pod annotation");
        }
        _ => {}
    }
}

fn validate_seccomp(profile: &str, path: &FieldPath, errors: &mut FieldErrors) {
    if SECCOMP_PROFILES.contains(&profile) {
        return;
    }
    match profile.strip_prefix(LOCAL) {
        Some(file) => pod_security::validate_relative(file, path, errors),
        None => errors.invalid(path, profile, "must be a valid seccomp profile"),
    }
}

fn validate_app_armor(
    container: &str,
    profile: &str,
    pod: &Doc,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let spec = pod.at("/spec");
    let mut all = lists
        .iter()
        .filter_map(|list| spec.get(list))
        .flat_map(Doc::items);
    if !all.any(|known| known.str_at("/name") == container) {
        errors.invalid(path, container, "container not found");
    }
    if !APP_ARMOR_PROFILES.contains(&profile) && !profile.starts_with(LOCAL) {
        let shown = windlass_core::quote(profile);
        let detail = format!("invalid AppArmor profile name: {shown}");
        errors.invalid(path, profile, detail);
    }
}

/// Whether a text is a number in its shortest spelling.
fn is_cost(text: &str) -> bool {
    let is_plain = text == "0" || text.starts_with(|first| matches!(first, '-' | '1'..='9'));
    is_plain && text.parse::<i32>().is_ok()
}

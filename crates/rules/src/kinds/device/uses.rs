//! Which claims of a pod its containers use.

use std::collections::{BTreeSet, HashSet};

use windlass_core::Doc;

use crate::field::{FieldErrors, FieldPath};

/// Finds claims that a container uses twice, or that its pod does not have. A container uses a
/// claim as a whole, or some of its requests, each once.
pub(in crate::kinds) fn validate_uses(
    container: &Doc,
    claims: &BTreeSet<&str>,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let uses = container.at("/resources/claims");
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    let mut names: HashSet<&str> = HashSet::new();
    for (index, used) in uses.items().iter().enumerate() {
        let path = path.index(index);
        let (name, request) = (used.str_at("/name"), used.str_at("/request"));
        if name.is_empty() {
            errors.required(&path, "");
            continue;
        }
        let overlaps = match request {
            "" => !names.insert(name),
            request => seen.contains(&(name, "")) || seen.contains(&(name, request)),
        };
        if overlaps {
            let shown = match request {
                "" => name.to_owned(),
                request => format!("{name}/{request}"),
            };
            errors.duplicate(&path, shown);
        } else {
            seen.insert((name, request));
            names.insert(name);
        }
        if !claims.contains(name) {
            errors.not_found_among(&path, name, "pod.spec.resourceClaims", claims);
        }
    }
}

//! Which claims of a pod its containers use.

use std::collections::HashSet;

use windlass_core::Doc;

use crate::field::{FieldErrors, FieldPath};

/// Finds claims that a container uses twice, or that the pod does not have.
pub(in crate::kinds) fn validate_uses(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let claims = spec.at("/resourceClaims").items().iter();
    let claims: Vec<&str> = claims.map(|claim| claim.str_at("/name")).collect();
    for list in ["initContainers", "containers"] {
        let containers = spec.get(list).map_or(&[][..], Doc::items);
        for (index, container) in containers.iter().enumerate() {
            let path = path.child(list).index(index);
            let path = path.child("resources").child("claims");
            validate_container(container.at("/resources/claims"), &path, &claims, errors);
        }
    }
}

/// A container uses a claim as a whole, or some of its requests, each once.
fn validate_container(uses: &Doc, path: &FieldPath, claims: &[&str], errors: &mut FieldErrors) {
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for (index, used) in uses.items().iter().enumerate() {
        let path = path.index(index);
        let (name, request) = (used.str_at("/name"), used.str_at("/request"));
        if name.is_empty() {
            errors.required(&path, "");
            continue;
        }
        let overlaps = match request {
            "" => seen.iter().any(|(other, _)| *other == name),
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
        }
        if !claims.contains(&name) {
            errors.not_found(&path, name);
        }
    }
}

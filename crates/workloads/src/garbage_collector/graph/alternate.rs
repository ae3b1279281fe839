//! Dependents that do not agree on who their owner is.

use crate::garbage_collector::identity::Identity;

use super::Node;

/// Splits the dependents of an owner into those that know it under an identity and those that know
/// it under another. One with two references to the same UID can be both.
pub(super) fn partition<'a>(
    dependents: impl Iterator<Item = &'a Node>,
    identity: &Identity,
) -> (Vec<&'a Node>, Vec<&'a Node>) {
    let (mut matching, mut differing) = (Vec::new(), Vec::new());
    for dependent in dependents {
        if identity.is_namespaced() && identity.namespace != dependent.identity.namespace {
            differing.push(dependent);
            continue;
        }
        let references = dependent.owners.iter();
        let mut references = references.filter(|owner| owner.uid == identity.uid);
        if references.clone().any(|owner| owner.names(identity)) {
            matching.push(dependent);
        }
        if references.any(|owner| !owner.names(identity)) {
            differing.push(dependent);
        }
    }
    (matching, differing)
}

/// Another identity under which dependents know an owner whose UID was not found under `absent`:
/// the next one in their order, or the first after the last.
pub(super) fn alternate_identity<'a>(
    dependents: impl Iterator<Item = &'a Node>,
    absent: &Identity,
) -> Option<Identity> {
    let (mut first, mut following) = (None::<Identity>, None::<Identity>);
    for other in dependents.flat_map(|dependent| identities(dependent, absent)) {
        if other > *absent && following.as_ref().is_none_or(|it| other < *it) {
            following = Some(other.clone());
        }
        if first.as_ref().is_none_or(|it| other < *it) {
            first = Some(other);
        }
    }
    following.or(first)
}

/// The identities other than `absent` by which a dependent knows the owner of its UID.
fn identities<'a>(
    dependent: &'a Node,
    absent: &'a Identity,
) -> impl Iterator<Item = Identity> + use<'a> {
    let references = dependent.owners.iter();
    let references = references.filter(|owner| owner.uid == absent.uid);
    let others = references.map(|owner| {
        let other = owner.identity(&dependent.identity.namespace);
        let is_same_kind = other.kind == absent.kind && other.api_version == absent.api_version;
        // The kind of the absent one is known to live outside of namespaces.
        if !absent.is_namespaced() && is_same_kind {
            other.in_namespace("")
        } else {
            other
        }
    });
    others.filter(move |other| other != absent)
}

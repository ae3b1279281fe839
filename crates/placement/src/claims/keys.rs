//! Which claims and pods a change concerns.

use windlass_cache::Obj;
use windlass_core::{Doc, Key, OwnerRef, Str};

use super::{
    CLAIMS_BY_OWNER, ClaimName, Claims, POD_CLAIM_NAME, PODS_BY_CLAIM, PODS_BY_TEMPLATE,
    claim_name, is_allocated, is_for_pod, is_pod_done, is_reserved_for,
};
use crate::pod::is_pod_terminal;

/// The entries of a pod that ask for claims.
pub(super) fn entries(pod: &Doc) -> &[Doc] {
    pod.at("/spec/resourceClaims").items()
}

/// The name of the claim that stands for a pod's extended resources, or nothing.
fn extended_claim(pod: &Doc) -> &str {
    pod.str_at("/status/extendedResourceClaimStatus/resourceClaimName")
}

/// The keys of all claims of a pod whose names are known.
fn named_claims(pod: &Doc) -> impl Iterator<Item = Key> {
    let namespace = pod.meta().namespace();
    let names = entries(pod).iter().filter_map(|entry| {
        let Ok(ClaimName::Named { name, .. }) = claim_name(pod, entry) else {
            return None;
        };
        Some(name)
    });
    let extended = Some(extended_claim(pod)).filter(|name| !name.is_empty());
    names
        .chain(extended)
        .map(move |name| Key::new(namespace, name))
}

/// Index of pods: the claims they name.
pub(super) fn claims_of_pod(pod: &Obj) -> Vec<Str> {
    sorted(named_claims(pod.doc()).map(|key| Str::new(key.as_str())))
}

/// Index of pods: the templates they name.
pub(super) fn templates_of_pod(pod: &Obj) -> Vec<Str> {
    let templates = entries(pod.doc()).iter();
    let templates = templates.map(|entry| entry.str_at("/resourceClaimTemplateName"));
    let named = templates.filter(|name| !name.is_empty());
    sorted(named.map(|name| Str::new(Key::new(pod.namespace(), name).as_str())))
}

/// Index of claims: the pods that own them, with their namespace.
pub(super) fn owner_of_claim(claim: &Obj) -> Vec<Str> {
    let owner = owner_pod(claim.doc());
    let value = owner.map(|owner| Str::new(&owner_value(claim.namespace(), owner.uid.as_str())));
    value.into_iter().collect()
}

fn owner_value(namespace: &str, uid: &str) -> String {
    format!("{namespace}/{uid}")
}

/// The pod that manages a claim.
pub(super) fn owner_pod(claim: &Doc) -> Option<OwnerRef> {
    let mut owners = claim.meta().owner_refs();
    owners.find(|owner| owner.controller && owner.api_version == "v1" && owner.kind == "Pod")
}

fn sorted(values: impl Iterator<Item = Str>) -> Vec<Str> {
    let mut values: Vec<Str> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

impl Claims {
    /// The claims that a pod uses no more. A pod that is gone is remembered as such.
    pub(super) fn released_claims(&self, pod: &Doc) -> Vec<Key> {
        if entries(pod).is_empty() && extended_claim(pod).is_empty() {
            return Vec::new();
        }
        let uid = pod.meta().uid();
        // The cache is as new as the change: a pod that it does not show is gone.
        let is_gone = self
            .pods
            .get(&pod.meta().key())
            .is_none_or(|cached| cached.uid() != uid);
        if is_gone {
            self.deleted.lock().add(&uid);
        }
        if is_gone || is_pod_done(pod) {
            return named_claims(pod).collect();
        }
        Vec::new()
    }

    /// The pods that must be looked at after a change of a claim: those that name it, and the one
    /// it was made for.
    pub(super) fn pods_of_claim(&self, claim: &Obj) -> Vec<Key> {
        let by_name = self.pods.by_index(PODS_BY_CLAIM, claim.key().as_str());
        let owner = owner_pod(claim.doc());
        let owner =
            owner.and_then(|owner| self.pods.get(&Key::new(claim.namespace(), &owner.name)));
        let pods = by_name.unwrap_or_default().into_iter().chain(owner);
        self.needing_work(pods)
    }

    /// The pods that must be looked at after a change of a template.
    pub(super) fn pods_of_template(&self, template: &Obj) -> Vec<Key> {
        let pods = self
            .pods
            .by_index(PODS_BY_TEMPLATE, template.key().as_str());
        self.needing_work(pods.unwrap_or_default().into_iter())
    }

    fn needing_work(&self, pods: impl Iterator<Item = Obj>) -> Vec<Key> {
        pods.filter(|pod| self.needs_work(pod.doc()))
            .map(|pod| pod.key())
            .collect()
    }

    /// Whether a pod lacks a claim, the name of one or a reservation, or has a claim too many.
    pub(super) fn needs_work(&self, pod: &Doc) -> bool {
        if pod.meta().is_deleting() || is_pod_terminal(pod) {
            return false;
        }
        let mut entries = entries(pod).iter();
        entries.any(|entry| self.entry_needs_work(pod, entry))
    }

    fn entry_needs_work(&self, pod: &Doc, entry: &Doc) -> bool {
        let (name, is_generated) = match claim_name(pod, entry) {
            // This covers claims that have not been made.
            Err(_) => return true,
            Ok(ClaimName::NotNeeded) => return false,
            Ok(ClaimName::Named { name, is_generated }) => (name, is_generated),
        };
        let Some(claim) = self.claims.get(&Key::new(pod.meta().namespace(), name)) else {
            // A claim that the pod names itself must come from its user.
            return is_generated;
        };
        if is_generated && !is_for_pod(pod, claim.doc()) {
            // Somebody else has that name; the pod gets a claim under another one.
            return true;
        }
        let is_placed = !pod.str_at("/spec/nodeName").is_empty();
        let lacks_reservation =
            is_placed && is_allocated(claim.doc()) && !is_reserved_for(claim.doc(), pod);
        lacks_reservation || (is_generated && !self.surplus(pod, entry, name).is_empty())
    }

    /// The claims that were made for an entry of a pod, the oldest first.
    pub(super) fn made_for(&self, pod: &Doc, entry: &Doc) -> Vec<Obj> {
        let (namespace, uid) = (pod.meta().namespace(), pod.meta().uid_str());
        let owned = self
            .claims
            .by_index(CLAIMS_BY_OWNER, &owner_value(namespace, uid));
        let mut made = owned.unwrap_or_default();
        made.retain(|claim| claim.meta().annotation(POD_CLAIM_NAME) == Some(entry.str_at("/name")));
        made.sort_by_cached_key(|claim| {
            let meta = claim.meta();
            (meta.is_deleting(), meta.creation_timestamp(), claim.uid())
        });
        made
    }

    /// The claims of an entry that nobody uses beside the one that the pod names. They come from
    /// two controllers that worked at the same time.
    pub(super) fn surplus(&self, pod: &Doc, entry: &Doc, kept: &str) -> Vec<Obj> {
        let mut made = self.made_for(pod, entry);
        made.retain(|claim| {
            claim.name() != kept
                && !claim.meta().is_deleting()
                && !is_allocated(claim.doc())
                && claim.doc().at("/status/reservedFor").items().is_empty()
        });
        made
    }
}

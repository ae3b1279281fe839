//! Owners of claims: who takes a claim with it when it is deleted.

use windlass_core::{Doc, Gvk, OwnerRef};

use super::spec::SetSpec;

/// A set, one of its pods, and what the retention policy says about the pod's claims.
pub(super) struct ClaimOwners<'a> {
    pub(super) set: &'a Doc,
    pub(super) set_kind: &'a Gvk,
    pub(super) pod: &'a Doc,
    pub(super) pod_kind: &'a Gvk,
    pub(super) spec: &'a SetSpec,
    pub(super) ordinal: i64,
}

impl ClaimOwners<'_> {
    /// Returns true if a claim names an earlier pod of this name. It goes with that pod.
    pub(super) fn is_stale(&self, claim: &Doc) -> bool {
        self.spec.retention.deletes_when_scaled && has_stale(claim, self.pod, self.pod_kind)
    }

    /// Returns true if somebody else manages a claim whose fate the policy would decide.
    pub(super) fn is_foreign(&self, claim: &Doc) -> bool {
        let policy = self.spec.retention;
        if !policy.deletes_with_set && !policy.deletes_when_scaled {
            return false;
        }
        claim.meta().owner_refs().any(|reference| {
            if names(&reference, self.set, self.set_kind) {
                return reference.uid != self.set.meta().uid();
            }
            if names(&reference, self.pod, self.pod_kind) {
                return reference.uid != self.pod.meta().uid();
            }
            reference.controller
        })
    }

    /// Returns true if the owners of a claim are those that the policy asks for. A claim in an
    /// unknown state is left alone.
    pub(super) fn is_up_to_date(&self, claim: &Doc) -> bool {
        if has_stale(claim, self.set, self.set_kind) || has_stale(claim, self.pod, self.pod_kind) {
            return true;
        }
        let (by_set, by_pod) = (has_owner(claim, self.set), has_owner(claim, self.pod));
        if self.is_foreign(claim) {
            return !by_set && !by_pod;
        }
        if self.has_plain_owner(claim) {
            return false;
        }
        (by_set, by_pod) == self.wanted()
    }

    /// The owners that a claim should have.
    pub(super) fn corrected(&self, claim: &Doc) -> Vec<Doc> {
        let is_ours = |reference: &OwnerRef| {
            names(reference, self.set, self.set_kind) || names(reference, self.pod, self.pod_kind)
        };
        let mut kept: Vec<Doc> = Vec::new();
        for (reference, doc) in claim
            .meta()
            .owner_refs()
            .zip(claim.at("/metadata/ownerReferences").items())
        {
            if !is_ours(&reference) {
                kept.push(doc.clone());
            }
        }
        if self.is_foreign(claim) {
            return kept;
        }
        let (by_set, by_pod) = self.wanted();
        if by_set {
            kept.push(Doc::from(&OwnerRef::controller_of(self.set, self.set_kind)));
        }
        if by_pod {
            kept.push(Doc::from(&OwnerRef::controller_of(self.pod, self.pod_kind)));
        }
        kept
    }

    /// Ownership by the set and by the pod. A pod that is scaled away takes its claim with it.
    fn wanted(&self) -> (bool, bool) {
        let policy = self.spec.retention;
        let is_scaled_down = !self.spec.ordinals.contains(&self.ordinal);
        let by_pod = policy.deletes_when_scaled && is_scaled_down;
        (policy.deletes_with_set && !by_pod, by_pod)
    }

    /// Returns true if the set or the pod owns a claim without managing it.
    fn has_plain_owner(&self, claim: &Doc) -> bool {
        let uids = [self.set.meta().uid(), self.pod.meta().uid()];
        let mut owners = claim.meta().owner_refs();
        owners.any(|it| uids.contains(&it.uid) && !it.controller)
    }
}

/// Returns true if a reference names an object, whatever its UID.
fn names(reference: &OwnerRef, object: &Doc, kind: &Gvk) -> bool {
    reference.api_version == kind.api_version()
        && reference.kind == kind.kind()
        && reference.name == object.meta().name()
}

fn has_owner(claim: &Doc, owner: &Doc) -> bool {
    let uid = owner.meta().uid();
    claim.meta().owner_refs().any(|it| it.uid == uid)
}

/// Returns true if a claim names an object that had the name before.
fn has_stale(claim: &Doc, object: &Doc, kind: &Gvk) -> bool {
    let mut owners = claim.meta().owner_refs();
    let found = owners.find(|it| names(it, object, kind));
    found.is_some_and(|it| it.uid != object.meta().uid())
}

#[cfg(test)]
mod tests {
    use windlass_core::{GroupVersion, doc};
    use windlass_runtime::ResourceKind;

    use super::*;

    fn verdict(deleted: &str, scaled: &str, ordinal: i64, owners: &[&str]) -> (bool, Vec<String>) {
        let policy = doc!({ "whenDeleted": deleted, "whenScaled": scaled });
        let set = doc!({
            "metadata": { "name": "web", "uid": "set" },
            "spec": { "replicas": 2, "persistentVolumeClaimRetentionPolicy": policy }
        });
        let pod = doc!({ "metadata": { "name": (format!("web-{ordinal}")), "uid": "pod" } });
        let (apps, core) = (
            GroupVersion::constant("apps", "v1"),
            GroupVersion::constant("", "v1"),
        );
        let set_kind = ResourceKind::namespaced(apps, "StatefulSet", "statefulsets");
        let pod_kind = ResourceKind::namespaced(core, "Pod", "pods");
        let reference = |owner: &&str| match *owner {
            "set" => Doc::from(&OwnerRef::controller_of(&set, set_kind.gvk())),
            "pod" => Doc::from(&OwnerRef::controller_of(&pod, pod_kind.gvk())),
            "earlier pod" => Doc::from(&OwnerRef::controller_of(&pod, pod_kind.gvk()))
                .with("/uid", "gone")
                .unwrap(),
            other => doc!({
                "apiVersion": "v1", "kind": "X", "name": other, "uid": other, "controller": true
            }),
        };
        let references: Vec<Doc> = owners.iter().map(reference).collect();
        let claim = doc!({ "metadata": { "ownerReferences": references } });
        let owners = ClaimOwners {
            set: &set,
            set_kind: set_kind.gvk(),
            pod: &pod,
            pod_kind: pod_kind.gvk(),
            spec: &SetSpec::of(&set),
            ordinal,
        };
        let corrected = owners.corrected(&claim);
        let corrected = corrected.iter().map(|it| it.str_at("/uid").to_owned());
        (owners.is_up_to_date(&claim), corrected.collect())
    }

    #[test]
    fn owners_follow_the_retention_policy() {
        let (retain, delete) = ("Retain", "Delete");
        assert_eq!(verdict(retain, retain, 0, &[]), (true, vec![]));
        assert!(!verdict(retain, retain, 0, &["set"]).0);
        let by_set = vec!["set".to_owned()];
        assert_eq!(verdict(delete, retain, 0, &[]), (false, by_set.clone()));
        assert!(verdict(delete, retain, 5, &["set"]).0);
        assert_eq!(verdict(delete, delete, 0, &[]), (false, by_set));
        let by_pod = vec!["pod".to_owned()];
        assert_eq!(
            verdict(delete, delete, 5, &["set"]),
            (false, by_pod.clone())
        );
        assert_eq!(verdict(retain, delete, 5, &[]), (false, by_pod));
        assert!(verdict(retain, delete, 0, &[]).0);
    }

    #[test]
    fn claims_of_others_are_left_alone() {
        assert!(verdict("Delete", "Retain", 0, &["other"]).0);
        let (is_right, owners) = verdict("Delete", "Retain", 0, &["other", "set"]);
        assert!(!is_right && owners == ["other"]);
        assert!(verdict("Retain", "Delete", 0, &["earlier pod"]).0);
    }
}

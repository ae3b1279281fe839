//! The fields of claims and volumes that name each other.

use windlass_core::{Doc, Key, Quantity};

/// On a claim: the binding was completed once. If the volume is missing now, it was lost.
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On both: this controller made the binding, so that it may take it back.
pub(crate) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On a volume: the provisioner that made it.
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// On a claim: the node of its first pod, chosen by the scheduler.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On a claim: the provisioner that is to make its volume.
pub(crate) const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The same under its first name.
pub(crate) const BETA_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// The class of a claim or volume, before there was a field for it.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(crate) fn has_annotation(object: &Doc, key: &str) -> bool {
    object.meta().annotation(key).is_some()
}

/// The storage class of a claim or a volume; empty for none.
pub(crate) fn class_of(object: &Doc) -> &str {
    let old = object.meta().annotation(BETA_CLASS);
    old.unwrap_or_else(|| object.str_at("/spec/storageClassName"))
}

/// Returns true if a claim says something about its class, be it that it wants none.
pub(crate) fn has_class(claim: &Doc) -> bool {
    has_annotation(claim, BETA_CLASS) || !claim.at("/spec/storageClassName").is_null()
}

/// The claim that a volume names.
pub(crate) fn claim_of(volume: &Doc) -> Option<Key> {
    let reference = volume.at("/spec/claimRef");
    let (namespace, name) = (reference.str_at("/namespace"), reference.str_at("/name"));
    (!reference.is_null()).then(|| Key::new(namespace, name))
}

/// Returns true if a volume is meant for a claim: by name, and by UID if it names one.
pub(crate) fn is_meant_for(volume: &Doc, claim: &Doc) -> bool {
    let uid = volume.str_at("/spec/claimRef/uid");
    claim_of(volume) == Some(claim.meta().key())
        && (uid.is_empty() || uid == claim.meta().uid_str())
}

/// The size of a volume in bytes; zero if it says none.
pub(crate) fn capacity(volume: &Doc) -> i128 {
    bytes(volume.str_at("/spec/capacity/storage"))
}

/// The size that a claim asks for in bytes.
pub(crate) fn requested(claim: &Doc) -> i128 {
    bytes(claim.str_at("/spec/resources/requests/storage"))
}

fn bytes(quantity: &str) -> i128 {
    let parsed: Option<Quantity> = quantity.parse().ok();
    parsed.map_or(0, |it| i128::from(it.value()))
}

/// The access modes of a claim or a volume.
pub(crate) fn access_modes(object: &Doc) -> Vec<&str> {
    let modes = object.at("/spec/accessModes").items().iter();
    modes.filter_map(Doc::as_str).collect()
}

/// Returns true if a volume offers all access modes of a claim.
pub(crate) fn offers_modes(volume: &Doc, claim: &Doc) -> bool {
    let offered = access_modes(volume);
    access_modes(claim)
        .iter()
        .all(|mode| offered.contains(mode))
}

/// The volume mode, which is a file system where nothing is said.
pub(crate) fn volume_mode(object: &Doc) -> &str {
    match object.str_at("/spec/volumeMode") {
        "" => "Filesystem",
        mode => mode,
    }
}

/// The volume attributes class; empty for none.
pub(crate) fn attributes_class(object: &Doc) -> &str {
    object.str_at("/spec/volumeAttributesClassName")
}

//! Volumes that suit a claim, and nodes that suit a volume.

use windlass_core::{Doc, LabelSelector, Quantity, Selector};

use crate::allocator::node_matches;

/// The annotation that was there before `storageClassName`.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// The provisioner of classes that provision nothing.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The name of the StorageClass of a claim or a volume.
pub(super) fn class_name(object: &Doc) -> &str {
    let old = object.meta().annotation(CLASS_ANNOTATION);
    old.unwrap_or_else(|| object.str_at("/spec/storageClassName"))
}

/// Returns true if a volume can be used on a node.
pub(super) fn is_reachable(volume: &Doc, node: &Doc) -> bool {
    let required = volume.at("/spec/nodeAffinity/required");
    required.is_null() || node_matches(required, node).unwrap_or(false)
}

/// The smallest of the volumes that suit a claim on a node.
pub(super) fn find_volume<'a>(
    claim: &Doc,
    node: &Doc,
    volumes: &'a [Doc],
    is_taken: impl Fn(&Doc) -> bool,
) -> Option<&'a Doc> {
    let wanted = size(claim.at("/spec/resources/requests/storage"));
    let suits = |volume: &&Doc| {
        size(volume.at("/spec/capacity/storage")) >= wanted
            && mode(volume) == mode(claim)
            && !volume.meta().is_deleting()
            && is_reachable(volume, node)
    };
    let mut reserved = volumes
        .iter()
        .filter(|volume| is_reserved_for(volume, claim));
    if let Some(volume) = reserved.next() {
        return Some(volume).filter(suits);
    }
    let selector = selector_of(claim);
    let free = volumes.iter().filter(|volume| {
        volume.at("/spec/claimRef").is_null()
            && volume.str_at("/status/phase") == "Available"
            && class_name(volume) == class_name(claim)
            && selector.matches(&volume.meta().labels())
            && has_modes(volume, claim)
            && !is_taken(volume)
    });
    free.filter(suits)
        .min_by_key(|volume| size(volume.at("/spec/capacity/storage")))
}

/// Returns true if a volume of the class can be provisioned for a node.
pub(super) fn can_provision(class: &Doc, node: &Doc) -> bool {
    let provisioner = class.str_at("/provisioner");
    if provisioner.is_empty() || provisioner == NO_PROVISIONER {
        return false;
    }
    let terms = class.at("/allowedTopologies").items();
    let meets = |expression: &Doc| {
        let value = node.meta().label(expression.str_at("/key"));
        let mut values = expression.at("/values").items().iter();
        value.is_some_and(|value| values.any(|one| one == value))
    };
    let mut allowed = terms.iter();
    terms.is_empty()
        || allowed.any(|term| {
            let mut expressions = term.at("/matchLabelExpressions").items().iter();
            expressions.all(meets)
        })
}

fn is_reserved_for(volume: &Doc, claim: &Doc) -> bool {
    let (owner, meta) = (volume.at("/spec/claimRef"), claim.meta());
    let uid = owner.str_at("/uid");
    owner.str_at("/namespace") == meta.namespace()
        && owner.str_at("/name") == meta.name()
        && (uid.is_empty() || uid == meta.uid_str())
}

fn has_modes(volume: &Doc, claim: &Doc) -> bool {
    let offered = volume.at("/spec/accessModes").items();
    let mut wanted = claim.at("/spec/accessModes").items().iter();
    wanted.all(|mode| offered.contains(mode))
}

fn mode(object: &Doc) -> &str {
    match object.str_at("/spec/volumeMode") {
        "" => "Filesystem",
        mode => mode,
    }
}

fn size(amount: &Doc) -> i64 {
    let read = amount.as_str().and_then(|text| text.parse().ok());
    read.unwrap_or(Quantity::ZERO).value()
}

/// A claim without a selector takes any volume.
fn selector_of(claim: &Doc) -> Selector {
    let given = claim.at("/spec/selector");
    if given.is_null() {
        return Selector::everything();
    }
    let read = given.decode::<LabelSelector>().ok();
    let compiled = read.and_then(|read| Selector::try_from(&read).ok());
    compiled.unwrap_or_else(Selector::nothing)
}

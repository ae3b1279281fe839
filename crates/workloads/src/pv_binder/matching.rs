//! The volume that fits a claim best.

use windlass_cache::Obj;
use windlass_core::{Doc, LabelSelector, Selector};
use windlass_runtime::Result;

use super::facts::{
    access_modes, attributes_class, capacity, class_of, is_meant_for, offers_modes, requested,
    volume_mode,
};

/// The best volume: one that is meant for the claim, or the smallest that is free, among those with
/// the fewest access modes. With delayed binding only the scheduler chooses a free one.
pub(super) fn best<'v>(
    claim: &Doc,
    volumes: &'v [Obj],
    is_delayed: bool,
) -> Result<Option<&'v Obj>> {
    let selector = selector_of(claim)?;
    let mut candidates: Vec<&Obj> = volumes
        .iter()
        .filter(|volume| fits(volume.doc(), claim))
        .collect();
    // Volumes with the same modes are looked at together, those with the fewest first.
    candidates.sort_by_key(|volume| {
        let mut modes = access_modes(volume.doc());
        modes.sort_unstable();
        (modes.len(), modes.join(","))
    });
    let same_modes = |a: &&Obj, b: &&Obj| {
        let sorted = |it: &Obj| {
            let mut modes = access_modes(it.doc())
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>();
            modes.sort_unstable();
            modes
        };
        sorted(a) == sorted(b)
    };
    for group in candidates.chunk_by(same_modes) {
        let meant = group.iter().find(|it| is_meant_for(it.doc(), claim));
        let free = group
            .iter()
            .filter(|it| !is_delayed && is_free(it.doc(), claim, selector.as_ref()));
        let smallest = || free.min_by_key(|it| (capacity(it.doc()), it.name().to_owned()));
        if let Some(found) = meant.or_else(smallest) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn selector_of(claim: &Doc) -> Result<Option<Selector>> {
    let selector = claim.at("/spec/selector");
    if selector.is_null() {
        return Ok(None);
    }
    Ok(Some(Selector::try_from(
        &selector.decode::<LabelSelector>()?,
    )?))
}

/// Returns true if a volume offers the least that even one that is meant for the claim must.
fn fits(volume: &Doc, claim: &Doc) -> bool {
    let is_open = volume.at("/spec/claimRef").is_null() || is_meant_for(volume, claim);
    is_open
        && !volume.meta().is_deleting()
        && offers_modes(volume, claim)
        && capacity(volume) >= requested(claim)
        && volume_mode(volume) == volume_mode(claim)
        && attributes_class(volume) == attributes_class(claim)
}

fn is_free(volume: &Doc, claim: &Doc, selector: Option<&Selector>) -> bool {
    volume.str_at("/status/phase") == "Available"
        && class_of(volume) == class_of(claim)
        && selector.is_none_or(|selector| selector.matches(&volume.meta().labels()))
}

/// The reason why a claim cannot have the volume that it names.
pub(super) fn mismatch(volume: &Doc, claim: &Doc) -> Option<String> {
    if volume.meta().is_deleting() {
        let name = volume.meta().name();
        return Some(format!("the volume is marked for deletion {name:?}"));
    }
    let problems = [
        (
            capacity(volume) < requested(claim),
            "requested PV is too small",
        ),
        (
            class_of(volume) != class_of(claim),
            "storageClassName does not match",
        ),
        (
            attributes_class(volume) != attributes_class(claim),
            "volumeAttributesClassName does not match",
        ),
        (
            volume_mode(volume) != volume_mode(claim),
            "incompatible volumeMode",
        ),
        (!offers_modes(volume, claim), "incompatible accessMode"),
    ];
    let found = problems.iter().find(|(is_wrong, _)| *is_wrong);
    found.map(|(_, text)| (*text).to_owned())
}

//! What holds after every single write, whatever goes wrong.

use std::collections::{BTreeMap, BTreeSet};

use windlass_core::{Doc, Key};
use windlass_placement::claims::{
    CONSUMERS_LIMIT, ClaimName, FINALIZER, POD_CLAIM_NAME, claim_name, is_allocated, is_pod_done,
    is_reserved_for,
};

use crate::claim_faults::history::{Change, Moment};

/// Devices of one claim, at most.
const RESULTS_LIMIT: usize = 32;

type Verdict = Result<(), String>;

pub(crate) fn all(now: &Moment, change: &Change<'_>) -> Verdict {
    match change.resource {
        "resourceclaims" => {
            if let Some(claim) = change.new {
                claims_are_made_once(now)?;
                devices_are_given_once(now)?;
                devices_exist(now, claim)?;
                limits_hold(claim)?;
                allocated_claims_are_protected(claim)?;
            }
            if let Some(old) = change.old {
                users_keep_their_reservation(now, old, change.new)?;
                devices_are_given_back_unused(old, change.new)?;
            }
            running_pods_have_devices(now)
        }
        "pods" => {
            if let Some(pod) = change.new {
                recorded_claims_are_the_pods_own(now, pod, change.old)?;
                pods_are_placed_with_all_devices(now, pod, change.old)?;
            }
            running_pods_have_devices(now)
        }
        _ => Ok(()),
    }
}

fn ensure(holds: bool, text: impl FnOnce() -> String) -> Verdict {
    match holds {
        true => Ok(()),
        false => Err(text()),
    }
}

/// An entry of a pod has one claim at most.
fn claims_are_made_once(now: &Moment) -> Verdict {
    let mut made = BTreeSet::new();
    for claim in now.of("resourceclaims") {
        let meta = claim.meta();
        let Some(entry) = meta.annotation(POD_CLAIM_NAME) else {
            continue;
        };
        for owner in meta.owner_refs().filter(|_| !meta.is_deleting()) {
            ensure(made.insert((owner.uid, entry)), || {
                format!("{} is the second claim for {entry}", meta.key())
            })?;
        }
    }
    Ok(())
}

fn devices(claim: &Doc) -> impl Iterator<Item = (&str, &str)> {
    let results = claim.at("/status/allocation/devices/results").items();
    results
        .iter()
        .map(|result| (result.str_at("/pool"), result.str_at("/device")))
}

fn devices_are_given_once(now: &Moment) -> Verdict {
    let mut owners: BTreeMap<(&str, &str), Key> = BTreeMap::new();
    for claim in now.of("resourceclaims") {
        for device in devices(claim) {
            let before = owners.insert(device, claim.meta().key());
            ensure(before.is_none(), || {
                format!("{device:?} is of {} and {before:?}", claim.meta().key())
            })?;
        }
    }
    Ok(())
}

/// A claim has devices that its slice has, on the node where its pods are.
fn devices_exist(now: &Moment, claim: &Doc) -> Verdict {
    for (pool, device) in devices(claim) {
        let mut slices = now.of("resourceslices");
        let is_there = slices.any(|slice| {
            let mut devices = slice.at("/spec/devices").items().iter();
            slice.str_at("/spec/pool/name") == pool
                && devices.any(|it| it.str_at("/name") == device)
        });
        ensure(is_there, || format!("{pool}/{device} does not exist"))?;
        for consumer in claim.at("/status/reservedFor").items() {
            let pod = now.by_uid("pods", consumer.str_at("/uid"));
            let node = pod.map_or("", |pod| pod.str_at("/spec/nodeName"));
            ensure(node.is_empty() || node == pool, || {
                format!("{pool}/{device} is used on {node}")
            })?;
        }
    }
    Ok(())
}

fn limits_hold(claim: &Doc) -> Verdict {
    let consumers = claim.at("/status/reservedFor").items().len();
    ensure(consumers <= CONSUMERS_LIMIT, || {
        format!("{consumers} pods use it")
    })?;
    let results = devices(claim).count();
    ensure(results <= RESULTS_LIMIT, || {
        format!("it has {results} devices")
    })
}

fn allocated_claims_are_protected(claim: &Doc) -> Verdict {
    let is_protected = claim.meta().has_finalizer(FINALIZER);
    ensure(is_protected || !is_allocated(claim), || {
        "it has devices and no finalizer".to_owned()
    })
}

/// A pod loses its reservation when it is gone or done; one that has no node yet may also be tried
/// elsewhere.
fn users_keep_their_reservation(now: &Moment, old: &Doc, new: Option<&Doc>) -> Verdict {
    for consumer in old.at("/status/reservedFor").items() {
        let uid = consumer.str_at("/uid");
        let Some(pod) = now.by_uid("pods", uid) else {
            continue;
        };
        let is_kept = new.is_some_and(|claim| is_reserved_for(claim, pod));
        let is_waiting = pod.str_at("/spec/nodeName").is_empty();
        ensure(is_kept || is_pod_done(pod) || is_waiting, || {
            format!("{} has lost its reservation", pod.meta().key())
        })?;
    }
    Ok(())
}

/// Devices go back when nobody uses them, and the finalizer after them.
fn devices_are_given_back_unused(old: &Doc, new: Option<&Doc>) -> Verdict {
    let Some(new) = new else {
        return ensure(!is_allocated(old), || "it went with its devices".to_owned());
    };
    let is_used = !new.at("/status/reservedFor").items().is_empty();
    let gives_back = is_allocated(old) && !is_allocated(new);
    ensure(!gives_back || !is_used, || {
        "its devices went while it is in use".to_owned()
    })
}

/// The claim that an entry of a pod has, if there is one at that moment.
fn claim_of<'m>(now: &'m Moment, pod: &Doc, entry: &Doc) -> Option<&'m Doc> {
    let Ok(ClaimName::Named { name, .. }) = claim_name(pod, entry) else {
        return None;
    };
    now.get("resourceclaims", Key::new(pod.meta().namespace(), name))
}

fn is_owned_by(claim: &Doc, pod: &Doc) -> bool {
    claim
        .meta()
        .owner_refs()
        .any(|owner| owner.uid == pod.meta().uid())
}

/// What is written to the status of a pod is a claim that was made for this very pod. It may be
/// gone again by then; another one is made in its place.
fn recorded_claims_are_the_pods_own(now: &Moment, pod: &Doc, old: Option<&Doc>) -> Verdict {
    let recorded = |pod: &Doc| pod.at("/status/resourceClaimStatuses").clone();
    if old.is_some_and(|old| recorded(old) == recorded(pod)) {
        return Ok(());
    }
    for status in recorded(pod).items() {
        let name = status.str_at("/resourceClaimName");
        let key = Key::new(pod.meta().namespace(), name);
        let found = now.get("resourceclaims", key);
        ensure(found.is_none_or(|claim| is_owned_by(claim, pod)), || {
            format!("{name} is recorded, and is not its own")
        })?;
    }
    Ok(())
}

/// A pod gets a node when it has all of its devices, and not some of them.
fn pods_are_placed_with_all_devices(now: &Moment, pod: &Doc, old: Option<&Doc>) -> Verdict {
    let node = |pod: &Doc| pod.str_at("/spec/nodeName").to_owned();
    if node(pod).is_empty() || old.is_some_and(|old| node(old) == node(pod)) {
        return Ok(());
    }
    for entry in pod.at("/spec/resourceClaims").items() {
        let claim = claim_of(now, pod, entry);
        let has_devices = claim.is_some_and(|it| is_allocated(it) && is_reserved_for(it, pod));
        ensure(has_devices, || {
            format!("{} is placed without all of its devices", pod.meta().key())
        })?;
    }
    Ok(())
}

/// No claim is made for a pod whose deletion has begun. This holds for those who have seen that.
pub(crate) fn ending_pods_get_no_claim(now: &Moment, change: &Change<'_>) -> Verdict {
    let (Some(claim), None, "resourceclaims") = (change.new, change.old, change.resource) else {
        return Ok(());
    };
    for owner in claim.meta().owner_refs() {
        let pod = now.by_uid("pods", owner.uid.as_str());
        let is_wanted = pod.is_some_and(|pod| !pod.meta().is_deleting());
        ensure(is_wanted, || {
            format!("it is made for {}, which is being deleted", owner.name)
        })?;
    }
    Ok(())
}

/// When nobody writes any more, what the status of a pod names is there, and is its own; and a pod
/// that waits keeps no device from others.
pub(crate) fn at_rest(pods: &[Doc], claims: &[Doc]) -> Verdict {
    for pod in pods.iter().filter(|pod| !is_pod_done(pod)) {
        let is_waiting = pod.str_at("/spec/nodeName").is_empty();
        for entry in pod.at("/spec/resourceClaims").items() {
            let key = pod.meta().key();
            let Ok(ClaimName::Named { name, .. }) = claim_name(pod, entry) else {
                continue;
            };
            let claim = claims.iter().find(|claim| claim.meta().name() == name);
            ensure(claim.is_some(), || format!("{key} lacks its claim {name}"))?;
            let is_template = !entry.str_at("/resourceClaimTemplateName").is_empty();
            let is_own = claim.is_some_and(|claim| !is_template || is_owned_by(claim, pod));
            ensure(is_own, || format!("{name} is not a claim of {key}"))?;
            let is_held = claim.is_some_and(|claim| is_reserved_for(claim, pod));
            ensure(!is_waiting || !is_held, || {
                format!("{key} waits and has {name}")
            })?;
        }
    }
    Ok(())
}

/// A pod runs only with all of its devices.
fn running_pods_have_devices(now: &Moment) -> Verdict {
    let running = now
        .of("pods")
        .filter(|pod| pod.str_at("/status/phase") == "Running");
    for pod in running {
        for entry in pod.at("/spec/resourceClaims").items() {
            let Ok(ClaimName::Named { name, .. }) = claim_name(pod, entry) else {
                return Err(format!("{} runs without a claim", pod.meta().key()));
            };
            let claim = now.get("resourceclaims", Key::new(pod.meta().namespace(), name));
            let has_devices = claim.is_some_and(|it| is_allocated(it) && is_reserved_for(it, pod));
            ensure(has_devices, || {
                format!("{} runs without devices", pod.meta().key())
            })?;
        }
    }
    Ok(())
}

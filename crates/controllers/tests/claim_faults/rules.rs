//! What holds after every single write, whatever goes wrong.

use std::collections::{BTreeMap, BTreeSet};

use windlass_controllers::claims::{
    CONSUMERS_LIMIT, ClaimName, FINALIZER, POD_CLAIM_NAME, claim_name, is_allocated, is_pod_done,
    is_reserved_for,
};
use windlass_core::{Doc, Key};

use crate::history::{Change, Moment};

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
        "pods" => running_pods_have_devices(now),
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

//! What a claim gets, and who uses it.

use std::collections::HashSet;

use windlass_core::{Doc, names};

use super::{claim::request_names, common};
use crate::field::{FieldErrors, FieldPath};

/// Limits of upstream.
const RESULTS_MAX: usize = 32;
const CONFIG_MAX: usize = 64;
const RESERVED_MAX: usize = 256;
const POOL_MAX: usize = 253;
const CONDITIONS_MAX: usize = 8;

pub(super) fn validate_status(new: &Doc, old: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let (allocation, before) = (new.at("/status/allocation"), old.at("/status/allocation"));
    let allocation_path = path.child("allocation");
    match (before.is_null(), allocation.is_null()) {
        (false, false) => errors.immutable(&allocation_path, allocation, before),
        (true, false) => validate_allocation(new, allocation, &allocation_path, errors),
        _ => {}
    }
    validate_reservations(new, old, &path.child("reservedFor"), errors);
    validate_devices(new, old, &path.child("devices"), errors);
}

/// Devices that are not allocated any more have nothing to report.
pub(super) fn without_stale_devices(new: Doc, old: &Doc) -> Doc {
    let devices = new.at("/status/devices").items();
    let had = old.at("/status/devices").items();
    let (allocated, had) = (allocated(&new), identities(had));
    let is_stale = |device: &Doc| {
        let identity = identity(device);
        !allocated.contains(&identity) && had.contains(&identity)
    };
    let kept: Vec<Doc> = devices
        .iter()
        .filter(|one| !is_stale(one))
        .cloned()
        .collect();
    if kept.len() == devices.len() {
        return new;
    }
    let changed = match kept.is_empty() {
        true => new.without("/status/devices"),
        false => new.with("/status/devices", kept),
    };
    changed.unwrap_or(new)
}

/// What tells a device from others.
type Identity<'a> = [&'a Doc; 4];

fn identity(device: &Doc) -> Identity<'_> {
    ["/driver", "/pool", "/device", "/shareID"].map(|key| device.at(key))
}

fn identities(devices: &[Doc]) -> HashSet<Identity<'_>> {
    devices.iter().map(identity).collect()
}

/// The devices that a claim has.
fn allocated(claim: &Doc) -> HashSet<Identity<'_>> {
    identities(claim.at("/status/allocation/devices/results").items())
}

fn validate_allocation(claim: &Doc, allocation: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let requests = request_names(claim.at("/spec/devices"));
    let (devices, path) = (allocation.at("/devices"), path.child("devices"));
    let results = devices.at("/results").items();
    let results_path = path.child("results");
    if results.len() > RESULTS_MAX {
        errors.too_many(&results_path, results.len(), RESULTS_MAX);
    } else {
        for (index, result) in results.iter().enumerate() {
            validate_result(result, &results_path.index(index), &requests, errors);
        }
    }
    common::validate_configs(devices, &path, CONFIG_MAX, Some(&requests), errors);
    let configs = devices.at("/config").items().iter().enumerate();
    for (index, config) in configs {
        let path = path.child("config").index(index).child("source");
        match config.str_at("/source") {
            "FromClass" | "FromClaim" => {}
            "" => errors.required(&path, ""),
            other => errors.not_supported(&path, other, &["FromClaim", "FromClass"]),
        }
    }
}

fn validate_result(result: &Doc, path: &FieldPath, requests: &[String], errors: &mut FieldErrors) {
    let request = result.str_at("/request");
    common::validate_reference(request, &path.child("request"), requests, errors);
    common::validate_driver(result.at("/driver"), &path.child("driver"), errors);
    validate_pool(result.str_at("/pool"), &path.child("pool"), errors);
    let device = result.str_at("/device");
    errors.invalid_each(&path.child("device"), device, names::dns1123_label(device));
}

/// A pool is one or more domains, with slashes in between.
pub(super) fn validate_pool(pool: &str, path: &FieldPath, errors: &mut FieldErrors) {
    if pool.is_empty() {
        errors.required(path, "");
        return;
    }
    if pool.len() > POOL_MAX {
        errors.too_long(path, POOL_MAX);
    }
    for part in pool.split('/') {
        errors.invalid_each(path, part, names::dns1123_subdomain(part));
    }
}

fn validate_reservations(new: &Doc, old: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let reserved = new.at("/status/reservedFor").items();
    if reserved.len() > RESERVED_MAX {
        errors.too_many(path, reserved.len(), RESERVED_MAX);
    } else {
        validate_consumers(reserved, path, errors);
    }
    if !reserved.is_empty() && new.at("/status/allocation").is_null() {
        errors.forbidden(path, "may not be specified when `allocated` is not set");
    }
    let before = old.at("/status/reservedFor").items();
    let before: HashSet<&Doc> = before.iter().map(|known| known.at("/uid")).collect();
    let is_new = |consumer: &Doc| !before.contains(consumer.at("/uid"));
    if new.meta().is_deleting() && reserved.iter().any(is_new) {
        let detail = "new entries may not be added while `deallocationRequested` or \
                      `deletionTimestamp` are set";
        errors.forbidden(path, detail);
    }
}

fn validate_consumers(reserved: &[Doc], path: &FieldPath, errors: &mut FieldErrors) {
    let mut seen = std::collections::HashSet::new();
    for (index, consumer) in reserved.iter().enumerate() {
        let path = path.index(index);
        for key in ["resource", "name", "uid"] {
            if consumer
                .get(key)
                .and_then(Doc::as_str)
                .unwrap_or("")
                .is_empty()
            {
                errors.required(&path.child(key), "");
            }
        }
        let uid = consumer.str_at("/uid");
        if !uid.is_empty() && !seen.insert(uid) {
            errors.duplicate(&path, uid);
        }
    }
}

/// What drivers say about the devices of a claim.
fn validate_devices(new: &Doc, old: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let devices = new.at("/status/devices").items();
    let before: HashSet<&Doc> = old.at("/status/devices").items().iter().collect();
    let (allocated, mut seen) = (allocated(new), HashSet::new());
    for (index, device) in devices.iter().enumerate() {
        let path = path.index(index);
        if !seen.insert(identity(device)) {
            errors.duplicate(&path, device);
        }
        if before.contains(device) {
            continue;
        }
        if !allocated.contains(&identity(device)) {
            errors.invalid(&path, device, "must be an allocated device in the claim");
        }
        let conditions = device.at("/conditions").items().len();
        if conditions > CONDITIONS_MAX {
            errors.too_many(&path.child("conditions"), conditions, CONDITIONS_MAX);
        }
        common::validate_raw(device.at("/data"), &path.child("data"), false, errors);
    }
}

//! Resource claims, their templates, device classes and resource slices.

use windlass_core::{Doc, names};

use super::fields::{Fields, edit};
use crate::field::{FieldErrors, FieldPath};
use crate::registry::Hooks;
use crate::rest::put;

/// Limits of upstream.
const REQUESTS_MAX: usize = 32;
const CONSTRAINTS_MAX: usize = 32;
const CONFIG_MAX: usize = 32;
const SELECTORS_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const RESERVED_MAX: usize = 256;
const DEVICES_MAX: usize = 128;

/// Hooks of resource claims.
#[derive(Debug)]
pub(crate) struct ResourceClaims;

/// Hooks of resource claim templates.
#[derive(Debug)]
pub(crate) struct ResourceClaimTemplates;

/// Hooks of device classes.
#[derive(Debug)]
pub(crate) struct DeviceClasses;

/// Hooks of resource slices.
#[derive(Debug)]
pub(crate) struct ResourceSlices;

fn default_claim_spec(spec: &mut Fields) {
    spec.inside("devices", |devices| {
        edit(devices, |devices| {
            devices.each("requests", |request| {
                edit(request, |request| {
                    request.inside("exactly", default_request);
                    request.each("firstAvailable", default_request);
                })
            });
        })
    });
}

fn default_request(request: &Doc) -> Doc {
    edit(request, |request| {
        request.default("allocationMode", "ExactCount");
        if request.text("allocationMode") == "ExactCount"
            && request.get("count").and_then(Doc::as_i64).unwrap_or(0) == 0
        {
            request.set("count", 1);
        }
    })
}

impl Hooks for ResourceClaims {
    fn default(&self, claim: Doc) -> Doc {
        edit(&claim, |claim| {
            claim.inside("spec", |spec| edit(spec, default_claim_spec))
        })
    }

    fn prepare_status(&self, new: Doc, old: &Doc) -> Doc {
        let kept = put(new, "/metadata", old.at("/metadata"));
        if kept.at("/status/allocation").is_null() && !old.at("/status/allocation").is_null() {
            // Devices that are not allocated any more have nothing to report.
            return kept.without("/status/devices").unwrap_or(kept);
        }
        kept
    }

    fn status_resets(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"], &["metadata"]]
    }

    fn validate(&self, claim: &Doc, errors: &mut FieldErrors) {
        validate_spec(claim.at("/spec"), &FieldPath::new("spec"), errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        errors.immutable(&FieldPath::new("spec"), new.at("/spec"), old.at("/spec"));
    }

    fn validate_status(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("status");
        validate_reservations(new, old, &path.child("reservedFor"), errors);
        let (allocation, before) = (new.at("/status/allocation"), old.at("/status/allocation"));
        if !before.is_null() && !allocation.is_null() {
            errors.immutable(&path.child("allocation"), allocation, before);
        }
    }
}

fn validate_spec(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let path = path.child("devices");
    for (key, limit) in [
        ("requests", REQUESTS_MAX),
        ("constraints", CONSTRAINTS_MAX),
        ("config", CONFIG_MAX),
    ] {
        let count = spec.at(&format!("/devices/{key}")).items().len();
        if count > limit {
            errors.too_many(&path.child(key), count, limit);
        }
    }
    let mut seen = Vec::new();
    for (index, request) in spec.at("/devices/requests").items().iter().enumerate() {
        let path = path.child("requests").index(index);
        validate_request(request, &path, errors);
        match request.str_at("/name") {
            "" => errors.required(&path.child("name"), ""),
            name if seen.contains(&name) => errors.duplicate(&path, name),
            name => seen.push(name),
        }
    }
}

fn validate_request(request: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let exactly = request.at("/exactly");
    let alternatives = request.at("/firstAvailable").items();
    match (exactly.is_null(), alternatives.is_empty()) {
        (true, true) => errors.required(
            path,
            "exactly one of `exactly` or `firstAvailable` is required",
        ),
        (false, false) => {
            errors.invalid(path, request, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set");
        }
        (false, true) => validate_exact(exactly, &path.child("exactly"), errors),
        (true, false) => {
            let path = path.child("firstAvailable");
            if alternatives.len() > ALTERNATIVES_MAX {
                errors.too_many(&path, alternatives.len(), ALTERNATIVES_MAX);
            }
            for (index, alternative) in alternatives.iter().enumerate() {
                validate_exact(alternative, &path.index(index), errors);
            }
        }
    }
}

fn validate_exact(request: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let class = path.child("deviceClassName");
    match request.str_at("/deviceClassName") {
        "" => errors.required(&class, ""),
        name => errors.invalid_each(&class, name, names::dns1123_subdomain(name)),
    }
    let selectors = request.at("/selectors").items().len();
    if selectors > SELECTORS_MAX {
        errors.too_many(&path.child("selectors"), selectors, SELECTORS_MAX);
    }
    let count = request.at("/count").as_i64().unwrap_or(0);
    match request.str_at("/allocationMode") {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            errors.invalid(&path.child("count"), count, detail);
        }
        "All" => {}
        "ExactCount" if count <= 0 => {
            errors.invalid(&path.child("count"), count, "must be greater than zero");
        }
        "ExactCount" => {}
        other => {
            errors.not_supported(&path.child("allocationMode"), other, &["All", "ExactCount"]);
        }
    }
}

fn validate_reservations(new: &Doc, old: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let reserved = new.at("/status/reservedFor").items();
    if reserved.len() > RESERVED_MAX {
        errors.too_many(path, reserved.len(), RESERVED_MAX);
    }
    if !reserved.is_empty() && new.at("/status/allocation").is_null() {
        errors.forbidden(path, "may not be specified when `allocated` is not set");
    }
    let mut seen = Vec::new();
    for (index, consumer) in reserved.iter().enumerate() {
        let path = path.index(index);
        for key in ["resource", "name", "uid"] {
            if consumer.str_at(&format!("/{key}")).is_empty() {
                errors.required(&path.child(key), "");
            }
        }
        let uid = consumer.str_at("/uid");
        if seen.contains(&uid) {
            errors.duplicate(&path.child("uid"), uid);
        }
        seen.push(uid);
    }
    let before = old.at("/status/reservedFor").items();
    let has_new = reserved.iter().any(|consumer| !before.contains(consumer));
    if new.meta().is_deleting() && has_new {
        errors.forbidden(path, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set");
    }
}

impl Hooks for ResourceClaimTemplates {
    fn default(&self, template: Doc) -> Doc {
        edit(&template, |template| {
            template.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.inside("spec", |spec| edit(spec, default_claim_spec))
                })
            });
        })
    }

    fn validate(&self, template: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec").child("spec");
        validate_spec(template.at("/spec/spec"), &path, errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        errors.immutable(&FieldPath::new("spec"), new.at("/spec"), old.at("/spec"));
    }
}

impl Hooks for DeviceClasses {
    fn validate(&self, class: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec");
        for (key, limit) in [("selectors", SELECTORS_MAX), ("config", CONFIG_MAX)] {
            let count = class.at(&format!("/spec/{key}")).items().len();
            if count > limit {
                errors.too_many(&path.child(key), count, limit);
            }
        }
    }
}

impl Hooks for ResourceSlices {
    fn validate(&self, slice: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec");
        if slice.str_at("/spec/driver").is_empty() {
            errors.required(&path.child("driver"), "");
        }
        if slice.str_at("/spec/pool/name").is_empty() {
            errors.required(&path.child("pool").child("name"), "");
        }
        let count = slice
            .at("/spec/pool/resourceSliceCount")
            .as_i64()
            .unwrap_or(0);
        if count <= 0 {
            let path = path.child("pool").child("resourceSliceCount");
            errors.invalid(&path, count, "must be greater than zero");
        }
        let places = [
            "nodeName",
            "nodeSelector",
            "allNodes",
            "perDeviceNodeSelection",
        ];
        let given: Vec<&str> = places
            .into_iter()
            .filter(|key| slice.at("/spec").get(key).is_some())
            .collect();
        let detail = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
                      `perDeviceNodeSelection` is required";
        match given.len() {
            0 => errors.required(&path, detail),
            1 => {}
            _ => {
                let shown = format!("{{{}}}", given.join(", "));
                let detail = format!("{detail}, but multiple fields are set");
                errors.invalid(&path, shown, detail);
            }
        }
        let devices = slice.at("/spec/devices").items();
        if devices.len() > DEVICES_MAX {
            errors.too_many(&path.child("devices"), devices.len(), DEVICES_MAX);
        }
        let mut seen = Vec::new();
        for (index, device) in devices.iter().enumerate() {
            let path = path.child("devices").index(index);
            match device.str_at("/name") {
                "" => errors.required(&path.child("name"), ""),
                name if seen.contains(&name) => errors.duplicate(&path, name),
                name => seen.push(name),
            }
        }
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec");
        for (pointer, child) in [
            ("/spec/driver", "driver"),
            ("/spec/nodeName", "nodeName"),
            ("/spec/pool/name", "pool.name"),
        ] {
            errors.immutable(&path.child(child), new.at(pointer), old.at(pointer));
        }
    }
}

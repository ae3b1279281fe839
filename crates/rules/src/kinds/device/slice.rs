//! What a driver offers.

use windlass_core::{Doc, Env, names};

use super::{allocation::validate_pool, common};
use crate::{
    edit::edit,
    field::{FieldErrors, FieldPath},
};

/// Limits of upstream.
const DEVICES_MAX: usize = 128;
const SPECIAL_DEVICES_MAX: usize = 64;
const ENTRIES_MAX: usize = 32;
const TEXT_MAX: usize = 64;
const TAINTS_MAX: usize = 16;
const CONDITIONS_MAX: usize = 4;
const COUNTER_SETS_MAX: usize = 8;
const COUNTERS_MAX: usize = 32;
const CONSUMPTIONS_MAX: usize = 2;

/// The ways to say where devices can be used.
const PLACES: [&str; 4] = [
    "nodeName",
    "nodeSelector",
    "allNodes",
    "perDeviceNodeSelection",
];
const PLACES_DETAIL: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
                             `perDeviceNodeSelection` is required";

pub(super) fn validate(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    common::validate_driver(spec.at("/driver"), &path.child("driver"), errors);
    validate_pool_of(spec, &path.child("pool"), errors);
    validate_place(spec, path, errors);
    if !spec.at("/devices").is_null() && !spec.at("/sharedCounters").is_null() {
        let detail = "only one of `sharedCounters` or `devices` is allowed";
        errors.invalid(path, "{sharedCounters, devices}", detail);
    }
    validate_devices(spec, &path.child("devices"), errors);
    validate_counter_sets(spec, &path.child("sharedCounters"), errors);
}

/// Sets of counters that devices share, each with a name of its own.
fn validate_counter_sets(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let sets = spec.at("/sharedCounters").items();
    if sets.len() > COUNTER_SETS_MAX {
        return errors.too_many(path, sets.len(), COUNTER_SETS_MAX);
    }
    for (index, set) in sets.iter().enumerate() {
        let path = path.index(index);
        validate_counters(set, "name", &path, errors);
        let name = set.str_at("/name");
        if sets[..index]
            .iter()
            .any(|known| known.str_at("/name") == name)
        {
            errors.duplicate(&path, name);
        }
    }
}

/// The counters that a device takes from the sets.
fn validate_consumption(device: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let all = device.at("/consumesCounters").items();
    if all.len() > CONSUMPTIONS_MAX {
        return errors.too_many(path, all.len(), CONSUMPTIONS_MAX);
    }
    for (index, consumption) in all.iter().enumerate() {
        let path = path.index(index);
        validate_counters(consumption, "counterSet", &path, errors);
        let set = consumption.str_at("/counterSet");
        if all[..index]
            .iter()
            .any(|known| known.str_at("/counterSet") == set)
        {
            errors.duplicate(&path, set);
        }
    }
}

/// The name of a set of counters, which stands at a key, and its counters.
fn validate_counters(of: &Doc, key: &str, path: &FieldPath, errors: &mut FieldErrors) {
    match of.get(key).and_then(Doc::as_str).unwrap_or_default() {
        "" => errors.required(&path.child(key), ""),
        name => errors.invalid_each(&path.child(key), name, names::dns1123_label(name)),
    }
    let field = path.child("counters");
    let count = members(of.at("/counters")).count();
    match count {
        0 => errors.required(&field, ""),
        count if count > COUNTERS_MAX => errors.too_many(&field, count, COUNTERS_MAX),
        _ => {
            for (name, _) in members(of.at("/counters")) {
                errors.invalid_each(&field, name, names::dns1123_label(name));
            }
        }
    }
}

fn validate_pool_of(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    validate_pool(spec.str_at("/pool/name"), &path.child("name"), errors);
    let number = |key: &str| spec.at(&format!("/pool/{key}")).as_i64().unwrap_or(0);
    let count = number("resourceSliceCount");
    if count <= 0 {
        let path = path.child("resourceSliceCount");
        errors.invalid(&path, count, "must be greater than zero");
    }
    let generation = number("generation");
    if generation < 0 {
        let detail = "must be greater than or equal to zero";
        errors.invalid(&path.child("generation"), generation, detail);
    }
}

fn validate_place(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let given: Vec<&str> = PLACES
        .into_iter()
        .filter(|key| spec.get(key).is_some())
        .collect();
    match given.len() {
        0 => errors.required(path, PLACES_DETAIL),
        1 => {}
        _ => {
            let shown = format!("{{{}}}", given.join(", "));
            let detail = format!("{PLACES_DETAIL}, but multiple fields are set");
            errors.invalid(path, shown, detail);
        }
    }
    for key in ["allNodes", "perDeviceNodeSelection"] {
        if spec.get(key).and_then(Doc::as_bool) == Some(false) {
            let detail = "must be either unset or set to true";
            errors.invalid(&path.child(key), false, detail);
        }
    }
    match spec.get("nodeName").and_then(Doc::as_str) {
        Some("") => errors.invalid(
            &path.child("nodeName"),
            "",
            "must be either unset or set to a non-empty string",
        ),
        Some(name) => {
            let path = path.child("nodeName");
            errors.invalid_each(&path, name, names::dns1123_subdomain(name));
        }
        None => {}
    }
    let terms = spec.at("/nodeSelector/nodeSelectorTerms").items();
    if spec.get("nodeSelector").is_some() && terms.len() != 1 {
        let path = path.child("nodeSelector").child("nodeSelectorTerms");
        let detail = "must have exactly one node selector term";
        errors.invalid(&path, spec.at("/nodeSelector/nodeSelectorTerms"), detail);
    }
}

fn validate_devices(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let devices = spec.at("/devices").items();
    let is_special = |device: &Doc| {
        let keys = ["/taints", "/consumesCounters"];
        keys.iter().any(|key| !device.at(key).items().is_empty())
    };
    let limit = match devices.iter().any(is_special) {
        true => SPECIAL_DEVICES_MAX,
        false => DEVICES_MAX,
    };
    if devices.len() > limit {
        errors.too_many(path, devices.len(), limit);
        return;
    }
    let mut seen = std::collections::HashSet::new();
    for (index, device) in devices.iter().enumerate() {
        let path = path.index(index);
        let name = device.str_at("/name");
        if !name.is_empty() && !seen.insert(name) {
            errors.duplicate(&path, name);
        }
        match name {
            "" => errors.required(&path.child("name"), ""),
            name => errors.invalid_each(&path.child("name"), name, names::dns1123_label(name)),
        }
        validate_device(device, &path, errors);
    }
}

fn validate_device(device: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let entries = |pointer: &str| device.at(pointer).as_object().map_or(0, |map| map.len());
    let count = entries("/attributes") + entries("/capacity");
    if count > ENTRIES_MAX {
        let detail =
            format!("the total number of attributes and capacities must not exceed {ENTRIES_MAX}");
        errors.invalid(path, count, detail);
    }
    for (name, attribute) in members(device.at("/attributes")) {
        let path = path.child("attributes").key(name);
        common::validate_qualified(name, &path, errors);
        validate_attribute(attribute, &path, errors);
    }
    for (name, capacity) in members(device.at("/capacity")) {
        let path = path.child("capacity").key(name);
        common::validate_qualified(name, &path, errors);
        validate_policy(device, capacity, &path, errors);
    }
    validate_consumption(device, &path.child("consumesCounters"), errors);
    validate_taints(device, &path.child("taints"), errors);
    validate_conditions(device, path, errors);
}

fn members(map: &Doc) -> impl Iterator<Item = (&str, &Doc)> {
    let members = map.as_object().into_iter().flat_map(|map| map.iter());
    members.map(|(name, value)| (name.as_str(), value))
}

fn validate_attribute(attribute: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let kinds = ["bool", "int", "string", "version"];
    let given = kinds
        .iter()
        .filter(|kind| attribute.get(kind).is_some())
        .count();
    if given != 1 {
        match given {
            0 => errors.required(path, "exactly one value must be specified"),
            _ => errors.invalid(path, attribute, "exactly one value must be specified"),
        }
        return;
    }
    for kind in ["string", "version"] {
        let Some(text) = attribute.get(kind).and_then(Doc::as_str) else {
            continue;
        };
        let path = path.child(kind);
        if text.len() > TEXT_MAX {
            errors.too_long(&path, TEXT_MAX);
        }
        if kind == "version" && text.parse::<windlass_cel::Semver>().is_err() {
            let detail = "must be a string compatible with semver.org spec 2.0.0";
            errors.invalid(&path, text, detail);
        }
    }
}

/// How much of a capacity one user may have is for devices that have several.
fn validate_policy(device: &Doc, capacity: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let is_shared = device.at("/allowMultipleAllocations").as_bool() == Some(true);
    if !capacity.at("/requestPolicy").is_null() && !is_shared {
        let detail = "allowMultipleAllocations must be true";
        errors.forbidden(&path.child("requestPolicy"), detail);
    }
}

fn validate_taints(device: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let taints = device.at("/taints").items();
    if taints.len() > TAINTS_MAX {
        errors.too_many(path, taints.len(), TAINTS_MAX);
        return;
    }
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        let (key, value) = (taint.str_at("/key"), taint.str_at("/value"));
        errors.invalid_each(&path.child("key"), key, names::qualified_name(key));
        errors.invalid_each(&path.child("value"), value, names::label_value(value));
        match taint.str_at("/effect") {
            "None" | "NoSchedule" | "NoExecute" => {}
            "" => errors.required(&path.child("effect"), ""),
            other => {
                let effects = &["NoExecute", "NoSchedule", "None"];
                errors.not_supported(&path.child("effect"), other, effects);
            }
        }
    }
}

fn validate_conditions(device: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let of = |key: &str| device.at(&format!("/{key}")).items();
    let (good, bad) = (of("bindingConditions"), of("bindingFailureConditions"));
    for (key, conditions) in [
        ("bindingConditions", good),
        ("bindingFailureConditions", bad),
    ] {
        if conditions.len() > CONDITIONS_MAX {
            errors.too_many(&path.child(key), conditions.len(), CONDITIONS_MAX);
        }
    }
    if good.is_empty() != bad.is_empty() {
        let missing = match good.is_empty() {
            true => "bindingConditions",
            false => "bindingFailureConditions",
        };
        let other = match good.is_empty() {
            true => "bindingFailureConditions",
            false => "bindingConditions",
        };
        let detail = format!("{missing} are required to use {other}");
        errors.invalid(&path.child(missing), Doc::from(Vec::<Doc>::new()), detail);
    }
    for (index, condition) in bad.iter().enumerate() {
        if good.contains(condition) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            let path = path.child("bindingFailureConditions").index(index);
            errors.invalid(&path, condition, detail);
        }
    }
}

/// A taint without a time was added now.
pub(super) fn with_taint_times(slice: &Doc, env: &Env) -> Doc {
    let now = env.now().to_string();
    edit(slice, |slice| {
        slice.inside("spec", |spec| {
            edit(spec, |spec| {
                spec.each("devices", |device| {
                    edit(device, |device| {
                        device.each("taints", |taint| {
                            edit(taint, |taint| taint.default("timeAdded", now.as_str()))
                        });
                    })
                });
            })
        });
    })
}

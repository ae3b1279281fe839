//! Limit ranges.

use std::collections::BTreeSet;

use windlass_core::{Doc, Quantity};

use crate::edit::edit;
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// Hooks of limit ranges.
#[derive(Debug)]
pub struct LimitRanges;

impl Hooks for LimitRanges {
    fn default(&self, range: Doc) -> Doc {
        edit(&range, |range| {
            range.inside("spec", |spec| {
                edit(spec, |spec| spec.each("limits", default_item))
            });
        })
    }

    fn validate(&self, range: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec").child("limits");
        let mut types = BTreeSet::new();
        for (index, item) in range.at("/spec/limits").items().iter().enumerate() {
            let path = path.index(index);
            let sort = item.str_at("/type");
            if !types.insert(sort) {
                errors.duplicate(&path.child("type"), sort);
            }
            validate_shape(item, &path, errors);
            let keys: BTreeSet<&str> = MAPS
                .iter()
                .filter_map(|map| item.get(map).and_then(Doc::as_object))
                .flat_map(|map| map.keys().iter().map(|key| &**key))
                .collect();
            for key in keys {
                validate_amounts(item, key, &path, errors);
            }
        }
    }
}

const MAPS: [&str; 5] = [
    "max",
    "min",
    "default",
    "defaultRequest",
    "maxLimitRequestRatio",
];

/// Limits for containers have defaults: the limit follows from the most that is allowed, and the
/// request from the limit or the least that is allowed.
fn default_item(item: &Doc) -> Doc {
    if item.str_at("/type") != "Container" {
        return item.clone();
    }
    let take = |item: &Doc, to: &str, from: &str| {
        let source = item.get(from).and_then(Doc::as_object).cloned();
        edit(item, |item| {
            let Some(source) = source.filter(|source| !source.is_empty()) else {
                return;
            };
            item.default(to, Doc::empty_object());
            item.inside(to, |map| edit(map, |map| map.default_each(source.iter())));
        })
    };
    let item = take(item, "default", "max");
    let item = take(&item, "defaultRequest", "default");
    take(&item, "defaultRequest", "min")
}

fn validate_shape(item: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let has = |map: &str| {
        item.get(map)
            .and_then(Doc::as_object)
            .is_some_and(|map| !map.is_empty())
    };
    match item.str_at("/type") {
        "Pod" => {
            for map in ["default", "defaultRequest"] {
                if has(map) {
                    let detail = "may not be specified when `type` is 'Pod'";
                    errors.forbidden(&path.child(map), detail);
                }
            }
        }
        "PersistentVolumeClaim" => {
            let is_bounded =
                !item.at("/min/storage").is_null() || !item.at("/max/storage").is_null();
            if !is_bounded {
                let detail = "either minimum or maximum storage value is required, but neither \
                              was provided";
                errors.required(&path.child("limits"), detail);
            }
        }
        _ => {}
    }
}

/// Finds amounts of one resource that contradict each other.
fn validate_amounts(item: &Doc, key: &str, path: &FieldPath, errors: &mut FieldErrors) {
    let amount = |map: &str| -> Option<Quantity> {
        let value = item.get(map)?.get(key)?;
        value.as_str()?.parse().ok()
    };
    let (min, max) = (amount("min"), amount("max"));
    let (default, request) = match item.str_at("/type") {
        "Pod" => (None, None),
        _ => (amount("default"), amount("defaultRequest")),
    };
    // The names of a smaller amount and of a larger one, where the fault is, and what it shows.
    let pairs = [
        ("min", "min value", &min, "max value", &max, true),
        (
            "defaultRequest",
            "min value",
            &min,
            "default request value",
            &request,
            false,
        ),
        (
            "defaultRequest",
            "default request value",
            &request,
            "max value",
            &max,
            true,
        ),
        (
            "defaultRequest",
            "default request value",
            &request,
            "default limit value",
            &default,
            true,
        ),
        (
            "default",
            "min value",
            &min,
            "default value",
            &default,
            true,
        ),
        (
            "default",
            "default value",
            &default,
            "max value",
            &max,
            false,
        ),
    ];
    for (field, small, lower, large, upper, shows_lower) in pairs {
        let (Some(lower), Some(upper)) = (lower, upper) else {
            continue;
        };
        if lower > upper {
            let shown = if shows_lower { lower } else { upper };
            let detail = format!("{small} {lower} is greater than {large} {upper}");
            errors.invalid(&path.child(field).key(key), shown.to_string(), detail);
        }
    }
    let ratio = amount("maxLimitRequestRatio");
    if let Some(ratio) = ratio.filter(|ratio| ratio.milli_value() < 1000) {
        let detail = format!("ratio {ratio} is less than 1");
        let path = path.child("maxLimitRequestRatio").key(key);
        errors.invalid(&path, ratio.to_string(), detail);
    }
}

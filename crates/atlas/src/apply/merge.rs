//! A configuration merged into an object.

use std::collections::BTreeMap;

use windlass_core::{Array, Doc, Object, Str};

use super::element::PathElement;
use super::schema::{ListKind, Schema, Structure, step_of};

/// The live value with everything that the configuration sets.
pub(super) fn merge<S: Schema>(schema: S, live: &Doc, config: &Doc) -> Doc {
    if live == config {
        return config.clone();
    }
    let structure = schema.structure(Some(config));
    if structure != schema.structure(Some(live)) {
        return config.clone();
    }
    match structure {
        Structure::Map => match (live.as_object(), config.as_object()) {
            (Some(live), Some(config)) => merge_maps(schema, live, config),
            // A configuration that says `null` takes nothing away.
            (Some(object), None) if !object.is_empty() => live.clone(),
            _ => config.clone(),
        },
        Structure::List(kind @ (ListKind::Set | ListKind::Map(_))) => {
            match (live.as_array(), config.as_array()) {
                (Some(live), Some(config)) if !live.is_empty() || !config.is_empty() => {
                    merge_lists(schema, kind, live, config)
                }
                (Some(list), None) if !list.is_empty() => live.clone(),
                _ => config.clone(),
            }
        }
        Structure::Scalar | Structure::AtomicMap | Structure::List(ListKind::Atomic) => {
            config.clone()
        }
    }
}

fn merge_maps<S: Schema>(schema: S, live: &Object, config: &Object) -> Doc {
    let mut merged: BTreeMap<Str, Doc> = live
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    for (key, value) in config.iter() {
        let value = match (live.get(key), schema.field(key)) {
            (Some(live), Some(inner)) => merge(inner, live, value),
            _ => value.clone(),
        };
        merged.insert(key.clone(), value);
    }
    merged.into_iter().collect::<Object>().into()
}

/// Items by their steps; `None` for those that are there twice, which cannot be merged.
type Observed<'a> = BTreeMap<PathElement, Option<&'a Doc>>;

fn observe<'a, S: Schema>(
    schema: S,
    kind: ListKind<'_>,
    items: &'a Array,
) -> (Vec<(PathElement, &'a Doc)>, Observed<'a>) {
    let (mut steps, mut observed) = (Vec::new(), Observed::new());
    for item in items {
        if let Ok(step) = step_of(schema, kind, item) {
            observed
                .entry(step.clone())
                .and_modify(|found| *found = None)
                .or_insert(Some(item));
            steps.push((step, item));
        }
    }
    (steps, observed)
}

/// Merges two lists: items only the live list has keep their place before the next item that both
/// have; all others stand in the order of the configuration.
fn merge_lists<S: Schema>(schema: S, kind: ListKind<'_>, live: &Array, config: &Array) -> Doc {
    let (live, in_live) = observe(schema, kind, live);
    let (config, in_config) = observe(schema, kind, config);
    let mut shared = config.iter().map(|(step, _)| step);
    let mut shared = std::iter::from_fn(|| shared.find(|step| in_live.contains_key(*step)));
    let mut next_shared = shared.next();
    let mut merged = Vec::with_capacity(live.len() + config.len());
    let both = |step: &PathElement, item: &Doc| match (schema.item(), in_live.get(step)) {
        (Some(inner), Some(Some(live))) => merge(inner, live, item),
        _ => item.clone(),
    };
    let mut done: std::collections::BTreeSet<&PathElement> = std::collections::BTreeSet::new();
    let (mut l, mut c) = (0, 0);
    while l < live.len() || c < config.len() {
        if let (Some((ours, _)), Some((theirs, item))) = (live.get(l), config.get(c)) {
            if ours == theirs {
                done.insert(theirs);
                merged.push(both(theirs, item));
                (l, c) = (l + 1, c + 1);
                next_shared = shared.next();
                continue;
            }
            // An item that comes later in the configuration: it is taken up there.
            if in_config.contains_key(ours) && next_shared.is_some_and(|next| next != ours) {
                l += 1;
                continue;
            }
        }
        if let Some((ours, item)) = live.get(l) {
            if !in_config.contains_key(ours) {
                merged.push((*item).clone());
                l += 1;
                continue;
            }
            if done.contains(ours) {
                l += 1;
            }
        }
        if let Some((theirs, item)) = config.get(c) {
            done.insert(theirs);
            merged.push(both(theirs, item));
            c += 1;
            if next_shared == Some(theirs) {
                next_shared = shared.next();
            }
        }
    }
    merged.into()
}

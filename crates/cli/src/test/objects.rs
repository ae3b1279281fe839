//! The objects of a cluster, for reports and comparisons.

use std::collections::{BTreeMap, BTreeSet};

use windlass_client::{DiscoveryClient, DynamicClient, ListOptions, RestClient};
use windlass_core::Doc;
use windlass_faults::normalized;

/// Kinds that say what happened, or who is alive, and not what there is.
const CHATTER: [&str; 2] = ["Event", "Lease"];

/// Lines of a difference that are shown.
const LINES_LIMIT: usize = 6;

/// All objects of a cluster, each in the preferred version of its kind.
pub(super) async fn all(client: &RestClient) -> anyhow::Result<Vec<Doc>> {
    let discovery = DiscoveryClient::new(client.clone()).discovery().await?;
    let mut known = BTreeSet::new();
    let mut objects = Vec::new();
    for resource in &discovery.resources {
        let is_listed = resource.verbs.iter().any(|verb| verb == "list");
        if !is_listed || !known.insert(resource.gvr.group_resource().to_string()) {
            continue;
        }
        let api = DynamicClient::new(client.clone()).resource(resource.gvr.clone());
        let list = api.list_all(&ListOptions::default()).await?;
        objects.extend(list.items);
    }
    Ok(objects)
}

/// The objects that were made or changed since the first ones, without events and leases.
pub(super) fn since(first: &[Doc], now: &[Doc]) -> Vec<Doc> {
    let version = |object: &Doc| {
        let meta = object.meta();
        (
            meta.uid_str().to_owned(),
            meta.resource_version().to_owned(),
        )
    };
    let first: BTreeSet<_> = first.iter().map(version).collect();
    let is_new = |object: &&Doc| {
        !first.contains(&version(object)) && !CHATTER.contains(&object.str_at("/kind"))
    };
    now.iter().filter(is_new).cloned().collect()
}

/// The number of objects of each kind in each namespace.
pub(super) fn counts(objects: &[Doc]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for object in objects {
        let kind = object.str_at("/kind");
        let place = match object.meta().namespace() {
            "" => kind.to_owned(),
            namespace => format!("{kind} in {namespace}"),
        };
        *counts.entry(place).or_insert(0) += 1;
    }
    counts
}

/// The difference between what two runs left behind, in a few words; nothing if there is none.
pub(super) fn difference(clean: &[Doc], run: &[Doc]) -> Option<String> {
    let (before, after) = (counts(clean), counts(run));
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let count = |counts: &BTreeMap<_, usize>, name| counts.get(name).copied().unwrap_or(0);
    let changed: Vec<String> = names
        .into_iter()
        .filter(|name| count(&before, *name) != count(&after, *name))
        .map(|name| {
            let (was, is) = (count(&before, name), count(&after, name));
            format!("{is} {name}, {was} without faults")
        })
        .take(LINES_LIMIT)
        .collect();
    if !changed.is_empty() {
        return Some(format!("left {}", changed.join("; ")));
    }
    let (clean, run) = (normalized(clean, &[]), normalized(run, &[]));
    if clean == run {
        return None;
    }
    let other = run.iter().find(|object| !clean.contains(object))?;
    let text = String::from_utf8_lossy(&other.to_json()).into_owned();
    Some(format!(
        "left an object that is different without faults: {text}"
    ))
}

//! Pods: what they ask for, while they may still run.

use std::collections::{BTreeMap, BTreeSet};

use windlass_core::{Doc, Time};

use crate::amounts::{Amounts, add_amounts, amounts, pod_amounts};
use crate::whole;

/// Names that every container must have an amount for if a quota limits them.
const REQUIRED: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

/// The compute resources.
const COMPUTE: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];

const REQUESTS: &str = "requests.";
const LIMITS: &str = "limits.";
const HUGE_PAGES: &str = "hugepages-";
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// Returns true if pods count for a resource name.
pub(super) fn are_counted_for(name: &str) -> bool {
    if name == "pods" || name.starts_with(HUGE_PAGES) {
        return true;
    }
    if let Some(asked) = name.strip_prefix(REQUESTS) {
        return COMPUTE.contains(&asked) || asked.starts_with(HUGE_PAGES) || is_extended(asked);
    }
    COMPUTE.contains(&name.strip_prefix(LIMITS).unwrap_or(name))
}

/// Returns true for an extended resource.
fn is_extended(name: &str) -> bool {
    name.starts_with(DEVICE_CLASS) || (name.contains('/') && !name.contains("kubernetes.io/"))
}

pub(super) fn add_usage(used: &mut Amounts, pod: &Doc, now: Time) {
    if !is_charged(pod, now) {
        return;
    }
    let (mut requests, mut limits) = (pod_amounts(pod, "requests"), pod_amounts(pod, "limits"));
    let overhead = amounts(pod.at("/spec/overhead"));
    add_amounts(&mut requests, &overhead);
    for (name, amount) in overhead {
        // What has no limit is not limited by what running it costs.
        if let Some(limit) = limits.get_mut(&name).filter(|limit| !limit.is_zero()) {
            *limit += &amount;
        }
    }
    add_amounts(used, &compute(&requests, &limits));
}

/// Pods that have ended use nothing, nor do those that should have: a lost node must not keep
/// their owner from replacing them.
fn is_charged(pod: &Doc, now: Time) -> bool {
    if matches!(pod.str_at("/status/phase"), "Failed" | "Succeeded") {
        return false;
    }
    let grace = pod.at("/metadata/deletionGracePeriodSeconds").as_i64();
    let (Some(deleted), Some(grace)) = (pod.meta().deletion_timestamp(), grace) else {
        return true;
    };
    now.unix() <= deleted.unix().saturating_add(grace)
}

/// Amounts of containers by the names that quotas have for them.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::from([("pods".to_owned(), whole(1))]);
    for (name, amount) in requests {
        let is_plain = COMPUTE.contains(&name.as_str()) || name.starts_with(HUGE_PAGES);
        if is_plain {
            used.insert(name.clone(), amount.clone());
        }
        if is_plain || is_extended(name) {
            used.insert(format!("{REQUESTS}{name}"), amount.clone());
        }
    }
    for (name, amount) in limits {
        if COMPUTE.contains(&name.as_str()) {
            used.insert(format!("{LIMITS}{name}"), amount.clone());
        }
    }
    used
}

/// The error of a pod whose namespace has a quota for these names: its containers that set neither
/// request nor limit. Only cpu and memory are required, and only if the pod sets no resources as a
/// whole.
#[must_use]
pub fn missing_amounts<'a>(names: impl IntoIterator<Item = &'a str>, pod: &Doc) -> Option<String> {
    let whole_pod = ["/spec/resources/requests", "/spec/resources/limits"];
    if whole_pod.iter().any(|it| !amounts(pod.at(it)).is_empty()) {
        return None;
    }
    let required: BTreeSet<&str> = names
        .into_iter()
        .filter(|it| REQUIRED.contains(it))
        .collect();
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let lists = ["/spec/containers", "/spec/initContainers"];
    for container in lists.iter().flat_map(|list| pod.at(list).items()) {
        let read = |which| amounts(container.at(which));
        let known = compute(&read("/resources/requests"), &read("/resources/limits"));
        for name in required.iter().filter(|name| !known.contains_key(**name)) {
            let containers = missing.entry(name).or_default();
            containers.insert(container.str_at("/name"));
        }
    }
    let parts: Vec<String> = missing
        .iter()
        .map(|(name, containers)| {
            let containers: Vec<&str> = containers.iter().copied().collect();
            format!("{name} for: {}", containers.join(","))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("must specify {}", parts.join("; ")))
}

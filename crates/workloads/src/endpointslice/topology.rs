//! Topology-aware hints: endpoints are shared out among zones by the CPUs of their nodes.
//!
//! A Service asks for them by the annotation `service.kubernetes.io/topology-mode: Auto`. An endpoint
//! hints at its own zone, unless that zone has more endpoints than its share, and others fewer.

use std::collections::BTreeMap;

use windlass_core::{Doc, EditError, Quantity, condition, doc};

use super::pack::{Group, PortsKey, endpoint_key};

/// The annotation of a Service that asks for hints, and the older one, which counts first.
const MODE: &str = "service.kubernetes.io/topology-mode";
const OLDER_MODE: &str = "service.kubernetes.io/topology-aware-hints";
/// The label of a node with its zone.
const ZONE: &str = "topology.kubernetes.io/zone";
/// Labels of nodes that serve no pods of users.
const CONTROL_PLANES: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

/// The share by which an endpoint may be overloaded at most.
const OVERLOAD: f64 = 0.2;

/// Returns true if a Service asks for topology-aware hints.
pub(crate) fn is_auto(service: &Doc) -> bool {
    let meta = service.meta();
    let mode = meta.annotation(OLDER_MODE).or(meta.annotation(MODE));
    matches!(mode, Some("Auto" | "auto"))
}

/// The share of each zone in the CPUs of all nodes that are ready.
#[derive(Debug)]
pub(super) struct ZoneShares(BTreeMap<String, f64>);

impl ZoneShares {
    /// The shares; `None` if there are fewer than two zones, or a node says too little.
    pub(super) fn of<'n>(nodes: impl Iterator<Item = &'n Doc>) -> Option<Self> {
        let mut zones: BTreeMap<String, i64> = BTreeMap::new();
        for node in nodes.filter(|node| is_counted(node)) {
            let zone = node.meta().label(ZONE).filter(|it| !it.is_empty())?;
            let cpu = node.str_at("/status/allocatable/cpu");
            let cpu = cpu.parse::<Quantity>().ok()?.milli_value();
            if cpu <= 0 {
                return None;
            }
            let sum = zones.entry(zone.to_owned()).or_default();
            *sum = sum.saturating_add(cpu);
        }
        let total = zones
            .values()
            .fold(0_i64, |sum, it| sum.saturating_add(*it));
        #[expect(clippy::cast_precision_loss, reason = "shares need no more than that")]
        let share = |cpu: i64| cpu as f64 / total as f64;
        let shares = zones.into_iter().map(|(zone, cpu)| (zone, share(cpu)));
        let shares: BTreeMap<String, f64> = shares.collect();
        (shares.len() >= 2).then_some(Self(shares))
    }
}

fn is_counted(node: &Doc) -> bool {
    let is_ready = condition(node, "Ready").is_some_and(|it| it.is_true());
    let meta = node.meta();
    is_ready && !CONTROL_PLANES.iter().any(|it| meta.label(it).is_some())
}

/// The endpoints of a zone: as many as it should have, and the most that it may.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    desired: f64,
    maximum: usize,
}

/// Gives ready endpoints hints. Those that slices have already are kept where they can be.
///
/// # Errors
/// The reason for which there are none.
pub(super) fn add_hints(
    groups: &mut BTreeMap<PortsKey, Group>,
    shares: Option<&ZoneShares>,
    slices: &[Doc],
) -> Result<(), String> {
    let known = known_hints(slices);
    let endpoints = groups.values_mut().flat_map(|it| it.endpoints.values_mut());
    let ready = endpoints.filter(|it| *it.at("/conditions/ready") == true);
    let mut ready: Vec<&mut Doc> = ready.collect();
    let allocations = allocations(shares, ready.len())?;
    if ready.iter().any(|it| it.str_at("/zone").is_empty()) {
        return Err("One or more endpoints do not have a zone specified".to_owned());
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut hints = Vec::with_capacity(ready.len());
    for endpoint in &ready {
        let kept = known.get(&endpoint_key(endpoint)).filter(|zone| {
            let count = counts.get(*zone).copied().unwrap_or(0);
            allocations.get(*zone).is_some_and(|it| count < it.maximum)
        });
        let zone = kept.map_or_else(|| endpoint.str_at("/zone"), String::as_str);
        *counts.entry(zone.to_owned()).or_default() += 1;
        hints.push(zone.to_owned());
    }
    redistribute(&mut hints, &allocations, &counts);
    for (endpoint, zone) in ready.iter_mut().zip(hints) {
        let zones = doc!({ "forZones": [{ "name": zone }] });
        **endpoint = endpoint
            .with("/hints", zones)
            .map_err(|error: EditError| error.to_string())?;
    }
    Ok(())
}

/// The zones that endpoints of slices hint at, by endpoint.
fn known_hints(slices: &[Doc]) -> BTreeMap<String, String> {
    let endpoints = slices.iter().flat_map(|it| it.at("/endpoints").items());
    let hint = |endpoint: &Doc| {
        let zone = endpoint.str_at("/hints/forZones/0/name");
        (!zone.is_empty()).then(|| (endpoint_key(endpoint), zone.to_owned()))
    };
    endpoints.filter_map(hint).collect()
}

fn allocations(
    shares: Option<&ZoneShares>,
    count: usize,
) -> Result<BTreeMap<String, Allocation>, String> {
    let Some(ZoneShares(shares)) = shares else {
        return Err(
            "Insufficient Node information: allocatable CPU or zone not specified on one \
                    or more nodes"
                .to_owned(),
        );
    };
    let numbers = format!("({count} endpoints, {} zones)", shares.len());
    if shares.len() > count {
        return Err(format!("Insufficient number of endpoints {numbers}"));
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count is a count"
    )]
    let minimum = |share: f64| (share * count as f64 / (1.0 + OVERLOAD)).ceil() as usize;
    let total: usize = shares.values().map(|share| minimum(*share)).sum();
    if total > count {
        return Err(format!(
            "Unable to allocate minimum required endpoints to each zone without exceeding \
             overload threshold {numbers}"
        ));
    }
    let allocation = |share: f64| {
        let minimum = minimum(share);
        #[expect(clippy::cast_precision_loss, reason = "counts of endpoints are small")]
        let desired = (share * count as f64).max(minimum as f64);
        let maximum = minimum + count - total;
        Allocation { desired, maximum }
    };
    let all = shares.iter();
    Ok(all
        .map(|(zone, share)| (zone.clone(), allocation(*share)))
        .collect())
}

/// Moves hints from zones with more endpoints than their share to those with fewer.
fn redistribute(
    hints: &mut [String],
    allocations: &BTreeMap<String, Allocation>,
    counts: &BTreeMap<String, usize>,
) {
    let (mut giving, mut receiving) = (BTreeMap::new(), BTreeMap::new());
    for (zone, allocation) in allocations {
        #[expect(clippy::cast_precision_loss, reason = "counts of endpoints are small")]
        let surplus = counts.get(zone).copied().unwrap_or(0) as f64 - allocation.desired;
        match surplus > 0.0 {
            true => drop(giving.insert(zone.as_str(), surplus)),
            false => drop(receiving.insert(zone.as_str(), -surplus)),
        }
    }
    while let (Some((from, surplus)), Some((to, lack))) = (most(&giving), most(&receiving)) {
        let is_enough = surplus >= 0.5 && lack >= 0.5 && (surplus >= 1.0 || lack >= 1.0);
        let hint = hints.iter_mut().find(|it| it.as_str() == from);
        let Some(hint) = hint.filter(|_| is_enough) else {
            return;
        };
        to.clone_into(hint);
        giving.insert(from, surplus - 1.0);
        receiving.insert(to, lack - 1.0);
    }
}

/// The zone with the highest number above zero.
fn most<'z>(zones: &BTreeMap<&'z str, f64>) -> Option<(&'z str, f64)> {
    let above = zones.iter().filter(|(_, number)| **number > 0.0);
    above
        .map(|(zone, number)| (*zone, *number))
        .reduce(|a, b| if b.1 > a.1 { b } else { a })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(zone: &str, cpu: &str) -> Doc {
        doc!({
            "metadata": { "name": "n", "labels": { ZONE: zone } },
            "status": {
                "allocatable": { "cpu": cpu }, "conditions": [{ "type": "Ready", "status": "True" }]
            }
        })
    }

    /// The zones that endpoints of these zones hint at.
    fn hints(nodes: &[Doc], zones: &[&str], slices: &[Doc]) -> Result<Vec<String>, String> {
        let endpoints = zones.iter().enumerate().map(|(at, zone)| {
            let endpoint = doc!({
                "addresses": [(format!("10.0.0.{at}"))], "zone": (*zone),
                "conditions": { "ready": true }
            });
            (endpoint_key(&endpoint), endpoint)
        });
        let group = Group {
            ports: Vec::new(),
            endpoints: endpoints.collect(),
        };
        let mut groups = BTreeMap::from([(Vec::new(), group)]);
        add_hints(&mut groups, ZoneShares::of(nodes.iter()).as_ref(), slices)?;
        let endpoints = groups.values().flat_map(|it| it.endpoints.values());
        let zone = |it: &Doc| it.str_at("/hints/forZones/0/name").to_owned();
        Ok(endpoints.map(zone).collect())
    }

    #[test]
    fn endpoints_hint_at_their_zones_and_at_those_that_lack_some() {
        let nodes = [node("a", "4"), node("b", "4")];
        assert_eq!(hints(&nodes, &["a", "b"], &[]).unwrap(), ["a", "b"]);
        assert_eq!(hints(&nodes, &["a", "a"], &[]).unwrap(), ["b", "a"]);
        let moved = hints(&nodes, &["a", "a", "a", "a"], &[]).unwrap();
        assert_eq!(moved.iter().filter(|it| *it == "b").count(), 2);
    }

    #[test]
    fn hints_that_are_right_stay() {
        let nodes = [node("a", "4"), node("b", "4")];
        let endpoint = |ip: &str, hint: &str| doc!({ "addresses": [ip], "hints": { "forZones": [{ "name": hint }] } });
        let slice =
            doc!({ "endpoints": [(endpoint("10.0.0.0", "a")), (endpoint("10.0.0.1", "b"))] });
        assert_eq!(hints(&nodes, &["a", "a"], &[slice]).unwrap(), ["a", "b"]);
    }

    #[test]
    fn too_little_is_told() {
        let one = hints(&[node("a", "4")], &["a", "a"], &[]).unwrap_err();
        assert!(one.starts_with("Insufficient Node information"), "{one}");
        let nodes = [node("a", "4"), node("b", "4")];
        let few = hints(&nodes, &["a"], &[]).unwrap_err();
        assert_eq!(
            few,
            "Insufficient number of endpoints (1 endpoints, 2 zones)"
        );
        let nowhere = hints(&nodes, &["a", ""], &[]).unwrap_err();
        assert_eq!(
            nowhere,
            "One or more endpoints do not have a zone specified"
        );
        let uneven = [node("a", "5"), node("b", "1"), node("c", "1")];
        let load = hints(&uneven, &["a", "b", "c"], &[]).unwrap_err();
        assert!(load.starts_with("Unable to allocate minimum"), "{load}");
        let silent = doc!({ "metadata": { "name": "n" }, "status": {
            "conditions": [{ "type": "Ready", "status": "True" }]
        } });
        assert!(ZoneShares::of([&nodes[0], &nodes[1], &silent].into_iter()).is_none());
    }
}

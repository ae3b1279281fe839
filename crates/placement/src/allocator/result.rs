//! What is written about an allocation.

use windlass_core::{Doc, Object, Str, doc};

use super::{
    candidates::Candidates,
    device::Place,
    error::AllocateError,
    node_selector,
    plan::{Alternative, ClaimPlan, Plan},
    search::Chosen,
};

/// Alternatives in one list, at most.
const ALTERNATIVES_LIMIT: i64 = 8;

/// How good the choice of an alternative is.
pub(super) fn choice_score(position: usize) -> i64 {
    ALTERNATIVES_LIMIT - i64::try_from(position).unwrap_or(ALTERNATIVES_LIMIT)
}

/// The allocations of all claims.
pub(super) fn allocations(
    plan: &Plan,
    candidates: &Candidates<'_>,
    chosen: &[Vec<Chosen>],
    node: &Doc,
) -> Result<Vec<Doc>, AllocateError> {
    let claims = plan.claims.iter().zip(chosen);
    claims
        .map(|(claim, chosen)| allocation(claim, candidates, chosen, node))
        .collect()
}

fn allocation(
    claim: &ClaimPlan,
    candidates: &Candidates<'_>,
    chosen: &[Chosen],
    node: &Doc,
) -> Result<Doc, AllocateError> {
    let alternative =
        |chosen: &Chosen| &claim.requests[chosen.request].alternatives[chosen.alternative];
    let results = chosen.iter().map(|one| {
        let (device, _) = candidates.devices[one.device];
        result(alternative(one), &device.id)
    });
    let mut devices = vec![(Str::new("results"), Doc::from(results.collect::<Vec<_>>()))];
    let config = config(claim, chosen);
    if !config.is_empty() {
        devices.push((Str::new("config"), config.into()));
    }
    let mut fields = vec![(Str::new("devices"), Doc::from(Object::new(devices)))];
    let places = || {
        chosen
            .iter()
            .map(|one| &candidates.devices[one.device].1.place)
    };
    let selector = if places().any(|place| matches!(place, Place::Node(_))) {
        Some(node_selector::of_node(node.meta().name()))
    } else {
        let selectors = places().filter_map(|place| match place {
            Place::Selected(selector) => Some(selector),
            _ => None,
        });
        node_selector::union(selectors).map_err(AllocateError::Invalid)?
    };
    if let Some(selector) = selector {
        fields.push((Str::new("nodeSelector"), selector));
    }
    Ok(Object::new(fields).into())
}

fn result(alternative: &Alternative, id: &super::DeviceId) -> Doc {
    let mut fields = vec![
        (Str::new("request"), Doc::from(&alternative.name)),
        (Str::new("driver"), Doc::from(id.driver.clone())),
        (Str::new("pool"), Doc::from(id.pool.clone())),
        (Str::new("device"), Doc::from(id.device.clone())),
    ];
    if alternative.is_admin {
        fields.push((Str::new("adminAccess"), Doc::from(true)));
    }
    if !alternative.tolerations.items().is_empty() {
        fields.push((Str::new("tolerations"), alternative.tolerations.clone()));
    }
    Object::new(fields).into()
}

/// The settings of classes, each once with all requests of that class, then those of the claim
/// that concern something that was chosen, each once.
fn config(claim: &ClaimPlan, chosen: &[Chosen]) -> Vec<Doc> {
    let mut config = Vec::new();
    let selected = selected(claim, chosen);
    let mut seen: Vec<&str> = Vec::new();
    for alternative in &selected {
        let class = alternative.class.meta().name();
        if seen.contains(&class) {
            continue;
        }
        seen.push(class);
        let same = selected
            .iter()
            .filter(|one| one.class.meta().name() == class);
        let requests: Vec<Doc> = same.map(|one| Doc::from(&one.name)).collect();
        for entry in alternative.class.at("/spec/config").items() {
            config.push(configuration("FromClass", Some(requests.clone()), entry));
        }
    }
    for entry in claim.claim.at("/spec/devices/config").items() {
        let requests = entry.at("/requests").items();
        let names = |name: &str| requests.iter().any(|request| request == name);
        let concerns = requests.is_empty()
            || selected
                .iter()
                .any(|one| names(&one.name) || names(&one.base));
        if concerns {
            let requests = (!requests.is_empty()).then(|| requests.to_vec());
            config.push(configuration("FromClaim", requests, entry));
        }
    }
    config
}

/// The alternative of each request that was chosen, in the order of the requests.
fn selected<'a>(claim: &'a ClaimPlan, chosen: &[Chosen]) -> Vec<&'a Alternative> {
    let requests = claim.requests.iter().enumerate();
    let selected = requests.filter_map(|(at, request)| {
        let mut of_request = chosen.iter().filter(|chosen| chosen.request == at);
        let chosen = of_request.next();
        chosen.map(|chosen| &request.alternatives[chosen.alternative])
    });
    selected.collect()
}

fn configuration(source: &str, requests: Option<Vec<Doc>>, entry: &Doc) -> Doc {
    let mut doc = doc!({ "source": source });
    if let Some(requests) = requests {
        doc = doc.with("/requests", requests).unwrap_or(doc);
    }
    match entry.get("opaque") {
        Some(opaque) if !opaque.is_null() => doc.with("/opaque", opaque).unwrap_or(doc),
        _ => doc,
    }
}

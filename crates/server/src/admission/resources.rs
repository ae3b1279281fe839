//! Sums of resources.

use std::collections::BTreeMap;

use windlass_core::{Doc, Quantity};

/// Amounts by name.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// Resources that a pod can ask for as a whole.
fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// The amounts in a map; what is no amount is left for validation.
pub(super) fn amounts(map: &Doc) -> Amounts {
    let fields = map.as_object().into_iter().flat_map(|map| map.iter());
    let amounts = fields.filter_map(|(name, value)| {
        let amount = value.as_str()?.parse().ok()?;
        Some((name.to_string(), amount))
    });
    amounts.collect()
}

/// What a pod asks for, or may use at most: `requests` or `limits`.
pub(super) fn of_pod(pod: &Doc, which: &str) -> Amounts {
    let pointer = format!("/resources/{which}");
    let mut total = Amounts::new();
    for container in pod.at("/spec/containers").items() {
        add(&mut total, &amounts(container.at(&pointer)));
    }
    let (mut beside, mut largest) = (Amounts::new(), Amounts::new());
    for container in pod.at("/spec/initContainers").items() {
        let mut own = amounts(container.at(&pointer));
        if container.str_at("/restartPolicy") == "Always" {
            // It stays beside those that come after it.
            add(&mut total, &own);
            add(&mut beside, &own);
            own = beside.clone();
        } else {
            add(&mut own, &beside);
        }
        raise(&mut largest, &own);
    }
    raise(&mut total, &largest);
    for (name, amount) in amounts(pod.at(&format!("/spec{pointer}"))) {
        if is_pod_level(&name) {
            total.insert(name, amount);
        }
    }
    total
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *total.entry(name.clone()).or_default() += amount;
    }
}

fn raise(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let known = total.entry(name.clone()).or_default();
        if amount > known {
            *known = amount.clone();
        }
    }
}

//! Sums of resources, as pods ask for them.

use std::collections::BTreeMap;

use windlass_core::{Doc, Quantity};

/// Amounts by the name of what they measure.
pub type Amounts = BTreeMap<String, Quantity>;

/// Resources that a pod can ask for as a whole.
fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// The amounts in a map; what is no amount is left out.
#[must_use]
pub fn amounts(map: &Doc) -> Amounts {
    let fields = map.as_object().into_iter().flat_map(|map| map.iter());
    let amounts = fields.filter_map(|(name, value)| {
        let amount = value.as_str()?.parse().ok()?;
        Some((name.to_string(), amount))
    });
    amounts.collect()
}

/// Adds amounts to others, name by name.
pub fn add_amounts(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *total.entry(name.clone()).or_default() += amount;
    }
}

/// The resource requests or limits of a pod; `which` is `requests` or `limits`. Resources that the
/// node has allocated to a container count if they are more than the container asks for. The
/// overhead of the pod does not count.
#[must_use]
pub fn pod_amounts(pod: &Doc, which: &str) -> Amounts {
    let mut total = Amounts::new();
    for container in pod.at("/spec/containers").items() {
        let status = status_of(pod, "/status/containerStatuses", container);
        add_amounts(&mut total, &container_amounts(container, status, which));
    }
    let (mut beside, mut largest) = (Amounts::new(), Amounts::new());
    for container in pod.at("/spec/initContainers").items() {
        if container.str_at("/restartPolicy") == "Always" {
            // It stays beside those that come after it.
            let status = status_of(pod, "/status/initContainerStatuses", container);
            let own = container_amounts(container, status, which);
            add_amounts(&mut total, &own);
            add_amounts(&mut beside, &own);
            raise(&mut largest, &beside);
        } else {
            let mut own = container_amounts(container, &Doc::NULL, which);
            add_amounts(&mut own, &beside);
            raise(&mut largest, &own);
        }
    }
    raise(&mut total, &largest);
    for (name, amount) in amounts(pod.at(&format!("/spec/resources/{which}"))) {
        if is_pod_level(&name) {
            total.insert(name, amount);
        }
    }
    total
}

/// The status of a container, as the node reports it.
fn status_of<'a>(pod: &'a Doc, list: &str, container: &Doc) -> &'a Doc {
    let mut statuses = pod.at(list).items().iter();
    let name = container.str_at("/name");
    let found = statuses.find(|status| status.str_at("/name") == name);
    found.unwrap_or(&Doc::NULL)
}

fn container_amounts(container: &Doc, status: &Doc, which: &str) -> Amounts {
    let pointer = format!("/resources/{which}");
    let mut own = amounts(container.at(&pointer));
    if !status.at("/resources").is_null() {
        raise(&mut own, &amounts(status.at(&pointer)));
        if which == "requests" {
            raise(&mut own, &amounts(status.at("/allocatedResources")));
        }
    }
    own
}

fn raise(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let known = total.entry(name.clone()).or_default();
        if amount > known {
            *known = amount.clone();
        }
    }
}

//! Resource quota usage: the amounts that an object counts for.
//!
//! The server charges a quota when an object is made, a controller counts what is there; both have
//! to come to the same numbers, so both ask here. Nothing here reads or writes a quota's status.
//!
//! ```
//! use windlass_core::{GroupResource, Time, doc};
//!
//! let pods = GroupResource::new("", "pods");
//! let pod = doc!({ "spec": { "containers": [
//!     { "resources": { "requests": { "cpu": "500m" } } },
//!     { "resources": { "requests": { "cpu": "1" } } }
//! ] } });
//! let used = windlass_quota::usage(&pods, &pod, Time::from_unix(0));
//! assert_eq!(used["requests.cpu"].to_string(), "1500m");
//! assert_eq!(used["pods"].to_string(), "1");
//! ```

mod amounts;
mod claims;
mod pods;
mod scopes;

use windlass_core::{Doc, GroupResource, Quantity, QuantityFormat, Time};

pub use amounts::{Amounts, add_amounts, amounts, pod_amounts};
pub use pods::missing_amounts;
pub use scopes::is_in_scope;

const RESOURCE_GROUP: &str = "resource.k8s.io";
/// Before the name of a resource whose objects are counted.
const COUNT: &str = "count/";
/// Between the name of a storage class and what is counted of it.
const OF_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
/// After the name of a device class.
const OF_DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";

/// The name under which all objects of a resource are counted, such as `count/deployments.apps`.
#[must_use]
pub fn count_name(resource: &GroupResource) -> String {
    format!("{COUNT}{resource}")
}

/// Returns true if quotas count the objects of a resource.
#[must_use]
pub fn is_counted(resource: &GroupResource) -> bool {
    resource.resource() != "events" || !matches!(resource.group(), "" | "events.k8s.io")
}

/// The resource whose objects count for a name that a quota limits; `None` if no object does.
#[must_use]
pub fn counted_by(name: &str) -> Option<GroupResource> {
    if let Some(counted) = name.strip_prefix(COUNT) {
        let (resource, group) = counted.split_once('.').unwrap_or((counted, ""));
        let found = GroupResource::new(group.to_owned(), resource.to_owned());
        return is_counted(&found).then_some(found);
    }
    let core = |resource: &'static str| Some(GroupResource::new("", resource));
    match name {
        "configmaps" => core("configmaps"),
        "replicationcontrollers" => core("replicationcontrollers"),
        "resourcequotas" => core("resourcequotas"),
        "secrets" => core("secrets"),
        "services" | "services.loadbalancers" | "services.nodeports" => core("services"),
        "persistentvolumeclaims" | "requests.storage" => core("persistentvolumeclaims"),
        name if is_of_storage_class(name) => core("persistentvolumeclaims"),
        name if name.ends_with(OF_DEVICE_CLASS) => {
            Some(GroupResource::new(RESOURCE_GROUP, "resourceclaims"))
        }
        name if pods::are_counted_for(name) => core("pods"),
        _ => None,
    }
}

fn is_of_storage_class(name: &str) -> bool {
    let what = name.split_once(OF_STORAGE_CLASS).map(|(_, what)| what);
    matches!(what, Some("persistentvolumeclaims" | "requests.storage"))
}

/// The usage of an object, by the resource names that quotas limit. A pod that has ended, or should
/// have by now, counts as an object only.
#[must_use]
pub fn usage(resource: &GroupResource, object: &Doc, now: Time) -> Amounts {
    let mut used = Amounts::from([(count_name(resource), whole(1))]);
    match (resource.group(), resource.resource()) {
        ("", "pods") => pods::add_usage(&mut used, object, now),
        ("", "services") => add_service(&mut used, object),
        ("", "persistentvolumeclaims") => add_volume_claim(&mut used, object),
        ("", name @ ("configmaps" | "replicationcontrollers" | "resourcequotas" | "secrets")) => {
            used.insert(name.to_owned(), whole(1));
        }
        (RESOURCE_GROUP, "resourceclaims") => claims::add_usage(&mut used, object),
        _ => {}
    }
    used
}

/// A count as a quantity.
fn whole(count: i64) -> Quantity {
    Quantity::new(count, QuantityFormat::DecimalSi)
}

fn add_service(used: &mut Amounts, service: &Doc) {
    let ports = service.at("/spec/ports").items();
    let has_number = |port: &&Doc| port.at("/nodePort").as_i64().is_some_and(|it| it != 0);
    let (balancers, node_ports) = match service.str_at("/spec/type") {
        "NodePort" => (0, ports.len()),
        // Those that ask for no ports have the ones that they name themselves.
        "LoadBalancer" if *service.at("/spec/allocateLoadBalancerNodePorts") == false => {
            (1, ports.iter().filter(has_number).count())
        }
        "LoadBalancer" => (1, ports.len()),
        _ => (0, 0),
    };
    let node_ports = i64::try_from(node_ports).unwrap_or(i64::MAX);
    used.insert("services".to_owned(), whole(1));
    used.insert("services.loadbalancers".to_owned(), whole(balancers));
    used.insert("services.nodeports".to_owned(), whole(node_ports));
}

fn add_volume_claim(used: &mut Amounts, claim: &Doc) {
    let annotated = claim
        .meta()
        .annotation("volume.beta.kubernetes.io/storage-class");
    let class = annotated.unwrap_or_else(|| claim.str_at("/spec/storageClassName"));
    let mut note = |name: &str, amount: Quantity| {
        if !class.is_empty() {
            used.insert(format!("{class}{OF_STORAGE_CLASS}{name}"), amount.clone());
        }
        used.insert(name.to_owned(), amount);
    };
    note("persistentvolumeclaims", whole(1));
    let read = |pointer| -> Option<Quantity> { claim.at(pointer).as_str()?.parse().ok() };
    if let Some(asked) = read("/spec/resources/requests/storage") {
        let given = read("/status/allocatedResources/storage");
        let most = given.filter(|given| *given > asked).unwrap_or(asked);
        note("requests.storage", rounded(most));
    }
}

/// Whole bytes.
fn rounded(amount: Quantity) -> Quantity {
    let bytes = Quantity::new(amount.value(), amount.format());
    if bytes == amount { amount } else { bytes }
}

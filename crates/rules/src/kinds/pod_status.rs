//! What nodes and schedulers say about pods.

use std::net::IpAddr;

use windlass_core::{Doc, names};

use super::pod_network;
use crate::field::{FieldErrors, FieldPath};

const NOMINATED: &str = "/status/nominatedNodeName";

/// Finds what is wrong with the new status of a pod.
pub(super) fn validate(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    let (status, path) = (new.at("/status"), FieldPath::new("status"));
    for (index, condition) in status.at("/conditions").items().iter().enumerate() {
        // Upstream spells the field with a capital.
        let path = path.child("conditions").index(index).child("Type");
        let sort = condition.str_at("/type");
        errors.invalid_each(&path, sort, names::qualified_name(sort));
    }
    validate_nominated(new, old, &path.child("nominatedNodeName"), errors);
    errors.immutable(
        &path.child("qosClass"),
        new.at("/status/qosClass"),
        old.at("/status/qosClass"),
    );
    validate_claims(new, &path.child("resourceClaimStatuses"), errors);
    let addresses = addresses(status.at("/podIPs"));
    validate_addresses(
        &addresses,
        old.at("/status/podIPs"),
        &path.child("podIPs"),
        errors,
    );
    validate_hosts(status, old, &path.child("hostIPs"), errors);
}

/// The claims of a pod, by the names that its spec gives them.
fn validate_claims(pod: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let known = pod.at("/spec/resourceClaims").items();
    let statuses = pod.at("/status/resourceClaimStatuses").items();
    for (index, status) in statuses.iter().enumerate() {
        let path = path.index(index);
        let name = status.str_at("/name");
        let is_named = |other: &Doc| other.str_at("/name") == name;
        if !known.iter().any(is_named) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            errors.invalid(&path.child("name"), name, why);
        }
        if statuses[..index].iter().any(is_named) {
            errors.duplicate(&path.child("name"), name);
        }
        if let Some(claim) = status.get("resourceClaimName").and_then(Doc::as_str) {
            let faults = names::dns1123_subdomain(claim);
            errors.invalid_each(&path.child("resourceClaimName"), claim, faults);
        }
    }
}

fn validate_nominated(new: &Doc, old: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let name = new.str_at(NOMINATED);
    if name.is_empty() || name == old.str_at(NOMINATED) {
        return;
    }
    errors.invalid_each(path, name, names::dns1123_subdomain(name));
    if !old.str_at("/spec/nodeName").is_empty() {
        let detail = "may not be set on pods that are already bound to a node";
        errors.forbidden(path, detail);
    }
}

fn addresses(list: &Doc) -> Vec<&str> {
    list.items().iter().map(|item| item.str_at("/ip")).collect()
}

/// Finds addresses that are none, unless they were there before, and more than one of a family.
fn validate_addresses(given: &[&str], old: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let known: std::collections::HashSet<&str> = addresses(old).into_iter().collect();
    for (index, address) in given.iter().enumerate() {
        if !known.contains(address) {
            pod_network::validate_address(address, &path.index(index), errors);
        }
    }
    let parsed: Vec<IpAddr> = given.iter().filter_map(|text| text.parse().ok()).collect();
    let is_pair = matches!(&parsed[..], [one, other] if one.is_ipv4() != other.is_ipv4());
    if given.len() > 1 && parsed.len() == given.len() && !is_pair {
        let shown: Vec<String> = given
            .iter()
            .map(|it| format!("{{\"IP\":{it:?}}}"))
            .collect();
        let detail = "may specify no more than one IP for each IP family";
        errors.invalid_shown(path, format!("[{}]", shown.join(",")), detail);
    }
}

fn validate_hosts(status: &Doc, old: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let given = addresses(status.at("/hostIPs"));
    let Some(first) = given.first() else {
        return;
    };
    if *first != status.str_at("/hostIP") {
        let detail = "must be equal to `hostIP`";
        errors.invalid(&path.index(0).child("ip"), *first, detail);
    }
    validate_addresses(&given, old.at("/status/hostIPs"), path, errors);
}

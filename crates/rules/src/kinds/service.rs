//! What is wrong with services, in the order in which upstream tells of it.

use std::collections::HashSet;
use std::net::IpAddr;

use windlass_core::{Doc, names};

use super::pod_containers::{port_name, port_number};
use super::pod_network::validate_address;
use super::pod_spec::one_of;
use crate::field::{FieldErrors, FieldPath};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const AFFINITIES: &[&str] = &["ClientIP", "None"];
const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const FAMILY_POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];
const TRAFFIC_POLICIES: &[&str] = &["Cluster", "Local"];
const DISTRIBUTIONS: &[&str] = &["PreferClose", "PreferSameZone", "PreferSameNode"];
/// For how many seconds clients stay with their pod at most: a day.
const AFFINITY_SECONDS_MAX: i64 = 86400;
const BALANCED_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
/// Who has no address of their own: nobody.
const HEADLESS: &str = "None";

/// Finds what is wrong with a service.
pub(super) fn validate(service: &Doc, errors: &mut FieldErrors) {
    let (spec, path) = (service.at("/spec"), FieldPath::new("spec"));
    validate_type(spec, &path, errors);
    let ports = spec.at("/ports").items();
    validate_ports(ports, &path.child("ports"), errors);
    crate::labels::labels(&path.child("selector"), spec.at("/selector"), errors);
    validate_affinity(spec, &path, errors);
    validate_families(spec, &path, errors);
    validate_external(spec, &path.child("externalIPs"), errors);
    one_of(spec, "type", TYPES, &path, errors);
    find_conflicts(spec, &path.child("ports"), errors);
    validate_balancing(spec, &path, errors);
    validate_traffic(spec, &path, errors);
}

/// Finds what a service of its type needs, and what it cannot have.
fn validate_type(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let sort = spec.str_at("/type");
    let is_headless = spec.str_at("/clusterIP") == HEADLESS;
    if spec.at("/ports").items().is_empty() && !is_headless && sort != "ExternalName" {
        errors.required(&path.child("ports"), "");
    }
    if is_headless && matches!(sort, "LoadBalancer" | "NodePort") {
        let detail = format!("may not be set to 'None' for {sort} services");
        errors.invalid(&path.child("clusterIPs").index(0), HEADLESS, detail);
    }
    if sort == "ExternalName" {
        let name = spec.str_at("/externalName");
        let name = name.strip_suffix('.').unwrap_or(name);
        match name {
            "" => errors.required(&path.child("externalName"), ""),
            name => {
                let problems = names::dns1123_subdomain(name);
                errors.invalid_each(&path.child("externalName"), name, problems);
            }
        }
    }
}

fn validate_ports(ports: &[Doc], path: &FieldPath, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        match port.str_at("/name") {
            "" if ports.len() > 1 => errors.required(&path.child("name"), ""),
            "" => {}
            name if seen.contains(&name) => errors.duplicate(&path.child("name"), name),
            name => {
                errors.invalid_each(&path.child("name"), name, names::dns1123_label(name));
                seen.insert(name);
            }
        }
        let number = port.at("/port").as_i64().unwrap_or(0);
        port_number(number, &path.child("port"), errors);
        one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &path, errors);
        let target = port.at("/targetPort");
        match (target.as_i64(), target.as_str()) {
            (Some(number), _) => port_number(number, &path.child("targetPort"), errors),
            (_, Some(name)) => port_name(name, &path.child("targetPort"), errors),
            _ => {}
        }
        if let Some(protocol) = port.at("/appProtocol").as_str() {
            let problems = names::qualified_name(protocol);
            errors.invalid_each(&path.child("appProtocol"), protocol, problems);
        }
    }
}

fn validate_affinity(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    one_of(spec, "sessionAffinity", AFFINITIES, path, errors);
    let seconds = spec.at("/sessionAffinityConfig/clientIP/timeoutSeconds");
    if let Some(seconds) = seconds.as_i64()
        && spec.str_at("/sessionAffinity") == "ClientIP"
        && !(1..=AFFINITY_SECONDS_MAX).contains(&seconds)
    {
        let path = path.child("sessionAffinityConfig").child("clientIP");
        let detail = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
        errors.invalid(&path.child("timeoutSeconds"), seconds, detail);
    }
}

/// Finds families of addresses that are none, and addresses that are none.
fn validate_families(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if spec.str_at("/type") == "ExternalName" {
        return;
    }
    for (index, family) in spec.at("/ipFamilies").items().iter().enumerate() {
        let family = family.as_str().unwrap_or_default();
        if !FAMILIES.contains(&family) {
            errors.not_supported(&path.child("ipFamilies").index(index), family, FAMILIES);
        }
    }
    one_of(spec, "ipFamilyPolicy", FAMILY_POLICIES, path, errors);
    for (index, address) in spec.at("/clusterIPs").items().iter().enumerate() {
        let address = address.as_str().unwrap_or_default();
        if !matches!(address, HEADLESS | "") {
            validate_address(address, &path.child("clusterIPs").index(index), errors);
        }
    }
}

/// Finds addresses at which nobody outside can reach a service.
fn validate_external(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for (index, text) in spec.at("/externalIPs").items().iter().enumerate() {
        let (text, path) = (text.as_str().unwrap_or_default(), path.index(index));
        let known = errors.len();
        validate_address(text, &path, errors);
        let Some(address) = text
            .parse::<IpAddr>()
            .ok()
            .filter(|_| errors.len() == known)
        else {
            continue;
        };
        let is_link_local = match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        if address.is_unspecified() {
            let detail = format!("may not be unspecified ({text})");
            errors.invalid(&path, text, detail);
        } else if address.is_loopback() {
            let detail = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
            errors.invalid(&path, text, detail);
        } else if is_link_local {
            let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
            errors.invalid(&path, text, detail);
        }
    }
}

/// Finds ports that a service cannot have, or has twice.
fn find_conflicts(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let ports = spec.at("/ports").items();
    let on_node = |port: &Doc| port.at("/nodePort").as_i64().filter(|number| *number != 0);
    let with_nodes = ports
        .iter()
        .enumerate()
        .filter(|(_, port)| on_node(port).is_some());
    if spec.str_at("/type") == "ClusterIP" {
        for (index, _) in with_nodes.clone() {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.forbidden(&path.index(index).child("nodePort"), detail);
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in with_nodes {
        let identity = (on_node(port), port.str_at("/protocol"));
        if seen.contains(&identity) {
            errors.duplicate(&path.index(index).child("nodePort"), identity.0);
        }
        seen.insert(identity);
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let identity = super::network::identity(port);
        if seen.contains(&identity) {
            let (number, protocol) = identity;
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\
                 \"TargetPort\":0,\"NodePort\":0}}",
                windlass_core::quote(protocol)
            );
            errors.duplicate_shown(&path.index(index), shown);
        }
        seen.insert(identity);
    }
}

/// Finds what only a service behind a load balancer can have.
fn validate_balancing(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let is_balanced = spec.str_at("/type") == "LoadBalancer";
    // Upstream spells this one with a capital.
    let list = path.child("LoadBalancerSourceRanges");
    let ranges = spec.at("/loadBalancerSourceRanges").items();
    if !ranges.is_empty() && !is_balanced {
        errors.forbidden(&list, BALANCED_ONLY);
    }
    for (index, range) in ranges.iter().enumerate() {
        let range = range.as_str().unwrap_or_default().trim();
        if !is_range(range) {
            let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            errors.invalid(&list.index(index), range, detail);
        }
    }
    for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        let is_set = spec.get(key).is_some_and(|given| !given.is_null());
        if is_set && !is_balanced {
            errors.forbidden(&path.child(key), BALANCED_ONLY);
        }
    }
    let class = spec.at("/loadBalancerClass").as_str();
    if let Some(class) = class.filter(|_| is_balanced) {
        let problems = names::qualified_name(class);
        errors.invalid_each(&path.child("loadBalancerClass"), class, problems);
    }
}

fn is_range(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let longest = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.bytes().all(|byte| byte.is_ascii_digit())
        && bits.parse::<u8>().is_ok_and(|bits| bits <= longest)
}

/// Finds what is wrong with which pods traffic goes to.
fn validate_traffic(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let sort = spec.str_at("/type");
    let policy = spec.str_at("/externalTrafficPolicy");
    let has_external = !spec.at("/externalIPs").items().is_empty();
    let is_outside =
        matches!(sort, "LoadBalancer" | "NodePort") || sort == "ClusterIP" && has_external;
    if is_outside {
        one_of(
            spec,
            "externalTrafficPolicy",
            TRAFFIC_POLICIES,
            path,
            errors,
        );
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.invalid(&path.child("externalTrafficPolicy"), policy, detail);
    }
    let health = spec.at("/healthCheckNodePort").as_i64().unwrap_or(0);
    if health != 0 && !(sort == "LoadBalancer" && policy == "Local") {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` \
                      is 'Local'";
        errors.invalid(&path.child("healthCheckNodePort"), health, detail);
    }
    one_of(
        spec,
        "internalTrafficPolicy",
        TRAFFIC_POLICIES,
        path,
        errors,
    );
    one_of(spec, "trafficDistribution", DISTRIBUTIONS, path, errors);
}

//! Services and ingresses.

use std::collections::{HashMap, HashSet};

use windlass_core::{Doc, Env, doc};

use super::pod_spec::one_of;
use super::service;
use crate::edit::{Fields, edit};
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// What only a service with an address has.
const ADDRESS_FIELDS: &[&str] = &[
    "clusterIP",
    "clusterIPs",
    "externalTrafficPolicy",
    "internalTrafficPolicy",
    "ipFamilies",
    "ipFamilyPolicy",
];

/// What only a service behind a load balancer has.
const BALANCED_FIELDS: &[&str] = &[
    "allocateLoadBalancerNodePorts",
    "healthCheckNodePort",
    "loadBalancerClass",
];

/// Hooks of services.
#[derive(Debug)]
pub struct Services;

/// Hooks of endpoints.
#[derive(Debug)]
pub struct Endpoints;

/// Hooks of endpoint slices.
#[derive(Debug)]
pub struct EndpointSlices;

/// Hooks of network policies.
#[derive(Debug)]
pub struct NetworkPolicies;

/// Hooks of ingresses.
#[derive(Debug)]
pub struct Ingresses;

impl Hooks for Services {
    fn initial_status(&self) -> Doc {
        doc!({ "loadBalancer": {} })
    }

    fn default(&self, service: Doc) -> Doc {
        edit(&service, |service| {
            service.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.default("sessionAffinity", "None");
                    spec.default("type", "ClusterIP");
                    let kind = spec.text("type").to_owned();
                    if spec.text("sessionAffinity") == "ClientIP" {
                        let config = doc!({ "clientIP": { "timeoutSeconds": 10800 } });
                        spec.default("sessionAffinityConfig", config);
                    }
                    spec.each("ports", |port| {
                        edit(port, |port| {
                            port.default("protocol", "TCP");
                            if port.get("targetPort").is_some_and(|target| *target == 0) {
                                port.remove("targetPort");
                            }
                            if let Some(number) = port.get("port").cloned() {
                                port.default("targetPort", number);
                            }
                        })
                    });
                    if kind != "ExternalName" {
                        spec.default("internalTrafficPolicy", "Cluster");
                    }
                    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
                        spec.default("externalTrafficPolicy", "Cluster");
                    }
                    if kind == "LoadBalancer" && !spec.has("allocateLoadBalancerNodePorts") {
                        spec.set("allocateLoadBalancerNodePorts", true);
                    }
                })
            });
        })
    }

    fn prepare_create(&self, service: Doc, _env: &Env) -> Doc {
        if service.str_at("/spec/type") == "ExternalName" {
            return service;
        }
        edit(&service, |service| {
            service.inside("spec", |spec| {
                edit(spec, |spec| {
                    if !spec.text("clusterIP").is_empty() {
                        let address = spec.text("clusterIP").to_owned();
                        spec.default("clusterIPs", doc!([address]));
                    }
                    spec.default("ipFamilies", doc!(["IPv4"]));
                    spec.default("ipFamilyPolicy", "SingleStack");
                })
            });
        })
    }

    fn prepare_update(&self, new: Doc, old: &Doc) -> Doc {
        // An update that does not mention the addresses keeps them.
        let new = edit(&new, |service| {
            service.inside("spec", |spec| {
                edit(spec, |spec| {
                    if spec.text("type") == "ExternalName" {
                        give_up(spec, old, BALANCED_FIELDS);
                        return give_up(spec, old, ADDRESS_FIELDS);
                    }
                    if spec.text("type") == "ClusterIP" {
                        give_up(spec, old, &["externalTrafficPolicy"]);
                    }
                    if spec.text("type") != "LoadBalancer" {
                        give_up(spec, old, BALANCED_FIELDS);
                    }
                    for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                        if let Some(value) = old.at("/spec").get(key) {
                            spec.default(key, value);
                        }
                    }
                })
            });
        });
        with_node_ports(&new, old)
    }

    fn validate(&self, service: &Doc, errors: &mut FieldErrors) {
        service::validate(service, errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let external = |service: &Doc| service.str_at("/spec/type") == "ExternalName";
        if external(new) || external(old) {
            return;
        }
        let first = |service: &Doc| service.at("/spec/clusterIP").clone();
        let addresses = new.at("/spec/clusterIPs");
        if first(new) != first(old) || addresses.item(0) != old.at("/spec/clusterIPs").item(0) {
            let path = FieldPath::new("spec").child("clusterIPs").index(0);
            errors.invalid(&path, addresses, "may not change once set");
        }
    }
}

/// Removes what a service had for its old type and did not set anew.
fn give_up(spec: &mut Fields, old: &Doc, keys: &[&str]) {
    for key in keys {
        if spec.get(key) == old.at("/spec").get(key) {
            spec.remove(key);
        }
    }
}

/// A service whose ports have the ports of the nodes that they had before, if it still wants some.
fn with_node_ports(service: &Doc, old: &Doc) -> Doc {
    let before = old.at("/spec/ports").items();
    if !wants_node_ports(service) {
        return without_node_ports(service, before);
    }
    let mut had = HashMap::with_capacity(before.len());
    for port in before {
        had.entry(identity(port)).or_insert(port);
    }
    edit(service, |service| {
        service.inside("spec", |spec| {
            edit(spec, |spec| {
                spec.each("ports", |port| {
                    let known = had.get(&identity(port));
                    let known = known.and_then(|known| known.get("nodePort"));
                    edit(port, |port| {
                        if let Some(number) = known {
                            port.default("nodePort", number);
                        }
                    })
                })
            })
        });
    })
}

/// A service that gave up the ports of the nodes that it had before.
fn without_node_ports(service: &Doc, before: &[Doc]) -> Doc {
    let had: HashSet<&Doc> = before.iter().filter_map(|it| it.get("nodePort")).collect();
    let had = |number: &Doc| had.contains(number);
    edit(service, |service| {
        service.inside("spec", |spec| {
            edit(spec, |spec| {
                spec.each("ports", |port| {
                    edit(port, |port| {
                        if port.get("nodePort").is_some_and(had) {
                            port.remove("nodePort");
                        }
                    })
                });
            })
        });
    })
}

/// What tells the ports of a service apart.
pub(super) fn identity(port: &Doc) -> (i64, &str) {
    let number = port.at("/port").as_i64().unwrap_or(0);
    (number, port.str_at("/protocol"))
}

impl Hooks for Endpoints {
    fn default(&self, endpoints: Doc) -> Doc {
        edit(&endpoints, |endpoints| {
            endpoints.each("subsets", |subset| {
                edit(subset, |subset| subset.each("ports", default_protocol))
            });
        })
    }

    fn deprecation(&self) -> Option<&'static str> {
        Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
    }
}

fn default_protocol(port: &Doc) -> Doc {
    edit(port, |port| port.default("protocol", "TCP"))
}

impl Hooks for EndpointSlices {
    fn default(&self, slice: Doc) -> Doc {
        edit(&slice, |slice| {
            slice.each("ports", |port| {
                edit(&default_protocol(port), |port| {
                    if !port.has("name") {
                        port.set("name", "");
                    }
                })
            });
        })
    }

    fn validate(&self, slice: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("addressType");
        match slice.str_at("/addressType") {
            "" => errors.required(&path, ""),
            "FQDN" | "IPv4" | "IPv6" => {}
            other => errors.not_supported(&path, other, &["FQDN", "IPv4", "IPv6"]),
        }
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let (new, old) = (new.at("/addressType"), old.at("/addressType"));
        errors.immutable(&FieldPath::new("addressType"), new, old);
    }
}

impl Hooks for NetworkPolicies {
    fn default(&self, policy: Doc) -> Doc {
        edit(&policy, |policy| {
            policy.inside("spec", |spec| {
                edit(spec, |spec| {
                    for rules in ["ingress", "egress"] {
                        spec.each(rules, |rule| {
                            edit(rule, |rule| rule.each("ports", default_protocol))
                        });
                    }
                    let has_egress = spec
                        .get("egress")
                        .is_some_and(|rules| !rules.items().is_empty());
                    spec.default(
                        "policyTypes",
                        match has_egress {
                            true => doc!(["Ingress", "Egress"]),
                            false => doc!(["Ingress"]),
                        },
                    );
                })
            });
        })
    }

    fn validate(&self, policy: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec").child("policyTypes");
        let types = policy.at("/spec/policyTypes").items();
        for (index, found) in types.iter().enumerate() {
            if !matches!(found.as_str(), Some("Egress" | "Ingress")) {
                let supported = ["Egress", "Ingress"];
                errors.not_supported_shown(&path.index(index), found, &supported);
            }
        }
    }
}

impl Hooks for Ingresses {
    fn initial_status(&self) -> Doc {
        doc!({ "loadBalancer": {} })
    }

    fn validate(&self, ingress: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec");
        let rules = ingress.at("/spec/rules").items();
        if rules.is_empty() && ingress.at("/spec/defaultBackend").is_null() {
            let detail = "either `defaultBackend` or `rules` must be specified";
            errors.invalid(&path, ingress.at("/spec"), detail);
        }
        for (index, rule) in rules.iter().enumerate() {
            let path = path.child("rules").index(index);
            let host = rule.str_at("/host");
            let plain = host.strip_prefix("*.").unwrap_or(host);
            if !host.is_empty() {
                let messages = windlass_core::names::dns1123_subdomain(plain);
                errors.invalid_each(&path.child("host"), host, messages);
            }
            for (index, item) in rule.at("/http/paths").items().iter().enumerate() {
                let path = path.child("http").child("paths").index(index);
                let types = ["Exact", "ImplementationSpecific", "Prefix"];
                match item.str_at("/pathType") {
                    "" => errors.required(&path.child("pathType"), "pathType must be specified"),
                    _ => one_of(item, "pathType", &types, &path, errors),
                }
                let needs_path = matches!(item.str_at("/pathType"), "Exact" | "Prefix");
                if needs_path && !item.str_at("/path").starts_with('/') {
                    let detail = "must be an absolute path";
                    errors.invalid(&path.child("path"), item.str_at("/path"), detail);
                }
            }
        }
    }
}

/// Returns true if the ports of a service get ports of the nodes.
#[must_use]
pub fn wants_node_ports(service: &Doc) -> bool {
    match service.str_at("/spec/type") {
        "NodePort" => true,
        "LoadBalancer" => *service.at("/spec/allocateLoadBalancerNodePorts") != false,
        _ => false,
    }
}

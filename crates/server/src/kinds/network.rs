//! Services and ingresses.

use windlass_core::{Doc, Env, doc};

use super::fields::edit;
use super::pod_spec::{one_of, port_name, port_number};
use crate::field::{FieldErrors, FieldPath};
use crate::registry::Hooks;

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// Hooks of services.
#[derive(Debug)]
pub(crate) struct Services;

/// Hooks of endpoints.
#[derive(Debug)]
pub(crate) struct Endpoints;

/// Hooks of ingresses.
#[derive(Debug)]
pub(crate) struct Ingresses;

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

    fn prepare_create(&self, service: Doc, env: &Env) -> Doc {
        if service.str_at("/spec/type") == "ExternalName" {
            return service;
        }
        edit(&service, |service| {
            service.inside("spec", |spec| {
                edit(spec, |spec| {
                    if spec.text("clusterIP").is_empty() {
                        spec.set("clusterIP", cluster_address(env));
                    }
                    let address = spec.text("clusterIP").to_owned();
                    spec.default("clusterIPs", doc!([address]));
                    spec.default("ipFamilies", doc!(["IPv4"]));
                    spec.default("ipFamilyPolicy", "SingleStack");
                })
            });
        })
    }

    fn prepare_update(&self, new: Doc, old: &Doc) -> Doc {
        // An update that does not mention the addresses keeps them.
        edit(&new, |service| {
            service.inside("spec", |spec| {
                edit(spec, |spec| {
                    if spec.text("type") == "ExternalName" {
                        return;
                    }
                    for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                        if let Some(value) = old.at("/spec").get(key) {
                            spec.default(key, value);
                        }
                    }
                })
            });
        })
    }

    fn validate(&self, service: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec");
        one_of(service.at("/spec"), "type", TYPES, &path, errors);
        one_of(
            service.at("/spec"),
            "sessionAffinity",
            &["ClientIP", "None"],
            &path,
            errors,
        );
        let kind = service.str_at("/spec/type");
        let ports = service.at("/spec/ports").items();
        let is_headless = service.str_at("/spec/clusterIP") == "None";
        if ports.is_empty() && !is_headless && kind != "ExternalName" {
            errors.required(&path.child("ports"), "");
        }
        if kind == "ExternalName" && service.str_at("/spec/externalName").is_empty() {
            errors.required(&path.child("externalName"), "");
        }
        validate_ports(ports, &path.child("ports"), errors);
        crate::rest::validate_labels(
            &path.child("selector"),
            service.at("/spec/selector"),
            errors,
        );
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let external = |service: &Doc| service.str_at("/spec/type") == "ExternalName";
        if external(new) || external(old) {
            return;
        }
        let (address, before) = (new.at("/spec/clusterIP"), old.at("/spec/clusterIP"));
        errors.immutable(&FieldPath::new("spec").child("clusterIP"), address, before);
    }
}

fn validate_ports(ports: &[Doc], path: &FieldPath, errors: &mut FieldErrors) {
    let (mut names, mut numbers) = (Vec::new(), Vec::new());
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        match port.str_at("/name") {
            "" if ports.len() > 1 => errors.required(&path.child("name"), ""),
            "" => {}
            name if names.contains(&name) => errors.duplicate(&path.child("name"), name),
            name => {
                let messages = windlass_core::names::dns1123_label(name);
                errors.invalid_each(&path.child("name"), name, messages);
                names.push(name);
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
        let identity = (number, port.str_at("/protocol"));
        if numbers.contains(&identity) {
            errors.duplicate(&path, port);
        }
        numbers.push(identity);
    }
}

/// An address of the service network. There is no network behind it.
fn cluster_address(env: &Env) -> String {
    let number = env.random_below(1 << 16);
    format!(
        "10.{}.{}.{}",
        97 + number % 8,
        number >> 8 & 0xff,
        (number & 0xff).max(1)
    )
}

impl Hooks for Endpoints {
    fn warnings(&self, _: &Doc) -> Vec<String> {
        let text = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
        vec![text.to_owned()]
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

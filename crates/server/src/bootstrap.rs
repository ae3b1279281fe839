//! The objects that every cluster has from its first start.

mod local;
mod service_network;

use std::net::SocketAddr;

use tokio::task::JoinSet;
use windlass_core::{Doc, Time, doc};

use crate::certs::{Certificates, PROXY_CLIENT_NAME};
use crate::dangling;
use crate::first_flow::{self, First};
use crate::rest;
use crate::server::Server;
use windlass_access as auth;
use windlass_rules::status::Status;

pub(crate) use local::register;

const RBAC: &str = "rbac.authorization.k8s.io";
const DISCOVERY: &str = "discovery.k8s.io";
const SCHEDULING: &str = "scheduling.k8s.io";
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Makes what is missing at a start.
pub(crate) async fn run(server: &Server) -> Result<(), Status> {
    let mut all = essentials(server);
    all.extend(priority_classes());
    let rules = auth::first_roles().into_iter();
    all.extend(rules.map(|(plural, object)| (RBAC, "v1", plural, object)));
    all.extend(local::objects(&server.inner().registry.table()));
    if server.inner().admission.service_accounts {
        all.extend(service_accounts());
    }
    create_missing(server, all).await?;
    service_network::mark_ready(server).await?;
    dangling::tell(server.clone()).await;
    Ok(())
}

/// Makes again what no cluster is without for long, whoever deletes it.
pub(crate) async fn restore(server: &Server) -> Result<(), Status> {
    create_missing(server, essentials(server)).await?;
    service_network::mark_ready(server).await?;
    server.inner().flow.reload(&server.inner().storage);
    register(server).await
}

/// All of it is written at once, and so a first start costs one sync of the disk.
async fn create_missing(server: &Server, all: Vec<First>) -> Result<(), Status> {
    let mut tasks = JoinSet::new();
    for (group, version, plural, object) in all {
        let (namespace, name) = (object.meta().namespace(), object.meta().name());
        let storage = &server.inner().storage;
        if storage.find(group, plural, namespace, name).is_some() {
            continue;
        }
        let server = server.clone();
        tasks.spawn(
            async move { rest::create_at_start(&server, group, version, plural, object).await },
        );
    }
    while let Some(outcome) = tasks.join_next().await {
        outcome.map_err(Status::internal)??;
    }
    Ok(())
}

/// What pods of the first namespaces run as before any controller is up.
fn service_accounts() -> impl Iterator<Item = First> {
    NAMESPACES.iter().map(|namespace| {
        let account = doc!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": "default", "namespace": (*namespace) }
        });
        ("", "v1", "serviceaccounts", account)
    })
}

fn essentials(server: &Server) -> Vec<First> {
    let namespace = |name: &str| {
        let namespace = doc!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name }
        });
        ("", "v1", "namespaces", namespace)
    };
    let mut essentials: Vec<First> = NAMESPACES.map(namespace).into();
    let address = server.inner().allocator.network().first();
    let service = kubernetes_service(&address.to_string());
    essentials.push(("", "v1", "services", service));
    essentials.push(service_network::object(server));
    essentials.extend(first_flow::objects());
    essentials
}

fn priority_classes() -> [First; 2] {
    [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ]
    .map(|(name, value, about)| {
        let class = doc!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": { "name": name }, "value": value, "description": about
        });
        (SCHEDULING, "v1", "priorityclasses", class)
    })
}

/// Since which day it is known when a token in a secret was last used.
fn token_tracking(now: Time) -> Doc {
    let now = now.to_string();
    let day = now.split('T').next().unwrap_or_default();
    doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "kube-apiserver-legacy-service-account-token-tracking",
            "namespace": "kube-system"
        },
        "data": { "since": day }
    })
}

fn kubernetes_service(address: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" }
        },
        "spec": {
            "clusterIP": address,
            "clusterIPs": [address],
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443 }]
        }
    })
}

/// The config map that tells extension API servers whose client certificates and request headers to
/// believe.
fn trusted_authorities(certificates: &Certificates) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "extension-apiserver-authentication", "namespace": "kube-system" },
        "data": {
            "client-ca-file": (certificates.trusted_by_clients()),
            "requestheader-client-ca-file": (certificates.proxy_authority.as_str()),
            "requestheader-allowed-names": (format!("[{PROXY_CLIENT_NAME:?}]")),
            "requestheader-username-headers": "[\"X-Remote-User\"]",
            "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]"
        }
    })
}

/// Says where the service of the server itself ends, which is the address that it listens on, whose
/// client certificates it trusts, and since when it tracks tokens.
pub(crate) async fn publish(
    server: &Server,
    address: SocketAddr,
    certificates: &Certificates,
) -> Result<(), Status> {
    let (ip, number) = (address.ip().to_string(), i64::from(address.port()));
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    let port = doc!({ "name": "https", "port": number, "protocol": "TCP" });
    let endpoints = doc!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" }
        },
        "subsets": [{ "addresses": [{ "ip": (ip.as_str()) }], "ports": [(port.clone())] }]
    });
    let slice = doc!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "kubernetes.io/service-name": "kubernetes" }
        },
        "addressType": family,
        "endpoints": [{ "addresses": [ip], "conditions": { "ready": true } }],
        "ports": [port]
    });
    let endpoints = rest::set_at_start(server, "", "v1", "endpoints", endpoints, &["subsets"]);
    let fields = &["addressType", "endpoints", "ports"];
    let slice = rest::set_at_start(server, DISCOVERY, "v1", "endpointslices", slice, fields);
    let trust = trusted_authorities(certificates);
    let trust = rest::set_at_start(server, "", "v1", "configmaps", trust, &["data"]);
    let tracking = token_tracking(server.inner().env.now());
    let tracking = rest::create_at_start(server, "", "v1", "configmaps", tracking);
    // Together they cost one sync of the disk.
    let (endpoints, slice, trust, tracking) = tokio::join!(endpoints, slice, trust, tracking);
    endpoints.and(slice).and(trust).and(tracking)
}

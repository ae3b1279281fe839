//! The address of a Service: one of its endpoints.
//!
//! Cluster addresses lead nowhere in a cluster without a network, so the endpoints behind a Service
//! are called, as kube-apiserver does with `--enable-aggregator-routing`.

use std::net::{IpAddr, SocketAddr};

use windlass_core::{Doc, LabelLookup as _};

use crate::storage::Storage;

/// Finds the address of a Service, for who runs webhooks beside the server.
pub trait ServiceResolver: Send + Sync {
    /// The address at which a port of a Service is served; `None` leaves it to the stored
    /// endpoints.
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Option<SocketAddr>;
}

/// An endpoint of a port of a stored Service, or upstream's words for why there is none.
pub(super) fn find_endpoint(
    storage: &Storage,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<SocketAddr, String> {
    let service = storage.find("", "services", namespace, name);
    let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
    let mut ports = service.at("/spec/ports").items().iter();
    let known = ports.find(|known| known.at("/port").as_i64() == Some(i64::from(port)));
    let known =
        known.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
    let port_name = known.str_at("/name");
    in_slices(storage, namespace, name, port_name)
        .or_else(|| in_endpoints(storage, namespace, name, port_name))
        .ok_or_else(|| format!("no endpoints available for service {name:?}"))
}

fn in_slices(storage: &Storage, namespace: &str, name: &str, port: &str) -> Option<SocketAddr> {
    let slices = storage.snapshot_of("discovery.k8s.io", "endpointslices");
    let label = |slice: &Doc| slice.meta().labels().get("kubernetes.io/service-name") == Some(name);
    let slices = slices.namespace(namespace, "").map(|entry| entry.doc());
    for slice in slices.filter(|slice| label(slice)) {
        let mut ports = slice.at("/ports").items().iter();
        let Some(number) = ports
            .find(|known| known.str_at("/name") == port)
            .and_then(|known| known.at("/port").as_i64())
        else {
            continue;
        };
        let endpoints = slice.at("/endpoints").items().iter();
        let mut ready = endpoints.filter(|it| *it.at("/conditions/ready") != false);
        let found = ready.find_map(|endpoint| address(endpoint.str_at("/addresses/0"), number));
        if found.is_some() {
            return found;
        }
    }
    None
}

fn in_endpoints(storage: &Storage, namespace: &str, name: &str, port: &str) -> Option<SocketAddr> {
    let endpoints = storage.find("", "endpoints", namespace, name)?;
    endpoints.at("/subsets").items().iter().find_map(|subset| {
        let mut ports = subset.at("/ports").items().iter();
        let known = ports.find(|known| known.str_at("/name") == port)?;
        address(
            subset.str_at("/addresses/0/ip"),
            known.at("/port").as_i64()?,
        )
    })
}

fn address(ip: &str, port: i64) -> Option<SocketAddr> {
    let ip: IpAddr = ip.parse().ok()?;
    Some(SocketAddr::new(ip, u16::try_from(port).ok()?))
}

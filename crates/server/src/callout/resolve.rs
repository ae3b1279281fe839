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

#[cfg(test)]
mod tests {
    use windlass_core::{Env, Key, doc};
    use windlass_store::{Change, Resource, Store, StoreOptions};

    use super::*;

    async fn put(storage: &Storage, group: &str, resource: &str, object: Doc) {
        let shelf = Resource::new(group, resource);
        let key = Key::new("n", object.meta().name());
        let change = Change::put(object);
        let put = storage.update(&shelf, &key, |_| Ok::<_, ()>(change));
        assert!(put.await.is_ok());
    }

    fn metadata(name: &str) -> Doc {
        doc!({
            "name": name, "namespace": "n", "labels": { "kubernetes.io/service-name": "a" }
        })
    }

    #[tokio::test]
    async fn service_is_resolved_to_a_ready_endpoint_of_its_port() {
        let store = Store::open(StoreOptions::memory(Env::seeded(1))).unwrap();
        let storage = Storage::new(store);
        let find = |port| find_endpoint(&storage, "n", "a", port);
        assert_eq!(find(443), Err("service \"a\" not found".to_owned()));
        let service = doc!({
            "metadata": (metadata("a")), "spec": { "ports": [{ "name": "hook", "port": 443 }] }
        });
        put(&storage, "", "services", service).await;
        assert_eq!(
            find(80),
            Err("no service port 80 found for service \"a\"".to_owned())
        );
        assert_eq!(
            find(443),
            Err("no endpoints available for service \"a\"".to_owned())
        );
        let endpoints = doc!({
            "metadata": (metadata("a")),
            "subsets": [{
                "addresses": [{ "ip": "127.0.0.3" }], "ports": [{ "name": "hook", "port": 3 }]
            }]
        });
        put(&storage, "", "endpoints", endpoints).await;
        assert_eq!(find(443), Ok("127.0.0.3:3".parse().unwrap()));
        let slice = doc!({
            "metadata": (metadata("a-1")), "ports": [{ "name": "hook", "port": 9443 }],
            "endpoints": [
                { "addresses": ["127.0.0.1"], "conditions": { "ready": false } },
                { "addresses": ["127.0.0.2"] }
            ]
        });
        put(&storage, "discovery.k8s.io", "endpointslices", slice).await;
        assert_eq!(find(443), Ok("127.0.0.2:9443".parse().unwrap()));
    }
}

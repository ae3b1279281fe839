//! Clients of the real server.

use std::path::Path;

use windlass_client::{Config, DynamicApi, DynamicClient, RestClient, WriteOptions};
use windlass_core::{Doc, Gvr, doc};

pub(crate) const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");
const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");

pub(crate) async fn client(kubeconfig: &Path) -> RestClient {
    let config = Config::from_file(kubeconfig)
        .await
        .unwrap()
        .rate_limit(None);
    RestClient::connect(&config).await.unwrap()
}

/// The config maps of a new namespace.
pub(crate) async fn config_maps(client: &RestClient, namespace: &str) -> DynamicApi {
    let dynamic = DynamicClient::new(client.clone());
    let object = doc!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace }
    });
    dynamic
        .resource(NAMESPACES)
        .create(&object, &WriteOptions::default())
        .await
        .unwrap();
    dynamic.resource(CONFIG_MAPS).namespaced(namespace)
}

pub(crate) fn config_map(name: &str, value: u64) -> Doc {
    let parity = if value.is_multiple_of(2) {
        "even"
    } else {
        "odd"
    };
    doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "parity": parity } },
        "data": { "value": value.to_string() }
    })
}

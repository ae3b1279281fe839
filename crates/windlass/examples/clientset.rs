//! The clientset: verbs on types. A ConfigMap is created, changed, applied and deleted as the
//! struct that it is.
//!
//! `cargo run -p windlass --example clientset` shows it on a cluster in this process, and ends.
//! With `USE_EXISTING_CLUSTER=true` it works on the cluster of the kubeconfig.

use std::collections::BTreeMap;

use windlass::client::{Api, DeleteOptions, ListOptions, Patch, WriteOptions};
use windlass::k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::prelude::*;
use windlass::testing::Cluster;

#[tokio::main]
async fn main() -> Result<()> {
    let cluster = Cluster::start().await;
    let clientset = cluster.clientset();

    let all = ListOptions::default();
    for namespace in clientset.api::<Namespace>().list(&all).await?.items {
        println!("namespace {}", namespace.metadata.name.unwrap_or_default());
    }

    let maps: Api<ConfigMap> = clientset.api().namespaced("default");
    let mine = WriteOptions::manager("clientset-lab");
    let metadata = ObjectMeta {
        generate_name: Some("lab-clientset-".to_owned()),
        ..ObjectMeta::default()
    };
    let map = ConfigMap {
        metadata,
        data: Some(BTreeMap::from([("hello".to_owned(), "world".to_owned())])),
        ..ConfigMap::default()
    };
    let map = maps.create(&map, &mine).await?;
    let name = map.metadata.name.unwrap_or_default();
    println!("created {name}: {:?}", map.data.unwrap_or_default());

    let patch = Patch::Merge(doc!({ "data": { "hello": "moon" } }));
    let map = maps.patch(&name, &patch, &mine).await?;
    println!("patched {name}: {:?}", map.data.unwrap_or_default());

    // This one, and not another that took its name meanwhile.
    let this_one = DeleteOptions::uid(map.metadata.uid.unwrap_or_default());
    maps.delete(&name, &this_one).await?;
    match maps.get(&name).await {
        Err(error) if error.is_not_found() => println!("deleted {name}"),
        found => return Err(Error::msg(format!("it should be gone: {found:?}"))),
    }
    Ok(())
}

//! Typed verbs: counts the running pods of all namespaces, then creates, changes and deletes a
//! ConfigMap.
//!
//! Run it with `KUBECONFIG` set: `cargo run -p windlass-client --example clientset`.

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_client::{
    Api, Clientset, Config, DeleteOptions, ListOptions, Patch, RestClient, WriteOptions,
};
use windlass_core::doc;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let config = Config::load().await?;
    let clientset = Clientset::new(RestClient::connect(&config).await?);

    let running = ListOptions::default().fields("status.phase=Running");
    let pods = clientset.api::<Pod>().all().list_all(&running).await?;
    println!("{} running pods", pods.items.len());
    for node in clientset
        .api::<Node>()
        .list(&ListOptions::default())
        .await?
        .items
    {
        println!("node {}", node.metadata.name.unwrap_or_default());
    }

    let maps: Api<ConfigMap> = clientset.api().namespaced("default");
    let mine = WriteOptions::manager("clientset-example");
    let metadata = ObjectMeta {
        generate_name: Some("example-".to_owned()),
        ..ObjectMeta::default()
    };
    let map = maps
        .create(
            &ConfigMap {
                metadata,
                ..ConfigMap::default()
            },
            &mine,
        )
        .await?;
    let name = map.metadata.name.unwrap_or_default();
    let patch = Patch::Merge(doc!({ "data": { "hello": "world" } }));
    let map = maps.patch(&name, &patch, &mine).await?;
    println!("{name}: {:?}", map.data.unwrap_or_default());
    let this_one = DeleteOptions::uid(map.metadata.uid.unwrap_or_default());
    maps.delete(&name, &this_one).await?;
    Ok(())
}

//! Any resource as documents: lists objects while they arrive, then follows their changes for a
//! moment. Takes the name of a resource, as kubectl does: `deploy`, `pods`, `foos.example.com`.
//!
//! Run it with `KUBECONFIG` set: `cargo run -p windlass-client --example dynamic_client -- deploy`.

use std::time::Duration;

use windlass_client::{
    Config, DiscoveryClient, DynamicClient, ListOptions, RestClient, WatchOptions,
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let rest = RestClient::connect(&Config::load().await?).await?;
    let name = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "namespaces".to_owned());
    let resource = DiscoveryClient::new(rest.clone()).resolve(&name).await?;
    let api = DynamicClient::new(rest).resource(resource.gvr);

    let mut list = api.list_stream(&ListOptions::default()).await?;
    while let Some(object) = list.next().await {
        let object = object?;
        let (namespace, name) = (
            object.str_at("/metadata/namespace"),
            object.str_at("/metadata/name"),
        );
        println!("{}\t{namespace}\t{name}", resource.gvk.kind());
    }

    let from_here = WatchOptions::from(list.head().resource_version());
    let mut watch = api
        .watch(&from_here.timeout(Duration::from_secs(1)))
        .await?;
    while let Some(event) = watch.next().await {
        println!("{:?}", event?.object().str_at("/metadata/name"));
    }
    Ok(())
}

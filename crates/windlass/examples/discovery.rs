//! The discovery client: what a server serves, and what a user means by `deploy`.
//!
//! `cargo run -p windlass --example discovery` prints what `kubectl api-resources` does, and ends.
//! With `USE_EXISTING_CLUSTER=true` it asks the cluster of the kubeconfig.

use windlass::client::DiscoveryClient;
use windlass::prelude::*;
use windlass::testing::Cluster;

#[tokio::main]
async fn main() -> Result<()> {
    let cluster = Cluster::start().await;
    let client = DiscoveryClient::new(cluster.client().clone());
    let version = client.server_version().await?;
    println!("server {}", version.str_at("/gitVersion"));

    let discovery = client.discovery().await?;
    for group in &discovery.groups {
        let name = if group.name.is_empty() {
            "core"
        } else {
            &group.name
        };
        println!("group {name}: {}", group.versions.join(" "));
    }
    for resource in &discovery.resources {
        println!(
            "{}\t{}\t{}\t{}",
            resource.gvr.resource(),
            resource.short_names.join(","),
            resource.gvr.api_version(),
            resource.gvk.kind(),
        );
    }
    for word in ["deploy", "pods", "Ingress", "sa"] {
        println!("{word:?} is {}", client.resolve(word).await?.gvr);
    }
    match client.resolve("gadgets").await {
        Err(error) => println!("{error}"),
        Ok(found) => return Err(Error::msg(format!("nobody serves gadgets: {found:?}"))),
    }
    Ok(())
}

//! What a server serves, as `kubectl api-resources` prints it.
//!
//! Run it with `KUBECONFIG` set: `cargo run -p windlass-client --example discovery_client`.

use windlass_client::{Config, DiscoveryClient, RestClient};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = DiscoveryClient::new(RestClient::connect(&Config::load().await?).await?);
    println!(
        "server {}",
        client.server_version().await?.str_at("/gitVersion")
    );
    let discovery = client.discovery().await?;
    for group in &discovery.groups {
        println!(
            "{}: {}",
            if group.name.is_empty() {
                "core"
            } else {
                &group.name
            },
            group.versions.join(" ")
        );
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
    println!("\"deploy\" is {}", client.resolve("deploy").await?.gvr);
    Ok(())
}

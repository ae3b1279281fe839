//! Requests by method and path: lists the pods of a namespace as bytes, then as documents.
//!
//! Run it with `KUBECONFIG` set: `cargo run -p windlass-client --example rest_client`.

use windlass_client::{Config, RestClient};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let config = Config::load().await?;
    let client = RestClient::connect(&config).await?;
    println!("server {}, from {}", config.server(), config.source());

    let path = "/api/v1/namespaces/kube-system/pods";
    let bytes = client.get(path).param("limit", "500").bytes().await?;
    println!("{path}: {} bytes", bytes.len());

    let list = client.get(path).into_doc().await?;
    for pod in list.at("/items").items() {
        println!(
            "{}\t{}",
            pod.str_at("/metadata/name"),
            pod.str_at("/status/phase")
        );
    }
    println!(
        "{} pods at {}",
        list.at("/items").items().len(),
        list.str_at("/metadata/resourceVersion")
    );
    Ok(())
}

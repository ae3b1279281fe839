//! The REST client: methods and paths. What the other clients send, by hand.
//!
//! `cargo run -p windlass --example rest_client` shows it on a cluster in this process, and ends.
//! With `USE_EXISTING_CLUSTER=true` it works on the cluster of the kubeconfig.

use windlass::prelude::*;
use windlass::testing::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::main]
async fn main() -> Result<()> {
    let cluster = Cluster::start().await;
    let client = cluster.client();

    let version = client.get("/version").into_doc().await?;
    println!("GET /version: {}", version.str_at("/gitVersion"));

    let map = doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "generateName": "lab-rest-", "labels": { "lab": "rest-client" } },
        "data": { "hello": "world" },
    });
    let created = client.post(MAPS).doc(&map).into_doc().await?;
    let name = created.meta().name().to_owned();
    println!("POST {MAPS}: {name}");

    // The answer as it came, and as a document.
    let list = client.get(MAPS).param("labelSelector", "lab=rest-client");
    let bytes = list.bytes().await?;
    let list = Doc::parse(&bytes)?;
    let items = list.at("/items").items();
    println!("GET {MAPS}: {} bytes, {} items", bytes.len(), items.len());

    let path = format!("{MAPS}/{name}");
    let patch = r#"{"data": {"hello": "moon"}}"#;
    let patched = client
        .patch(path.as_str())
        .body("application/merge-patch+json", patch)
        .into_doc()
        .await?;
    println!("PATCH {path}: hello {}", patched.str_at("/data/hello"));

    let this_one = doc!({ "preconditions": { "uid": created.meta().uid_str() } });
    let deleted = client.delete(path.as_str()).doc(&this_one);
    println!(
        "DELETE {path}: {}",
        deleted.into_doc().await?.str_at("/status")
    );

    match client.get(path.as_str()).into_doc().await {
        Err(error) if error.is_not_found() => println!("GET {path}: {error}"),
        found => return Err(Error::msg(format!("it should be gone: {found:?}"))),
    }
    Ok(())
}

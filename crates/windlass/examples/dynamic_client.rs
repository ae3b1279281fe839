//! The dynamic client: objects of a kind that this program has no struct for, as documents.
//!
//! `cargo run -p windlass --example dynamic_client` defines a kind, uses it, and ends. With
//! `USE_EXISTING_CLUSTER=true` it works on the cluster of the kubeconfig.

use windlass::client::{
    DeleteOptions, DynamicClient, ListOptions, Patch, Propagation, WriteOptions,
};
use windlass::core::Gvr;
use windlass::prelude::*;
use windlass::testing::Cluster;

const BACKUPS: Gvr = Gvr::constant("labs.windlass.dev", "v1", "backups");
const DEFINITIONS: Gvr = Gvr::constant("apiextensions.k8s.io", "v1", "customresourcedefinitions");

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: backups.labs.windlass.dev }
spec:
  group: labs.windlass.dev
  scope: Namespaced
  names: { kind: Backup, plural: backups }
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              keep: { type: integer, minimum: 1, default: 7 }
";

#[tokio::main]
async fn main() -> Result<()> {
    let cluster = Cluster::start().await;
    cluster.define(DEFINITION).await;
    let client = DynamicClient::new(cluster.client().clone());
    let backups = client.resource(BACKUPS).namespaced("default");
    let mine = WriteOptions::manager("dynamic-client-lab");

    let nightly = doc!({
        "apiVersion": "labs.windlass.dev/v1", "kind": "Backup",
        "metadata": { "name": "nightly" }, "spec": {},
    });
    let created = backups.create(&nightly, &mine).await?;
    println!("created nightly, which keeps {}", created.at("/spec/keep"));

    let patch = Patch::Merge(doc!({ "spec": { "keep": 30 } }));
    let patched = backups.patch("nightly", &patch, &mine).await?;
    for difference in created.diff(&patched) {
        println!("changed {}", difference.path);
    }

    let refused = Patch::Merge(doc!({ "spec": { "keep": 0 } }));
    match backups.patch("nightly", &refused, &mine).await {
        Err(error) => println!("refused: {error}"),
        Ok(_) => return Err(Error::msg("the schema should have refused it")),
    }

    // Decoded while it arrives: a list is never in memory as a whole unless you keep it.
    let mut list = backups.list_stream(&ListOptions::default()).await?;
    while let Some(backup) = list.next().await {
        println!("listed {}", backup?.meta().key());
    }

    let this_one = DeleteOptions::uid(patched.meta().uid_str());
    backups.delete("nightly", &this_one).await?;
    if let Some(definition) = cluster
        .find(&DEFINITIONS, "backups.labs.windlass.dev")
        .await
    {
        cluster.delete(&definition, Propagation::Background).await;
    }
    Ok(())
}

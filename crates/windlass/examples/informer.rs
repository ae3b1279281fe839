//! An informer: a cache that follows the server, and handlers that hear of every change.
//!
//! `cargo run -p windlass --example informer` shows it on a cluster in this process, and ends. With
//! `USE_EXISTING_CLUSTER=true` it works on the cluster of the kubeconfig.

use windlass::cache::{Deleted, Handler, InformerFactory, InformerSpec, SharedInformer, functions};
use windlass::client::Propagation;
use windlass::k8s_openapi::api::core::v1::ConfigMap;
use windlass::prelude::*;
use windlass::testing::Cluster;

const LABEL: &str = "lab=informer";

struct Printer;

impl Handler<ConfigMap> for Printer {
    async fn on_add(&self, map: Obj<ConfigMap>, is_initial: bool) {
        let when = if is_initial { "was there" } else { "is new" };
        println!("+ {} {when}", map.key());
    }

    async fn on_update(&self, old: Obj<ConfigMap>, new: Obj<ConfigMap>) {
        // Two versions of an object share all that did not change, so this costs the difference.
        let changed = old.doc().diff(new.doc());
        let changed = changed.iter().map(|change| change.path.to_string());
        let changed: Vec<_> = changed.filter(|path| path.starts_with("/data")).collect();
        println!("~ {} {}", new.key(), changed.join(", "));
    }

    async fn on_delete(&self, deleted: Deleted<ConfigMap>) {
        println!("- {}", deleted.key());
    }
}

fn config_map(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "labels": { "lab": "informer" } },
        "data": { "color": "blue" },
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let cluster = Cluster::start().await;
    let before = cluster.create_doc(&config_map("lab-before")).await;

    let factory = InformerFactory::new(cluster.client().clone());
    let ours = InformerSpec::new(ConfigMap::gvr()).labels(LABEL);
    let maps: SharedInformer<ConfigMap> = factory.informer_of(ours);
    // Who asks for all objects of one color does not look at the others.
    maps.add_index("color", functions::field("/data/color"))?;
    let printer = maps.add_handler(Printer)?;
    factory.start();
    factory.wait_for_sync().await?;
    let lister = maps.lister();
    println!("{} in the cache", lister.len());

    let after = cluster.create_doc(&config_map("lab-after")).await;
    let red = doc!({ "data": { "color": "red" } });
    let after = cluster.patch(&after, red).await;
    let are_red = || lister.by_index("color", "red").map_or(0, |red| red.len());
    cluster.until(async |_| are_red() == 1).await;
    println!("{} is red, says the index", are_red());

    cluster.delete(&before, Propagation::Background).await;
    cluster.delete(&after, Propagation::Background).await;
    cluster
        .until(async |_| lister.is_empty() && printer.is_idle())
        .await;
    factory.shutdown().await;
    Ok(())
}

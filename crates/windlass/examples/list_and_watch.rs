//! List and watch by hand: the two requests under every informer.
//!
//! A list gives a state and its revision; a watch from that revision gives every change after it,
//! in order. `cargo run -p windlass --example list_and_watch` shows it and ends.

use windlass::client::{ListOptions, Propagation, WatchEvent, WatchOptions};
use windlass::core::Gvr;
use windlass::prelude::*;
use windlass::testing::Cluster;

const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");

fn config_map(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "labels": { "lab": "list-and-watch" } },
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let cluster = Cluster::start().await;
    let maps = cluster.resource(CONFIG_MAPS).namespaced("default");
    cluster.create_doc(&config_map("before")).await;

    let ours = ListOptions::default().labels("lab=list-and-watch");
    let list = maps.list(&ours).await?;
    for map in &list.items {
        println!("listed   {}", map.meta().name());
    }
    let revision = list.head.metadata.str_at("/resourceVersion").to_owned();
    println!("the list is of revision {revision}");

    // What happens between the list and the watch is not lost: the watch starts at the revision.
    let after = cluster.create_doc(&config_map("after")).await;
    let options = WatchOptions {
        label_selector: "lab=list-and-watch".to_owned(),
        resource_version: revision,
        ..WatchOptions::default()
    };
    let mut watch = maps.watch(&options).await?;
    let changed = cluster.patch(&after, doc!({ "data": { "k": "v" } })).await;
    cluster.delete(&changed, Propagation::Background).await;
    while let Some(event) = watch.next().await {
        match event.map_err(|error| Error::msg(error.to_string()))? {
            WatchEvent::Added(map) => println!("added    {}", map.meta().name()),
            WatchEvent::Modified(map) => println!("modified {}", map.meta().name()),
            WatchEvent::Deleted(map) => {
                println!("deleted  {}", map.meta().name());
                break;
            }
            WatchEvent::Bookmark(_) => {}
        }
    }
    let before = maps.get("before").await?;
    cluster.delete(&before, Propagation::Background).await;
    Ok(())
}

//! The shape of every controller: handlers put keys into a queue, workers take them out and read
//! the cache. What fails is tried again, later each time, and in the end given up.
//!
//! `cargo run -p windlass --example informer_with_workqueue` shows it on a cluster in this process,
//! and ends. With `USE_EXISTING_CLUSTER=true` it works on the cluster of the kubeconfig.

use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::Notify;
use windlass::cache::{InformerFactory, InformerSpec, on_any};
use windlass::client::Propagation;
use windlass::core::Gvr;
use windlass::prelude::*;
use windlass::queue::WorkQueue;
use windlass::testing::Cluster;

const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");
const WORKERS: usize = 2;
const RETRIES: u32 = 3;

/// The one field that matters here. Reading it does not decode the rest of the object.
#[derive(Deserialize)]
struct MapView {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    color: String,
}

async fn work(queue: WorkQueue<Key>, lister: Lister, given_up: Arc<Notify>) {
    // While this worker has the key nobody else gets it; dropping the item hands it back.
    while let Some(item) = queue.get().await {
        let key = item.key();
        match reconcile(key, &lister) {
            Ok(()) => queue.forget(key),
            Err(error) if queue.num_requeues(key) < RETRIES => {
                println!("{key} fails, try again: {error}");
                queue.add_rate_limited(key.clone());
            }
            Err(error) => {
                println!("{key} is given up: {error}");
                queue.forget(key);
                given_up.notify_one();
            }
        }
    }
}

/// Compares what is with what should be. Here that is only to print it; an object that is gone is
/// reconciled too.
fn reconcile(key: &Key, lister: &Lister) -> Result<()> {
    match lister.get(key) {
        Some(object) => println!("{key} is {}", object.view::<MapView>()?.data.color),
        None => println!("{key} is gone"),
    }
    Ok(())
}

fn config_map(name: &str, data: Doc) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "labels": { "lab": "work-queue" } },
        "data": data,
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let cluster = Cluster::start().await;
    let factory = InformerFactory::new(cluster.client().clone());
    let maps = factory.informer_of(InformerSpec::new(CONFIG_MAPS).labels("lab=work-queue"));
    let queue = WorkQueue::<Key>::new();
    let adding = queue.clone();
    let handler = maps.add_handler(on_any(move |object: Obj| adding.add(object.key())))?;
    factory.start();
    factory.wait_for_sync().await?;
    let lister = maps.lister();
    let given_up = Arc::new(Notify::new());
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| tokio::spawn(work(queue.clone(), maps.lister(), given_up.clone())))
        .collect();

    let blue = config_map("lab-blue", doc!({ "color": "blue" }));
    let blue = cluster.create_doc(&blue).await;
    let bad = config_map("lab-bad", doc!({ "colour": "blue" }));
    let bad = cluster.create_doc(&bad).await;
    cluster.until(async |_| lister.len() == 2).await;
    cluster.delete(&blue, Propagation::Background).await;
    cluster
        .until(async |_| lister.len() == 1 && handler.is_idle())
        .await;

    given_up.notified().await;

    // No new keys; those that are there are worked off.
    queue.shut_down_with_drain().await;
    for worker in workers {
        worker.await?;
    }
    factory.shutdown().await;
    cluster.delete(&bad, Propagation::Background).await;
    Ok(())
}

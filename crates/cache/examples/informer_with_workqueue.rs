//! The shape of every controller: handlers put keys into a queue, workers take them out and read
//! the cache. Ends when every object that existed at the start has been looked at.
//!
//! Run it with `KUBECONFIG` set: `cargo run -p windlass-cache --example informer_with_workqueue`.

use std::time::Duration;

use serde::Deserialize;
use tokio::{task::JoinSet, time::timeout};
use windlass_cache::{InformerFactory, Lister, Obj, on_any};
use windlass_client::{Config, RestClient};
use windlass_core::{Gvr, Key};
use windlass_queue::WorkQueue;

/// How long to wait for the server.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

const WORKERS: usize = 2;

/// The one field that matters here. Reading it does not decode the rest of the object.
#[derive(Deserialize)]
struct NamespaceView {
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    phase: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = RestClient::connect(&Config::load().await?).await?;
    let factory = InformerFactory::new(client);
    let namespaces = factory.dynamic(Gvr::constant("", "v1", "namespaces"));
    let queue = WorkQueue::<Key>::new();
    let adding = queue.clone();
    let handler = namespaces.add_handler(on_any(move |object: Obj| adding.add(object.key())))?;

    factory.start();
    timeout(SYNC_TIMEOUT, factory.wait_for_sync()).await??;
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(queue.clone(), namespaces.lister()));
    }
    handler.wait_for_sync().await;
    queue.shut_down_with_drain().await;
    workers.join_all().await;
    factory.shutdown().await;
    Ok(())
}

async fn work(queue: WorkQueue<Key>, lister: Lister) {
    while let Some(item) = queue.get().await {
        match reconcile(item.key(), &lister) {
            Ok(()) => queue.forget(item.key()),
            Err(error) => {
                eprintln!("{}: {error:#}", item.key());
                queue.add_rate_limited(item.key().clone());
            }
        }
    }
}

/// Compares what is with what should be. Here that is only to print it; an object that is gone is
/// reconciled too.
fn reconcile(key: &Key, lister: &Lister) -> anyhow::Result<()> {
    match lister.get(key) {
        Some(object) => println!("{key} {}", object.view::<NamespaceView>()?.status.phase),
        None => println!("{key} is gone"),
    }
    Ok(())
}

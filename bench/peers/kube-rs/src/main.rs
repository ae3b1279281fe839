//! The kube-rs reflector over all pods, measured as windlass's informer is.
//!
//! It prints the cost of holding all pods as one line of JSON when it has synced, then counts
//! events between the lines "start" and "stop" on standard input and prints a second line.

mod list;

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, bail};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, reflector, reflector::Store, watcher},
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::{sleep, timeout},
};
use windlass_bench::meter;

const SYNC_LIMIT: Duration = Duration::from_secs(300);
const DRAIN_LIMIT: Duration = Duration::from_secs(60);
const DRAIN_QUIET: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => informer(false).await,
        ["--trim"] => informer(true).await,
        ["list", url] => list::run(url).await,
        _ => bail!("usage: windlass-bench-kube-rs [--trim] | list URL"),
    }
}

/// Holds all pods of the server that the environment names.
async fn informer(is_trimmed: bool) -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let events = Arc::new(AtomicU64::new(0));
    let rss_before = meter::rss_bytes()?;
    let cpu_before = meter::cpu();
    let start = meter::wall();

    let (store, writer) = reflector::store();
    tokio::spawn(watch(client, writer, is_trimmed, Arc::clone(&events)));
    timeout(SYNC_LIMIT, store.wait_until_ready())
        .await
        .context("not synced in time")??;

    let sync_wall_s = (meter::wall() - start).as_secs_f64();
    let sync_cpu_s = (meter::cpu() - cpu_before).as_secs_f64();
    drain(&events).await;
    let pods = store.len();
    let rss_bytes = meter::rss_bytes()?.saturating_sub(rss_before);
    println!(
        "{}",
        json!({
            "pods": pods,
            "rss_bytes_per_pod": rss_bytes as f64 / pods as f64,
            "sync_cpu_s": sync_cpu_s,
            "sync_wall_s": sync_wall_s,
        })
    );
    count_events(&store, &events).await
}

/// Keeps the store up to date for as long as the process lives.
async fn watch(
    client: Client,
    writer: reflector::store::Writer<Pod>,
    is_trimmed: bool,
    events: Arc<AtomicU64>,
) {
    let stream = watcher(Api::<Pod>::all(client), watcher::Config::default())
        .default_backoff()
        .modify(move |pod| {
            if is_trimmed {
                pod.metadata.managed_fields = None;
            }
        })
        .reflect(writer)
        .applied_objects();
    let mut stream = pin!(stream);
    while let Some(event) = stream.next().await {
        match event {
            Ok(_) => {
                events.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => eprintln!("watch: {error}"),
        }
    }
}

/// Measures from the line "start" to the line "stop", plus the time that events still take to
/// arrive.
async fn count_events(store: &Store<Pod>, events: &AtomicU64) -> anyhow::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    if lines.next_line().await?.as_deref() != Some("start") {
        return Ok(());
    }
    let count_before = events.load(Ordering::Relaxed);
    let cpu_before = meter::cpu();
    lines
        .next_line()
        .await?
        .context("standard input ended before the line \"stop\"")?;
    drain(events).await;
    let cpu_s = (meter::cpu() - cpu_before).as_secs_f64();
    let count = (events.load(Ordering::Relaxed) - count_before) as f64;
    println!(
        "{}",
        json!({
            "events": count,
            "events_cpu_s": cpu_s,
            "events_per_cpu_s": count / cpu_s,
        })
    );
    assert!(
        !store.is_empty(),
        "the store must live as long as its writer"
    );
    Ok(())
}

/// Returns when no event has come for a while.
async fn drain(events: &AtomicU64) {
    let deadline = meter::wall() + DRAIN_LIMIT;
    while meter::wall() < deadline {
        let before = events.load(Ordering::Relaxed);
        sleep(DRAIN_QUIET).await;
        if events.load(Ordering::Relaxed) == before {
            return;
        }
    }
}

//! The informer over all pods of the server that the environment names.
//!
//! Like its peers it prints the cost of holding all pods when it has synced, then counts events
//! between the lines "start" and "stop" on standard input and prints a second line.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::time::{sleep, timeout};
use windlass_bench::{contest, meter};
use windlass_cache::{InformerFactory, Obj, SharedInformer, on_any};
use windlass_client::{Config, RestClient};
use windlass_core::Gvr;

const SYNC_LIMIT: Duration = Duration::from_secs(300);
const DRAIN_LIMIT: Duration = Duration::from_secs(60);
const DRAIN_QUIET: Duration = Duration::from_secs(1);

/// Runs both phases.
pub(crate) fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure())
}

async fn measure() -> anyhow::Result<()> {
    let client = RestClient::connect(&Config::load().await?).await?;
    let events = Arc::new(AtomicU64::new(0));
    let rss_before = meter::rss_bytes()?;
    let (cpu, wall) = (meter::cpu(), meter::wall());

    let factory = InformerFactory::new(client);
    let pods = factory.dynamic(Gvr::constant("", "v1", "pods"));
    let counter = Arc::clone(&events);
    pods.add_handler(on_any(move |_: Obj| {
        counter.fetch_add(1, Ordering::Relaxed);
    }))?;
    factory.start();
    timeout(SYNC_LIMIT, factory.wait_for_sync())
        .await
        .context("not synced in time")??;

    let (cpu, wall) = (meter::cpu() - cpu, meter::wall() - wall);
    drain(&events).await;
    let count = pods.lister().len() as f64;
    let rss_bytes = meter::rss_bytes()?.saturating_sub(rss_before) as f64;
    let numbers = contest::Numbers::from([
        ("pods".to_owned(), count),
        ("rss_bytes_per_pod".to_owned(), rss_bytes / count),
        ("sync_cpu_s".to_owned(), cpu.as_secs_f64()),
        ("sync_wall_s".to_owned(), wall.as_secs_f64()),
    ]);
    println!("{}", contest::to_json(&numbers));
    count_events(&pods, &events).await?;
    factory.shutdown().await;
    Ok(())
}

/// Measures from the line "start" to the line "stop", plus the time that events still take to
/// arrive.
async fn count_events(pods: &SharedInformer, events: &AtomicU64) -> anyhow::Result<()> {
    if next_line().await? != "start" {
        return Ok(());
    }
    let count = events.load(Ordering::Relaxed);
    let cpu = meter::cpu();
    anyhow::ensure!(
        next_line().await? == "stop",
        "the line \"stop\" was expected"
    );
    drain(events).await;
    let cpu_s = (meter::cpu() - cpu).as_secs_f64();
    let count = (events.load(Ordering::Relaxed) - count) as f64;
    let numbers = contest::Numbers::from([
        ("events".to_owned(), count),
        ("events_cpu_s".to_owned(), cpu_s),
        ("events_per_cpu_s".to_owned(), count / cpu_s),
    ]);
    println!("{}", contest::to_json(&numbers));
    anyhow::ensure!(!pods.lister().is_empty(), "the cache has lost its pods");
    Ok(())
}

async fn next_line() -> anyhow::Result<String> {
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    Ok(line.await??.trim_end().to_owned())
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

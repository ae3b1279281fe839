//! Namespaces that come and go: what a server still holds of them is a leak.
//!
//! Every worker makes one namespace after the other, fills it with objects of many kinds, waits
//! until its Deployment has its pods, deletes the namespace and waits until it is gone. Every few
//! seconds one line of figures says how many there were and how large the server says its caches
//! are. The end of the input ends it, when all namespaces are gone.

mod objects;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use windlass_bench::contest::{self, Numbers};
use windlass_bench::meter;
use windlass_core::Doc;

use crate::server::wire::{Target, Wire};
use crate::server::{block_on, named};

/// The time between two lines of figures.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// The longest that the controllers may take to fill a namespace, and to empty it.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);

/// The time between two looks at an object that is waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The pages on which the server and its controllers say how large they are.
const PAGES: [&str; 2] = ["/metrics", "/metrics/controllers"];

/// The counts that workers share.
struct Progress {
    /// On the clock of the meter.
    start: Duration,
    /// Gives every namespace its number.
    started: AtomicUsize,
    /// Namespaces that are gone again.
    finished: AtomicUsize,
    /// Set at the end of the input.
    is_over: AtomicBool,
}

/// Churns namespaces with so many workers until the input ends, and prints figures meanwhile.
pub(crate) fn run(workers: usize, pods: usize) -> anyhow::Result<()> {
    ensure!(workers > 0, "at least one worker");
    let progress = Arc::new(Progress {
        start: meter::wall(),
        started: AtomicUsize::new(0),
        finished: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    });
    // Reading blocks; a thread of its own waits for the end of the input.
    let at_end = progress.clone();
    std::thread::spawn(move || {
        let _ = std::io::Read::read_to_end(&mut std::io::stdin(), &mut Vec::new());
        at_end.is_over.store(true, Ordering::Relaxed);
    });
    block_on(async {
        let target = Target::from_environment()?;
        prepare(&target).await?;
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            tasks.spawn(churn(target.clone(), progress.clone(), pods));
        }
        let sampler = tokio::spawn(sample(target.clone(), progress.clone()));
        while let Some(outcome) = tasks.join_next().await {
            outcome??;
        }
        sampler.abort();
        print_figures(&mut target.connect().await?, &progress).await
    })
}

/// Makes the kind of the custom resources.
async fn prepare(target: &Target) -> anyhow::Result<()> {
    let mut wire = target.connect().await?;
    let body = objects::definition().to_json();
    let (status, _) = wire.request("POST", objects::DEFINITIONS, &body).await?;
    ensure!(
        matches!(status, 201 | 409),
        "POST {}: {status}",
        objects::DEFINITIONS
    );
    until(|| async {
        let (status, _) = target
            .connect()
            .await?
            .request("GET", objects::CUSTOM_RESOURCES, b"")
            .await?;
        Ok(status == 200)
    })
    .await
    .context("the custom resource is not served")
}

/// One worker: one namespace after the other.
async fn churn(target: Target, progress: Arc<Progress>, pods: usize) -> anyhow::Result<()> {
    let mut wire = target.connect().await?;
    while !progress.is_over.load(Ordering::Relaxed) {
        let number = progress.started.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("soak-{number}");
        live(&mut wire, &namespace, pods)
            .await
            .with_context(|| format!("namespace {namespace}"))?;
        progress.finished.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// The life of one namespace.
async fn live(wire: &mut Wire, namespace: &str, pods: usize) -> anyhow::Result<()> {
    for (path, body) in objects::of_namespace(namespace, pods) {
        let (status, _) = wire.request("POST", &path, &body.to_json()).await?;
        ensure!(status == 201, "POST {path}: {status}");
    }
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/web");
    settle(wire, &path, |found| {
        let ready = found.map(|found| found.at("/status/replicas").as_u64().unwrap_or(0));
        ready == Some(pods as u64)
    })
    .await?;
    let path = format!("/api/v1/namespaces/{namespace}");
    let (status, _) = wire.request("DELETE", &path, b"").await?;
    ensure!(status == 200, "DELETE {path}: {status}");
    settle(wire, &path, |found| found.is_none()).await
}

/// Reads an object until it is as it should be; `None` stands for one that does not exist.
async fn settle(
    wire: &mut Wire,
    path: &str,
    is_reached: impl Fn(Option<Doc>) -> bool,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + SETTLE_LIMIT;
    loop {
        let found = match wire.answer(path).await? {
            (200, body) => Some(Doc::parse(&body)?),
            (404, _) => None,
            (status, _) => bail!("GET {path}: {status}"),
        };
        if is_reached(found) {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "{path} did not settle within {SETTLE_LIMIT:?}"
        );
        sleep(POLL_INTERVAL).await;
    }
}

/// Repeats until it is so.
async fn until<F: Future<Output = anyhow::Result<bool>>>(
    mut is_reached: impl FnMut() -> F,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + SETTLE_LIMIT;
    while !is_reached().await? {
        ensure!(Instant::now() < deadline, "not within {SETTLE_LIMIT:?}");
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

async fn sample(target: Target, progress: Arc<Progress>) -> anyhow::Result<()> {
    let mut wire = target.connect().await?;
    let mut ticks = interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        print_figures(&mut wire, &progress).await?;
    }
}

/// Prints the counts and every gauge that the server has of its own size.
async fn print_figures(wire: &mut Wire, progress: &Progress) -> anyhow::Result<()> {
    let count = |count: &AtomicUsize| count.load(Ordering::Relaxed) as f64;
    let elapsed = meter::wall().saturating_sub(progress.start);
    let mut numbers = named([
        ("namespaces", count(&progress.finished)),
        ("elapsed_s", elapsed.as_secs_f64()),
    ]);
    for page in PAGES {
        let text = String::from_utf8(wire.fetch(page).await?)?;
        add_sizes(&text, &mut numbers);
    }
    println!("{}", contest::to_json(&numbers));
    Ok(())
}

/// The metrics that say how large something is: objects together, caches one by one.
fn add_sizes(text: &str, numbers: &mut Numbers) {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((series, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let name = match name {
            "apiserver_storage_objects" => "objects".to_owned(),
            "windlass_cache_entries" => {
                format!("entries_{}", label(labels, "cache=").unwrap_or("other"))
            }
            "windlass_tasks" => "tasks".to_owned(),
            _ => continue,
        };
        *numbers.entry(name).or_default() += value.parse::<f64>().unwrap_or(0.0);
    }
}

/// The value of a label.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = labels.split_once(name)?;
    rest.split('"').nth(1)
}

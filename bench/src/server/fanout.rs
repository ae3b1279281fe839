//! One write, many watchers: how long until each has it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use windlass_bench::contest::Numbers;
use windlass_bench::meter;
use windlass_core::Doc;

use super::wire::{Target, Wire};
use super::{named, quantile};

/// Where the pods are that are watched and written.
const PODS: &str = "/api/v1/namespaces/team-00/pods";

/// Writes that are timed; the first ones, which make caches warm, are not.
const WRITES: usize = 50;
const WARM_UP: usize = 5;

/// Connections that are opened at a time.
const OPENING_LIMIT: usize = 32;

pub(super) async fn run(watchers: usize) -> anyhow::Result<Numbers> {
    let target = Target::from_environment()?;
    let mut writer = target.connect().await?;
    let list = Doc::parse(&writer.fetch(&format!("{PODS}?limit=1")).await?)?;
    let name = list.str_at("/items/0/metadata/name").to_owned();
    ensure!(!name.is_empty(), "there is no pod to write");
    let path = format!(
        "{PODS}?watch=1&resourceVersion={}",
        list.str_at("/metadata/resourceVersion")
    );
    let (arrived, mut arrivals) = mpsc::channel(watchers);
    let (stop, stopped) = watch::channel(());
    let mut tasks = JoinSet::new();
    for wire in open(&target, &path, watchers).await? {
        tasks.spawn(follow(wire, arrived.clone(), stopped.clone()));
    }
    let (mut all, mut last) = (Vec::new(), Vec::new());
    for write in 0..WARM_UP + WRITES {
        let body = format!(r#"{{"metadata":{{"labels":{{"write":"{write}"}}}}}}"#);
        let before = meter::wall();
        let (status, _) = writer
            .request("PATCH", &format!("{PODS}/{name}"), body.as_bytes())
            .await?;
        ensure!(status == 200, "write: {status}");
        let mut took = Vec::with_capacity(watchers);
        for _ in 0..watchers {
            let at: Duration = arrivals.recv().await.context("a watcher is gone")?;
            took.push(at.saturating_sub(before).as_secs_f64() * 1e3);
        }
        if write >= WARM_UP {
            last.push(took.iter().copied().fold(0.0, f64::max));
            all.extend(took);
        }
    }
    drop(stop);
    while let Some(outcome) = tasks.join_next().await {
        outcome??;
    }
    Ok(named([
        ("fanout_p50_ms", quantile(&mut all, 0.50)),
        ("fanout_p99_ms", quantile(&mut all, 0.99)),
        ("fanout_last_p50_ms", quantile(&mut last, 0.50)),
    ]))
}

/// Opens the watches, some at a time.
async fn open(target: &Target, path: &str, watchers: usize) -> anyhow::Result<Vec<Wire>> {
    let (target, path) = (Arc::new(target.clone()), Arc::<str>::from(path));
    let mut tasks = JoinSet::new();
    let mut wires = Vec::with_capacity(watchers);
    for _ in 0..watchers {
        if tasks.len() == OPENING_LIMIT
            && let Some(wire) = tasks.join_next().await
        {
            wires.push(wire??);
        }
        let (target, path) = (Arc::clone(&target), Arc::clone(&path));
        tasks.spawn(async move {
            let mut wire = target.connect().await?;
            wire.open(&path).await?;
            anyhow::Ok(wire)
        });
    }
    while let Some(wire) = tasks.join_next().await {
        wires.push(wire??);
    }
    Ok(wires)
}

/// Tells the time of every event.
async fn follow(
    mut wire: Wire,
    arrived: mpsc::Sender<Duration>,
    mut stopped: watch::Receiver<()>,
) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            lines = wire.lines() => drop(lines?),
            _ = stopped.changed() => return Ok(()),
        }
        arrived.send(meter::wall()).await?;
    }
}

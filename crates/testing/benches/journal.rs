//! What the journal costs: the same load through informer, queue and worker, with the journal and
//! without it.
//!
//! The two take turns, and each pair gives one ratio of processor time per change with its
//! reconcile; whatever else the machine does hits both alike. Three loads: a reconcile that does
//! nothing, and one that writes one object, in a table in this process; and one that writes one
//! object in an API server in this process, which is the cheapest that there is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use tokio::runtime::Runtime;
use windlass_bench::meter;
use windlass_client::{RestOptions, Transport, WriteOptions};
use windlass_core::{Doc, Env, Key, doc};
use windlass_runtime::{
    Action, Context, Controller, JOURNAL_KEYS_LIMIT, Manager, ResourceKind, Result, Shutdown,
};
use windlass_testing::{Cluster, ModelServer};

const NAMESPACE: &str = "default";
const KEYS: usize = 1_000;
/// How often each object is changed in one run.
const CHANGES: usize = 20;
const PAIRS: usize = 15;
/// What the journal may cost.
const RATIO_MAX: f64 = 1.02;

fn main() -> Result<()> {
    // `cargo test --benches` passes this flag: the benchmark then only has to build and start.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (pairs, changes) = if is_test { (1, 1) } else { (PAIRS, CHANGES) };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    for work in [Work::Nothing, Work::OneWrite, Work::OneWriteToServer] {
        compare(&runtime, work, pairs, changes)?;
    }
    Ok(())
}

/// What a reconcile does.
#[derive(Clone, Copy, Debug)]
enum Work {
    Nothing,
    OneWrite,
    OneWriteToServer,
}

fn compare(runtime: &Runtime, work: Work, pairs: usize, changes: usize) -> Result<()> {
    let (mut ratios, mut on, mut off) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        // Neither of the two is always the first.
        let limits = match pair % 2 {
            0 => [JOURNAL_KEYS_LIMIT, 0],
            _ => [0, JOURNAL_KEYS_LIMIT],
        };
        let [mut with, mut without] = [0.0; 2];
        for limit in limits {
            let cost = runtime.block_on(run(work, limit, changes))?;
            *(if limit == 0 { &mut without } else { &mut with }) = cost;
        }
        ratios.push(with / without);
        on.push(with);
        off.push(without);
    }
    report(work, &mut ratios, &mut on, &mut off);
    Ok(())
}

/// Changes every object a number of times and waits for the reconciles. Returns the processor time
/// of one change with its reconcile, in microseconds.
async fn run(work: Work, journal_keys: usize, changes: usize) -> Result<f64> {
    let (world, shutdown) = (World::of(work).await, Shutdown::new());
    for key in 0..KEYS {
        world.create(&object("Secret", &name(key), 0)).await?;
        world.create(&object("ConfigMap", &name(key), 0)).await?;
    }
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let maps = ResourceKind::of::<ConfigMap>();
    let reconcile = move |key: Key, cx: Context| {
        let (count, maps) = (counted.clone(), maps.clone());
        async move {
            let done = count.load(Relaxed);
            if !matches!(work, Work::Nothing) {
                let api = cx.api(&maps, NAMESPACE);
                let map = object("ConfigMap", key.name(), done);
                api.update(&map, &WriteOptions::default()).await?;
            }
            count.fetch_add(1, Relaxed);
            Ok(Action::done())
        }
    };
    let manager = Manager::builder("journal")
        .transport(world.transport(), RestOptions::default())
        .shutdown(shutdown.clone())
        .build()?;
    manager.add(Controller::of_keys::<Secret>(reconcile).journal_keys(journal_keys));
    let running = tokio::spawn(manager.run());
    wait(&count, KEYS).await;
    let before = meter::cpu();
    for change in 1..=changes {
        for key in 0..KEYS {
            world.update(&object("Secret", &name(key), change)).await?;
        }
        // Each change is reconciled before the next comes, so that none is folded into another.
        wait(&count, KEYS * (change + 1)).await;
    }
    let cpu = meter::cpu() - before;
    shutdown.trigger();
    running.await??;
    Ok(cpu.as_secs_f64() * 1e6 / (KEYS * changes) as f64)
}

/// Where the objects are.
enum World {
    Table(ModelServer),
    Server(Cluster),
}

impl World {
    async fn of(work: Work) -> Self {
        match work {
            Work::Nothing | Work::OneWrite => Self::Table(ModelServer::new(Env::real())),
            Work::OneWriteToServer => {
                Self::Server(Cluster::builder().env(Env::real()).start().await)
            }
        }
    }

    fn transport(&self) -> Transport {
        match self {
            Self::Table(table) => table.transport(),
            Self::Server(cluster) => cluster.transport(),
        }
    }

    async fn create(&self, object: &Doc) -> Result<()> {
        match self {
            Self::Table(table) => drop(table.create(&path(object), object)),
            Self::Server(cluster) => drop(cluster.create_doc(object).await),
        }
        Ok(())
    }

    async fn update(&self, object: &Doc) -> Result<()> {
        let name = object.str_at("/metadata/name");
        match self {
            Self::Table(table) => drop(table.update(&format!("{}/{name}", path(object)), object)),
            Self::Server(cluster) => {
                let secrets = ResourceKind::of::<Secret>();
                let api = cluster.resource(secrets.gvr().clone());
                let api = api.namespaced(NAMESPACE);
                drop(api.update(object, &WriteOptions::default()).await?);
            }
        }
        Ok(())
    }
}

fn name(key: usize) -> String {
    format!("object-{key}")
}

/// Where objects of this kind are.
fn path(object: &Doc) -> String {
    let resource = match object.str_at("/kind") {
        "Secret" => "secrets",
        _ => "configmaps",
    };
    format!("/api/v1/namespaces/{NAMESPACE}/{resource}")
}

fn object(kind: &str, name: &str, change: usize) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "annotations": { "change": change.to_string() }
        }
    })
}

async fn wait(count: &AtomicUsize, wanted: usize) {
    while count.load(Relaxed) < wanted {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn report(work: Work, ratios: &mut [f64], on: &mut [f64], off: &mut [f64]) {
    for numbers in [&mut *ratios, &mut *on, &mut *off] {
        numbers.sort_unstable_by(f64::total_cmp);
    }
    let middle = |numbers: &[f64]| numbers[numbers.len() / 2];
    println!(
        "{work:?}, a change and its reconcile: {:.2} us with the journal, {:.2} us without",
        middle(on),
        middle(off)
    );
    println!(
        "ratio: {:.4} (between {:.4} and {:.4}; at most {RATIO_MAX} is wanted)",
        middle(ratios),
        ratios[ratios.len() / 4],
        ratios[ratios.len() * 3 / 4]
    );
}

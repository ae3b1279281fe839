//! What the journal costs: the same load through informer, queue and worker, with the journal and
//! without it.
//!
//! The two take turns, and each pair gives one ratio of processor time per reconcile; whatever else
//! the machine does hits both alike. The server is a table in this process, and a reconcile does
//! nothing, or writes one object: a real controller, which writes over a network, sees less of the
//! journal than is printed here.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use tokio::runtime::Runtime;
use windlass_bench::meter;
use windlass_client::{RestOptions, WriteOptions};
use windlass_core::{Doc, Env, Key, doc};
use windlass_runtime::{
    Action, Context, Controller, JOURNAL_KEYS_LIMIT, Manager, ResourceKind, Result, Shutdown,
};
use windlass_testing::ModelServer;

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const KEYS: usize = 1_000;
/// How often each pod is changed in one run.
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
    for work in [Work::Nothing, Work::OneWrite] {
        compare(&runtime, work, pairs, changes)?;
    }
    Ok(())
}

/// What a reconcile does.
#[derive(Clone, Copy, Debug)]
enum Work {
    Nothing,
    OneWrite,
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

/// Changes every pod a number of times and waits for the reconciles. Returns the processor time of
/// one change with its reconcile, in microseconds.
async fn run(work: Work, journal_keys: usize, changes: usize) -> Result<f64> {
    let (server, shutdown) = (ModelServer::new(Env::real()), Shutdown::new());
    for key in 0..KEYS {
        server.create(PODS, &pod(key, 0));
        server.create(MAPS, &map(&format!("pod-{key}"), 0));
    }
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let maps = ResourceKind::of::<ConfigMap>();
    let reconcile = move |key: Key, cx: Context| {
        let (count, maps) = (counted.clone(), maps.clone());
        async move {
            let done = count.load(Relaxed);
            if let Work::OneWrite = work {
                let api = cx.api(&maps, "default");
                let options = WriteOptions::default();
                api.update(&map(key.name(), done), &options).await?;
            }
            count.fetch_add(1, Relaxed);
            Ok(Action::done())
        }
    };
    let manager = Manager::builder("journal")
        .transport(server.transport(), RestOptions::default())
        .shutdown(shutdown.clone())
        .build()?;
    manager.add(Controller::of_keys::<Pod>(reconcile).journal_keys(journal_keys));
    let running = tokio::spawn(manager.run());
    wait(&count, KEYS).await;
    let before = meter::cpu();
    for change in 1..=changes {
        for key in 0..KEYS {
            server.update(&format!("{PODS}/pod-{key}"), &pod(key, change));
        }
        // Each change is reconciled before the next comes, so that none is folded into another.
        wait(&count, KEYS * (change + 1)).await;
    }
    let cpu = meter::cpu() - before;
    shutdown.trigger();
    running.await??;
    Ok(cpu.as_secs_f64() * 1e6 / (KEYS * changes) as f64)
}

fn pod(key: usize, change: usize) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": format!("pod-{key}"), "annotations": { "change": change.to_string() } }
    })
}

fn map(name: &str, change: usize) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default" },
        "data": { "change": change.to_string() }
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

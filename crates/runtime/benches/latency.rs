//! From an event on the watch to the reconcile, through informer, queue and worker.
//!
//! A server in this process changes pods at a steady pace; each reconcile reads the time of the
//! change from the object. Prints percentiles, and the throughput of a full burst.

#![expect(
    clippy::disallowed_methods,
    reason = "this measures the time of the machine"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use windlass_cache::Obj;
use windlass_client::RestOptions;
use windlass_core::{Env, doc};
use windlass_runtime::{Action, Context, Controller, Manager, Result, Shutdown};
use windlass_testing::ModelServer;

const PODS: &str = "/api/v1/namespaces/default/pods";
const EVENTS_PER_SECOND: usize = 5_000;
const SECONDS: usize = 10;
const BURST: usize = 50_000;

fn main() -> Result<()> {
    // `cargo test --benches` passes this flag: the benchmark then only has to build and start.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(2)
        .build()?;
    let seconds = if is_test { 0 } else { SECONDS };
    runtime.block_on(measure(seconds))
}

async fn measure(seconds: usize) -> Result<()> {
    let (server, shutdown) = (ModelServer::new(Env::real()), Shutdown::new());
    let start = Instant::now();
    let latencies = Arc::new(Mutex::new(Vec::with_capacity(EVENTS_PER_SECOND * SECONDS)));
    let count = Arc::new(AtomicUsize::new(0));
    let (noted, counted) = (latencies.clone(), count.clone());
    let reconcile = move |pod: Obj<Pod>, _: Context| {
        let sent: u64 = pod
            .meta()
            .annotation("sent")
            .and_then(|it| it.parse().ok())
            .unwrap_or(0);
        let now = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        noted.lock().push(now.saturating_sub(sent));
        counted.fetch_add(1, Relaxed);
        std::future::ready(Ok(Action::done()))
    };
    let manager = Manager::builder("latency")
        .transport(server.transport(), RestOptions::default())
        .shutdown(shutdown.clone())
        .build()?;
    manager.add(Controller::of::<Pod>(reconcile).workers(4));
    let running = tokio::spawn(manager.run());
    let create = |name: String| {
        let sent = start.elapsed().as_nanos().to_string();
        server.create(
            PODS,
            &doc!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": { "name": name, "annotations": { "sent": sent } }
            }),
        );
    };
    let mut pace = tokio::time::interval(Duration::from_millis(1));
    for tick in 0..seconds * 1000 {
        pace.tick().await;
        for at in 0..EVENTS_PER_SECOND / 1000 {
            create(format!("paced-{tick}-{at}"));
        }
    }
    wait(&count, seconds * EVENTS_PER_SECOND).await;
    report(&mut latencies.lock());
    let burst = if seconds == 0 { 100 } else { BURST };
    let before = Instant::now();
    (0..burst).for_each(|at| create(format!("burst-{at}")));
    wait(&count, seconds * EVENTS_PER_SECOND + burst).await;
    let rate = burst as f64 / before.elapsed().as_secs_f64();
    println!("burst of {burst}: {rate:.0} creates and reconciles per second");
    shutdown.trigger();
    running.await??;
    Ok(())
}

async fn wait(count: &AtomicUsize, wanted: usize) {
    while count.load(Relaxed) < wanted {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn report(latencies: &mut [u64]) {
    if latencies.is_empty() {
        return;
    }
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    println!(
        "event to reconcile at {EVENTS_PER_SECOND}/s: p50 {:.0} us, p99 {:.0} us, p99.9 {:.0} us, max {:.0} us",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

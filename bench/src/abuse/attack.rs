//! An attack from its preparation to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::task::JoinSet;
use windlass_bench::contest::{self, Numbers};
use windlass_bench::meter;

use super::hold::Hold;
use super::plan::Plan;
use super::{Abuser, repeat};
use crate::server::wire::{Target, Wire};
use crate::server::{block_on, named};

/// Runs an attack on the server of `$KUBECONFIG` for some time, once a line of input says so.
pub(super) fn run(name: &str, abuser: Abuser, time: Duration) -> anyhow::Result<()> {
    raise_descriptor_limit();
    block_on(async {
        let target = Target::from_environment()?;
        let plan = Plan::named(name, abuser, &target)?;
        let mut wires = Vec::new();
        for _ in &plan.scripts {
            wires.push(target.connect().await?);
        }
        super::wait_for_start()?;
        let (cpu, wall) = (meter::cpu(), meter::wall());
        let counts = Counts::default();
        let mut tasks = start(plan, wires, &target, &counts);
        tokio::time::sleep(time).await;
        let (cpu, wall) = (meter::cpu() - cpu, meter::wall() - wall);
        tasks.abort_all();
        let mut numbers = counts.numbers();
        let cores = cpu.as_secs_f64() / wall.as_secs_f64();
        numbers.insert("abuser_cores".to_owned(), cores);
        println!("{}", contest::to_json(&numbers));
        Ok(())
    })
}

/// Lets this process have as many connections as it may. With fewer an attack is weaker, and its
/// count of connections shows it.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        eprintln!("the limit of open files cannot be raised: {error}");
    }
}

fn start(plan: Plan, wires: Vec<Wire>, target: &Target, counts: &Counts) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for (script, wire) in plan.scripts.into_iter().zip(wires) {
        tasks.spawn(repeat::run(
            script,
            Some(wire),
            target.clone(),
            counts.clone(),
        ));
    }
    let permits = Hold::permits();
    let http2 = target.over_http2();
    for hold in plan.holds {
        let target = if hold.is_http2() { &http2 } else { target };
        tasks.spawn(hold.run(target.clone(), Arc::clone(&permits), counts.clone()));
    }
    for reset in plan.resets {
        tasks.spawn(reset.run(http2.clone(), counts.clone()));
    }
    tasks
}

/// Counts of what an abuser did and got.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    opened: AtomicU64,
    lost: AtomicU64,
    sent: AtomicU64,
    done: AtomicU64,
    refused: AtomicU64,
    limited: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    /// Counts a connection that was kept open.
    pub(super) fn opened(&self) {
        self.0.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that failed or that the server closed.
    pub(super) fn lost(&self) {
        self.0.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts requests.
    pub(super) fn sent(&self, requests: u64) {
        self.0.sent.fetch_add(requests, Ordering::Relaxed);
    }

    /// Counts an answer.
    pub(super) fn answered(&self, status: u16) {
        let counter = match status {
            200..300 => &self.0.done,
            429 => &self.0.limited,
            400..500 => &self.0.refused,
            _ => &self.0.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn numbers(&self) -> Numbers {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        named([
            ("abuser_opened", load(&self.0.opened)),
            ("abuser_lost", load(&self.0.lost)),
            ("abuser_sent", load(&self.0.sent)),
            ("abuser_2xx", load(&self.0.done)),
            ("abuser_4xx", load(&self.0.refused)),
            ("abuser_429", load(&self.0.limited)),
            ("abuser_5xx", load(&self.0.failed)),
        ])
    }
}

//! The user who measures: reads and small patches of ConfigMaps at a fixed rate.
//!
//! A request is due whether or not earlier ones were answered, and its time begins when it is due,
//! so a server that stalls is charged for every request that waits. Connections are made before
//! the abuser comes. One that is lost is made again by the next request that needs it, in its time.
//!
//! The process has priority where that is allowed, as if it had a machine of its own: the delay of
//! the server is measured, and not that of the meter.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::setpriority_process;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use windlass_bench::contest::{self, Numbers};
use windlass_bench::meter;

use super::VICTIM_CONFIGMAPS;
use super::prepare::settings;
use crate::server::wire::{Target, Wire};
use crate::server::{block_on, named, quantile};

/// Time between two reads: 100 per second.
const PERIOD: Duration = Duration::from_millis(10);
/// Two of so many reads come with a patch: 40 per second.
const READS_PER_TWO_PATCHES: u64 = 5;
/// Connections for reads, and as many for patches.
const CONNECTIONS: usize = 16;
/// A request that is not answered by then has failed.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time that a failed request counts as.
const FAILED_MS: f64 = 60_000.0;
/// Time between two looks at a server that is to become quiet.
const PROBE_PERIOD: Duration = Duration::from_millis(500);

/// The priority of this process; lower is more.
const NICENESS: i32 = -10;

/// Obeys lines of input, each with a line of figures: `connect`, `measure SECONDS` and `probe`.
pub(super) fn run() -> anyhow::Result<()> {
    if let Err(error) = setpriority_process(None, NICENESS) {
        eprintln!("the victim has no priority, so its own delays count too: {error}");
    }
    block_on(async {
        let target = Target::from_environment()?;
        let (reads, patches) = (ConnectionPool::new(&target), ConnectionPool::new(&target));
        super::wait_for_start()?;
        for line in std::io::stdin().lines() {
            let numbers = match line?.split(' ').collect::<Vec<_>>()[..] {
                ["measure", seconds] => {
                    let seconds = seconds.parse().context("seconds")?;
                    measure(&reads, &patches, seconds).await?
                }
                ["connect"] => {
                    reads.open().await?;
                    patches.open().await?;
                    Numbers::new()
                }
                ["probe"] => probe(&reads).await,
                ref other => bail!("not a command of the victim: {other:?}"),
            };
            println!("{}", contest::to_json(&numbers));
        }
        Ok(())
    })
}

/// The end of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Answered {
        ms: f64,
    },
    /// 429, too many requests.
    Limited,
    TimedOut,
    Failed,
}

/// A pool of connections.
struct ConnectionPool {
    target: Target,
    /// One permit for each connection, open or lost.
    permits: Semaphore,
    /// The one that was used longest ago is next, so that none is idle for long.
    open: Mutex<VecDeque<Wire>>,
}

impl ConnectionPool {
    fn new(target: &Target) -> Arc<Self> {
        Arc::new(Self {
            target: target.clone(),
            permits: Semaphore::new(CONNECTIONS),
            open: Mutex::default(),
        })
    }

    /// Makes all connections anew: servers close those that were idle. Each begins with a request,
    /// as those of a client do: a server may end connections first that have shown no credentials.
    async fn open(&self) -> anyhow::Result<()> {
        let mut open = VecDeque::new();
        for _ in 0..CONNECTIONS {
            let mut wire = self.target.connect().await?;
            wire.request("GET", "/version", b"").await?;
            open.push_back(wire);
        }
        *self.locked() = open;
        Ok(())
    }

    /// Sends a request on the next free connection.
    async fn send(&self, method: &str, path: &str, body: &[u8]) -> Outcome {
        let before = meter::wall();
        match tokio::time::timeout(TIMEOUT, self.try_send(method, path, body)).await {
            Ok(Ok(200)) => Outcome::Answered {
                ms: (meter::wall() - before).as_secs_f64() * 1e3,
            },
            Ok(Ok(429)) => Outcome::Limited,
            Ok(_) => Outcome::Failed,
            Err(_) => Outcome::TimedOut,
        }
    }

    async fn try_send(&self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<u16> {
        let _permit = self.permits.acquire().await?;
        let free = self.locked().pop_front();
        let mut wire = match free {
            Some(wire) => wire,
            None => self.target.connect().await?,
        };
        let (status, _) = wire.request(method, path, body).await?;
        self.locked().push_back(wire);
        Ok(status)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, VecDeque<Wire>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn measure(
    reads: &Arc<ConnectionPool>,
    patches: &Arc<ConnectionPool>,
    seconds: u64,
) -> anyhow::Result<Numbers> {
    let count = seconds * 1_000 / PERIOD.as_millis() as u64;
    let (mut reading, mut patching) = (JoinSet::new(), JoinSet::new());
    let mut due = tokio::time::interval(PERIOD);
    for index in 0..count {
        due.tick().await;
        let pool = Arc::clone(reads);
        let path = configmap_path(index);
        reading.spawn(async move { pool.send("GET", &path, b"").await });
        if matches!(index % READS_PER_TWO_PATCHES, 0 | 2) {
            let pool = Arc::clone(patches);
            // Every patch changes its object, in this window and in the next.
            let body = format!(r#"{{"data":{{"n":"{}"}}}}"#, meter::wall().as_nanos());
            let path = configmap_path(index);
            patching.spawn(async move { pool.send("PATCH", &path, body.as_bytes()).await });
        }
    }
    let mut numbers = summary("get", &reading.join_all().await);
    numbers.extend(summary("patch", &patching.join_all().await));
    Ok(numbers)
}

/// The path of the ConfigMap that a request is about.
fn configmap_path(request: u64) -> String {
    format!("{VICTIM_CONFIGMAPS}/{}", settings(request))
}

fn summary(name: &str, outcomes: &[Outcome]) -> Numbers {
    let count = |meant: Outcome| outcomes.iter().filter(|one| **one == meant).count() as f64;
    let (limited, timed_out) = (count(Outcome::Limited), count(Outcome::TimedOut));
    let failed = limited + timed_out + count(Outcome::Failed);
    let mut times: Vec<f64> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Outcome::Answered { ms } => *ms,
            _ => FAILED_MS,
        })
        .collect();
    [
        ("p50_ms", quantile(&mut times, 0.50)),
        ("p99_ms", quantile(&mut times, 0.99)),
        ("failed", failed),
        ("limited", limited),
        ("timed_out", timed_out),
    ]
    .map(|(metric, number)| (format!("{name}_{metric}"), number))
    .into()
}

/// Waits a little, and sees if the server answers on a new connection.
async fn probe(reads: &ConnectionPool) -> Numbers {
    let before = meter::wall();
    tokio::time::sleep(PROBE_PERIOD).await;
    reads.locked().clear();
    let outcome = reads.send("GET", &configmap_path(0), b"").await;
    let answers = matches!(outcome, Outcome::Answered { .. });
    named([
        ("answers", f64::from(u8::from(answers))),
        ("took_s", (meter::wall() - before).as_secs_f64()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_requests_count_as_the_slowest() {
        let mut outcomes = vec![Outcome::Answered { ms: 2.0 }; 97];
        outcomes.extend([Outcome::Limited, Outcome::TimedOut, Outcome::Failed]);
        let numbers = summary("get", &outcomes);
        assert_eq!(numbers["get_p50_ms"], 2.0);
        assert_eq!(numbers["get_p99_ms"], FAILED_MS);
        assert_eq!(numbers["get_failed"], 3.0);
        assert_eq!(numbers["get_limited"], 1.0);
        assert_eq!(numbers["get_timed_out"], 1.0);
    }
}

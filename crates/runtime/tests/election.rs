//! Elections among several processes that are paused, cut off and whose clocks disagree.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use windlass_client::{RestClient, RestOptions};
use windlass_core::{Env, Key, doc};
use windlass_runtime::{ElectionOptions, GuardLayer, LeaderElector, LeaseRecord, Shutdown};
use windlass_testing::{Call, Fault, Faults, Logged, ModelServer, TokioClock};

const WORK: &str = "/api/v1/namespaces/default/configmaps/work";

/// A process that can be stopped at any await, as by SIGSTOP.
#[derive(Clone, Default)]
struct Pause(Arc<Mutex<(bool, Option<Waker>)>>);

impl Pause {
    fn set(&self, is_paused: bool) {
        let mut state = self.0.lock();
        state.0 = is_paused;
        if let (false, Some(waker)) = (is_paused, state.1.take()) {
            waker.wake();
        }
    }
}

struct Pausable<F> {
    process: Pin<Box<F>>,
    pause: Pause,
}

impl<F: Future> Future for Pausable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        {
            let mut state = self.pause.0.lock();
            state.1 = Some(cx.waker().clone());
            if state.0 {
                return Poll::Pending;
            }
        }
        self.process.as_mut().poll(cx)
    }
}

/// One process: a candidate that writes twice a second while it leads, under its own name.
struct Process {
    pause: Pause,
    faults: Faults,
    stop: Shutdown,
    task: JoinHandle<()>,
}

fn start(server: &ModelServer, identity: &str, clock: TokioClock, seed: u64) -> Process {
    let (pause, faults, stop) = (Pause::default(), Faults::none(), Shutdown::new());
    let options = |user_agent: String| RestOptions {
        timeout: Duration::from_secs(5),
        user_agent,
        ..RestOptions::default()
    };
    let lease_client = RestClient::new(
        server.transport().layer(&faults),
        options("election".to_owned()),
    );
    let lease = ElectionOptions::new(Key::new("default", "lock"), identity);
    let elector = LeaderElector::new(lease_client, clock.env(seed), lease).unwrap();
    let guarded = server.transport().layer(&GuardLayer::new(elector.guard()));
    let client = RestClient::new(guarded, options(identity.to_owned()));
    let stopping = stop.clone();
    let process = async move {
        // A process that has lost starts over, as under a supervisor.
        while !stopping.is_requested() {
            let work = || work(client.clone(), stopping.clone());
            let _ = elector.run(&stopping, work).await;
        }
    };
    let process = Pausable {
        process: Box::pin(process),
        pause: pause.clone(),
    };
    Process {
        pause,
        faults,
        stop,
        task: tokio::spawn(process),
    }
}

async fn work(client: RestClient, stop: Shutdown) {
    while !stop.is_requested() {
        let change = doc!({ "data": { "by": &client.options().user_agent } }).to_json();
        // A refusal by the guard is what the test is about; the work goes on and tries again.
        let _ = client
            .patch(WORK)
            .body("application/merge-patch+json", change)
            .into_doc()
            .await;
        sleep(Duration::from_millis(500)).await;
    }
}

/// A server with something to work on.
fn server(seed: u64) -> ModelServer {
    let server = ModelServer::new(TokioClock::new().env(seed));
    let work = doc!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "work" } });
    server.create("/api/v1/namespaces/default/configmaps", &work);
    server
}

/// The faults of calls for the Lease.
fn random_fault(env: &Env, _: &Call) -> Fault {
    let seconds = |limit: u64| Duration::from_millis(env.random_below(limit * 1000));
    match env.random_below(20) {
        0 => Fault::LostAnswer,
        1 => Fault::LostRequest,
        2 => Fault::Delay(seconds(8)),
        3 => Fault::DelayAnswer(seconds(8)),
        4 => Fault::Stall,
        5 => Fault::StallAfter,
        6 => Fault::Refuse(500, "InternalError"),
        7 => Fault::NotSent,
        _ => Fault::None,
    }
}

#[derive(Default)]
struct Tally {
    writes: usize,
    handovers: usize,
    refused: usize,
}

/// Replays the log of the server: a write counts only while its author holds the Lease.
fn check(log: &[Logged], seed: u64) -> Tally {
    let (mut holder, mut last) = (String::new(), LeaseRecord::default());
    let mut tally = Tally::default();
    for logged in log.iter().filter(|logged| logged.code < 300) {
        if logged.uri.contains("/leases") && !logged.method.is_safe() {
            let record = LeaseRecord::from_lease(&logged.payload);
            check_record(&last, &record, seed);
            if !record.holder.is_empty() && record.holder != holder {
                tally.handovers += 1;
            }
            holder.clone_from(&record.holder);
            last = record;
        } else if logged.uri.starts_with(WORK) {
            assert_eq!(logged.user_agent, holder, "seed {seed}, at {:?}", logged.at);
            tally.writes += 1;
        }
    }
    tally.refused = log.iter().filter(|logged| logged.code == 409).count();
    tally
}

fn check_record(last: &LeaseRecord, record: &LeaseRecord, seed: u64) {
    let is_first = last.duration.is_zero();
    if is_first || record.holder.is_empty() {
        return;
    }
    if record.holder == last.holder {
        assert_eq!(record.transitions, last.transitions, "seed {seed}");
        assert!(
            record.renewed >= last.renewed,
            "seed {seed}: renewTime went back"
        );
    } else {
        assert_eq!(record.transitions, last.transitions + 1, "seed {seed}");
    }
}

async fn run_seed(seed: u64) -> Tally {
    let env = Env::seeded(seed);
    let server = server(seed);
    let clocks = [
        TokioClock::new(),
        TokioClock::ahead(Duration::from_secs(86_400 * 365)),
        TokioClock::behind(Duration::from_secs(3600)),
    ];
    let processes: Vec<Process> = clocks
        .into_iter()
        .enumerate()
        .map(|(at, clock)| start(&server, &format!("p{at}"), clock, seed * 10 + at as u64))
        .collect();
    for process in &processes {
        let env = env.clone();
        process.faults.set(move |call| random_fault(&env, call));
    }
    for _ in 0..40 {
        sleep(Duration::from_millis(env.random_below(20_000))).await;
        let victim = &processes[env.random_below(3) as usize];
        victim.pause.set(true);
        sleep(Duration::from_millis(env.random_below(30_000))).await;
        victim.pause.set(false);
    }
    for process in &processes {
        process.stop.trigger();
        process.task.abort();
    }
    check(&server.log(), seed)
}

#[tokio::test(start_paused = true)]
async fn only_the_holder_of_the_lease_writes_whatever_is_paused_lost_or_skewed() {
    let (mut writes, mut handovers) = (0, 0);
    for seed in 1..=30 {
        let tally = run_seed(seed).await;
        writes += tally.writes;
        handovers += tally.handovers;
        assert!(tally.writes > 100, "seed {seed}: the work did not go on");
    }
    // The faults must have had something to break.
    assert!(handovers > 100, "{handovers} handovers, {writes} writes");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_paused_writes_nothing_when_it_goes_on() {
    let server = server(1);
    let first = start(&server, "first", TokioClock::new(), 2);
    sleep(Duration::from_secs(5)).await;
    let _second = start(&server, "second", TokioClock::new(), 3);
    for pause in [10, 16, 60] {
        first.pause.set(true);
        sleep(Duration::from_secs(pause)).await;
        first.pause.set(false);
        sleep(Duration::from_secs(60)).await;
    }
    check(&server.log(), 0);
}

fn holder(server: &ModelServer) -> String {
    let lease = server.find("leases", "default/lock");
    lease.map_or_else(String::new, |lease| LeaseRecord::from_lease(&lease).holder)
}

async fn until_holder(server: &ModelServer, identity: &str) -> Duration {
    let start = Instant::now();
    while holder(server) != identity {
        sleep(Duration::from_millis(10)).await;
    }
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn another_takes_over_within_24_seconds_of_a_crash_and_5_of_a_clean_stop() {
    for seed in 0..20 {
        let server = server(seed);
        let first = start(&server, "first", TokioClock::new(), seed);
        until_holder(&server, "first").await;
        sleep(Duration::from_millis(seed * 333)).await;
        let second = start(&server, "second", TokioClock::new(), seed + 100);
        sleep(Duration::from_secs(30)).await;
        first.task.abort();
        let took = until_holder(&server, "second").await;
        assert!(took < Duration::from_secs(24), "seed {seed}: {took:?}");

        let third = start(&server, "third", TokioClock::new(), seed + 200);
        sleep(Duration::from_secs(30)).await;
        second.stop.trigger();
        let took = until_holder(&server, "third").await;
        assert!(took < Duration::from_secs(5), "seed {seed}: {took:?}");
        third.task.abort();
        check(&server.log(), seed);
    }
}

//! The API server as a whole: windlass against kube-apiserver with etcd, both durable.

use std::process::Command;

use anyhow::Context;
use windlass_envtest::{ControlPlane, Options};

use super::{
    contestant::{Numbers, Program, measure},
    process::{Directory, Started, cpu_s, resident_mb},
    report::{Better, Report, median},
};

const PODS: &str = "20000";
const CLIENTS: &str = "32";
const WATCHERS: &str = "1000";

/// The command that starts the server alone.
const SERVER: &[&str] = &["server"];

/// Starts on an empty directory; the middle one counts.
const STARTS: usize = 5;
const PEER_STARTS: usize = 3;

/// How long a write may take to reach 99 of 100 watchers.
const FANOUT_LIMIT_MS: f64 = 50.0;

/// Runs windlass, and the peer if asked to.
pub(crate) fn run(with_peers: bool) -> anyhow::Result<Report> {
    Program::Windlass.build()?;
    Program::Server.build()?;
    let mut report = Report::new(
        "server",
        &[
            "20,000 pods of the corpus, all on this machine, every write synced to the disk",
            "ready: from exec on an empty directory to the first 200 on /readyz; median of 5, peer 3",
            "creates: 32 connections, one request at a time on each; half then get a full status",
            "memory: resident memory of all processes of the server, 20,000 pods, after the load",
            "list: all pods in one answer, JSON and protobuf, uncompressed, to its last byte; median of 3",
            "fanout: one write to 1,000 watches, each on a connection of its own; 50 writes",
            "one load generator for all, HTTP/1.1 over TLS; its own CPU time is in the table",
            "real-stack: kube-apiserver 1.36.4 and etcd, default settings",
        ],
    );
    let ours = measure_windlass()?;
    let fanout = ours.get("fanout_p99_ms").copied();
    report.column("windlass", ours);
    if with_peers {
        report.column("real-stack", measure_real()?);
        add_ratios(&mut report)?;
    }
    let fanout = fanout.context("the figure of the watchers")?;
    if fanout > FANOUT_LIMIT_MS {
        eprintln!("a write takes {fanout:.1} ms to reach 99 of 100 watchers");
    }
    Ok(report)
}

/// As everywhere, windlass divided by the peer: a fiftieth of the time is 0.02.
fn add_ratios(report: &mut Report) -> anyhow::Result<()> {
    let sides: [&[&str]; 2] = [&["windlass"], &["real-stack"]];
    for (name, better, metric) in [
        ("ready_vs_real_stack", Better::Lower, "ready_s"),
        ("memory_vs_real_stack", Better::Lower, "memory_mb"),
        ("creates_vs_real_stack", Better::Higher, "creates_per_s"),
        ("list_vs_real_stack", Better::Lower, "list_wall_s"),
        (
            "protobuf_list_vs_real_stack",
            Better::Lower,
            "protobuf_list_wall_s",
        ),
        ("fanout_vs_real_stack", Better::Lower, "fanout_p99_ms"),
    ] {
        report.ratio(name, better, &[metric], sides)?;
    }
    Ok(())
}

fn measure_windlass() -> anyhow::Result<Numbers> {
    let mut starts = Vec::new();
    for round in 1..STARTS {
        eprintln!("windlass: start {round} of {STARTS}");
        starts.push(Started::windlass(&Directory::new()?, SERVER)?.ready.clone());
    }
    eprintln!("windlass: start {STARTS} of {STARTS}, and load");
    let directory = Directory::new()?;
    let started = Started::windlass(&directory, SERVER)?;
    starts.push(started.ready.clone());
    let mut numbers = load(&directory.file("kubeconfig"), &[started.pid])?;
    numbers.extend(median(&starts));
    drop(started);
    eprintln!("windlass: start with {PODS} pods");
    let again = Started::windlass(&directory, SERVER)?;
    numbers.extend(
        again
            .ready
            .get("ready_s")
            .map(|s| ("ready_loaded_s".to_owned(), *s)),
    );
    Ok(numbers)
}

fn measure_real() -> anyhow::Result<Numbers> {
    let options = Options::default().durable();
    let mut starts = Vec::new();
    let mut server = None;
    for round in 1..=PEER_STARTS {
        eprintln!("real-stack: start {round} of {PEER_STARTS}");
        drop(server.take());
        let started = ControlPlane::start(&options)
            .context("no control plane; `cargo xtask envtest build` makes one")?;
        let ready = started.ready_in().as_secs_f64();
        starts.push(Numbers::from([("ready_s".to_owned(), ready)]));
        server = Some(started);
    }
    let server = server.context("invariant: it was started")?;
    let pids = server.pids();
    let pids: Vec<u32> = pids.apiserver.into_iter().chain([pids.etcd]).collect();
    let mut numbers = load(&server.kubeconfig().to_string_lossy(), &pids)?;
    numbers.extend(median(&starts));
    Ok(numbers)
}

/// Everything that is measured on a running server.
fn load(kubeconfig: &str, pids: &[u32]) -> anyhow::Result<Numbers> {
    let against = |words: &[&str]| -> Command {
        let mut command = Program::Windlass.command(words);
        command.env("KUBECONFIG", kubeconfig);
        command
    };
    eprintln!("creating {PODS} pods");
    let cpu = cpu_s(pids)?;
    let mut numbers = measure(against(&["server", "create", PODS, CLIENTS]))?;
    numbers.insert("load_cpu_s".to_owned(), cpu_s(pids)? - cpu);
    numbers.insert("memory_mb".to_owned(), resident_mb(pids)?);
    eprintln!("listing them");
    numbers.extend(measure(against(&["server", "list", PODS]))?);
    eprintln!("writing to {WATCHERS} watchers");
    numbers.extend(measure(against(&["server", "fanout", WATCHERS]))?);
    numbers.insert("memory_after_all_mb".to_owned(), resident_mb(pids)?);
    Ok(numbers)
}

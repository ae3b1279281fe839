//! What it costs to keep a real API server's pods in a cache, and to follow their changes.

use std::process::Command;

use anyhow::Context;
use windlass_envtest::{ControlPlane, Options};

use super::{
    contestant::{Numbers, Program, Running, measure_pipe},
    report::{Better, Report},
};

const PODS: &str = "20000";
const UPDATES: &str = "50000";

const KUBE_RS: Program = Program::RustPeer("kube-rs");

/// Name, program and the words that select the contestant.
const CONTESTANTS: [(&str, Program, &[&str]); 6] = [
    ("windlass", Program::Windlass, &["informer"]),
    (
        "client-go-json",
        Program::GoPeer,
        &["informer", "--content-type=json"],
    ),
    (
        "client-go-pb",
        Program::GoPeer,
        &["informer", "--content-type=protobuf"],
    ),
    (
        "client-go-pb-trim",
        Program::GoPeer,
        &["informer", "--content-type=protobuf", "--trim"],
    ),
    ("kube-rs", KUBE_RS, &[]),
    ("kube-rs-trim", KUBE_RS, &["--trim"]),
];

pub(crate) fn run() -> anyhow::Result<Report> {
    for program in [Program::Windlass, Program::GoPeer, KUBE_RS] {
        program.build()?;
    }
    let server = ControlPlane::start(&Options::default())
        .context("no control plane; `cargo xtask envtest build` makes one")?;
    load(&server)?;
    let mut report = Report::new(
        "informer",
        &[
            "20,000 pods in a real kube-apiserver 1.36.4 (etcd without fsync), all on this machine",
            "each contestant syncs alone, one after the other; then 50,000 status updates at full",
            "speed reach all of them at once, so that all see the same events",
            "memory: growth of resident memory and of the heap, settled; CPU: user and system time",
            "windlass: JSON, managed fields dropped while parsing, a handler that counts",
            "json, pb: wire format; trim: managed fields dropped; client-go v0.36.4, kube 5.0",
        ],
    );
    for mut contestant in measure_all(&server)? {
        let events = contestant.running.numbers();
        let events = events.with_context(|| format!("events of {}", contestant.name))?;
        contestant.numbers.extend(events);
        report.column(contestant.name, contestant.numbers);
    }
    add_ratios(&mut report)?;
    Ok(report)
}

/// The peers as their users run them; client-go in JSON, the format windlass reads too.
fn add_ratios(report: &mut Report) -> anyhow::Result<()> {
    let (go, rust): (&[&str], &[&str]) = (&["client-go-json"], &["kube-rs"]);
    for (name, better, metric, theirs) in [
        (
            "memory_vs_client_go",
            Better::Lower,
            "rss_bytes_per_pod",
            go,
        ),
        (
            "memory_vs_kube_rs",
            Better::Lower,
            "rss_bytes_per_pod",
            rust,
        ),
        ("cpu_vs_client_go", Better::Lower, "sync_cpu_s", go),
        ("cpu_vs_kube_rs", Better::Lower, "sync_cpu_s", rust),
        (
            "events_vs_client_go",
            Better::Higher,
            "events_per_cpu_s",
            go,
        ),
    ] {
        report.ratio(name, better, &[metric], [&["windlass"], theirs])?;
    }
    Ok(())
}

/// A contestant that has synced and is still running.
struct Contestant {
    name: &'static str,
    running: Running,
    numbers: Numbers,
}

/// Creates the pods.
fn load(server: &ControlPlane) -> anyhow::Result<()> {
    eprintln!("creating {PODS} pods");
    let pods = Program::Windlass.command(&["corpus", "load", PODS]);
    let loader = against(server, Program::GoPeer.command(&["load"]));
    let numbers = measure_pipe(pods, loader)?;
    eprintln!("created: {numbers:?}");
    Ok(())
}

/// Lets all contestants sync and then see the updates. What remains is to read the figures of
/// their second phase.
fn measure_all(server: &ControlPlane) -> anyhow::Result<Vec<Contestant>> {
    let mut contestants = Vec::new();
    for (name, program, words) in CONTESTANTS {
        eprintln!("syncing {name}");
        let mut running = Running::start(against(server, program.command(words)))?;
        let numbers = running
            .numbers()
            .with_context(|| format!("sync of {name}"))?;
        contestants.push(Contestant {
            name,
            running,
            numbers,
        });
    }
    eprintln!("sending {UPDATES} updates");
    tell_all(&mut contestants, "start")?;
    let keys = Program::Windlass.command(&["corpus", "keys", PODS]);
    let updater = Program::GoPeer.command(&["update", "--count", UPDATES]);
    let numbers = measure_pipe(keys, against(server, updater))?;
    eprintln!("sent: {numbers:?}");
    tell_all(&mut contestants, "stop")?;
    Ok(contestants)
}

fn tell_all(contestants: &mut [Contestant], word: &str) -> anyhow::Result<()> {
    contestants
        .iter_mut()
        .try_for_each(|contestant| contestant.running.tell(word))
}

fn against(server: &ControlPlane, mut command: Command) -> Command {
    command.env("KUBECONFIG", server.kubeconfig());
    command
}

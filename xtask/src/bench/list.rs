//! What it costs to read the list of all pods over HTTP.

use anyhow::Context;

use super::{
    contestant::{Numbers, Program, Running, measure},
    report::{Better, Report, median},
};

const PODS: &str = "20000";

/// Contestants take turns, so that whatever else the machine does hits all of them alike.
const ROUNDS: usize = 3;

const KUBE_RS: Program = Program::RustPeer("kube-rs");

/// Runs windlass, and the peers if asked to.
pub(crate) fn run(with_peers: bool) -> anyhow::Result<Report> {
    let mut contestants = vec![("windlass", Program::Windlass)];
    if with_peers {
        contestants.extend([("kube-rs", KUBE_RS), ("client-go-json", Program::GoPeer)]);
    }
    for (_, program) in &contestants {
        program.build()?;
    }
    let mut server = Running::start(Program::Windlass.command(&["list", "serve", PODS]))?;
    let port = server.numbers().context("the server of the list")?;
    let port = port.get("port").context("the port of the server")?;
    let url = format!("http://127.0.0.1:{port}");
    let mut rounds: Vec<Vec<Numbers>> = vec![Vec::new(); contestants.len()];
    for round in 1..=ROUNDS {
        for ((name, program), results) in contestants.iter().zip(&mut rounds) {
            eprintln!("round {round} of {ROUNDS}: {name}");
            results.push(measure(program.command(&words(*program, &url)))?);
        }
    }
    let mut report = Report::new(
        "list",
        &[
            "20,000 pods as one PodList, the same bytes for all, from a server on loopback",
            "everything is kept; one process per contestant; median of 3 rounds",
            "CPU: user and system time from the request to the last object",
            "peak: most resident memory; above result: minus what stays when the list is read",
            "windlass: objects as they arrive; kube-rs: `Api::list`; client-go: typed list, JSON",
        ],
    );
    for ((name, _), results) in contestants.iter().zip(&rounds) {
        report.column(name, median(results));
    }
    if with_peers {
        let ours: &[&str] = &["windlass"];
        let cpu = &["list_cpu_s"];
        report.ratio("cpu_vs_kube_rs", Better::Lower, cpu, [ours, &["kube-rs"]])?;
        report.ratio(
            "cpu_vs_client_go",
            Better::Lower,
            cpu,
            [ours, &["client-go-json"]],
        )?;
    }
    Ok(report)
}

/// How each program is told to read the list.
fn words(program: Program, url: &str) -> Vec<&str> {
    match program {
        Program::Windlass | Program::Server => vec!["list", "read", url],
        Program::RustPeer(_) => vec!["list", url],
        Program::GoPeer => vec!["list", "--url", url],
    }
}

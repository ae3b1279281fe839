//! How fast pods get devices.

use super::{
    contestant::{Numbers, Program, measure},
    report::{Report, median},
};

/// The median of so many runs counts.
const ROUNDS: usize = 3;

/// Runs windlass. There is no peer: kube-scheduler cannot be had without a cluster around it.
pub(crate) fn run() -> anyhow::Result<Report> {
    Program::Windlass.build()?;
    let mut rounds: Vec<Numbers> = Vec::new();
    for round in 1..=ROUNDS {
        eprintln!("round {round} of {ROUNDS}");
        rounds.push(measure(Program::Windlass.command(&["claims"]))?);
    }
    let mut report = Report::new(
        "claims",
        &[
            "5,000 pods with one claim each from one template, 500 nodes with 10 devices each",
            "API server, claim controller and scheduler in one process; median of 3 rounds",
            "made: claims created and recorded in the status of the pods",
            "allocated and bound: finalizer, allocation and reservation written, pod bound",
            "refusal: a claim that 5,000 devices cannot meet, on one node and over 500 nodes",
        ],
    );
    report.column("windlass", median(&rounds));
    Ok(report)
}

//! How many keys a work queue can take in and hand out.

use super::{
    contestant::{Numbers, Program, measure},
    report::{Better, Report, median},
};

/// Contestants take turns, so that whatever else the machine does hits all of them alike.
const ROUNDS: usize = 3;

const PAIRED: [&str; 3] = [
    "paired_1p_1w_10000keys_ops_per_s",
    "paired_4p_16w_100keys_ops_per_s",
    "paired_4p_16w_10000keys_ops_per_s",
];

const FLOOD: [&str; 3] = [
    "flood_1p_1w_10000keys_ops_per_s",
    "flood_4p_16w_100keys_ops_per_s",
    "flood_4p_16w_10000keys_ops_per_s",
];

const FLOOD_HANDOUTS: [&str; 3] = [
    "flood_1p_1w_10000keys_handouts_per_s",
    "flood_4p_16w_100keys_handouts_per_s",
    "flood_4p_16w_10000keys_handouts_per_s",
];

/// Runs windlass, and the peers if asked to.
pub(crate) fn run(with_peers: bool) -> anyhow::Result<Report> {
    let mut contestants = vec![("windlass", Program::Windlass)];
    if with_peers {
        contestants.push(("client-go", Program::GoPeer));
    }
    for (_, program) in &contestants {
        program.build()?;
    }
    let mut rounds: Vec<Vec<Numbers>> = vec![Vec::new(); contestants.len()];
    for round in 1..=ROUNDS {
        for ((name, program), results) in contestants.iter().zip(&mut rounds) {
            eprintln!("round {round} of {ROUNDS}: {name}");
            results.push(measure(program.command(&["queue"]))?);
        }
    }
    let mut report = Report::new(
        "queue",
        &[
            "rate-limiting work queue; keys are namespace/name; 3 s of adding, then drained",
            "an operation is one add, or one hand-out: a get with its done; median of 3 rounds",
            "paired: a key is added again only when it is finished, so each add is one hand-out",
            "flood: producers add without regard for the workers, most adds are duplicates",
            "p: producers, w: workers; client-go: v0.36.4, TypedRateLimitingQueue",
        ],
    );
    for ((name, _), results) in contestants.iter().zip(&rounds) {
        report.column(name, median(results));
    }
    if with_peers {
        add_ratios(&mut report)?;
    }
    Ok(report)
}

/// Throughput is that of the paired runs, in all of which an add is one hand-out: where producers
/// run free, most operations are adds of keys that are queued already.
fn add_ratios(report: &mut Report) -> anyhow::Result<()> {
    for (name, metric) in [
        ("throughput_1p_1w_10000keys_vs_client_go", PAIRED[0]),
        ("throughput_4p_16w_100keys_vs_client_go", PAIRED[1]),
        ("throughput_4p_16w_10000keys_vs_client_go", PAIRED[2]),
    ] {
        report.ratio(
            name,
            Better::Higher,
            &[metric],
            [&["windlass"], &["client-go"]],
        )?;
    }
    for (name, metrics) in [
        ("throughput_vs_client_go", PAIRED),
        ("flood_ops_vs_client_go", FLOOD),
        ("flood_handouts_vs_client_go", FLOOD_HANDOUTS),
    ] {
        report.ratio(
            name,
            Better::Higher,
            &metrics,
            [&["windlass"], &["client-go"]],
        )?;
    }
    Ok(())
}

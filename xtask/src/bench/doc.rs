//! How a process may hold pods: as `Doc`s, as k8s-openapi structs, as serde_json values.

use super::{
    contestant::{Numbers, Program, measure},
    report::{Better, Report, median},
};

const PODS: &str = "20000";

/// Contestants take turns, so that whatever else the machine does hits all of them alike.
const ROUNDS: usize = 3;

const TYPED: Program = Program::RustPeer("typed");

/// Name, program and the words that select the contestant.
const CONTESTANTS: [(&str, Program, &[&str]); 7] = [
    ("windlass", Program::Windlass, &["doc", "parser", PODS]),
    (
        "windlass-single",
        Program::Windlass,
        &["doc", "single", PODS],
    ),
    (
        "windlass-own-tokens",
        Program::Windlass,
        &["doc", "own-tokens", PODS],
    ),
    ("typed", TYPED, &["typed", PODS]),
    ("typed-whole", TYPED, &["typed-whole", PODS]),
    ("value", TYPED, &["value", PODS]),
    ("value-whole", TYPED, &["value-whole", PODS]),
];

pub(crate) fn run() -> anyhow::Result<Report> {
    Program::Windlass.build()?;
    TYPED.build()?;
    let mut rounds: Vec<Vec<Numbers>> = vec![Vec::new(); CONTESTANTS.len()];
    for round in 1..=ROUNDS {
        for ((name, program, words), results) in CONTESTANTS.iter().zip(&mut rounds) {
            eprintln!("round {round} of {ROUNDS}: {name}");
            results.push(measure(program.command(words))?);
        }
    }
    let mut report = Report::new(
        "doc",
        &[
            "20,000 pods, 100 per ReplicaSet, every other one with a full status",
            "same JSON text for all, decoded pod by pod; one process per contestant; system allocator",
            "memory: growth of resident memory; CPU: user and system time of decoding alone",
            "median of 3 rounds; windlass: one `Parser` for all, single: `Doc::parse_with` for each",
            "own-tokens: as windlass, but every pod has a token volume of its own name; not in the ratios",
            "typed: k8s-openapi `Pod`, value: serde_json `Value`; managed fields dropped, or whole",
        ],
    );
    for ((name, ..), results) in CONTESTANTS.iter().zip(&rounds) {
        report.column(name, median(results));
    }
    add_ratios(&mut report)?;
    Ok(report)
}

fn add_ratios(report: &mut Report) -> anyhow::Result<()> {
    let ours: &[&str] = &["windlass", "windlass-single"];
    let typed: &[&str] = &["typed", "typed-whole"];
    let value: &[&str] = &["value", "value-whole"];
    // A `Value` has no place that says what to leave out, so its natural form is the whole one.
    for (name, metric, theirs) in [
        ("memory_vs_typed", "bytes_per_pod", typed),
        ("memory_vs_value", "bytes_per_pod", &["value-whole"]),
        ("memory_vs_value_pruned", "bytes_per_pod", &["value"]),
        ("cpu_vs_typed", "decode_cpu_s", typed),
        ("cpu_vs_value", "decode_cpu_s", value),
    ] {
        report.ratio(name, Better::Lower, &[metric], [ours, theirs])?;
    }
    Ok(())
}

//! `windlass test --explore`: the same command again and again, with one fault each time.
//!
//! The command is run twice without faults, to know its requests and what it leaves behind, and
//! whether that is the same each time. Then it is run once for each request and each fault that can
//! meet it. A run breaks if its exit code is another one, if it takes much longer, or if it leaves
//! other objects behind.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::sync::Semaphore;
use windlass_core::Doc;
use windlass_faults::{FaultAction, FaultRule, Position, SeenRequest};

use super::cluster::TestCluster;
use super::program::{Ended, Program};
use super::{Arguments, objects};
use crate::commands::print;

/// A run that takes so many times as long as without faults hangs, but not before this time.
const PATIENCE_FACTOR: u32 = 10;
const PATIENCE_MIN: Duration = Duration::from_secs(30);

/// Lines of output that are shown of a run that broke.
const OUTPUT_LINES: usize = 10;

/// Options of the exploration.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Explore only requests of clients whose user agent has this part.
    #[arg(long, value_name = "TEXT", default_value = "")]
    agent: String,
    /// Explore reads as well.
    #[arg(long)]
    reads: bool,
    /// The faults to explore.
    #[arg(
        long,
        value_name = "FAULTS",
        value_delimiter = ',',
        default_value = "drop,lose,status=409,status=429,status=500,cut=1"
    )]
    explore_with: Vec<FaultAction>,
    /// Runs at a time [default: one for each processor].
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<usize>,
}

/// One run.
struct Run {
    ended: Ended,
    seen: Vec<SeenRequest>,
    left: Vec<Doc>,
}

/// Explores a command; the exit code tells whether a fault breaks it.
pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let timeout = arguments.timeout.map(Duration::from_secs);
    let clean = one(arguments, None, timeout).await?;
    if clean.ended.code != 0 {
        print(&clean.ended.output);
        anyhow::bail!(
            "the command fails without faults, with exit code {}",
            clean.ended.code
        );
    }
    let again = one(arguments, None, timeout).await?;
    let is_repeatable = objects::difference(&clean.left, &again.left).is_none();
    print(&format!(
        "without faults: {} requests, {} objects left, {:.1} s\n",
        clean.seen.len(),
        clean.left.len(),
        clean.ended.took.as_secs_f64()
    ));
    if !is_repeatable {
        print("two runs without faults leave different objects: only exit codes are compared\n");
    }
    let longest = clean.ended.took.max(again.ended.took);
    let patience = timeout.unwrap_or((longest * PATIENCE_FACTOR).max(PATIENCE_MIN));
    let rules = rules(&arguments.exploration, &clean.seen);
    let jobs = arguments.exploration.jobs.unwrap_or_else(processors).max(1);
    let seats = Arc::new(Semaphore::new(jobs));
    let runs = rules.iter().map(|(title, rule)| {
        let seats = Arc::clone(&seats);
        let clean = is_repeatable.then_some(clean.left.as_slice());
        async move {
            let _seat = seats.acquire().await;
            let run = one(arguments, Some(rule), Some(patience)).await;
            tell(title, rule, run, clean)
        }
    });
    let broken = futures_util::future::join_all(runs).await;
    let broken = broken.into_iter().filter(|is_broken| *is_broken).count();
    print(&format!(
        "{} runs with a fault, {broken} broke\n",
        rules.len()
    ));
    Ok(match broken {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The faults that can meet each request, with their titles.
fn rules(options: &Options, seen: &[SeenRequest]) -> Vec<(String, FaultRule)> {
    let positions = Position::all(seen.iter().filter(|it| it.agent.contains(&options.agent)));
    let mut known = BTreeSet::new();
    let mut rules = Vec::new();
    for position in positions.into_iter().filter(|it| known.insert(it.clone())) {
        for action in &options.explore_with {
            if fits(action, &position, options.reads) {
                rules.push((position.to_string(), position.rule(action.clone())));
            }
        }
    }
    rules
}

/// Returns true if a fault makes sense for a request.
fn fits(action: &FaultAction, position: &Position, has_reads: bool) -> bool {
    let is_update = matches!(position.verb.as_str(), "update" | "patch");
    let is_watch = position.verb == "watch";
    let is_write = is_update
        || matches!(
            position.verb.as_str(),
            "create" | "delete" | "deletecollection"
        );
    match action {
        FaultAction::CutWatch(_) => is_watch,
        FaultAction::Refuse { code: 409, .. } => is_update,
        _ => is_write || (has_reads && !is_watch),
    }
}

/// Runs the command on a cluster of its own.
async fn one(
    arguments: &Arguments,
    rule: Option<&FaultRule>,
    timeout: Option<Duration>,
) -> anyhow::Result<Run> {
    let rules = arguments.faults.iter().chain(rule).cloned().collect();
    let cluster = TestCluster::start(arguments, rules).await?;
    let program = Program {
        words: &arguments.command,
        variables: cluster.variables(),
        timeout,
        is_captured: true,
    };
    let ended = program.run().await?;
    let now = objects::all(&cluster.client).await?;
    let left = objects::since(&cluster.first_objects, &now);
    let seen = cluster.plan.seen();
    cluster.stop().await;
    Ok(Run { ended, seen, left })
}

/// Prints a run that broke; true if it did.
fn tell(title: &str, rule: &FaultRule, run: anyhow::Result<Run>, clean: Option<&[Doc]>) -> bool {
    let (why, output) = match run {
        Err(error) => (format!("could not run: {error:#}"), String::new()),
        Ok(run) if run.ended.is_timed_out => ("did not end".to_owned(), run.ended.output),
        Ok(run) if run.ended.code != 0 => {
            let why = format!("ended with exit code {}", run.ended.code);
            (why, run.ended.output)
        }
        Ok(run) => {
            let difference = clean.and_then(|clean| objects::difference(clean, &run.left));
            match difference {
                None => return false,
                Some(difference) => (difference, String::new()),
            }
        }
    };
    let mut text = format!("BROKEN by {} at {title}: {why}\n", rule.action);
    let lines: Vec<&str> = output.lines().collect();
    for line in lines.iter().skip(lines.len().saturating_sub(OUTPUT_LINES)) {
        text += &format!("    {line}\n");
    }
    text += &format!("    again: windlass test --fault '{rule}' -- ...\n");
    print(&text);
    true
}

//! Runs a target on its seeds and on mutations of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{LEN_MAX, Mutator, Outcome, TARGETS, Target};

/// Inputs that are kept for further mutation. A new one then takes the place of an old one.
const POOL_MAX: usize = 256;
/// Of so many accepted inputs one is kept.
const KEPT_OF: usize = 4;

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Inputs that were run, seeds included.
    pub inputs: u64,
    /// Inputs that the code under test took.
    pub accepted: u64,
}

/// The target of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Runs a target until `goes_on` says no, which is asked before each input with its number.
///
/// # Errors
/// The first input that violates an oracle, as text that says how to make it again.
pub fn run(
    target: &Target,
    seed: u64,
    mut goes_on: impl FnMut(u64) -> bool,
) -> Result<Report, String> {
    let seeds = (target.seeds)();
    let mut pool = seeds.clone();
    let mutator = Mutator::new(seed, target.words);
    let mut report = Report::default();
    for number in 0.. {
        if !goes_on(number) {
            break;
        }
        let input = usize::try_from(number)
            .ok()
            .and_then(|at| seeds.get(at))
            .cloned();
        let input = input.unwrap_or_else(|| mutator.next(&pool));
        let outcome = one(target, &input).map_err(|why| {
            let shown = input.escape_ascii();
            let name = target.name;
            format!("target {name}, seed {seed}, input {number}: {why}\ninput: b\"{shown}\"")
        })?;
        report.inputs += 1;
        if outcome == Outcome::Accepted {
            report.accepted += 1;
            keep(&mutator, &mut pool, seeds.len(), input);
        }
    }
    Ok(report)
}

/// The outcome of one input, or the message of its panic.
fn one(target: &Target, input: &[u8]) -> Result<Outcome, String> {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("a panic without a message").to_owned()
    })
}

/// Keeps some of the accepted inputs. The seeds stay.
fn keep(mutator: &Mutator, pool: &mut Vec<Vec<u8>>, seeds: usize, input: Vec<u8>) {
    if mutator.below(KEPT_OF) > 0 || input.len() > LEN_MAX / 4 {
        return;
    }
    if pool.len() < POOL_MAX.max(seeds + 1) {
        pool.push(input);
    } else {
        let at = seeds + mutator.below(pool.len() - seeds);
        pool[at] = input;
    }
}

//! A run that went wrong.

use std::fmt;

use super::{Plan, Simulation};
use crate::{Fault, Seen};

/// How many of the last calls are shown.
const SHOWN_MAX: usize = 200;

/// A run that went wrong, with everything needed to repeat it. Its text says it all.
pub struct Failure(String);

impl Failure {
    pub(super) fn new(
        simulation: &Simulation,
        plan: Option<&Plan>,
        problem: String,
        log: &[Seen],
    ) -> Self {
        let mut lines = vec![
            format!(
                "simulation \"{}\", seed {}",
                simulation.name, simulation.seed
            ),
            match plan {
                None => "without faults".to_owned(),
                Some(Plan {
                    number,
                    fault: Fault::Crash(position),
                }) => format!("crash at call {number}, {position}"),
                Some(Plan { number, fault }) => format!("{fault:?} at call {number}"),
            },
            problem,
            "requests:".to_owned(),
        ];
        let hidden = log.len().saturating_sub(SHOWN_MAX);
        if hidden > 0 {
            lines.push(format!("({hidden} more before these)"));
        }
        let start = log.first().map(|first| first.at);
        lines.extend(log.iter().skip(hidden).map(|seen| {
            let at = start.map_or(0.0, |start| (seen.at - start).as_secs_f64());
            format!("{at:>10.3}s {seen}")
        }));
        Self(lines.join("\n"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text itself, so that an `unwrap` shows it as it is meant.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

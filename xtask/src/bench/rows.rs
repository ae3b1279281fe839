//! Figures of many like things of one contestant: a table with a line for each.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::contestant::Numbers;
use super::report::readable;

/// The lines of one contestant.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) contestant: &'static str,
    /// The figures that the table shows, in this order, with their headings. JSON has them all.
    pub(crate) shown: &'static [(&'static str, &'static str)],
    pub(crate) rows: Vec<(String, Numbers)>,
}

impl Rows {
    /// Prints the table.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let names = self.rows.iter().map(|(name, _)| name.len());
        let first = names.chain([self.contestant.len()]).max().unwrap_or(0);
        write!(out, "\n{:first$}", self.contestant)?;
        for (_, heading) in self.shown {
            write!(out, "  {:>width$}", heading, width = width(heading))?;
        }
        writeln!(out)?;
        for (name, numbers) in &self.rows {
            write!(out, "{name:first$}")?;
            for (metric, heading) in self.shown {
                let text = numbers.get(*metric).map_or("-".to_owned(), readable);
                write!(out, "  {text:>width$}", width = width(heading))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// One object for each line.
    pub(crate) fn to_json(&self) -> Vec<Value> {
        let object = |(name, numbers): &(String, Numbers)| json!({ "contestant": self.contestant, "name": name, "numbers": numbers });
        self.rows.iter().map(object).collect()
    }
}

fn width(heading: &str) -> usize {
    heading.len().max(7)
}

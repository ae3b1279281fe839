//! The figures of one run, as a table and as JSON.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write},
};

use anyhow::Context;
use serde_json::{Value, json};

use super::{contestant::Numbers, rows::Rows};

/// Which way a figure is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Lower,
    #[allow(
        dead_code,
        reason = "rates are compared as soon as windlass has a column for them"
    )]
    Higher,
}

/// Chooses one of two figures.
type Pick = fn(f64, f64) -> f64;

/// The figures of one run.
#[derive(Debug)]
pub(crate) struct Report {
    bench: &'static str,
    configuration: Vec<String>,
    columns: Vec<Column>,
    rows: Vec<Rows>,
    ratios: BTreeMap<String, f64>,
    labels: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Column {
    contestant: String,
    numbers: Numbers,
}

impl Report {
    /// A report without figures; the lines say what is measured, and how.
    pub(crate) fn new(bench: &'static str, lines: &[&str]) -> Self {
        let mut configuration = vec![machine()];
        configuration.extend(lines.iter().map(|line| (*line).to_owned()));
        Self {
            bench,
            configuration,
            columns: Vec::new(),
            rows: Vec::new(),
            ratios: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }

    /// Adds the figures of a contestant.
    pub(crate) fn column(&mut self, contestant: &str, numbers: Numbers) {
        self.columns.push(Column {
            contestant: contestant.to_owned(),
            numbers,
        });
    }

    /// Adds a table of a contestant that has a line for each of many like things.
    pub(crate) fn rows(&mut self, rows: Rows) {
        self.rows.push(rows);
    }

    /// Adds a ratio of two figures of the same contestant.
    pub(crate) fn own_ratio(&mut self, name: &str, ratio: f64) {
        self.ratios.insert(name.to_owned(), ratio);
    }

    /// Adds a name beside the figures.
    pub(crate) fn label(&mut self, name: &str, text: &str) {
        self.labels.insert(name.to_owned(), text.to_owned());
    }

    /// Adds the ratio of the worst of ours to the best of theirs. If several figures are given, it
    /// is the worst of their ratios.
    pub(crate) fn ratio(
        &mut self,
        name: &str,
        better: Better,
        metrics: &[&str],
        sides: [&[&str]; 2],
    ) -> anyhow::Result<()> {
        let (worst, best): (Pick, Pick) = match better {
            Better::Lower => (f64::max, f64::min),
            Better::Higher => (f64::min, f64::max),
        };
        let [ours, theirs] = sides;
        let mut ratios = Vec::new();
        for metric in metrics {
            ratios.push(self.pick(metric, ours, worst)? / self.pick(metric, theirs, best)?);
        }
        let ratio = ratios
            .into_iter()
            .reduce(worst)
            .context("a ratio of nothing")?;
        self.ratios.insert(name.to_owned(), ratio);
        Ok(())
    }

    /// Prints the table and then, as the last line, the JSON object.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "bench {}", self.bench)?;
        for line in &self.configuration {
            writeln!(out, "  {line}")?;
        }
        for rows in &self.rows {
            rows.print(&mut out)?;
        }
        self.print_table(&mut out)?;
        for (name, ratio) in &self.ratios {
            writeln!(out, "{name} = {ratio:.4}")?;
        }
        for (name, text) in &self.labels {
            writeln!(out, "{name} = {text}")?;
        }
        writeln!(out, "{}", self.to_json())?;
        Ok(())
    }

    fn to_json(&self) -> Value {
        let mut line =
            json!({ "bench": self.bench, "numbers": self.flat(), "ratios": self.ratios });
        for (name, text) in &self.labels {
            line[name] = json!(text);
        }
        if !self.rows.is_empty() {
            let rows = self.rows.iter().flat_map(Rows::to_json);
            line["rows"] = rows.collect();
        }
        line
    }

    fn print_table(&self, out: &mut impl Write) -> io::Result<()> {
        let metrics: BTreeSet<&String> = self
            .columns
            .iter()
            .flat_map(|column| column.numbers.keys())
            .collect();
        let first = metrics.iter().map(|metric| metric.len()).max().unwrap_or(0);
        let widths: Vec<usize> = self
            .columns
            .iter()
            .map(|column| column.contestant.len().max(13))
            .collect();
        write!(out, "\n{:first$}", "")?;
        for (column, width) in self.columns.iter().zip(&widths) {
            write!(out, "  {:>width$}", column.contestant)?;
        }
        writeln!(out)?;
        for metric in metrics {
            write!(out, "{metric:first$}")?;
            for (column, width) in self.columns.iter().zip(&widths) {
                let text = column.numbers.get(metric).map_or("-".to_owned(), readable);
                write!(out, "  {text:>width$}")?;
            }
            writeln!(out)?;
        }
        writeln!(out)
    }

    /// All figures under one roof: windlass's by their own name, the others' with the name of the
    /// contestant after it.
    fn flat(&self) -> Numbers {
        let mut flat = Numbers::new();
        for column in &self.columns {
            for (metric, number) in &column.numbers {
                let name = match column.contestant.as_str() {
                    "windlass" => metric.clone(),
                    contestant => format!("{metric}_{}", contestant.replace('-', "_")),
                };
                flat.insert(name, *number);
            }
        }
        flat
    }

    /// One figure of those that these contestants have.
    fn pick(&self, metric: &str, contestants: &[&str], pick: Pick) -> anyhow::Result<f64> {
        let numbers = contestants
            .iter()
            .filter_map(|name| self.number(name, metric));
        numbers
            .reduce(pick)
            .with_context(|| format!("nobody of {contestants:?} has {metric}"))
    }

    fn number(&self, contestant: &str, metric: &str) -> Option<f64> {
        let column = self
            .columns
            .iter()
            .find(|column| column.contestant == contestant)?;
        column.numbers.get(metric).copied()
    }
}

/// The middle one of the figures of several rounds, for each name.
pub(crate) fn median(rounds: &[Numbers]) -> Numbers {
    let names: BTreeSet<&String> = rounds.iter().flat_map(Numbers::keys).collect();
    let middle = |name: &String| {
        let mut values: Vec<f64> = rounds
            .iter()
            .filter_map(|numbers| numbers.get(name).copied())
            .collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    names
        .into_iter()
        .map(|name| (name.clone(), middle(name)))
        .collect()
}

/// A figure with as many decimals as help.
pub(crate) fn readable(number: &f64) -> String {
    match number.abs() {
        large if large >= 1_000.0 => with_separators(*number),
        medium if medium >= 100.0 => format!("{number:.0}"),
        _ => format!("{number:.2}"),
    }
}

fn with_separators(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown processor", |rest| {
        rest.trim_start_matches([' ', '\t', ':'])
    });
    format!("{model}, {cores} cores")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(metric: &str, value: f64) -> Numbers {
        Numbers::from([(metric.to_owned(), value)])
    }

    #[test]
    fn ratio_is_our_worst_over_their_best() {
        let mut report = Report::new("test", &[]);
        report.column("windlass", numbers("m", 1.0));
        report.column("windlass-slow", numbers("m", 2.0));
        report.column("peer", numbers("m", 40.0));
        report.column("peer-slow", numbers("m", 80.0));
        let sides: [&[&str]; 2] = [&["windlass", "windlass-slow"], &["peer", "peer-slow"]];
        report
            .ratio("low_vs_peer", Better::Lower, &["m"], sides)
            .unwrap();
        report
            .ratio("high_vs_peer", Better::Higher, &["m"], sides)
            .unwrap();
        assert_eq!(report.ratios["low_vs_peer"], 0.05);
        assert_eq!(report.ratios["high_vs_peer"], 1.0 / 80.0);
    }

    #[test]
    fn worst_of_several_figures_counts() {
        let mut report = Report::new("test", &[]);
        let both = |a, b| Numbers::from([("a".to_owned(), a), ("b".to_owned(), b)]);
        report.column("windlass", both(10.0, 10.0));
        report.column("peer", both(2.0, 5.0));
        let sides: [&[&str]; 2] = [&["windlass"], &["peer"]];
        report
            .ratio("speed_vs_peer", Better::Higher, &["a", "b"], sides)
            .unwrap();
        assert_eq!(report.ratios["speed_vs_peer"], 2.0);
    }

    #[test]
    fn ratio_needs_both_sides() {
        let mut report = Report::new("test", &[]);
        report.column("windlass", numbers("m", 1.0));
        let sides: [&[&str]; 2] = [&["windlass"], &["peer"]];
        assert!(
            report
                .ratio("m_vs_peer", Better::Lower, &["m"], sides)
                .is_err()
        );
    }

    #[test]
    fn only_peers_figures_carry_their_name() {
        let mut report = Report::new("test", &[]);
        report.column("windlass", numbers("m", 1.0));
        report.column("kube-rs", numbers("m", 2.0));
        let names: Vec<String> = report.flat().into_keys().collect();
        assert_eq!(names, ["m", "m_kube_rs"]);
    }

    #[test]
    fn median_takes_the_middle_round() {
        let rounds = [3.0, 1.0, 2.0].map(|value| numbers("m", value));
        assert_eq!(median(&rounds), numbers("m", 2.0));
    }

    #[test]
    fn figures_are_readable() {
        let table = [
            (0.051, "0.05"),
            (123.4, "123"),
            (1234.4, "1,234"),
            (1_234_567.0, "1,234,567"),
        ];
        for (number, text) in table {
            assert_eq!(readable(&number), text);
        }
    }
}

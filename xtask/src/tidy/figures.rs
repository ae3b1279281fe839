//! Measured figures in decision records can be measured again.
//!
//! A figure is a number with a unit of [`UNITS`]. A section of an ADR that has one names the
//! command that it came from, in backticks and starting with `cargo` or `wc`; a figure that README
//! has too needs no command. A `cargo xtask bench NAME` must be one that exists, so a record whose
//! benchmark is gone is noticed.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// Units of what is measured. Bytes are left out: they are sizes of our own layout.
const UNITS: [&str; 11] = [
    "%",
    "GB",
    "KB",
    "MB",
    "creates per second",
    "lines",
    "min",
    "ms",
    "pods per second",
    "s",
    "us",
];

/// Programs that a figure may come from.
const PROGRAMS: [&str; 2] = ["cargo ", "wc "];

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let readme = fs::read_to_string(root.join("README.md")).context("README.md")?;
    let directory = root.join("docs/adr");
    let mut breaches = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(root).unwrap_or(&path).display();
        let found = check_record(&text, &figures(&readme), &|bench| {
            root.join(format!("xtask/src/bench/{bench}.rs")).exists()
        });
        breaches.extend(found.into_iter().map(|breach| format!("{name}: {breach}")));
    }
    breaches.sort();
    Ok(breaches)
}

/// The breaches of one record.
fn check_record(text: &str, readme: &[String], is_bench: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut breaches = Vec::new();
    for section in text.split("\n## ") {
        let title = section.lines().next().unwrap_or_default();
        let commands = commands(section);
        let unknown = commands.iter().filter_map(|command| {
            let name = command
                .strip_prefix("cargo xtask bench ")?
                .split(' ')
                .next()?;
            (!is_bench(name)).then(|| format!("{title}: there is no benchmark `{name}`"))
        });
        breaches.extend(unknown);
        if commands.is_empty() {
            let stale = figures(section)
                .into_iter()
                .filter(|figure| !readme.contains(figure));
            breaches.extend(stale.map(|figure| {
                format!("{title}: `{figure}` names no command, and README does not have it")
            }));
        }
    }
    breaches
}

/// The commands in backticks.
fn commands(section: &str) -> Vec<&str> {
    let quoted = section.split('`').skip(1).step_by(2);
    quoted
        .filter(|text| PROGRAMS.iter().any(|program| text.starts_with(program)))
        .collect()
}

/// The numbers with a unit, as in `5,290 creates per second`.
fn figures(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(|one: char| one.is_ascii_digit()) {
        let is_inside =
            text[..at].ends_with(|one: char| one.is_ascii_alphanumeric() || ".,".contains(one));
        if is_inside {
            continue;
        }
        let rest = &text[at..];
        let end = rest
            .find(|one: char| !(one.is_ascii_digit() || ".,".contains(one)))
            .unwrap_or(rest.len());
        let number = rest[..end].trim_end_matches(['.', ',']);
        let behind = rest[number.len()..].trim_start_matches(' ');
        let unit = UNITS.iter().find(|unit| {
            let after = behind.strip_prefix(*unit);
            after.is_some_and(|after| !after.starts_with(|one: char| one.is_ascii_alphanumeric()))
        });
        found.extend(unit.map(|unit| format!("{number} {unit}")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(text: &str) -> Vec<String> {
        let readme = figures("| memory | 2.4 KB | 1,500 ms |");
        check_record(text, &readme, &|bench| bench == "server")
    }

    #[test]
    fn a_figure_without_a_command_is_found_by_its_section() {
        let text = "# 1\n## Context\nIt took 57 s.\n## Measured\n`cargo build`: 28 s.\n";
        assert_eq!(
            breaches(text),
            ["Context: `57 s` names no command, and README does not have it"]
        );
    }

    #[test]
    fn a_figure_of_readme_needs_no_command_until_readme_changes() {
        assert!(breaches("## Cost\n2.4 KB each, 1,500 ms at most.").is_empty());
        assert_eq!(breaches("## Cost\n2.5 KB each.").len(), 1);
    }

    #[test]
    fn a_benchmark_that_is_gone_is_found() {
        assert!(breaches("## Cost\n`cargo xtask bench server --peers`: 3 ms").is_empty());
        assert_eq!(breaches("## Cost\n`cargo xtask bench gone`: 3 ms").len(), 1);
    }

    #[test]
    fn numbers_without_a_unit_are_no_figures() {
        assert!(figures("14 bytes, 2^31 users, v1.36.4 shows, section 5.").is_empty());
        assert_eq!(
            figures("9,950 creates per second; 12% and 3.5 MB."),
            ["9,950 creates per second", "12 %", "3.5 MB"]
        );
    }
}

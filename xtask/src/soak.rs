//! `cargo xtask soak`: namespaces that come and go for minutes, and whether the server grows.
//!
//! `windlass up` runs in a temporary directory. A load generator makes namespaces with objects of
//! many kinds and deletes them again; every few seconds memory, descriptors, threads, tasks, the
//! size of the store and of each cache are noted. Whatever grows after the first two minutes by
//! more than its tolerance fails the task.

mod growth;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::json;

use crate::bench::contestant::{Numbers, Profile, Program, Running};
use crate::bench::process::{Directory, Started, cpu_s, resident_mb};
use growth::{Growth, TOLERANCES};

const USAGE: &str = "\
usage: cargo xtask soak [--minutes N] [--workers N] [--pods N] [--debug]

  --minutes N  how long to churn [default: 7]; the first two minutes are a warm-up
  --workers N  namespaces that exist at a time [default: 16]
  --pods N     pods of each namespace [default: 20]
  --debug      the debug build instead of the release build";

/// Caches fill up in the first minutes; what is compared comes after.
const WARM_UP: Duration = Duration::from_secs(120);

/// Lines of the table.
const TABLE_ROWS: usize = 24;

/// The options of a run.
struct Options {
    minutes: u32,
    workers: String,
    pods: String,
    profile: Profile,
}

/// The figures of one moment.
pub(crate) struct Sample {
    at: Duration,
    numbers: Numbers,
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let options = Options::parse(arguments)?;
    Program::Windlass.build_as(options.profile)?;
    Program::Server.build_as(options.profile)?;
    let samples = options.soak()?;
    print_table(&samples);
    let growths = growth::after(&samples, WARM_UP)?;
    let is_flat = report(&samples, &growths)?;
    Ok(match is_flat {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut options = Self {
            minutes: 7,
            workers: "16".to_owned(),
            pods: "20".to_owned(),
            profile: Profile::Release,
        };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().context(USAGE);
            match word.as_str() {
                "--minutes" => options.minutes = value()?.parse().context(USAGE)?,
                "--workers" => options.workers = value()?,
                "--pods" => options.pods = value()?,
                "--debug" => options.profile = Profile::Debug,
                _ => bail!(USAGE),
            }
        }
        ensure!(
            options.minutes >= 3,
            "two minutes are the warm-up; a soak takes three at least"
        );
        Ok(options)
    }

    /// Churns and samples.
    fn soak(&self) -> anyhow::Result<Vec<Sample>> {
        let directory = Directory::new()?;
        let server = Started::windlass_as(self.profile, &directory, &["up"])?;
        let words = ["soak", &self.workers, &self.pods];
        let mut command = Program::Windlass.command_as(self.profile, &words);
        command.env("KUBECONFIG", directory.file("kubeconfig"));
        let mut load = Running::start(command)?;
        let length = Duration::from_secs(u64::from(self.minutes) * 60);
        let (mut samples, mut at) = (Vec::new(), Duration::ZERO);
        while at < length {
            let mut numbers = load.numbers().context("the load ended early")?;
            numbers.extend(look(server.pid, Path::new(&directory.file("")))?);
            let elapsed = numbers.get("elapsed_s").context("the time of a sample")?;
            at = Duration::from_secs_f64(*elapsed);
            eprintln!(
                "{:>5.0} s  {:>8.1} MB  {:>6} namespaces",
                at.as_secs_f64(),
                numbers["memory_mb"],
                numbers.get("namespaces").copied().unwrap_or(0.0)
            );
            samples.push(Sample { at, numbers });
        }
        load.finish();
        Ok(samples)
    }
}

/// What the kernel says of a process and its directory.
fn look(pid: u32, directory: &Path) -> anyhow::Result<Numbers> {
    let count = |name: &str| -> anyhow::Result<f64> {
        let path = format!("/proc/{pid}/{name}");
        Ok(fs::read_dir(&path).context(path)?.count() as f64)
    };
    let numbers = [
        ("memory_mb", resident_mb(&[pid])?),
        ("cpu_s", cpu_s(&[pid])?),
        ("descriptors", count("fd")?),
        ("threads", count("task")?),
        ("store_mb", size(directory)? / 1e6),
    ];
    Ok(numbers.map(|(name, value)| (name.to_owned(), value)).into())
}

/// The bytes of the files in a directory; one that goes away meanwhile does not count.
fn size(directory: &Path) -> anyhow::Result<f64> {
    let mut bytes = 0.0;
    for entry in fs::read_dir(directory).context("the data directory")? {
        let metadata = entry?.metadata();
        bytes += metadata.map_or(0.0, |metadata| metadata.len() as f64);
    }
    Ok(bytes)
}

/// Prints figures over time, a row for every so many samples.
fn print_table(samples: &[Sample]) {
    const COLUMNS: [&str; 7] = [
        "namespaces",
        "memory_mb",
        "descriptors",
        "threads",
        "tasks",
        "objects",
        "store_mb",
    ];
    print!("{:>7}", "s");
    for name in COLUMNS {
        print!("  {name:>11}");
    }
    println!();
    let step = samples.len().div_ceil(TABLE_ROWS).max(1);
    for sample in samples.iter().step_by(step) {
        print!("{:>7.0}", sample.at.as_secs_f64());
        for name in COLUMNS {
            let text = sample.numbers.get(name);
            let text = text.map_or("-".to_owned(), |number| format!("{number:.1}"));
            print!("  {text:>11}");
        }
        println!();
    }
}

/// Prints what grew and, as the last line, one JSON object. Returns true if nothing grew beyond
/// its tolerance.
fn report(samples: &[Sample], growths: &[Growth]) -> anyhow::Result<bool> {
    println!(
        "\nafter the first {} s, medians of the first and the last third:",
        WARM_UP.as_secs()
    );
    for growth in growths {
        println!("{growth}");
    }
    let failed: Vec<&str> = growths
        .iter()
        .filter(|growth| !growth.is_tolerated())
        .map(|growth| growth.name.as_str())
        .collect();
    let last = samples.last().context("no sample")?;
    let grown: Numbers = growths
        .iter()
        .map(|growth| {
            (
                format!("{}_growth", growth.name),
                growth.last - growth.first,
            )
        })
        .collect();
    let tolerances: Numbers = TOLERANCES
        .iter()
        .map(|tolerance| (tolerance.name.to_owned(), tolerance.absolute))
        .collect();
    let line = json!({
        "soak": last.numbers, "growth": grown, "tolerances": tolerances, "grew": failed,
    });
    println!("{line}");
    Ok(failed.is_empty())
}

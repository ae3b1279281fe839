//! `cargo xtask judge controller-runtime`: the suites of controller-runtime on the stand-ins, or on
//! the originals.
//!
//! The sources come from the Go module cache, or from a checkout that the caller names. They are
//! copied below `target/judge`, because suites write beside themselves. Nothing of them is kept in
//! this repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use windlass_envtest::Assets;

const USAGE: &str = "\
usage: cargo xtask judge controller-runtime [--real] [--debug] [--source DIR] [PACKAGE...]

  --real        kube-apiserver and etcd themselves, in place of the stand-ins
  --debug       the debug build of windlass
  --source DIR  a checkout of controller-runtime [default: the Go module]
  PACKAGE       packages below pkg [default: those that start a control plane]";

/// The module whose suites are run.
const MODULE: &str = "sigs.k8s.io/controller-runtime@v0.24.0";

/// The packages whose suites start a control plane, or test what starts one.
const PACKAGES: &[&str] = &[
    "builder",
    "cache",
    "client",
    "cluster",
    "controller",
    "envtest",
    "handler",
    "internal/controller",
    "internal/recorder",
    "internal/testing",
    "manager",
    "predicate",
    "recorder",
    "source",
    "webhook",
];

/// The options of a run.
#[derive(Default)]
struct Options {
    is_real: bool,
    is_debug: bool,
    source: Option<PathBuf>,
    packages: Vec<String>,
}

/// The result of the suites of one package.
struct Verdict {
    passed: usize,
    failed: Vec<String>,
    is_ok: bool,
    took: Duration,
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let options = Options::parse(arguments)?;
    let sources = sources(&options)?;
    let assets = assets(&options)?;
    println!("assets: {}", assets.display());
    let (mut passed, mut failed, mut is_ok) = (0, 0, true);
    for package in &options.packages {
        let verdict = judge(&sources, &assets, package)?;
        println!(
            "{package:<24} {:>4} passed {:>3} failed {:>6.1} s{}",
            verdict.passed,
            verdict.failed.len(),
            verdict.took.as_secs_f64(),
            if verdict.is_ok { "" } else { "  NOT OK" }
        );
        for name in &verdict.failed {
            println!("    {name}");
        }
        passed += verdict.passed;
        failed += verdict.failed.len();
        is_ok &= verdict.is_ok;
    }
    println!("{passed} specs passed, {failed} failed");
    Ok(match is_ok {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut options = Self::default();
        let mut words = arguments.iter();
        ensure!(
            words
                .next()
                .is_some_and(|judge| judge == "controller-runtime"),
            USAGE
        );
        while let Some(word) = words.next() {
            match word.as_str() {
                "--real" => options.is_real = true,
                "--debug" => options.is_debug = true,
                "--source" => options.source = Some(words.next().context(USAGE)?.into()),
                flag if flag.starts_with('-') => bail!(USAGE),
                package => options.packages.push(package.to_owned()),
            }
        }
        if options.packages.is_empty() {
            options.packages = PACKAGES.iter().map(|&package| package.to_owned()).collect();
        }
        Ok(options)
    }
}

/// A copy of the sources that suites may write to.
fn sources(options: &Options) -> anyhow::Result<PathBuf> {
    if let Some(source) = &options.source {
        return Ok(source.clone());
    }
    let copy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/judge/controller-runtime");
    if copy.join("go.mod").exists() {
        return Ok(copy);
    }
    let output = Command::new("go")
        .args(["mod", "download", "-json", MODULE])
        .output()
        .context("cannot run go")?;
    ensure!(output.status.success(), "go cannot download {MODULE}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let directory = answer["Dir"]
        .as_str()
        .context("go does not say where the module is")?;
    fs::create_dir_all(copy.parent().context("invariant: it has a parent")?)?;
    let copied = Command::new("cp")
        .arg("-r")
        .arg(directory)
        .arg(&copy)
        .status()?;
    let writable = Command::new("chmod")
        .args(["-R", "u+w"])
        .arg(&copy)
        .status()?;
    ensure!(
        copied.success() && writable.success(),
        "cannot copy {directory}"
    );
    Ok(copy)
}

/// The directory of the programs that the suites start.
fn assets(options: &Options) -> anyhow::Result<PathBuf> {
    if options.is_real {
        return Ok(Assets::find()?.directory().to_owned());
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let mut build = Command::new("cargo");
    build.args(["build", "-q", "-p", "windlass-cli"]);
    if !options.is_debug {
        build.arg("--release");
    }
    ensure!(build.status()?.success(), "windlass does not build");
    let profile = if options.is_debug { "debug" } else { "release" };
    let directory = target.join("judge/assets");
    let written = Command::new(target.join(profile).join("windlass"))
        .arg("assets")
        .arg(&directory)
        .output()?;
    ensure!(written.status.success(), "windlass assets failed");
    Ok(directory.canonicalize()?)
}

/// Runs the suites of one package.
fn judge(sources: &Path, assets: &Path, package: &str) -> anyhow::Result<Verdict> {
    #[expect(clippy::disallowed_methods, reason = "this measures")]
    let started = Instant::now();
    let output = Command::new("go")
        .current_dir(sources)
        // Without `-v` the summaries of suites that pass are not shown.
        .args(["test", "-v", "-count=1", "-timeout=20m"])
        .arg(format!("./pkg/{package}/..."))
        .env("GINKGO_NO_COLOR", "true")
        .env("KUBEBUILDER_ASSETS", assets)
        .env_remove("USE_EXISTING_CLUSTER")
        .output()
        .context("cannot run go")?;
    let text = plain(&String::from_utf8_lossy(&output.stdout));
    fs::write(sources.join("judge.log"), text.as_bytes())?;
    let mut failed: Vec<String> = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("[FAIL] "))
        .map(str::to_owned)
        .collect();
    failed.sort();
    failed.dedup();
    Ok(Verdict {
        passed: text.lines().filter_map(passed).sum(),
        failed,
        is_ok: output.status.success(),
        took: started.elapsed(),
    })
}

/// A text without the sequences that colour it on a terminal.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        plain + part.split_once('m').map_or(part, |(_, rest)| rest)
    })
}

/// The number of specs that a line says have passed: `SUCCESS! -- 12 Passed | 0 Failed | ...`.
fn passed(line: &str) -> Option<usize> {
    let (_, counts) = line.split_once("! -- ")?;
    let (count, _) = counts.split_once(" Passed")?;
    count.trim().parse().ok()
}

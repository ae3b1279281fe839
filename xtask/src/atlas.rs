//! `cargo xtask atlas`: makes the table of facts about the built-in types, and the cases that its
//! users are tested with, from the pinned Go modules of Kubernetes.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::{fs, str};

use anyhow::{Context, ensure};

const USAGE: &str = "usage: cargo xtask atlas [--check]";
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/atlas");
const CRATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/atlas");

/// A file of the crate and the Go program, with its arguments, that prints it.
const MADE: [(&str, &[&str]); 4] = [
    ("src/facts.txt", &["./facts"]),
    ("tests/data/protobuf.txt", &["./goldens", "protobuf"]),
    ("tests/data/apply.txt", &["./goldens", "apply", "30"]),
    (
        "tests/data/strategic.txt",
        &["./goldens", "strategic", "120"],
    ),
];

/// Writes every file anew, or with `--check` fails if one is not as it would be written.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let is_check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => anyhow::bail!(USAGE),
    };
    let mut stale = 0;
    for (path, program) in MADE {
        let text = go_run(program)?;
        let file = Path::new(CRATE).join(path);
        if fs::read(&file).is_ok_and(|found| found == text) {
            continue;
        }
        stale += 1;
        if is_check {
            eprintln!("crates/atlas/{path} is stale: run `cargo xtask atlas`");
        } else {
            fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
            eprintln!("wrote crates/atlas/{path}, {} bytes", text.len());
        }
    }
    Ok(if is_check && stale > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn go_run(program: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = Command::new("go")
        .arg("run")
        .args(program)
        .current_dir(MODULE)
        .output()
        .context("the facts are read with Go; cannot run go")?;
    ensure!(
        output.status.success(),
        "go run {program:?} failed: {}",
        str::from_utf8(&output.stderr).unwrap_or_default().trim()
    );
    Ok(output.stdout)
}

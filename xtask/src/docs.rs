//! `cargo xtask docs`: writes the pages of the book that come from the code.

use std::process::{Command, ExitCode};

/// The tests that compare the pages also write them.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(arguments.is_empty(), "docs takes no arguments");
    let status = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--package", "windlass-cli"])
        .args(["--bin", "windlass", "reference::"])
        .env("UPDATE_EXPECT", "1")
        .status()?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

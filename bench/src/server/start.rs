//! Starting a server and waiting until it calls itself ready.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use windlass_bench::{contest, meter};

use super::wire::Target;
use super::{block_on, named};

/// Runs a command that prints where its kubeconfig is, and prints how long it took from there to
/// the first 200 on `/readyz`, and the id of the process. Ends it at the end of the input.
pub(crate) fn start(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let before = meter::wall();
    let mut child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let output = child.stdout.take().context("invariant: it is piped")?;
    let ready = wait(BufReader::new(output));
    let wall = meter::wall() - before;
    if ready.is_ok() {
        let numbers = named([
            ("ready_s", wall.as_secs_f64()),
            ("pid", f64::from(child.id())),
        ]);
        println!("{}", contest::to_json(&numbers));
        std::io::stdin().read_to_end(&mut Vec::new())?;
    }
    child.kill()?;
    child.wait()?;
    ready
}

fn wait(mut output: impl BufRead) -> anyhow::Result<()> {
    let mut line = String::new();
    let path = loop {
        line.clear();
        ensure!(output.read_line(&mut line)? > 0, "the server ended");
        if let Some(path) = line.strip_prefix("kubeconfig ") {
            break path.trim_end();
        }
    };
    let target = Target::from_file(path)?;
    block_on(async {
        let mut wire = target.connect().await?;
        let (status, _) = wire.request("GET", "/readyz", b"").await?;
        ensure!(status == 200, "/readyz: {status}");
        Ok(())
    })
}

//! Measures windlass and its peers: same data, same machine, same run.
//!
//! Every contestant is a process of its own that prints its figures as lines of JSON. Windlass's
//! own are commands of the package `windlass-bench`; the peers live under `bench/peers`. What is
//! printed is a table and, as the last line, one JSON object.

mod abuse;
mod claims;
pub(crate) mod contestant;
mod doc;
mod informer;
mod list;
pub(crate) mod process;
mod queue;
mod replicaset;
mod report;
mod rows;
mod server;

use std::process::ExitCode;

use anyhow::bail;

const USAGE: &str = "\
usage: cargo xtask bench NAME [--peers]

  abuse       one user's requests while another attacks the server; `abuse --help` says more;
              the peer needs `cargo xtask envtest build`
  claims      pods that get devices, in one process
  doc         pods held as `Doc`s, as k8s-openapi structs and as serde_json values
  list        a list of pods read over HTTP; the peers need Go
  queue       work queues; the peer needs Go
  replicaset  pods made by their controller; the peers need `cargo xtask envtest build`
  server      the API server under load; the peer needs `cargo xtask envtest build`
  informer    caches of a real API server's pods; needs Go and `cargo xtask envtest build`

--peers adds the peers that need more than Cargo, and the ratios to them. A ratio is always
windlass divided by the peer, in windlass's worst configuration against the peer's best.";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let report = match words.as_slice() {
        ["abuse", rest @ ..] => abuse::run(rest)?,
        ["claims"] => claims::run()?,
        ["doc"] | ["doc", "--peers"] => doc::run()?,
        ["list"] => list::run(false)?,
        ["list", "--peers"] => list::run(true)?,
        ["queue"] => queue::run(false)?,
        ["queue", "--peers"] => queue::run(true)?,
        ["replicaset"] => replicaset::run(false)?,
        ["replicaset", "--peers"] => replicaset::run(true)?,
        ["server"] => server::run(false)?,
        ["server", "--peers"] => server::run(true)?,
        ["informer", "--peers"] => informer::run()?,
        ["informer"] => bail!("windlass has no figures here yet; see --peers\n{USAGE}"),
        _ => bail!(USAGE),
    };
    report.print()?;
    Ok(ExitCode::SUCCESS)
}

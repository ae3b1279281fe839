//! `windlass test`: a fresh cluster in memory, a command that uses it, and the end of both.

mod cluster;
mod explore;
mod objects;
mod program;
mod report;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use windlass_faults::FaultRule;

use crate::up;
use cluster::TestCluster;
use program::Program;

/// Options of `test`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Controllers to run: "*" for all, "name" for one, "-name" for all but one; none by default.
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    controllers: Vec<String>,
    /// How many nodes there are, if controllers run. No container runs on them.
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    nodes: usize,
    /// Files or directories with CustomResourceDefinitions, which are applied first.
    #[arg(long, value_name = "PATH")]
    crds: Vec<PathBuf>,
    /// Files or directories with objects that are applied before the command starts.
    #[arg(long, value_name = "FILE")]
    apply: Vec<PathBuf>,
    /// A fault: drop, lose, duplicate, delay=DURATION, status=CODE or cut=EVENTS, and the requests
    /// that it meets, as in "lose,verb=create,resource=pods,agent=manager,at=2".
    #[arg(long = "fault", value_name = "RULE")]
    faults: Vec<FaultRule>,
    /// Write what happened to a file, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Let suites of envtest start clusters of their own from KUBEBUILDER_ASSETS, in place of
    /// USE_EXISTING_CLUSTER=true.
    #[arg(long)]
    own_clusters: bool,
    /// Run the command once for every fault at every request, and tell which of them break it.
    #[arg(long)]
    explore: bool,
    #[command(flatten)]
    exploration: explore::Options,
    /// End the command after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// The command and its arguments, after "--".
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs a command on a fresh cluster, and returns its exit code.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    up::runtime()?.block_on(async {
        match arguments.explore {
            true => explore::run(arguments).await,
            false => once(arguments).await,
        }
    })
}

async fn once(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let cluster = TestCluster::start(arguments, arguments.faults.clone()).await?;
    let program = Program {
        words: &arguments.command,
        variables: cluster.variables(),
        timeout: arguments.timeout.map(Duration::from_secs),
        is_captured: false,
    };
    let ended = program.run().await;
    if let (Some(path), Ok(ended)) = (&arguments.report, &ended) {
        let report = report::of(arguments, &cluster, ended).await?;
        let text = report.to_json_pretty() + "\n";
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    cluster.stop().await;
    let ended = ended?;
    if ended.is_timed_out {
        eprintln!("windlass: the command was ended after its time was up");
    }
    Ok(ExitCode::from(ended.code))
}

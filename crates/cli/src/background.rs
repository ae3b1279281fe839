//! A cluster in the background: `up --detach`, `status`, `down`.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};

use crate::held::Holder;

/// What the process in the background says.
const LOG_FILE: &str = "windlass.log";

/// How long a cluster may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// Options of `status` and `down`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The data directory of the cluster.
    #[arg(
        long,
        env = "WINDLASS_DATA",
        value_name = "DIR",
        default_value = ".windlass"
    )]
    data: PathBuf,
}

impl Arguments {
    /// Says whether the cluster runs; fails if it does not.
    pub(crate) fn status(&self) -> anyhow::Result<()> {
        let holder = self.holder()?;
        let pid = holder.pid.map_or("?".to_owned(), |pid| pid.to_string());
        println!("running as process {pid}");
        println!("serving {}", holder.url);
        println!("kubeconfig {}", holder.kubeconfig.display());
        Ok(())
    }

    /// Ends the cluster and waits until it has ended.
    pub(crate) fn down(&self) -> anyhow::Result<()> {
        let pid = self.holder()?.pid.and_then(Pid::from_raw);
        let pid = pid.context("the process that runs the cluster has not said its number yet")?;
        kill_process(pid, Signal::TERM).context("cannot end the process")?;
        anyhow::ensure!(
            Holder::wait_for_end(&self.data, END_TIMEOUT)?,
            "process {} was told to end and still runs",
            pid.as_raw_nonzero()
        );
        println!("stopped");
        Ok(())
    }

    fn holder(&self) -> anyhow::Result<Holder> {
        let holder = Holder::of(&self.data)?;
        holder.with_context(|| {
            let data = self.data.display();
            format!("no cluster runs in {data}; start one with `windlass up`")
        })
    }
}

/// Starts this program again without `--detach`, and returns when it serves.
pub(crate) fn detach(data: &Path) -> anyhow::Result<()> {
    windlass_server::make_directory(data)
        .with_context(|| format!("cannot use data directory {}", data.display()))?;
    let path = data.join(LOG_FILE);
    windlass_server::write_private_file(&path, b"")?;
    let log = File::options().append(true).open(&path)?;
    let words = std::env::args_os()
        .skip(1)
        .filter(|word| word != "--detach");
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    let stdout = child.stdout.take().context("invariant: it was piped")?;
    let mut is_serving = false;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        let _ = writeln!(std::io::stdout(), "{line}");
        is_serving |= line.starts_with("serving ");
        // The hints end with an empty line.
        if line.is_empty() {
            break;
        }
    }
    if !is_serving {
        let log = std::fs::read_to_string(&path).unwrap_or_default();
        let last = log.lines().next_back().unwrap_or("it said nothing");
        anyhow::bail!("{}", last.strip_prefix("windlass: ").unwrap_or(last));
    }
    println!(
        "running as process {}; end it with `windlass down`",
        child.id()
    );
    Ok(())
}

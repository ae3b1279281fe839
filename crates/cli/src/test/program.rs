//! The command of a test: started with the variables of its cluster, sent the signals that this
//! program gets, and waited for.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// The time that a command has after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Bytes of the output that are kept: the last ones.
const OUTPUT_BYTES_LIMIT: usize = 64 << 10;

/// A command to run.
pub(super) struct Program<'a> {
    /// The command and its arguments.
    pub(super) words: &'a [OsString],
    /// Variables for its environment.
    pub(super) variables: Vec<(&'static str, PathBuf)>,
    /// The time after which it is ended.
    pub(super) timeout: Option<Duration>,
    /// True if its output is kept in place of shown.
    pub(super) is_captured: bool,
}

/// A command that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The exit code; 128 and the number of the signal that ended it.
    pub(super) code: u8,
    /// The end of its output, if it was kept.
    pub(super) output: String,
    /// True if its time was up.
    pub(super) is_timed_out: bool,
    /// The time that it took.
    pub(super) took: Duration,
}

/// The process of a command, for signals.
#[derive(Clone, Copy)]
struct Target {
    pid: Pid,
    /// True if the command leads a process group of its own.
    is_group: bool,
}

impl Target {
    fn send(self, signal: Signal) {
        // A process that is gone needs no signal.
        let _ = match self.is_group {
            true => kill_process_group(self.pid, signal),
            false => kill_process(self.pid, signal),
        };
    }
}

impl Program<'_> {
    /// Runs the command to its end.
    pub(super) async fn run(&self) -> anyhow::Result<Ended> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // Ctrl-C of a terminal reaches the command without us, as long as it is in our group.
        let is_group = self.is_captured || !std::io::stdin().is_terminal();
        let mut child = self.spawn(is_group)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid
            .and_then(Pid::from_raw)
            .context("the command has no process")?;
        let target = Target { pid, is_group };
        let started = Instant::now();
        let deadline = self.timeout.map(|timeout| started + timeout);
        let output = tokio::spawn(collect(child.stdout.take(), child.stderr.take()));
        let (mut is_timed_out, mut kill_at) = (false, None);
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                _ = terminate.recv() => target.send(Signal::TERM),
                _ = interrupt.recv() => if is_group { target.send(Signal::INT) },
                () = until(deadline), if !is_timed_out => {
                    is_timed_out = true;
                    kill_at = Some(Instant::now() + GRACE);
                    target.send(Signal::TERM);
                }
                () = until(kill_at), if kill_at.is_some() => {
                    kill_at = None;
                    target.send(Signal::KILL);
                }
            }
        };
        let took = started.elapsed();
        if self.is_captured {
            // What the command left running would keep the output open, and use the next cluster.
            target.send(Signal::KILL);
        }
        Ok(Ended {
            code: code(status),
            output: output.await.unwrap_or_default(),
            is_timed_out,
            took,
        })
    }

    fn spawn(&self, is_group: bool) -> anyhow::Result<Child> {
        let (first, rest) = self.words.split_first().context("no command was given")?;
        let mut command = Command::new(first);
        command.args(rest).kill_on_drop(true);
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        if is_group {
            command.process_group(0);
        }
        if self.is_captured {
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        }
        let child = command.spawn();
        child.with_context(|| format!("cannot run {}", first.to_string_lossy()))
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The exit code of a process, as a shell gives it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code();
    let code = code.or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The end of what a command writes to its output and to its errors.
async fn collect<A, B>(output: Option<A>, errors: Option<B>) -> String
where
    A: AsyncRead + Unpin,
    B: AsyncRead + Unpin,
{
    let (output, errors) = tokio::join!(last_bytes(output), last_bytes(errors));
    let mut text = String::from_utf8_lossy(&output).into_owned();
    text += &String::from_utf8_lossy(&errors);
    text
}

async fn last_bytes(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut from) = from else {
        return kept;
    };
    let mut piece = vec![0; 8 << 10];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        kept.extend_from_slice(&piece[..read]);
        if kept.len() > 2 * OUTPUT_BYTES_LIMIT {
            kept.drain(..kept.len() - OUTPUT_BYTES_LIMIT);
        }
    }
    let first = kept.len().saturating_sub(OUTPUT_BYTES_LIMIT);
    kept.split_off(first)
}

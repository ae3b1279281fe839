//! The binary as a test uses it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// The binary with some words, in an environment that names no cluster.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(words).env_remove("KUBECONFIG");
    command.env_remove("RUST_LOG");
    command
}

/// Runs the binary to its end.
pub(crate) fn run(words: &[&str]) -> Outcome {
    command(words).output().unwrap().into()
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// It succeeded, and this is what it printed.
    pub(crate) fn succeed(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// It succeeded and printed just this.
    pub(crate) fn expect(self, stdout: &str) {
        assert_eq!(self.succeed(), stdout);
    }

    /// It failed and said just this.
    pub(crate) fn fails(self, stderr: &str) {
        assert_eq!((self.code, self.stderr.as_str()), (1, stderr));
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The binary as a server, and as its client.
pub(crate) struct Binary {
    child: Child,
    kubeconfig: PathBuf,
    _data: TempDir,
}

impl Binary {
    /// Starts `up` or `server` in a fresh directory and waits until it serves.
    pub(crate) async fn start(word: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("data");
        let mut child = command(&[word, "--data", path.to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let line = tokio::task::spawn_blocking(|| {
            let lines = BufReader::new(stdout).lines();
            let mut lines = lines.map(Result::unwrap);
            lines.find(|line| line.starts_with("kubeconfig "))
        });
        let line = line.await.unwrap().unwrap();
        Self {
            child,
            kubeconfig: line.strip_prefix("kubeconfig ").unwrap().into(),
            _data: data,
        }
    }

    /// The file that says how to reach this server.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A command on this server.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = command(words);
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// A command on this server that a test follows while it runs. It ends with the test.
    pub(crate) fn tokio_command(&self, words: &[&str]) -> tokio::process::Command {
        let mut command = tokio::process::Command::from(self.command(words));
        command.kill_on_drop(true);
        command
    }

    /// Runs a command on this server to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Outcome {
        self.command(words).output().unwrap().into()
    }

    /// Ends the server.
    pub(crate) fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

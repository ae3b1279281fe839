//! A running server that can be killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use windlass_client::{Config, DynamicClient, RestClient};

/// A running `windlass server` or `windlass up`. It is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    /// Where it listens, such as `127.0.0.1:1234`.
    pub(crate) address: String,
    pub(crate) kubeconfig: PathBuf,
}

impl Process {
    /// Starts a server on a data directory and an address, and returns when it serves.
    pub(crate) async fn start(data: &Path, listen: &str) -> Self {
        Self::run(data, &["server", "--listen", listen]).await
    }

    /// Starts a server with controllers, and returns when it serves.
    pub(crate) async fn up(data: &Path, flags: &[&str]) -> Self {
        Self::run(data, &[&["up"], flags].concat()).await
    }

    async fn run(data: &Path, words: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(words)
            .arg("--data")
            .arg(data)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let serving = lines.next_line().await.unwrap().expect("it serves");
        let address = serving.strip_prefix("serving https://").unwrap().to_owned();
        let line = lines.next_line().await.unwrap().unwrap();
        let kubeconfig = line.strip_prefix("kubeconfig ").unwrap().into();
        Self {
            child,
            address,
            kubeconfig,
        }
    }

    /// A client with a connection of its own and without a limit of its own.
    pub(crate) async fn client(&self) -> DynamicClient {
        let config = Config::from_file(&self.kubeconfig).await.unwrap();
        let rest = RestClient::connect(&config.rate_limit(None)).await.unwrap();
        DynamicClient::new(rest)
    }

    /// Kills it with a signal that cannot be caught, and returns when it is gone.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

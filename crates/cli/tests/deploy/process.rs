//! The controllers as a process, and its log.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windlass_core::Doc;

/// How long a line of the log may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `windlass`. It is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    log: Arc<Log>,
    reader: Option<JoinHandle<()>>,
}

/// The lines so far, and who waits for more.
#[derive(Default)]
struct Log {
    lines: Mutex<Vec<String>>,
    grown: Condvar,
}

impl Process {
    pub(crate) fn start(words: &[String], kubeconfig: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(words)
            .env("KUBECONFIG", kubeconfig)
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Log::default());
        let (stderr, writing) = (child.stderr.take().unwrap(), log.clone());
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                writing.lines.lock().unwrap().push(line.unwrap());
                writing.grown.notify_all();
            }
        });
        Self {
            child,
            log,
            reader: Some(reader),
        }
    }

    /// Waits until the process has said where it serves something.
    fn address(&self, what: &str) -> String {
        let message = format!("Serving {what}");
        let address = |lines: &Vec<String>| {
            let mut lines = lines
                .iter()
                .filter_map(|line| Doc::parse(line.as_bytes()).ok());
            let line = lines.find(|line| line.str_at("/msg") == message);
            line.map(|line| line.str_at("/address").to_owned())
        };
        let lines = self.log.lines.lock().unwrap();
        let is_missing = |lines: &mut Vec<String>| address(lines).is_none();
        let waited = self
            .log
            .grown
            .wait_timeout_while(lines, PATIENCE, is_missing);
        let (lines, _) = waited.unwrap();
        address(&lines).unwrap_or_else(|| panic!("{message} is missing in {lines:?}"))
    }

    /// Gets a page as nobody in particular.
    pub(crate) async fn get(&self, what: &str, path: &str) -> String {
        self.get_with(what, path, "").await
    }

    /// Gets a page with a bearer token.
    pub(crate) async fn get_as(&self, token: &str, what: &str, path: &str) -> String {
        let header = format!("Authorization: Bearer {token}\r\n");
        self.get_with(what, path, &header).await
    }

    async fn get_with(&self, what: &str, path: &str, header: &str) -> String {
        let address = self.address(what);
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{header}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Ends the process in order and returns its log.
    pub(crate) fn terminate(&mut self) -> String {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status();
        assert!(told.unwrap().success());
        assert!(self.child.wait().unwrap().success());
        self.reader.take().unwrap().join().unwrap();
        self.log.lines.lock().unwrap().join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

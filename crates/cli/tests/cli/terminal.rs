//! What is live, on a terminal: what a person sees there, and what Ctrl-C does.

use std::num::NonZero;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use pty_process::{Command, Pty, Size};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use tokio::time::timeout;

use super::common::{Binary, Outcome};

const ROWS: NonZero<u16> = NonZero::new(30).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(100).unwrap();

/// What a terminal sends for Ctrl-C.
const CTRL_C: &[u8] = b"\x03";

/// How long something may take that takes no time on a machine that is not busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program on a terminal, and what is on its screen.
struct Terminal {
    pty: Pty,
    child: Child,
    screen: vt100::Parser,
}

impl Terminal {
    /// Starts the binary on a terminal of its own.
    fn start(words: &[&str], change: impl FnOnce(Command) -> Command) -> Self {
        let (pty, pts) = pty_process::open().unwrap();
        pty.resize(Size::new(ROWS.get(), COLUMNS.get())).unwrap();
        // Whoever runs the tests in the background may have turned Ctrl-C off for everything.
        let command = Command::new("env")
            .arg("--default-signal=INT")
            .arg(env!("CARGO_BIN_EXE_windlass"))
            .args(words)
            .env_remove("KUBECONFIG")
            .env_remove("RUST_LOG")
            .kill_on_drop(true);
        Self {
            child: change(command).spawn(pts).unwrap(),
            pty,
            screen: vt100::Parser::new(ROWS, COLUMNS, 0),
        }
    }

    /// Takes in what the program writes until the screen is as expected.
    async fn until(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let looking = async {
            let mut bytes = [0; 4096];
            loop {
                let contents = self.screen.screen().contents();
                if is_there(&contents) {
                    return contents;
                }
                let read = self.pty.read(&mut bytes).await.unwrap_or(0);
                assert_ne!(read, 0, "it ended, but {what} is not there:\n{contents}");
                self.screen.process(&bytes[..read]);
            }
        };
        let seen = timeout(PATIENCE, looking).await;
        seen.unwrap_or_else(|_| {
            let contents = self.screen.screen().contents();
            panic!("{what} does not come:\n{contents}")
        })
    }

    async fn press(&mut self, keys: &[u8]) {
        self.pty.write_all(keys).await.unwrap();
    }

    async fn ended(mut self) -> ExitStatus {
        let ended = timeout(PATIENCE, self.child.wait()).await;
        ended.expect("it ends").unwrap()
    }
}

/// The lines of a screen that begin with some text.
fn lines<'a>(screen: &'a str, start: &str) -> Vec<&'a str> {
    let lines = screen.lines().map(str::trim_end);
    lines.filter(|line| line.starts_with(start)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demonstration_is_drawn_in_place_and_ends_with_ctrl_c() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let kubeconfig = data.join("kubeconfig");
    let words = ["up", "--demo", "--memory", "--data", data.to_str().unwrap()];
    let mut terminal = Terminal::start(&words, |command| command);
    let settled = |screen: &str| screen.contains("Ctrl-C ends the cluster");
    let screen = terminal
        .until("the end of the demonstration", settled)
        .await;
    assert!(screen.starts_with("serving https://127.0.0.1:"), "{screen}");
    for line in ["deployment/demo-train", "deployment/demo-web"] {
        assert_eq!(lines(&screen, line).len(), 1, "drawn in place:\n{screen}");
    }
    assert!(
        lines(&screen, "deployment/demo-web")[0].ends_with("3/3 ready"),
        "{screen}"
    );
    let pods = lines(&screen, "  pod/demo-web-");
    assert_eq!(pods.len(), 3, "{screen}");
    assert!(
        pods.iter().all(|pod| pod.contains("Ready on pretend-")),
        "{screen}"
    );
    let pods = lines(&screen, "  pod/demo-train-");
    assert_eq!(pods.len(), 2, "{screen}");
    assert!(
        pods.iter().all(|pod| pod.contains(" with gpu-")),
        "{screen}"
    );

    // It stays live.
    let scaled: Outcome = super::common::command(&["scale", "deployment/demo-web", "--replicas=5"])
        .env("KUBECONFIG", &kubeconfig)
        .output()
        .unwrap()
        .into();
    scaled.expect("deployment.apps/demo-web scaled\n");
    let grown = |screen: &str| screen.contains("5/5 ready");
    let screen = terminal.until("five pods", grown).await;
    assert_eq!(lines(&screen, "deployment/demo-web").len(), 1, "{screen}");

    terminal.press(CTRL_C).await;
    let ending = |screen: &str| screen.contains("ending; interrupt again to end at once");
    terminal.until("the answer to Ctrl-C", ending).await;
    assert_eq!(terminal.ended().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demonstration_writes_lines_where_there_is_no_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let words = ["up", "--demo", "--memory", "--detach", "--data", data];
    let text = super::common::run(&words).succeed();
    super::common::run(&["down", "--data", data]).expect("stopped\n");
    assert!(!text.contains('\x1b'), "{text}");
    for part in [
        "\ndeployment/demo-web 3/3 ready\n",
        "\ndeployment/demo-train 2/2 ready\n",
        "\nas it shall be after ",
        "\nCtrl-C ends the cluster\n",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    assert!(
        text.lines()
            .any(|line| line.starts_with("pod/demo-train-") && line.contains("gpu-"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_shows_changes_until_ctrl_c() {
    let cluster = Binary::start("up").await;
    let kubeconfig = cluster.kubeconfig().to_owned();
    let mut terminal = Terminal::start(&["get", "deployments", "-w"], |command| {
        command.env("KUBECONFIG", kubeconfig)
    });
    let manifest = super::commands::DEPLOYMENT;
    super::commands::with_input(&cluster, &["apply", "-f", "-"], manifest).succeed();
    let ready = |screen: &str| screen.contains("2/2");
    let screen = terminal.until("the ready Deployment", ready).await;
    let first = screen.lines().next().unwrap().trim_end();
    assert_eq!(first, "NAME   READY   UP-TO-DATE   AVAILABLE   AGE");
    assert!(
        lines(&screen, "web ").len() > 1,
        "one line for each change:\n{screen}"
    );
    terminal.press(CTRL_C).await;
    // Which a shell calls 130, as it does of kubectl.
    assert_eq!(terminal.ended().await.signal(), Some(2));
}

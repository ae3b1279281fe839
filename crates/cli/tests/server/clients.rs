//! The clients that people use, each with its own habits, follow the pods of a namespace through a
//! thousand changes and a restart of the server, and miss none.
//!
//! client-go and the Python client are programs of their own, built here. Where their language is
//! missing their test says so and passes, unless `WINDLASS_REQUIRE_CLIENTS` is set.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube_client::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_runtime::WatchStreamExt as _;
use kube_runtime::watcher::{self, Event, InitialListStrategy, watcher};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use windlass_client::{DeleteOptions, DynamicApi, WriteOptions};
use windlass_core::{Doc, Gvr, doc};

use crate::process::Process;

const CHANGES: usize = 1000;
/// Pods that come and go.
const NAMES: usize = 10;
/// Pods that are there before anybody looks.
const FIRST: usize = 5;
/// A client that has heard nothing for so long has missed something. Generous: client-go waits up
/// to half a minute before it tries again.
const SILENCE_LIMIT: Duration = Duration::from_secs(90);

const PODS: Gvr = Gvr::constant("", "v1", "pods");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_go_informer_misses_nothing() {
    if !is_there("go").await {
        return;
    }
    let program = build_go().await;
    follow(|server| Client::program(Command::new(&program).arg("follow"), server)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_python_watch_misses_nothing() {
    if !is_there("python3").await {
        return;
    }
    let python = make_python().await;
    let script = peers().join("python/follow.py");
    follow(|server| Client::program(Command::new(&python).arg(&script).arg("default"), server))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kube_rs_watcher_misses_nothing() {
    follow(|server| Client::kube_rs(server, InitialListStrategy::ListWatch)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kube_rs_watcher_with_a_streaming_list_misses_nothing() {
    follow(|server| Client::kube_rs(server, InitialListStrategy::StreamingList)).await;
}

/// Changes pods before and after a restart, and compares what the client saw with what was done.
async fn follow(start: impl FnOnce(&Process) -> Client) {
    let data = tempfile::tempdir().unwrap();
    let server = Process::start(data.path(), "127.0.0.1:0").await;
    let address = server.address.clone();
    let mut changer = Changer::new(&server).await;
    for index in 0..FIRST {
        changer.create(&format!("first-{index}")).await;
    }
    let mut client = start(&server);
    client.saw_in_any_order(changer.take()).await;
    for _ in 0..CHANGES / 2 {
        changer.change().await;
    }
    // Half of the changes may be on their way when the server dies.
    server.kill().await;
    let server = Process::start(data.path(), &address).await;
    changer.reconnect(&server).await;
    for _ in CHANGES / 2..CHANGES {
        changer.change().await;
    }
    changer.create("last").await;
    client.saw(&changer.take()).await;
}

/// Makes changes and notes them as clients should see them.
struct Changer {
    api: DynamicApi,
    /// What each name stands for at present.
    pods: Vec<Option<Doc>>,
    /// Changes so far.
    steps: usize,
    /// What a client should have seen since the last time it was asked.
    expected: Vec<String>,
}

impl Changer {
    async fn new(server: &Process) -> Self {
        Self {
            api: server.client().await.resource(PODS).namespaced("default"),
            pods: vec![None; NAMES],
            steps: 0,
            expected: Vec::new(),
        }
    }

    async fn reconnect(&mut self, server: &Process) {
        self.api = server.client().await.resource(PODS).namespaced("default");
    }

    /// Creates, changes or deletes one of the pods.
    async fn change(&mut self) {
        let (round, index) = (self.steps / NAMES, self.steps % NAMES);
        self.steps += 1;
        let name = format!("pod-{index}");
        self.pods[index] = match self.pods[index].take() {
            None => Some(self.create(&name).await),
            Some(pod) if round % 5 == 4 => {
                self.delete(&name, &pod).await;
                None
            }
            Some(pod) => Some(self.label(&pod).await),
        };
    }

    async fn create(&mut self, name: &str) -> Doc {
        let pod = doc!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
            "spec": { "containers": [{ "name": "c", "image": "nginx" }] }
        });
        let options = WriteOptions::default();
        let pod = self.api.create(&pod, &options).await.unwrap();
        self.note("ADDED", &pod);
        pod
    }

    async fn label(&mut self, pod: &Doc) -> Doc {
        let pod = pod.with(
            "/metadata/labels",
            doc!({ "step": (self.steps.to_string()) }),
        );
        let options = WriteOptions::default();
        let pod = self.api.update(&pod.unwrap(), &options).await.unwrap();
        self.note("MODIFIED", &pod);
        pod
    }

    /// Deletes a pod that runs nowhere, and so goes at once.
    async fn delete(&mut self, name: &str, pod: &Doc) {
        let options = DeleteOptions::uid(pod.meta().uid().as_str());
        self.api.delete(name, &options).await.unwrap();
        // The answer to a deletion does not tell its revision.
        self.expected.push(format!("DELETED {name}"));
    }

    fn note(&mut self, word: &str, pod: &Doc) {
        let (name, revision) = (pod.meta().name(), pod.meta().resource_version());
        self.expected.push(format!("{word} {name} {revision}"));
    }

    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.expected)
    }
}

/// A client that tells what it sees, one line per object or event: what happened, name, revision.
struct Client {
    lines: mpsc::Receiver<String>,
    task: JoinHandle<()>,
}

impl Client {
    /// A program that prints the lines.
    fn program(command: &mut Command, server: &Process) -> Self {
        let mut child = command
            .env("KUBECONFIG", &server.kubeconfig)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self::new(|lines| async move {
            while let Some(line) = output.next_line().await.unwrap() {
                lines.send(line).await.unwrap();
            }
            drop(child);
        })
    }

    /// The watcher of kube-rs, with the pauses that it makes by default after an error.
    fn kube_rs(server: &Process, strategy: InitialListStrategy) -> Self {
        let kubeconfig = Kubeconfig::read_from(&server.kubeconfig).unwrap();
        Self::new(move |lines| async move {
            let options = KubeConfigOptions::default();
            let config = kube_client::Config::from_custom_kubeconfig(kubeconfig, &options);
            let client = kube_client::Client::try_from(config.await.unwrap()).unwrap();
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
            let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
            let config = watcher::Config {
                initial_list_strategy: strategy,
                ..watcher::Config::default()
            };
            let mut events = Box::pin(watcher(api, config).default_backoff());
            let mut known = std::collections::BTreeSet::new();
            while let Some(event) = events.next().await {
                // An error is a broken connection; the watcher goes on by itself.
                let Ok(event) = event else { continue };
                let (word, pod) = match event {
                    Event::Init | Event::InitDone => continue,
                    Event::InitApply(pod) => ("ADDED", pod),
                    Event::Apply(pod) => ("APPLIED", pod),
                    Event::Delete(pod) => ("DELETED", pod),
                };
                let name = pod.metadata.name.unwrap_or_default();
                // It does not tell new from changed, but whoever follows it can.
                let word = match word {
                    "APPLIED" if known.contains(&name) => "MODIFIED",
                    "APPLIED" => "ADDED",
                    word => word,
                };
                match word {
                    "DELETED" => known.remove(&name),
                    _ => known.insert(name.clone()),
                };
                let revision = pod.metadata.resource_version.unwrap_or_default();
                if lines
                    .send(format!("{word} {name} {revision}"))
                    .await
                    .is_err()
                {
                    return;
                }
            }
        })
    }

    fn new<F>(run: impl FnOnce(mpsc::Sender<String>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, lines) = mpsc::channel(CHANGES * 2);
        Self {
            lines,
            task: tokio::spawn(run(sender)),
        }
    }

    /// Expects these lines next. What is there before a client looks has no order.
    async fn saw_in_any_order(&mut self, mut expected: Vec<String>) {
        while !expected.is_empty() {
            let line = self.next(&expected[0]).await;
            let position = expected.iter().position(|expected| *expected == line);
            expected.remove(position.unwrap_or_else(|| panic!("{line:?} was seen")));
        }
    }

    async fn next(&mut self, expected: &str) -> String {
        let line = tokio::time::timeout(SILENCE_LIMIT, self.lines.recv()).await;
        let line = line.unwrap_or_else(|_| panic!("{expected:?} was not seen"));
        line.unwrap_or_else(|| panic!("it ended before {expected:?}"))
    }

    /// Expects these lines next, in this order and without others between them.
    async fn saw(&mut self, expected: &[String]) {
        for expected in expected {
            let line = self.next(expected).await;
            let is_same = match expected.strip_prefix("DELETED ") {
                Some(name) => line.starts_with(&format!("DELETED {name} ")),
                None => line == *expected,
            };
            assert!(is_same, "{line:?} was seen instead of {expected:?}");
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whether a language is there; if it must be, its absence fails the test.
pub(crate) async fn is_there(program: &str) -> bool {
    let version = if program == "go" {
        "version"
    } else {
        "--version"
    };
    let output = Command::new(program).arg(version).output().await;
    let is_there = output.is_ok_and(|output| output.status.success());
    let is_required = std::env::var_os("WINDLASS_REQUIRE_CLIENTS").is_some();
    assert!(is_there || !is_required, "{program} is missing");
    if !is_there {
        windlass_envtest::skip(&format_args!("{program} is missing"));
    }
    is_there
}

/// The directory of the clients' sources.
pub(crate) fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/peers")
}

/// A directory that outlives the test, so that what was built once is built no more.
pub(crate) fn built(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    std::fs::create_dir_all(&directory).unwrap();
    directory.join(name)
}

async fn build_go() -> PathBuf {
    let program = built("go-peer");
    let mut build = Command::new("go");
    build.current_dir(peers().join("go")).args(["build", "-o"]);
    succeed(build.arg(&program)).await;
    program
}

/// An environment with the packages that the script needs.
async fn make_python() -> PathBuf {
    let environment = built("python");
    let python = environment.join("bin/python");
    let requirements = peers().join("python/requirements.txt");
    let stamp = environment.join("requirements.txt");
    let wanted = std::fs::read(&requirements).unwrap();
    if std::fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return python;
    }
    succeed(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment),
    )
    .await;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--requirement"]);
    succeed(install.arg(&requirements)).await;
    std::fs::write(&stamp, wanted).unwrap();
    python
}

pub(crate) async fn succeed(command: &mut Command) {
    let status = command.status().await.unwrap();
    assert!(status.success(), "{command:?} ended with {status}");
}

//! The binary: it starts, can be used with the kubeconfig it writes, and ends when it is told to.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use windlass_client::{Config, DynamicApi, DynamicClient, RestClient, WatchOptions, WriteOptions};
use windlass_core::{Doc, Gvr, doc};

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const REPLICA_SETS: Gvr = Gvr::constant("apps", "v1", "replicasets");
const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");

/// A running binary.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    client: DynamicClient,
    kubeconfig: String,
}

impl Running {
    async fn start(data: &Path, command: &str) -> Self {
        Self::start_with(data, command, Stdio::inherit()).await
    }

    async fn start_with(data: &Path, command: &str, errors: Stdio) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args([command, "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let serving = lines.next_line().await.unwrap().unwrap();
        assert!(
            serving.starts_with("serving https://127.0.0.1:"),
            "{serving}"
        );
        let line = lines.next_line().await.unwrap().unwrap();
        let kubeconfig = line.strip_prefix("kubeconfig ").unwrap();
        Self {
            child,
            lines,
            client: connect(kubeconfig).await,
            kubeconfig: kubeconfig.to_owned(),
        }
    }

    fn api(&self, resource: Gvr) -> DynamicApi {
        self.client.resource(resource).namespaced("default")
    }

    async fn signal(&self, name: &str) {
        let id = self.child.id().unwrap().to_string();
        let status = Command::new("kill")
            .args([name, &id])
            .status()
            .await
            .unwrap();
        assert!(status.success());
    }
}

/// A client with a connection of its own.
async fn connect(kubeconfig: &str) -> DynamicClient {
    let config = Config::from_file(kubeconfig).await.unwrap();
    DynamicClient::new(RestClient::connect(&config).await.unwrap())
}

async fn create(api: &DynamicApi, object: &Doc) -> Doc {
    api.create(object, &WriteOptions::default()).await.unwrap()
}

fn config_map(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

#[tokio::test]
async fn a_replica_set_of_three_becomes_three_pods() {
    let data = tempfile::tempdir().unwrap();
    let running = Running::start(data.path(), "up").await;
    let mut watch = running
        .api(PODS)
        .watch(&WatchOptions::default())
        .await
        .unwrap();
    let set = doc!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "nginx" }] }
            }
        }
    });
    let set = create(&running.api(REPLICA_SETS), &set).await;
    for _ in 0..3 {
        let event = watch.next().await.unwrap().unwrap();
        let pod = event.object();
        assert!(pod.meta().name().starts_with("web-"));
        assert!(pod.meta().is_controlled_by(&set.meta().uid()));
    }
}

#[tokio::test]
async fn objects_and_kubeconfig_outlive_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let mut first = Running::start(data.path(), "server").await;
    let created = create(&first.api(CONFIG_MAPS), &config_map("a")).await;
    let token = std::fs::read_to_string(data.path().join("admin.token")).unwrap();
    first.signal("-KILL").await;
    first.child.wait().await.unwrap();
    let second = Running::start(data.path(), "server").await;
    assert_eq!(second.api(CONFIG_MAPS).get("a").await.unwrap(), created);
    assert_eq!(
        std::fs::read_to_string(data.path().join("admin.token")).unwrap(),
        token
    );
    let next = create(&second.api(CONFIG_MAPS), &config_map("b")).await;
    assert!(
        next.meta().revision() > created.meta().revision(),
        "no revision comes twice"
    );
}

#[tokio::test]
async fn a_signal_ends_it_in_order() {
    for signal in ["-INT", "-TERM"] {
        let data = tempfile::tempdir().unwrap();
        let mut running = Running::start(data.path(), "up").await;
        let hint = running.lines.next_line().await.unwrap().unwrap();
        assert!(hint.starts_with("try: kubectl --kubeconfig "), "{hint}");
        running.signal(signal).await;
        assert!(running.child.wait().await.unwrap().success());
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let data = tempfile::tempdir().unwrap();
    let mut running = Running::start_with(data.path(), "up", Stdio::piped()).await;
    let mut errors = BufReader::new(running.child.stderr.take().unwrap()).lines();
    // Someone who has connected and says nothing keeps the server from ending in order. Whoever
    // connects later is answered, so that the first was let in.
    let text = std::fs::read_to_string(&running.kubeconfig).unwrap();
    let address = text.split("https://").nth(1).unwrap().split_whitespace();
    let address = address.into_iter().next().unwrap().trim_matches('"');
    let silent = TcpStream::connect(address).await.unwrap();
    let later = connect(&running.kubeconfig).await;
    let maps = later.resource(CONFIG_MAPS).namespaced("default");
    create(&maps, &config_map("a")).await;

    running.signal("-INT").await;
    loop {
        let line = errors.next_line().await.unwrap().unwrap();
        if line.contains("interrupt again to end at once") {
            break;
        }
    }
    running.signal("-INT").await;
    assert_eq!(running.child.wait().await.unwrap().code(), Some(130));
    drop(silent);

    let again = Running::start(data.path(), "server").await;
    assert!(again.api(CONFIG_MAPS).get("a").await.is_ok());
}

#[cfg(unix)]
#[tokio::test]
async fn secrets_on_disk_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let data = tempfile::tempdir().unwrap();
    let dir = data.path().join("inside");
    let _running = Running::start(&dir, "server").await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn other_machines_are_let_in_only_on_demand() {
    let data = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["up", "--listen", "0.0.0.0:0", "--data"])
        .arg(data.path())
        .output()
        .await
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("--allow-remote"), "{text}");
}

#[tokio::test]
async fn two_servers_do_not_share_a_directory() {
    let data = tempfile::tempdir().unwrap();
    let _running = Running::start(data.path(), "server").await;
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["server", "--data"])
        .arg(data.path())
        .output()
        .await
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("is in use by process"), "{text}");
}

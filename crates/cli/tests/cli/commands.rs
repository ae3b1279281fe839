//! Each command of a client, on a server that the binary itself runs.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::timeout;

use super::common::{Binary, Outcome};

/// How long something may take that takes no time on a machine that is not busy.
const PATIENCE: Duration = Duration::from_secs(60);

const CONFIG_MAP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  color: blue
";

pub(crate) const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: { app: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers: [{ name: web, image: nginx }]
";

async fn server() -> Binary {
    Binary::start("server").await
}

/// Runs a command with a manifest on its standard input.
pub(crate) fn with_input(server: &Binary, words: &[&str], text: &str) -> Outcome {
    let mut child = server
        .command(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    child.wait_with_output().unwrap().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_says_what_it_did() {
    let server = server().await;
    let applied = with_input(&server, &["apply", "-f", "-"], CONFIG_MAP);
    applied.expect("configmap/settings created\n");
    let applied = with_input(&server, &["apply", "-f", "-"], CONFIG_MAP);
    applied.expect("configmap/settings unchanged\n");
    let changed = CONFIG_MAP.replace("blue", "green");
    let applied = with_input(&server, &["apply", "-f", "-"], &changed);
    applied.expect("configmap/settings configured\n");
    let dry = with_input(&server, &["apply", "--dry-run", "-f", "-"], DEPLOYMENT);
    dry.expect("deployment.apps/web created (server dry run)\n");
    let shown = server.run(&["get", "cm/settings", "-o", "yaml"]).succeed();
    assert!(shown.contains("color: green\n"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_reads_files_directories_and_lists() {
    let server = server().await;
    let directory = tempfile::tempdir().unwrap();
    let two = format!("{CONFIG_MAP}---\n{DEPLOYMENT}");
    std::fs::write(directory.path().join("a.yaml"), two).unwrap();
    let list = r#"{"apiVersion":"v1","kind":"List","items":[
        {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}}]}"#;
    std::fs::write(directory.path().join("b.json"), list).unwrap();
    std::fs::write(directory.path().join("notes.txt"), "not a manifest").unwrap();
    let path = directory.path().to_str().unwrap();
    server.run(&["apply", "-f", path]).expect(
        "configmap/settings created\ndeployment.apps/web created\nnamespace/team created\n",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_object_does_not_keep_the_others_back() {
    let server = server().await;
    let text = format!(
        "apiVersion: example.com/v1\nkind: Foo\nmetadata: {{ name: x }}\n---\n{CONFIG_MAP}"
    );
    let outcome = with_input(&server, &["apply", "-f", "-"], &text);
    assert_eq!(outcome.stdout, "configmap/settings created\n");
    assert_eq!(
        outcome.stderr,
        "standard input: no matches for kind \"Foo\" in version \"example.com/v1\"; if it is a \
         custom resource, apply its CustomResourceDefinition first\n\
         windlass: 1 of 2 objects were not applied\n"
    );
    assert_eq!(outcome.code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn get_prints_tables() {
    let server = server().await;
    with_input(&server, &["apply", "-f", "-"], DEPLOYMENT).succeed();
    let table = server.run(&["get", "deploy"]).succeed();
    let mut lines = table.lines();
    assert_eq!(
        lines.next(),
        Some("NAME   READY   UP-TO-DATE   AVAILABLE   AGE")
    );
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("web    0/2     0            0           ")
    );
    let wide = server
        .run(&["get", "deploy", "web", "-o", "wide"])
        .succeed();
    assert!(
        wide.lines()
            .next()
            .unwrap()
            .ends_with("AGE   CONTAINERS   IMAGES   SELECTOR")
    );
    let names = server
        .run(&["get", "deployments,namespaces", "-o", "name"])
        .succeed();
    assert_eq!(
        names,
        "deployment.apps/web\nnamespace/default\nnamespace/kube-node-lease\n\
         namespace/kube-public\nnamespace/kube-system\n"
    );
    let bare = server
        .run(&["get", "ns", "default", "--no-headers"])
        .succeed();
    assert!(bare.starts_with("default   Active   "), "{bare}");
    let everywhere = server.run(&["get", "deploy", "-A"]).succeed();
    assert!(
        everywhere.starts_with("NAMESPACE   NAME   READY"),
        "{everywhere}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn get_prints_whole_objects() {
    let server = server().await;
    with_input(&server, &["apply", "-f", "-"], CONFIG_MAP).succeed();
    let json = server.run(&["get", "cm/settings", "-o", "json"]).succeed();
    let object = windlass_core::Doc::parse(json.as_bytes()).unwrap();
    assert_eq!(object.str_at("/data/color"), "blue");
    assert!(object.at("/metadata/managedFields").is_null());
    let yaml = server
        .run(&["get", "cm", "-l", "a=b", "-o", "yaml"])
        .succeed();
    assert!(yaml.contains("items: []\n"), "{yaml}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_an_error_in_the_words_of_the_server() {
    let server = server().await;
    let missing = server.run(&["get", "pods", "web"]);
    missing.fails("windlass: Error from server (NotFound): pods \"web\" not found\n");
    server
        .run(&["get", "pods", "web", "--ignore-not-found"])
        .expect("");
    let unknown = server.run(&["get", "widgets"]);
    unknown.fails("windlass: the server doesn't have a resource type \"widgets\"\n");
    let none = server.run(&["get", "pods"]);
    assert_eq!(
        (none.code, none.stderr.as_str()),
        (0, "No resources found in default namespace.\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn describe_shows_fields_and_events() {
    let server = server().await;
    with_input(&server, &["apply", "-f", "-"], DEPLOYMENT).succeed();
    let text = server.run(&["describe", "deploy/web"]).succeed();
    for part in [
        "Name:         web\nNamespace:    default\nLabels:       app=web\n",
        "Kind:         Deployment\n",
        "  Replicas:   2\n",
        "Events:       <none>\n",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scale_changes_the_number_of_replicas() {
    let server = server().await;
    with_input(&server, &["apply", "-f", "-"], DEPLOYMENT).succeed();
    let words = [
        "scale",
        "deploy/web",
        "--replicas=5",
        "--current-replicas=3",
    ];
    server
        .run(&words)
        .fails("windlass: Expected replicas to be 3, was 2\n");
    let words = [
        "scale",
        "deploy/web",
        "--replicas=5",
        "--current-replicas=2",
    ];
    server.run(&words).expect("deployment.apps/web scaled\n");
    let shown = server.run(&["get", "deploy/web", "-o", "yaml"]).succeed();
    assert!(shown.contains("  replicas: 5\n"), "{shown}");
    server
        .run(&["scale", "ns/default", "--replicas=1"])
        .fails("windlass: namespaces cannot be scaled\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_takes_names_selectors_and_files() {
    let server = server().await;
    for name in ["a", "b", "c"] {
        let text = CONFIG_MAP.replace("settings", name);
        with_input(&server, &["apply", "-f", "-"], &text).succeed();
    }
    server
        .run(&["delete", "cm", "a"])
        .expect("configmap/a deleted\n");
    let text = CONFIG_MAP.replace("settings", "b");
    with_input(&server, &["delete", "-f", "-"], &text).expect("configmap/b deleted\n");
    server.run(&["delete", "cm"]).fails(
        "windlass: resource(s) were provided, but no name was specified; use --all or a selector\n",
    );
    server
        .run(&["delete", "cm", "--all"])
        .expect("configmap/c deleted\n");
    server
        .run(&["delete", "cm/a", "--ignore-not-found"])
        .expect("");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_shown_with_what_they_are_about() {
    let server = server().await;
    let event = "\
apiVersion: v1
kind: Event
metadata: { name: web.1, namespace: default }
involvedObject: { kind: Pod, name: web, namespace: default }
reason: Started
message: Started container web
type: Normal
count: 3
";
    with_input(&server, &["apply", "-f", "-"], event).succeed();
    let text = server.run(&["events", "--for", "pod/web"]).succeed();
    assert!(text.starts_with("LAST SEEN"), "{text}");
    assert!(text.contains("(x3)"), "{text}");
    assert!(
        text.contains("Normal   Started   Pod/web   Started container web\n"),
        "{text}"
    );
    let none = server.run(&["events", "--for", "pod/db"]);
    assert_eq!(none.stderr, "No events found in default namespace.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_those_of_program_and_server() {
    let server = server().await;
    let own = format!("windlass: {}\n", env!("CARGO_PKG_VERSION"));
    server.run(&["version", "--client"]).expect(&own);
    let both = server.run(&["version"]).succeed();
    assert!(both.starts_with(&(own + "server: v1.36.")), "{both}");
}

#[test]
fn completion_scripts_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = super::common::run(&["completion", shell]).succeed();
        assert!(script.contains("describe"), "{shell}");
    }
}

#[test]
fn a_wrong_command_ends_with_one() {
    let outcome = super::common::run(&["frobnicate"]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("unrecognized subcommand"),
        "{}",
        outcome.stderr
    );
    assert_eq!(super::common::run(&["--help"]).code, 0);
}

#[test]
fn a_cluster_in_the_background_has_a_status_and_an_end() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let run = |words: &[&str]| super::common::run(&[words, &["--data", data]].concat());
    let none = format!("windlass: no cluster runs in {data}; start one with `windlass up`\n");
    run(&["status"]).fails(&none);
    let started = run(&["up", "--detach", "--memory"]).succeed();
    let url = started.lines().next().unwrap().strip_prefix("serving ");
    let url = url.unwrap();
    let status = run(&["status"]).succeed();
    assert!(status.contains(&format!("serving {url}\n")), "{status}");
    let second = run(&["up", "--memory"]);
    assert_eq!(second.code, 1);
    assert!(
        second.stderr.contains("is in use by process") && second.stderr.contains(url),
        "{}",
        second.stderr
    );
    run(&["down"]).expect("stopped\n");
    run(&["status"]).fails(&none);
}

#[test]
fn the_cluster_is_merged_into_the_own_kubeconfig() {
    let directory = tempfile::tempdir().unwrap();
    let own = directory.path().join("own");
    std::fs::write(&own, "contexts: [{name: work}]\ncurrent-context: work\n").unwrap();
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let words = ["up", "--detach", "--memory", "--merge", "--data", data];
    let started: Outcome = super::common::command(&words)
        .env("KUBECONFIG", &own)
        .output()
        .unwrap()
        .into();
    started.succeed();
    let listed: Outcome = super::common::command(&["get", "ns", "-o", "name"])
        .env("KUBECONFIG", &own)
        .output()
        .unwrap()
        .into();
    super::common::run(&["down", "--data", data]).expect("stopped\n");
    assert!(listed.succeed().contains("namespace/default\n"));
    let merged = std::fs::read_to_string(&own).unwrap();
    assert!(merged.contains("name: work\n"), "{merged}");
    assert!(merged.contains("current-context: windlass\n"), "{merged}");
}

#[test]
fn controllers_that_do_not_exist_are_refused() {
    let outcome = super::common::run(&["up", "--controllers", "*,-replicaset"]);
    assert_eq!(outcome.code, 1);
    let expected = "windlass: \"replicaset\" is not in the list of known controllers: ";
    assert!(outcome.stderr.starts_with(expected), "{}", outcome.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_becomes_ready_pods_and_why_tells_how() {
    let cluster = Binary::start("up").await;
    with_input(&cluster, &["apply", "-f", "-"], DEPLOYMENT).succeed();
    let mut watching = cluster.tokio_command(&["get", "deploy", "web", "-w", "--no-headers"]);
    let mut watching = watching.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let ready = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("2/2") {
                return;
            }
        }
        panic!("the watch ended before the pods were ready");
    };
    timeout(PATIENCE, ready)
        .await
        .expect("the pods become ready");
    let pods = cluster.run(&["get", "pods", "-l", "app=web", "--no-headers"]);
    let pods = pods.succeed();
    assert_eq!(pods.lines().count(), 2, "{pods}");
    for pod in pods.lines() {
        assert!(pod.contains("1/1     Running"), "{pod}");
    }
    let why = cluster.run(&["why", "deployment/web"]).succeed();
    for part in [
        "deployment-controller default/web\n",
        "because deployments.apps default/web@",
        "update /apis/apps/v1/namespaces/default/deployments/web/status: 200 at ",
    ] {
        assert!(why.contains(part), "{part:?} is missing in\n{why}");
    }
    cluster
        .run(&["why", "configmap/none"])
        .expect("nothing is known of default/none\n");
}

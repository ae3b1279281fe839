//! `windlass test`: a cluster for one command, faults, and their exploration.

use std::path::Path;
use std::process::{Command, Stdio};

use windlass_core::Doc;

use crate::common::{command, run};

/// A shell script as the command of a test.
fn script<'a>(flags: &[&'a str], text: &'a str) -> Vec<&'a str> {
    let mut words = vec!["test"];
    words.extend(flags);
    words.extend(["--", "sh", "-c", text]);
    words
}

/// This program, for scripts.
fn windlass() -> &'static str {
    env!("CARGO_BIN_EXE_windlass")
}

#[test]
fn a_command_finds_a_cluster_and_its_exit_code_is_returned() {
    let text = format!(
        "{} get namespaces -o name && test -x \"$KUBEBUILDER_ASSETS/kube-apiserver\" && \
         echo \"$USE_EXISTING_CLUSTER\" && exit 7",
        windlass()
    );
    let outcome = run(&script(&[], &text));
    assert_eq!(outcome.code, 7, "{outcome:?}");
    assert!(
        outcome.stdout.contains("namespace/default\n"),
        "{outcome:?}"
    );
    assert!(outcome.stdout.ends_with("true\n"), "{outcome:?}");
    let outcome = run(&script(
        &["--own-clusters"],
        "echo \"<$USE_EXISTING_CLUSTER>\"",
    ));
    assert!(outcome.succeed().contains("<>"));
}

#[test]
fn the_cluster_and_its_files_are_gone_in_the_end() {
    let kubeconfig = run(&script(&[], "echo $KUBECONFIG")).succeed();
    let path = Path::new(kubeconfig.trim());
    assert!(path.is_absolute() && !path.parent().unwrap().exists());
}

#[test]
fn a_command_that_is_not_there_is_told() {
    let outcome = run(&["test", "--", "/nowhere/at/all"]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome
            .stderr
            .starts_with("windlass: cannot run /nowhere/at/all")
    );
}

#[test]
fn signals_reach_the_command() {
    let text =
        "trap 'echo ended; exit 9' TERM; echo ready; while :; do read _ <&3 || :; done 3</dev/null";
    let mut child = command(&script(&[], text))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let sent = Command::new("kill").arg(child.id().to_string()).status();
    assert!(sent.unwrap().success());
    assert_eq!(lines.next().unwrap().unwrap(), "ended");
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn a_time_limit_ends_the_command() {
    let outcome = run(&script(&["--timeout", "1"], "exec tail -f /dev/null"));
    assert_eq!(outcome.code, 143, "{outcome:?}");
}

#[test]
fn objects_are_applied_faults_meet_their_requests_and_the_report_tells() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (crd, map, report) = (file("crd.yaml"), file("map.yaml"), file("report.json"));
    std::fs::write(
        &crd,
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
         metadata: {name: widgets.example.com}\nspec: {group: example.com, scope: Namespaced, \
         names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true, \
         schema: {openAPIV3Schema: {type: object}}}]}\n",
    )
    .unwrap();
    let object =
        |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    std::fs::write(&map, object("first")).unwrap();
    std::fs::write(file("second.yaml"), object("second")).unwrap();
    let text = format!(
        "{} get widgets && {} get configmap first -o name; {} apply -f {}",
        windlass(),
        windlass(),
        windlass(),
        file("second.yaml")
    );
    let flags = [
        "--crds",
        &crd,
        "--apply",
        &map,
        "--report",
        &report,
        "--fault",
        "status=500,verb=patch,resource=configmaps,name=second",
    ];
    let outcome = run(&script(&flags, &text));
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("configmap/first"), "{outcome:?}");
    assert!(outcome.stderr.contains("refused by a fault"), "{outcome:?}");
    let report = Doc::parse(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(report.at("/exitCode").as_i64(), Some(1));
    let requests = report.at("/requests").items();
    let met = requests
        .iter()
        .filter(|request| request.str_at("/fault") == "status=500");
    assert!(met.count() >= 1, "{}", report.to_json_pretty());
    assert!(report.at("/objects").items().is_empty());
}

#[test]
fn controllers_run_if_they_are_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2, \
         selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, \
         spec: {containers: [{name: c, image: nginx}]}}}\n";
    let file = directory.path().join("web.yaml");
    std::fs::write(&file, deployment).unwrap();
    let text = format!(
        "until {0} get pods | grep -c Running | grep -qx 2; do :; done",
        windlass()
    );
    let flags = [
        "--controllers",
        "*",
        "--nodes",
        "1",
        "--apply",
        file.to_str().unwrap(),
        "--report",
        path.to_str().unwrap(),
        "--timeout",
        "60",
    ];
    let outcome = run(&script(&flags, &text));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let report = Doc::parse(&std::fs::read(&path).unwrap()).unwrap();
    assert!(
        !report.at("/why").items().is_empty(),
        "{}",
        report.to_json_pretty()
    );
    assert!(!report.at("/events").items().is_empty());
}

#[test]
fn exploring_a_script_finds_the_fault_that_it_does_not_survive() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("map.yaml");
    std::fs::write(
        &file,
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n",
    )
    .unwrap();
    let text = format!("{} apply -f {}", windlass(), file.display());
    let flags = ["--explore", "--explore-with", "status=409", "--jobs", "1"];
    let outcome = run(&script(&flags, &text));
    assert_eq!(outcome.code, 1, "{outcome:?}");
    let broken = "BROKEN by status=409 at patch configmaps in default #1: ended with exit code 1\n";
    assert!(outcome.stdout.contains(broken), "{outcome:?}");
    assert!(
        outcome.stdout.ends_with("1 runs with a fault, 1 broke\n"),
        "{outcome:?}"
    );
}

//! The control plane as its users see it. Where there are no binaries, nothing runs.

use std::{
    env,
    path::Path,
    process::{Command, Output},
};

use windlass_envtest::{
    Assets, ControlPlane, KUBERNETES_VERSION, Options, StartError, real_server,
};

/// A control plane of the test's own, or `None` where there are no binaries.
fn own_server(options: &Options) -> Option<ControlPlane> {
    real_server()?;
    Some(ControlPlane::start(options).unwrap_or_else(|error| panic!("{error}")))
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("kubectl can be run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("kubectl writes text")
}

fn is_running(pid: u32) -> bool {
    let script = format!("kill -0 {pid} 2>/dev/null");
    Command::new("sh")
        .args(["-c", &script])
        .status()
        .expect("a shell can be run")
        .success()
}

#[test]
fn started_server_is_ready_and_has_its_namespaces() {
    let Some(server) = real_server() else { return };
    assert_eq!(server.get("/readyz").unwrap().status, 200);
    assert_eq!(server.get("/api/v1/namespaces/absent").unwrap().status, 404);
    let names = output(server.kubectl().args(["get", "namespaces", "-o", "name"]));
    let expected = "namespace/default\nnamespace/kube-node-lease\nnamespace/kube-public\n\
                    namespace/kube-system\n";
    assert_eq!(names, expected);
}

#[test]
fn built_binaries_know_their_version() {
    let Some(server) = real_server() else { return };
    if server.assets().directory() != Assets::cache().unwrap() {
        return;
    }
    let versions = output(server.kubectl().arg("version"));
    for side in ["Client", "Server"] {
        let line = format!("{side} Version: v{KUBERNETES_VERSION}\n");
        assert!(versions.contains(&line), "{line:?} is not in {versions:?}");
    }
}

/// Who a kubeconfig is for, as the server sees it.
fn whoami(server: &ControlPlane, kubeconfig: &Path) -> String {
    let mut kubectl = server.kubectl();
    kubectl.env("KUBECONFIG", kubeconfig);
    let name = [
        "auth",
        "whoami",
        "-o",
        "jsonpath={.status.userInfo.username}",
    ];
    output(kubectl.args(name))
}

#[test]
fn user_without_a_grant_is_known_and_refused() {
    let Some(server) = real_server() else { return };
    let kubeconfig = server.kubeconfig_for("jane").unwrap();
    assert_eq!(whoami(server, &kubeconfig), "jane");
    let mut kubectl = server.kubectl();
    kubectl.env("KUBECONFIG", &kubeconfig);
    let refusal = kubectl.args(["get", "pods"]).output().unwrap();
    let errors = String::from_utf8(refusal.stderr).unwrap();
    assert!(
        errors.contains(r#"User "jane" cannot list resource "pods""#),
        "{errors}"
    );
}

#[test]
fn service_account_has_a_kubeconfig_of_its_own() {
    let Some(server) = real_server() else { return };
    output(server.kubectl().args(["create", "serviceaccount", "robot"]));
    let kubeconfig = server.kubeconfig_for_account("default", "robot").unwrap();
    assert_eq!(
        whoami(server, &kubeconfig),
        "system:serviceaccount:default:robot"
    );
    let missing = server.kubeconfig_for_account("default", "nobody");
    let error = missing.unwrap_err().to_string();
    assert!(error.contains(r#""nobody" not found"#), "{error}");
}

#[test]
fn restarted_server_keeps_its_address_and_data() {
    let Some(mut server) = own_server(&Options::default()) else {
        return;
    };
    let (url, before) = (server.url(), server.pids());
    output(
        server
            .kubectl()
            .args(["create", "configmap", "kept", "--from-literal=a=b"]),
    );

    server.stop_apiserver();
    server.get("/readyz").unwrap_err();
    assert_eq!(server.pids().apiserver, None);
    server.restart_apiserver().unwrap();

    let after = server.pids();
    assert_eq!((server.url(), after.etcd), (url, before.etcd));
    assert_ne!(after.apiserver, before.apiserver);
    let value =
        output(
            server
                .kubectl()
                .args(["get", "configmap", "kept", "-o", "jsonpath={.data.a}"]),
        );
    assert_eq!(value, "b");
}

#[test]
fn servers_and_directory_are_gone_after_drop() {
    let Some(server) = own_server(&Options::default().durable()) else {
        return;
    };
    let (pids, directory) = (server.pids(), server.directory().to_owned());
    let apiserver = pids.apiserver.unwrap();
    assert!(is_running(pids.etcd) && is_running(apiserver) && directory.exists());
    drop(server);
    assert!(!is_running(pids.etcd) && !is_running(apiserver) && !directory.exists());
}

#[test]
fn chosen_controllers_run_and_no_others() {
    let options =
        Options::default().controllers(["replicaset-controller", "deployment-controller"]);
    let Some(server) = own_server(&options) else {
        return;
    };
    assert!(is_running(server.pids().controller_manager.unwrap()));
    let create = [
        "create",
        "deployment",
        "web",
        "--image=example.test/web",
        "--replicas=2",
    ];
    output(server.kubectl().args(create));
    let condition = "--for=jsonpath={.status.unavailableReplicas}=2";
    output(
        server
            .kubectl()
            .args(["wait", "deployment/web", condition, "--timeout=60s"]),
    );
    let accounts = output(
        server
            .kubectl()
            .args(["get", "serviceaccounts", "-o", "name"]),
    );
    assert_eq!(accounts, "");
}

#[test]
fn every_controller_brings_service_accounts() {
    let Some(server) = own_server(&Options::default().controllers(["*"])) else {
        return;
    };
    let accounts = output(
        server
            .kubectl()
            .args(["get", "serviceaccounts", "-o", "name"]),
    );
    assert_eq!(accounts, "serviceaccount/default\n");
    output(
        server
            .kubectl()
            .args(["run", "web", "--image=example.test/web"]),
    );
}

#[test]
fn failed_start_shows_the_end_of_the_log() {
    if real_server().is_none() {
        return;
    }
    let options = Options::default().apiserver_flag("--no-such-flag");
    match ControlPlane::start(&options) {
        Err(StartError::Exited {
            server: "kube-apiserver",
            log,
        }) => {
            assert!(log.contains("unknown flag: --no-such-flag"), "{log}");
        }
        other => panic!("{other:?}"),
    }
}

/// Runs the first test of this file in a process that finds no binaries.
fn run_without_binaries(is_required: &str) -> Output {
    Command::new(env::current_exe().expect("this program has a path"))
        .args(["started_server_is_ready_and_has_its_namespaces", "--exact"])
        .env("KUBEBUILDER_ASSETS", "/absent")
        .env("WINDLASS_REQUIRE_ENVTEST", is_required)
        .output()
        .expect("this program can be run")
}

#[test]
fn absent_binaries_skip_a_test_unless_they_are_required() {
    let reason = "KUBEBUILDER_ASSETS=/absent has no etcd";
    let skipped = run_without_binaries("");
    let errors = String::from_utf8(skipped.stderr).unwrap();
    assert!(skipped.status.success(), "{errors}");
    // The harness drops the output of a test that passes; this line it does not see.
    let line = format!("skipped: started_server_is_ready_and_has_its_namespaces: {reason}");
    assert_eq!(errors.matches(&line).count(), 1, "{errors}");

    let failed = run_without_binaries("1");
    let output = String::from_utf8(failed.stdout).unwrap();
    assert!(!failed.status.success(), "{output}");
    assert!(output.contains(reason), "{output}");
}

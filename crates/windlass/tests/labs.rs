//! The labs on a real cluster. On the embedded one, where they need nothing, CI runs them all.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_envtest::real_server;

/// Labs that need neither nodes nor built-in controllers.
const ON_ANY_CLUSTER: [&str; 9] = [
    "clientset",
    "discovery",
    "dynamic_client",
    "informer",
    "informer_with_workqueue",
    "ingress_manager",
    "list_and_watch",
    "pod_printer",
    "rest_client",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Cargo builds the examples of a package before it runs all of its tests, but not for some.
fn lab(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let path = profile.join("examples").join(name);
    if !path.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args([
            "build",
            "--quiet",
            "--package",
            "windlass",
            "--example",
            name,
        ]);
        assert!(build.status().unwrap().success());
    }
    path
}

#[test]
fn labs_work_on_a_real_cluster() {
    let Some(server) = real_server() else { return };
    for name in ON_ANY_CLUSTER {
        let output = Command::new(lab(name))
            .env("KUBECONFIG", server.kubeconfig())
            .env("USE_EXISTING_CLUSTER", "true")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        assert!(!output.stdout.is_empty(), "{name} prints something");
    }
}

#[test]
fn every_lab_is_in_the_readme() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    for entry in std::fs::read_dir(root().join("crates/windlass/examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(
            readme.contains(&format!("| `{name}` |")),
            "{name} is missing"
        );
    }
}

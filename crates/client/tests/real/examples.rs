//! The examples run and end by themselves.

use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_envtest::real_server;

/// Cargo builds the examples of a package before it runs all of its tests, but not for some.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let path = profile.join("examples").join(name);
    if !path.exists() {
        let package = env!("CARGO_PKG_NAME");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", package, "--example", name]);
        assert!(build.status().unwrap().success());
    }
    path
}

#[test]
fn the_examples_end_by_themselves() {
    let Some(server) = real_server() else { return };
    for name in [
        "rest_client",
        "clientset",
        "dynamic_client",
        "discovery_client",
    ] {
        let output = Command::new(example(name))
            .env("KUBECONFIG", server.kubeconfig())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        assert!(!output.stdout.is_empty(), "{name} prints something");
    }
}

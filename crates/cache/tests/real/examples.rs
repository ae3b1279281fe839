//! The examples run and end by themselves.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use windlass_envtest::real_server;

/// Cargo builds the examples of a package before it runs all of its tests, but not for some.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let path = profile.join("examples").join(name);
    if !path.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args([
            "build",
            "--quiet",
            "--package",
            env!("CARGO_PKG_NAME"),
            "--example",
            name,
        ]);
        assert!(build.status().unwrap().success());
    }
    path
}

#[test]
fn the_examples_end_by_themselves() {
    let Some(server) = real_server() else { return };
    for (name, expected) in [
        ("informer", "pods at revision"),
        ("informer_with_workqueue", "default Active"),
    ] {
        let output = Command::new(example(name))
            .env("KUBECONFIG", server.kubeconfig())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {error}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(expected), "{name} prints {text}");
    }
}

//! The examples run and end by themselves.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_core::Env;
use windlass_envtest::real_server;
use windlass_server::{Certificates, Server, ServerOptions, kubeconfig, serve};

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

const EXAMPLES: [&str; 4] = [
    "rest_client",
    "clientset",
    "dynamic_client",
    "discovery_client",
];

fn run_all(kubeconfig: &Path) {
    for name in EXAMPLES {
        let output = Command::new(example(name))
            .env("KUBECONFIG", kubeconfig)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        assert!(!output.stdout.is_empty(), "{name} prints something");
    }
}

#[test]
fn the_examples_end_by_themselves() {
    let Some(server) = real_server() else { return };
    run_all(server.kubeconfig());
}

#[test]
fn the_examples_end_by_themselves_on_the_embedded_server() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig");
    let text = runtime.block_on(serve_embedded());
    std::fs::write(&path, text).unwrap();
    run_all(&path);
}

/// Starts an embedded server that runs as long as the runtime, and returns a kubeconfig for it.
async fn serve_embedded() -> String {
    let env = Env::real();
    let certificates = Certificates::in_memory(&[], &env).unwrap();
    let server = Server::open(ServerOptions::memory(env)).await.unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listening = serve(server.clone(), address, &certificates, &[])
        .await
        .unwrap();
    let url = format!("https://{}", listening.address());
    tokio::spawn(listening.run(std::future::pending()));
    kubeconfig(&url, &certificates, server.admin_token())
}

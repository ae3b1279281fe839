//! The real kubectl explains and lists kinds of both servers.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use windlass_core::{Doc, Env};
use windlass_envtest::real_assets;
use windlass_server::{Certificates, ServerOptions, serve};

use super::support::widgets;

/// The group of the definition that kubectl makes. No other case has it: an apply that finds nothing
/// and then meets a definition made by another fails.
const GROUP: &str = "kubectl.example.com";
/// How long a server may take to publish the schema of a kind that it serves already.
const PUBLICATION: Duration = Duration::from_secs(60);

/// One run of kubectl, with a cache of its own: what an earlier run learned of the server may have
/// been before the kind was published.
fn run(binary: &Path, config: &Path, arguments: &[&str]) -> Output {
    let cache = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(binary);
    command
        .arg("--kubeconfig")
        .arg(config)
        .arg("--cache-dir")
        .arg(cache.path());
    command.args(arguments).output().expect("kubectl runs")
}

/// What kubectl prints for some arguments; it must succeed.
fn kubectl(binary: &Path, config: &Path, arguments: &[&str]) -> String {
    let output = run(binary, config, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// What kubectl prints about a new kind. kube-apiserver publishes schemas and discovery in the
/// background, after the definition is established, so an answer that lacks the kind is asked for
/// again.
fn kubectl_once_published(binary: &Path, config: &Path, arguments: &[&str]) -> String {
    let env = Env::real();
    let end = env.elapsed() + PUBLICATION;
    loop {
        let output = run(binary, config, arguments);
        if output.status.success() && !output.stdout.is_empty() {
            return String::from_utf8(output.stdout).expect("text");
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(env.elapsed() < end, "kubectl {arguments:?}: {errors}");
    }
}

/// Whether a line begins with some words, however they are spaced.
fn has_line(text: &str, words: &[&str]) -> bool {
    text.lines().any(|line| {
        line.split_whitespace()
            .take(words.len())
            .eq(words.iter().copied())
    })
}

fn explain_and_list(binary: &Path, config: &Path) {
    let directory = config.parent().expect("a directory");
    let manifest = directory.join("widgets.json");
    let name = format!("widgets.{GROUP}");
    let definition = widgets()
        .with("/metadata/name", Doc::from(name.as_str()))
        .and_then(|definition| definition.with("/spec/group", Doc::from(GROUP)))
        .expect("a definition");
    std::fs::write(&manifest, definition.to_json()).expect("the manifest is written");
    let manifest = manifest.to_str().expect("a plain path");
    kubectl(binary, config, &["apply", "-f", manifest]);
    let name = format!("crd/{name}");
    kubectl(
        binary,
        config,
        &[
            "wait",
            "--for=condition=Established",
            &name,
            "--timeout=30s",
        ],
    );

    let spec = kubectl(binary, config, &["explain", "deployment.spec"]);
    assert!(
        has_line(&spec, &["FIELD:", "spec", "<DeploymentSpec>"]),
        "{spec}"
    );
    assert!(has_line(&spec, &["replicas", "<integer>"]), "{spec}");
    assert!(
        has_line(&spec, &["selector", "<LabelSelector>", "-required-"]),
        "{spec}"
    );
    let env = kubectl(
        binary,
        config,
        &["explain", "pod.spec.containers.env", "--recursive"],
    );
    assert!(has_line(&env, &["valueFrom", "<EnvVarSource>"]), "{env}");
    assert!(
        has_line(&env, &["configMapKeyRef", "<ConfigMapKeySelector>"]),
        "{env}"
    );
    let job = kubectl(
        binary,
        config,
        &["explain", "cronjobs", "--api-version=batch/v1"],
    );
    assert!(has_line(&job, &["VERSION:", "v1"]), "{job}");
    let policy = kubectl(binary, config, &["explain", "pod.spec.restartPolicy"]);
    assert!(
        has_line(&policy, &["FIELD:", "restartPolicy", "<string>"]),
        "{policy}"
    );

    let widget = kubectl_once_published(
        binary,
        config,
        &[
            "explain",
            "widgets.spec",
            &format!("--api-version={GROUP}/v1"),
        ],
    );
    assert!(has_line(&widget, &["KIND:", "Widget"]), "{widget}");
    assert!(
        has_line(&widget, &["color", "<string>", "-required-"]),
        "{widget}"
    );
    assert!(has_line(&widget, &["ports", "<[]Object>"]), "{widget}");
    let recursive = kubectl_once_published(binary, config, &["explain", "widgets", "--recursive"]);
    assert!(
        has_line(&recursive, &["ownerReferences", "<[]OwnerReference>"]),
        "{recursive}"
    );
    let list = kubectl_once_published(
        binary,
        config,
        &["api-resources", &format!("--api-group={GROUP}")],
    );
    assert!(
        has_line(
            &list,
            &["widgets", "wd", &format!("{GROUP}/v1"), "true", "Widget"]
        ),
        "{list}"
    );
    let crds = kubectl(
        binary,
        config,
        &["api-resources", "--api-group=apiextensions.k8s.io"],
    );
    assert!(
        has_line(&crds, &["customresourcedefinitions", "crd,crds"]),
        "{crds}"
    );
}

#[test]
fn kubectl_explains_kinds_of_the_real_server() {
    let Some(real) = windlass_envtest::real_server() else {
        return;
    };
    explain_and_list(&real.assets().kubectl(), real.kubeconfig());
}

#[test]
fn kubectl_explains_kinds_of_the_embedded_server() {
    let Some(assets) = real_assets() else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().expect("the runtime starts");
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("config");
    let listening = runtime.block_on(async {
        let env = Env::real();
        let certificates = Certificates::in_memory(&[], &env).expect("certificates are made");
        let server = windlass_server::Server::open(ServerOptions::memory(env))
            .await
            .expect("the server opens");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listening = serve(server.clone(), address, &certificates, &[])
            .await
            .expect("the server listens");
        let url = format!("https://{}", listening.address());
        let text = windlass_server::kubeconfig(&url, &certificates, server.admin_token());
        std::fs::write(&config, text).expect("the configuration is written");
        listening
    });
    runtime.spawn(listening.run(std::future::pending()));
    explain_and_list(&assets.kubectl(), &config);
}

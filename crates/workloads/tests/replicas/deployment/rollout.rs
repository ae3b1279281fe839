//! `kubectl rollout` is how people look at a Deployment and move it.

use std::{path::PathBuf, process::Command};

use windlass_core::Env;
use windlass_envtest::{Assets, real_assets};
use windlass_server::{Certificates, kubeconfig, serve};

use crate::deployment::stage::{DEPLOYMENTS, Stage, number, revision};

/// kubectl for one namespace of one cluster.
struct Kubectl {
    binary: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
}

impl Kubectl {
    /// Runs a command: whether it succeeded, and what it printed.
    async fn run(&self, line: &str) -> (bool, String) {
        let mut command = Command::new(&self.binary);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--namespace", &self.namespace])
            .args(line.split(' '));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = output.await.unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    /// Runs a command that succeeds and prints something in particular.
    async fn expect(&self, line: &str, text: &str) -> String {
        let (is_done, printed) = self.run(line).await;
        assert!(
            is_done && printed.contains(text),
            "kubectl {line}: {printed}"
        );
        printed
    }

    /// Runs a command that fails and prints something in particular.
    async fn expect_failure(&self, line: &str, text: &str) {
        let (is_done, printed) = self.run(line).await;
        assert!(
            !is_done && printed.contains(text),
            "kubectl {line}: {printed}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_moves_a_deployment_on_a_real_server() {
    let Some(server) = windlass_envtest::real_server() else {
        return;
    };
    let stage = Stage::on(
        server,
        "kubectl",
        crate::deployment::stage::Controllers::Ours,
    )
    .await;
    let kubectl = Kubectl {
        binary: Assets::find().unwrap().kubectl(),
        kubeconfig: server.kubeconfig().into(),
        namespace: stage.namespace.clone(),
    };
    people_move_a_deployment(&stage, &kubectl).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_moves_a_deployment_on_the_embedded_server() {
    let Some(assets) = real_assets() else { return };
    let stage = Stage::embedded_now("kubectl").await;
    let server = stage.cluster.server().unwrap().clone();
    let hosts = ["127.0.0.1".to_owned()];
    let certificates = Certificates::in_memory(&hosts, &Env::real()).unwrap();
    let address = "127.0.0.1:0".parse().unwrap();
    let listening = serve(server.clone(), address, &certificates, &hosts)
        .await
        .unwrap();
    let url = format!("https://{}", listening.address());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig(&url, &certificates, server.admin_token())).unwrap();
    tokio::spawn(listening.run(std::future::pending()));
    let kubectl = Kubectl {
        binary: assets.kubectl(),
        kubeconfig: path,
        namespace: stage.namespace.clone(),
    };
    people_move_a_deployment(&stage, &kubectl).await;
}

async fn people_move_a_deployment(stage: &Stage, kubectl: &Kubectl) {
    stage.run();
    stage.run_kubelet();
    kubectl
        .expect(
            "create deployment web --image=nginx:1 --replicas=3",
            "created",
        )
        .await;
    let done = "deployment \"web\" successfully rolled out";
    let status = "rollout status deployment/web --timeout=60s";
    kubectl.expect(status, done).await;
    kubectl.expect("get deployment web", "3/3").await;
    let cause = "annotate deployment/web kubernetes.io/change-cause=second";
    kubectl
        .expect("set image deployment/web nginx=nginx:2", "image updated")
        .await;
    kubectl.expect(cause, "annotated").await;
    kubectl.expect(status, done).await;
    stage
        .until(async |s| {
            let sets = s.sets().await;
            let newest = sets
                .last()
                .map(|set| set.meta().annotation("kubernetes.io/change-cause"));
            newest.flatten() == Some("second")
        })
        .await;
    let history = kubectl
        .expect("rollout history deployment/web", "REVISION")
        .await;
    let lines: Vec<Vec<&str>> = history
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(lines.contains(&vec!["1", "<none>"]), "{history}");
    assert!(lines.contains(&vec!["2", "second"]), "{history}");

    kubectl
        .expect("rollout undo deployment/web", "rolled back")
        .await;
    kubectl.expect(status, done).await;
    kubectl
        .expect("rollout history deployment/web --revision=3", "nginx:1")
        .await;
    kubectl
        .expect(
            "rollout undo deployment/web --to-revision=3",
            "skipped rollback",
        )
        .await;
    kubectl
        .expect_failure(
            "rollout undo deployment/web --to-revision=9",
            "unable to find specified revision 9",
        )
        .await;
    kubectl
        .expect("rollout restart deployment/web", "restarted")
        .await;
    kubectl.expect(status, done).await;
    let found = stage.get(&DEPLOYMENTS, "web").await;
    assert_eq!(revision(&found), 4);

    kubectl
        .expect("rollout pause deployment/web", "paused")
        .await;
    kubectl
        .expect_failure("rollout pause deployment/web", "already paused")
        .await;
    kubectl
        .expect_failure(
            "rollout undo deployment/web",
            "cannot rollback a paused deployment",
        )
        .await;
    kubectl
        .expect_failure(
            "rollout restart deployment/web",
            "can't restart paused deployment",
        )
        .await;
    kubectl
        .expect("rollout resume deployment/web", "resumed")
        .await;
    kubectl
        .expect("scale deployment/web --replicas=5", "scaled")
        .await;
    kubectl.expect(status, done).await;
    kubectl
        .expect(
            "wait --for=condition=Available deployment/web --timeout=60s",
            "condition met",
        )
        .await;
    let description = kubectl
        .expect("describe deployment web", "NewReplicaSet:")
        .await;
    let replicas = "5 desired | 5 updated | 5 total | 5 available | 0 unavailable";
    assert!(description.contains(replicas), "{description}");
    assert!(
        description.contains("(5/5 replicas created)"),
        "{description}"
    );

    let deadline = r#"patch deployment web -p {"spec":{"progressDeadlineSeconds":2}}"#;
    kubectl.expect(deadline, "patched").await;
    kubectl
        .expect("set image deployment/web nginx=broken", "image updated")
        .await;
    kubectl
        .expect_failure(status, "deployment \"web\" exceeded its progress deadline")
        .await;
    let found = stage.get(&DEPLOYMENTS, "web").await;
    assert!(number(&found, "/status/availableReplicas") >= 4);
}

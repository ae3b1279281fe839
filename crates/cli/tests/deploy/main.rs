//! The manifests of `deploy` on the servers they are for: accepted under strict validation, and
//! with rights that are enough and no more.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod access;
mod claims;
mod process;
mod restricted;

use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_client::Config;
use windlass_core::{Doc, Gvr, doc};
use windlass_envtest::{ControlPlane, real_server};
use windlass_testing::Cluster;

use process::Process;

const ACCOUNT: &str = "system:serviceaccount:windlass:windlass-controllers";
const NAMESPACE: &str = "deploy-test";

const DEPLOYMENTS: Gvr = Gvr::constant("apps", "v1", "deployments");
const REPLICA_SETS: Gvr = Gvr::constant("apps", "v1", "replicasets");
const PODS: Gvr = Gvr::constant("", "v1", "pods");
const JOBS: Gvr = Gvr::constant("batch", "v1", "jobs");
const ENDPOINTS: Gvr = Gvr::constant("", "v1", "endpoints");
const SLICES: Gvr = Gvr::constant("discovery.k8s.io", "v1", "endpointslices");
const EVENTS: Gvr = Gvr::constant("", "v1", "events");
const CLAIMS: Gvr = Gvr::constant("", "v1", "persistentvolumeclaims");
const DAEMON_SETS: Gvr = Gvr::constant("apps", "v1", "daemonsets");
const REVISIONS: Gvr = Gvr::constant("apps", "v1", "controllerrevisions");
const LEASES: Gvr = Gvr::constant("coordination.k8s.io", "v1", "leases");

/// A Deployment whose old pods go before the new ones come, and whose old ReplicaSets go too.
const WORKLOAD: &str = "
apiVersion: v1
kind: Namespace
metadata: { name: deploy-test }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: deploy-test }
spec:
  replicas: 2
  revisionHistoryLimit: 0
  strategy: { type: Recreate }
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: 'nginx:1' }] }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: deploy-test }
spec:
  selector: { app: web }
  ports: [{ port: 80 }]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db, namespace: deploy-test }
spec:
  replicas: 1
  serviceName: db
  selector: { matchLabels: { app: db } }
  persistentVolumeClaimRetentionPolicy: { whenDeleted: Delete, whenScaled: Retain }
  template:
    metadata: { labels: { app: db } }
    spec: { containers: [{ name: db, image: db }] }
  volumeClaimTemplates:
  - metadata: { name: data }
    spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
---
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: agent, namespace: deploy-test }
spec:
  selector: { matchLabels: { app: agent } }
  template:
    metadata: { labels: { app: agent } }
    spec: { nodeSelector: { deploy-test: agent }, containers: [{ name: agent, image: agent }] }
---
apiVersion: v1
kind: Service
metadata: { name: by-hand, namespace: deploy-test }
spec: { ports: [{ port: 80 }] }
---
apiVersion: v1
kind: Endpoints
metadata: { name: by-hand, namespace: deploy-test }
subsets: [{ addresses: [{ ip: 10.0.0.1 }], ports: [{ port: 80 }] }]
---
apiVersion: batch/v1
kind: CronJob
metadata: { name: tick, namespace: deploy-test }
spec:
  schedule: '@every 1s'
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      ttlSecondsAfterFinished: 0
      completions: 1
      template:
        metadata: { labels: { app: tick } }
        spec: { restartPolicy: Never, containers: [{ name: tick, image: tick }] }
";

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/controllers.yaml")
}

/// Applies the manifests and says what kubectl said.
fn apply(mut kubectl: Command) {
    let output = kubectl
        .args(["apply", "--validate=strict", "-f"])
        .arg(manifests())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.is_empty(), "it warns: {said}");
    let made = String::from_utf8_lossy(&output.stdout);
    assert_eq!(made.lines().count(), 7, "{made}");
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_accepted_by_the_embedded_server() {
    let Some(server) = real_server() else { return };
    let cluster = Cluster::start().await;
    let mut kubectl = Command::new(server.assets().kubectl());
    kubectl.env("KUBECONFIG", cluster.kubeconfig().await.unwrap());
    tokio::task::spawn_blocking(|| apply(kubectl))
        .await
        .unwrap();
}

/// The arguments of the container, on ports that are free.
fn arguments() -> Vec<String> {
    let text = std::fs::read_to_string(manifests()).unwrap();
    let objects = Doc::parse_yaml(&text).unwrap();
    let deployment = objects.iter().find(|it| it.str_at("/kind") == "Deployment");
    let words = deployment
        .unwrap()
        .at("/spec/template/spec/containers/0/args");
    let words = words.items().iter().map(|word| word.as_str().unwrap());
    let free = |word: &str| match word.split_once("-bind-address=") {
        Some((flag, _)) => format!("{flag}-bind-address=127.0.0.1:0"),
        None => word.to_owned(),
    };
    words.map(free).collect()
}

/// Who may do what, as the server sees it.
fn may(server: &ControlPlane, verb: &str, resource: &str) -> bool {
    let output = server
        .kubectl()
        .args(["auth", "can-i", verb, resource, "--as", ACCOUNT, "-A"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).trim() == "yes"
}

async fn names(cluster: &Cluster, resource: &Gvr) -> Vec<String> {
    let objects = cluster.list_docs(resource, NAMESPACE, "").await;
    objects
        .iter()
        .map(|it| it.meta().name().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_account_has_the_rights_it_needs_and_no_others() {
    let Some(server) = real_server() else { return };
    apply(server.kubectl());
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let cluster = Cluster::builder().existing(config).start().await;
    let kubeconfig = server.kubeconfig_for(ACCOUNT).unwrap();
    let mut process = Process::start(&arguments(), &kubeconfig);
    cluster.create_yaml(WORKLOAD).await;
    roll_out(&cluster).await;
    run_to_completion(&cluster).await;
    run_sets(&cluster).await;

    let lease = cluster.find(&LEASES, "windlass/windlass-controllers").await;
    assert!(!lease.unwrap().str_at("/spec/holderIdentity").is_empty());
    let ready = process.get("health probes", "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    let refused = process.get("metrics", "/metrics").await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let token = scraper(server);
    let metrics = process.get_as(&token, "metrics", "/metrics").await;
    assert!(
        metrics.contains("rest_client_requests_total{code=\"201\""),
        "{metrics}"
    );
    assert!(!metrics.contains("code=\"403\""), "{metrics}");
    let log = process.terminate();
    assert!(!log.to_lowercase().contains("forbidden"), "{log}");

    for (verb, resource) in [
        ("get", "secrets"),
        ("update", "nodes"),
        ("delete", "deployments.apps"),
        ("update", "leases.coordination.k8s.io"),
        ("bind", "clusterroles.rbac.authorization.k8s.io"),
    ] {
        assert!(!may(server, verb, resource), "it may {verb} {resource}");
    }
}

/// A CronJob starts a Job, whose pod succeeds; the Job goes. The Service has its endpoints.
async fn run_to_completion(cluster: &Cluster) {
    let pods = async |c: &Cluster| c.list_docs(&PODS, NAMESPACE, "app=tick").await;
    cluster.until(async |c| !pods(c).await.is_empty()).await;
    let pod = &pods(cluster).await[0];
    let job = pod.meta().controller().unwrap().name;
    let status = doc!({ "phase": "Succeeded" });
    cluster.patch_status(pod, status).await;
    let key = format!("{NAMESPACE}/{job}");
    let is_leaving = async |c: &Cluster| {
        let found = c.find(&JOBS, &key).await;
        found.is_none_or(|job| job.meta().is_deleting())
    };
    cluster.until(is_leaving).await;
    let has_endpoints = async |c: &Cluster| {
        let slices = c.list_docs(&SLICES, NAMESPACE, "").await;
        let key = format!("{NAMESPACE}/web");
        !slices.is_empty() && c.find(&ENDPOINTS, &key).await.is_some()
    };
    cluster.until(has_endpoints).await;
}

/// A StatefulSet has its pod and owns its claim, a DaemonSet has seen that no node is for it, and
/// Endpoints are mirrored.
async fn run_sets(cluster: &Cluster) {
    let is_owned = async |c: &Cluster| {
        let claim = c.find(&CLAIMS, &format!("{NAMESPACE}/data-db-0")).await;
        claim.is_some_and(|claim| claim.meta().controller().is_some())
    };
    cluster.until(is_owned).await;
    let is_observed = async |c: &Cluster| {
        let agent = c.find(&DAEMON_SETS, &format!("{NAMESPACE}/agent")).await;
        *agent.unwrap().at("/status/observedGeneration") == 1
    };
    cluster.until(is_observed).await;
    assert_eq!(names(cluster, &REVISIONS).await.len(), 2);
    let is_mirrored = async |c: &Cluster| {
        let label = "kubernetes.io/service-name=by-hand";
        !c.list_docs(&SLICES, NAMESPACE, label).await.is_empty()
    };
    cluster.until(is_mirrored).await;
}

/// The token of an account that may read metrics.
fn scraper(server: &ControlPlane) -> String {
    let kubectl = |words: &[&str]| {
        let output = server.kubectl().args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let account = "--serviceaccount=windlass:scraper";
    kubectl(&["create", "serviceaccount", "-n", "windlass", "scraper"]);
    let role = "--clusterrole=system:monitoring";
    kubectl(&["create", "clusterrolebinding", "scraper", role, account]);
    kubectl(&["create", "token", "-n", "windlass", "scraper"])
}

/// Two pods, another template, no pods: what the controllers do in a life of a Deployment.
async fn roll_out(cluster: &Cluster) {
    let pods = async |c: &Cluster| c.list_docs(&PODS, NAMESPACE, "app=web").await;
    cluster.until(async |c| pods(c).await.len() == 2).await;
    let first = names(cluster, &REPLICA_SETS).await;
    let key = format!("{NAMESPACE}/web");
    let web = cluster.find(&DEPLOYMENTS, &key).await.unwrap();
    let image = doc!({ "spec": { "template": { "spec": {
        "containers": [{ "name": "web", "image": "nginx:2" }],
    } } } });
    cluster.patch(&web, image).await;
    let has_next =
        async |c: &Cluster| names(c, &REPLICA_SETS).await.len() == 2 && pods(c).await.len() == 2;
    cluster.until(has_next).await;
    make_ready(cluster).await;
    let is_replaced = async |c: &Cluster| {
        let sets = names(c, &REPLICA_SETS).await;
        sets.len() == 1 && sets != first
    };
    cluster.until(is_replaced).await;
    let none = doc!({ "spec": { "replicas": 0 } });
    cluster.patch(&web, none).await;
    cluster.until(async |c| pods(c).await.is_empty()).await;
    let observed = async |c: &Cluster| {
        let web = c.find(&DEPLOYMENTS, &key).await.unwrap();
        web.at("/status/observedGeneration").as_i64() == Some(web.meta().generation())
    };
    cluster.until(observed).await;
    for reason in ["ScalingReplicaSet", "SuccessfulCreate", "SuccessfulDelete"] {
        let is_told = async |c: &Cluster| {
            let events = c.list_docs(&EVENTS, NAMESPACE, "").await;
            events.iter().any(|event| event.str_at("/reason") == reason)
        };
        cluster.until(is_told).await;
    }
}

/// Says of all pods that they are ready, as a node would.
async fn make_ready(cluster: &Cluster) {
    for pod in cluster.list_docs(&PODS, NAMESPACE, "").await {
        let now = pod.at("/metadata/creationTimestamp").clone();
        let ready = doc!({
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": now }],
        });
        cluster.patch_status(&pod, ready).await;
    }
}

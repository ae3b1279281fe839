//! The claim controller alone, on a cluster with its own control plane: it is asked for by name,
//! one of its copies works at a time, and what the scheduler does stays as the scheduler did it.

use windlass_client::{Config, DeleteOptions, WriteOptions};
use windlass_core::{Doc, Gvr, doc};
use windlass_envtest::{ControlPlane, real_server};
use windlass_testing::Cluster;

use crate::process::Process;

const NAMESPACE: &str = "claims-alone";
const NEIGHBOUR: &str = "claims-neighbour";
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const EVENTS: Gvr = Gvr::constant("", "v1", "events");
const LEASES: Gvr = Gvr::constant("coordination.k8s.io", "v1", "leases");
const CLAIMS: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaims");

fn start(server: &ControlPlane) -> Process {
    let words = [
        "controllers",
        "--controllers=resourceclaim-controller",
        "--leader-elect-resource-namespace=claims-alone",
        "--leader-elect-resource-name=claims",
        "--leader-elect-lease-duration=4s",
        "--leader-elect-renew-deadline=3s",
        "--leader-elect-retry-period=500ms",
        "--metrics-bind-address=127.0.0.1:0",
        "--health-probe-bind-address=0",
        "--authorization-always-allow-paths=/metrics",
        "--logging-format=json",
    ];
    Process::start(&words.map(str::to_owned), server.kubeconfig())
}

fn template(namespace: &str, name: &str) -> Doc {
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "spec": { "devices": { "requests": [
            { "name": "gpu", "exactly": { "deviceClassName": "gpu.example.com" } },
        ] } } },
    })
}

fn pod(name: &str, template: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "containers": [{ "name": "c", "image": "i" }],
            "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": template }],
        },
    })
}

async fn holder(cluster: &Cluster) -> String {
    let lease = cluster.find(&LEASES, "claims-alone/claims").await;
    let lease = lease.unwrap_or_default();
    lease.str_at("/spec/holderIdentity").to_owned()
}

async fn claims(cluster: &Cluster) -> Vec<Doc> {
    cluster.list_docs(&CLAIMS, NAMESPACE, "").await
}

/// The name of the claim that the status of a pod records.
async fn recorded(cluster: &Cluster, pod: &str) -> String {
    let pod = cluster.find(&PODS, &format!("{NAMESPACE}/{pod}")).await;
    let statuses = pod.unwrap_or_default();
    let status = statuses.at("/status/resourceClaimStatuses/0");
    status.str_at("/resourceClaimName").to_owned()
}

/// A pod gets its claim. Returns both.
async fn claimed(cluster: &Cluster, name: &str) -> (Doc, Doc) {
    let pod = cluster.create_doc(&pod(name, "t")).await;
    cluster
        .until(async |c| !recorded(c, name).await.is_empty())
        .await;
    let key = format!("{NAMESPACE}/{}", recorded(cluster, name).await);
    (pod, cluster.find(&CLAIMS, &key).await.unwrap())
}

/// How many claims a copy has made.
async fn made(process: &Process) -> String {
    let metrics = process.get("metrics", "/metrics").await;
    let line = "resourceclaim_controller_create_attempts_total ";
    let found = metrics.lines().find_map(|it| it.strip_prefix(line));
    found.unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_claim_controller_works_alone_and_one_copy_at_a_time() {
    let Some(server) = real_server() else { return };
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let cluster = Cluster::builder().existing(config).start().await;
    for name in [NAMESPACE, NEIGHBOUR] {
        let namespace =
            doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        cluster.create_doc(&namespace).await;
    }
    cluster.create_doc(&template(NAMESPACE, "t")).await;
    cluster.create_doc(&template(NEIGHBOUR, "elsewhere")).await;

    let mut first = start(server);
    cluster.until(async |c| !holder(c).await.is_empty()).await;
    let leader = holder(&cluster).await;
    let mut second = start(server);

    let (web, claim) = claimed(&cluster, "web").await;
    scheduled_claims_are_left_alone(&cluster, &web, &claim).await;
    templates_of_other_namespaces_do_not_count(&cluster).await;
    assert_eq!(holder(&cluster).await, leader);
    assert_eq!(made(&first).await, "2");
    assert_eq!(made(&second).await, "0");

    // The second copy takes over from the first.
    first.terminate();
    cluster
        .until(async |c| {
            let now = holder(c).await;
            !now.is_empty() && now != leader
        })
        .await;
    claimed(&cluster, "next").await;
    assert_eq!(made(&second).await, "1");
    second.terminate();
}

/// What kube-scheduler writes stays until the pod has ended.
async fn scheduled_claims_are_left_alone(cluster: &Cluster, pod: &Doc, claim: &Doc) {
    // Nobody else gives devices or nodes.
    assert!(claim.at("/status/allocation").is_null(), "{claim}");
    let api = cluster.api(&CLAIMS, NAMESPACE);
    let options = WriteOptions::default();
    let protected = claim.with_finalizer(FINALIZER);
    let claim = api.update(&protected, &options).await.unwrap();
    let consumer = doc!({
        "resource": "pods", "name": (pod.meta().name()), "uid": (pod.meta().uid_str()),
    });
    let status = doc!({
        "reservedFor": [consumer],
        "allocation": { "devices": { "results": [
            { "request": "gpu", "driver": "gpu.example.com", "pool": "n", "device": "d" },
        ] } },
    });
    let scheduled = cluster.patch_status(&claim, status).await;
    let binding = doc!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": (pod.meta().name()) },
        "target": { "kind": "Node", "name": "n" },
    });
    let pods = cluster.api(&PODS, NAMESPACE);
    let name = pod.meta().name();
    let bound = pods.create_part(name, "binding", &binding, &options).await;
    bound.unwrap();
    let running = doc!({ "phase": "Running" });
    let pod = cluster.find(&PODS, pod.meta().key().as_ref()).await;
    cluster.patch_status(&pod.unwrap(), running).await;
    // What was written after that has been seen when the next claim is there.
    let other = cluster.create_doc(&crate::claims::pod("other", "t")).await;
    cluster
        .until(async |c| !recorded(c, "other").await.is_empty())
        .await;
    let key = scheduled.meta().key().to_string();
    let now = cluster.find(&CLAIMS, &key).await.unwrap();
    assert_eq!(now.at("/status"), scheduled.at("/status"));
    let gone = DeleteOptions {
        grace_period: Some(std::time::Duration::ZERO),
        ..DeleteOptions::uid(other.meta().uid_str())
    };
    pods.delete("other", &gone).await.unwrap();

    let pod = cluster.find(&PODS, &format!("{NAMESPACE}/web")).await;
    let ended = doc!({ "phase": "Succeeded" });
    cluster.patch_status(&pod.unwrap(), ended).await;
    cluster
        .until(async |c| c.find(&CLAIMS, &key).await.is_none())
        .await;
}

async fn templates_of_other_namespaces_do_not_count(cluster: &Cluster) {
    let before = claims(cluster).await.len();
    cluster.create_doc(&pod("lost", "elsewhere")).await;
    cluster
        .until(async |c| {
            let events = c.list_docs(&EVENTS, NAMESPACE, "").await;
            let mut events = events.iter();
            events.any(|event| event.str_at("/reason") == "FailedResourceClaimCreation")
        })
        .await;
    assert_eq!(claims(cluster).await.len(), before);
}

//! The scheduler and the pretend nodes on the real kube-apiserver.

use std::time::Duration;

use windlass_client::{Config, DeleteOptions};
use windlass_core::{Doc, Gvr, condition, doc};
use windlass_envtest::real_server;
use windlass_placement::{node, scheduler};
use windlass_testing::Cluster;

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const NODES: Gvr = Gvr::constant("", "v1", "nodes");
const LEASES: Gvr = Gvr::constant("coordination.k8s.io", "v1", "leases");
const EVENTS: Gvr = Gvr::constant("", "v1", "events");
const NAMESPACE: &str = "pretend";

fn pod(name: &str, cpu: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "web", "image": "web:1", "resources": { "requests": { "cpu": cpu } },
            }],
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_run_on_pretend_nodes_of_the_real_server_and_go() {
    let Some(server) = real_server() else { return };
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let cluster = Cluster::builder()
        .existing(config)
        .patience(Duration::from_secs(60))
        .start()
        .await;
    cluster
        .create_doc(&doc!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE },
        }))
        .await;
    cluster.run_with("windlass", |manager| {
        scheduler::add_to(manager, &scheduler::Options::default());
        node::add_to(manager, &node::Options::default());
    });
    let has_nodes = async |c: &Cluster| {
        let nodes = c.list_docs(&NODES, "", "").await;
        let is_open = |node: &Doc| node.at("/spec/taints").is_null();
        nodes.len() == 3 && nodes.iter().all(is_open)
    };
    cluster.until(has_nodes).await;
    for number in 0..20 {
        cluster
            .create_doc(&pod(&format!("p{number}"), "100m"))
            .await;
    }
    let are_ready = async |c: &Cluster| {
        let pods = c.list_docs(&PODS, NAMESPACE, "").await;
        pods.len() == 20 && pods.iter().all(windlass_workloads::is_pod_ready)
    };
    cluster.until(are_ready).await;
    check_nodes(&cluster).await;
    check_refusal(&cluster).await;
    let api = cluster.api(&PODS, NAMESPACE);
    for pod in cluster.list_docs(&PODS, NAMESPACE, "").await {
        let options = DeleteOptions::uid(pod.meta().uid_str());
        api.delete(pod.meta().name(), &options).await.unwrap();
    }
    let is_empty = async |c: &Cluster| c.list_docs(&PODS, NAMESPACE, "").await.is_empty();
    cluster.until(is_empty).await;
}

async fn check_nodes(cluster: &Cluster) {
    let pods = cluster.list_docs(&PODS, NAMESPACE, "").await;
    for node in cluster.list_docs(&NODES, "", "").await {
        let name = node.meta().name();
        assert!(condition(&node, "Ready").is_some_and(|ready| ready.is_true()));
        let key = format!("kube-node-lease/{name}");
        let has_lease = async |c: &Cluster| c.find(&LEASES, &key).await.is_some();
        cluster.until(has_lease).await;
    }
    let status = pods[0].at("/status");
    assert_eq!(status.str_at("/phase"), "Running");
    assert!(!status.str_at("/podIP").is_empty());
    assert_eq!(
        status.at("/observedGeneration"),
        pods[0].at("/metadata/generation")
    );
}

async fn check_refusal(cluster: &Cluster) {
    cluster.create_doc(&pod("huge", "1000")).await;
    let key = format!("{NAMESPACE}/huge");
    let refused = async |c: &Cluster| {
        let pod = c.find(&PODS, &key).await?;
        condition(&pod, "PodScheduled").filter(|found| !found.is_true())
    };
    cluster.until(async |c| refused(c).await.is_some()).await;
    let message = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are \
                   available: 3 Preemption is not helpful for scheduling.";
    assert_eq!(
        refused(cluster).await.map(|found| found.message).as_deref(),
        Some(message)
    );
    let is_told = async |c: &Cluster| {
        let events = c.list_docs(&EVENTS, NAMESPACE, "").await;
        events.iter().any(|event| {
            event.str_at("/reason") == "FailedScheduling" && event.str_at("/message") == message
        })
    };
    cluster.until(is_told).await;
}

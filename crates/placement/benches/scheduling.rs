//! How fast pods get to nodes and become ready, in one process.
//!
//! `cargo bench -p windlass-placement --bench scheduling -- [PODS] [NODES] [SORT]` places pods
//! of one template on pretend nodes. The sort is `plain`, or `apart` for pods that avoid each
//! other on a label that no node has twice.

use std::time::Duration;

use tokio::time::Instant;
use windlass_client::WriteOptions;
use windlass_core::{Doc, Env, Gvr, doc};
use windlass_placement::{node, scheduler};
use windlass_testing::{Cluster, Running};

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const NODES: Gvr = Gvr::constant("", "v1", "nodes");

/// What is measured.
struct Plan {
    pods: usize,
    nodes: usize,
    is_apart: bool,
}

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let plan = Plan {
        pods: numbers.first().copied().unwrap_or(5000),
        nodes: numbers.get(1).copied().unwrap_or(500),
        is_apart: std::env::args().any(|arg| arg == "apart"),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime
        .expect("a runtime is built")
        .block_on(measure(&plan));
}

async fn measure(plan: &Plan) {
    let cluster = Cluster::builder()
        .env(Env::real())
        .patience(Duration::from_secs(300))
        .start()
        .await;
    let mut options = node::Options::default();
    options.nodes = plan.nodes;
    let began = Instant::now();
    cluster.run_with("nodes", |manager| node::add_to(manager, &options));
    until(&cluster, &NODES, plan.nodes, |_| true).await;
    println!("{} nodes registered in {:?}", plan.nodes, began.elapsed());
    let began = Instant::now();
    let api = cluster.api(&PODS, "default");
    for number in 0..plan.pods {
        let created = api
            .create(&pod(number, plan), &WriteOptions::default())
            .await;
        created.expect("the pod is created");
    }
    rate("created", plan.pods, began);
    let began = Instant::now();
    let running = cluster.run_with("scheduler", |manager| {
        scheduler::add_to(manager, &scheduler::Options::default());
    });
    let is_bound = |pod: &Doc| !pod.str_at("/spec/nodeName").is_empty();
    until(&cluster, &PODS, plan.pods, is_bound).await;
    rate("bound", plan.pods, began);
    until(&cluster, &PODS, plan.pods, windlass_workloads::is_pod_ready).await;
    rate("ready", plan.pods, began);
    cycles(&running);
}

/// Waits until so many objects are as they should be.
async fn until(cluster: &Cluster, resource: &Gvr, count: usize, holds: impl Fn(&Doc) -> bool) {
    let are_there = async |c: &Cluster| {
        let all = c.list_docs(resource, "", "").await;
        all.iter().filter(|object| holds(object)).count() == count
    };
    cluster.until(are_there).await;
}

fn rate(what: &str, count: usize, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    let per_second = f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / seconds;
    println!("{count} pods {what} in {seconds:.3} s: {per_second:.0}/s");
}

/// What the scheduler says of the time of its decisions.
fn cycles(running: &Running) {
    let text = running.metrics();
    let value = |name: &str| {
        let name = format!("scheduler_scheduling_algorithm_duration_seconds_{name} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name));
        line.and_then(|value| value.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    let (count, sum) = (value("count"), value("sum"));
    println!(
        "{count} decisions of {:.2} us: {:.0}/s",
        sum / count * 1e6,
        count / sum
    );
}

fn pod(number: usize, plan: &Plan) -> Doc {
    let name = format!("pod-{number}");
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": "web" } },
        "spec": { "containers": [{
            "name": "web", "image": "web:1",
            "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
        }] },
    });
    if !plan.is_apart {
        return pod;
    }
    let term = doc!({
        "labelSelector": { "matchLabels": { "app": "other" } },
        "topologyKey": "kubernetes.io/hostname",
    });
    let rule =
        doc!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    pod.with("/spec/affinity", rule).unwrap_or(pod)
}

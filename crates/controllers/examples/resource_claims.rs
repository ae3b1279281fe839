//! Eight devices, twelve pods: who gets one, who waits and why, and what happens when one is done.
//!
//! Everything runs in this process: the API server, the claim controller, the scheduler, a
//! pretend driver and two pretend nodes. `cargo run --example resource_claims`

use std::{sync::Arc, time::Duration};

use windlass_client::{DeleteOptions, Patch, WriteOptions};
use windlass_controllers::{
    claims,
    driver::{self, DRIVER},
    dynamic_resources::{self, DynamicResources},
    node, scheduler,
};
use windlass_core::{Doc, Gvr, condition, doc};
use windlass_testing::Cluster;

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const CLAIMS: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaims");
const SLICES: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceslices");

const NODES: usize = 2;
const DEVICES_PER_NODE: usize = 4;
const PODS_COUNT: usize = 12;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let cluster = Cluster::start().await;
    run_everything(&cluster);
    let slices = async |c: &Cluster| c.list_docs(&SLICES, "", "").await.len() == NODES;
    cluster.until(slices).await;
    println!("{NODES} nodes offer {DEVICES_PER_NODE} devices each.");

    cluster.create_doc(&template()).await;
    for number in 1..=PODS_COUNT {
        cluster.create_doc(&pod(number)).await;
    }
    println!("{PODS_COUNT} pods are made from one template that asks for one device.\n");
    let running = async |c: &Cluster| in_phase(c, "Running").await.len() == 8;
    cluster.until(running).await;
    cluster.pass(Duration::from_secs(2)).await;
    show(&cluster).await;

    let done = in_phase(&cluster, "Running").await.remove(0);
    println!("\n{} finishes.", done.meta().name());
    let patch = Patch::Merge(doc!({ "status": { "phase": "Succeeded" } }));
    let api = cluster.api(&PODS, "default");
    let options = WriteOptions::default();
    let finished = api.patch_status(done.meta().name(), &patch, &options);
    finished.await.expect("the status is written");
    let replaced = async |c: &Cluster| {
        in_phase(c, "Running").await.len() == 8 && in_phase(c, "Pending").await.len() == 3
    };
    cluster.until(replaced).await;
    cluster.pass(Duration::from_secs(2)).await;
    show(&cluster).await;

    println!("\nAll pods are deleted.");
    for pod in cluster.list_docs(&PODS, "default", "").await {
        let options = DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..DeleteOptions::uid(pod.meta().uid_str())
        };
        let deleted = api.delete(pod.meta().name(), &options).await;
        deleted.expect("the pod is deleted");
    }
    let free = async |c: &Cluster| devices_in_use(c).await.is_empty();
    cluster.until(free).await;
    println!("All {} devices are free.", NODES * DEVICES_PER_NODE);
}

/// Runs what makes pods with claims run.
fn run_everything(cluster: &Cluster) {
    cluster.run_with("resource-claims", |manager| {
        claims::add_to(manager, &claims::Options::default());
        let devices = driver::Options {
            devices_per_node: DEVICES_PER_NODE,
            ..driver::Options::default()
        };
        let preparer = driver::add_to(manager, &devices);
        let mut nodes = node::Options::default();
        nodes.nodes = NODES;
        nodes.resources = Some(preparer);
        node::add_to(manager, &nodes);
        let plugin = DynamicResources::new(manager, &dynamic_resources::Options::default());
        let mut scheduling = scheduler::Options::default();
        scheduling.plugins.push(Arc::new(plugin));
        scheduler::add_to(manager, &scheduling);
    });
}

fn template() -> Doc {
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": { "namespace": "default", "name": "one-gpu" },
        "spec": { "spec": { "devices": { "requests": [
            { "name": "gpu", "exactly": { "deviceClassName": DRIVER } }
        ] } } }
    })
}

fn pod(number: usize) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "default", "name": (format!("pod-{number:02}")) },
        "spec": {
            "containers": [{
                "name": "main", "image": "train", "resources": { "claims": [{ "name": "gpu" }] }
            }],
            "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "one-gpu" }]
        }
    })
}

async fn in_phase(cluster: &Cluster, phase: &str) -> Vec<Doc> {
    let mut pods = cluster.list_docs(&PODS, "default", "").await;
    pods.retain(|pod| pod.str_at("/status/phase") == phase);
    pods.sort_by_key(|pod| pod.meta().name().to_owned());
    pods
}

/// The devices that claims have, each with its claim.
async fn devices_in_use(cluster: &Cluster) -> Vec<(String, String)> {
    let mut devices = Vec::new();
    for claim in cluster.list_docs(&CLAIMS, "default", "").await {
        for result in claim.at("/status/allocation/devices/results").items() {
            let device = format!("{}/{}", result.str_at("/pool"), result.str_at("/device"));
            devices.push((claim.meta().name().to_owned(), device));
        }
    }
    devices
}

/// Prints every pod with its device, or with the reason why it waits.
async fn show(cluster: &Cluster) {
    let devices = devices_in_use(cluster).await;
    let mut pods = cluster.list_docs(&PODS, "default", "").await;
    pods.sort_by_key(|pod| pod.meta().name().to_owned());
    for pod in &pods {
        let (name, phase) = (pod.meta().name(), pod.str_at("/status/phase"));
        let claim = pod.str_at("/status/resourceClaimStatuses/0/resourceClaimName");
        let device = devices.iter().find(|(of, _)| of == claim);
        let why = condition(pod, "PodScheduled").filter(|scheduled| !scheduled.is_true());
        match (device, why) {
            (Some((_, device)), _) => println!("{name}  {phase:<9}  {device}"),
            (None, Some(why)) => println!("{name}  {phase:<9}  {}", first_sentence(&why.message)),
            (None, None) => println!("{name}  {phase}"),
        }
    }
}

fn first_sentence(text: &str) -> &str {
    text.split_inclusive(". ").next().unwrap_or(text).trim_end()
}

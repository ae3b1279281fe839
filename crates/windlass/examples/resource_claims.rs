//! Resource claims: eight devices, twelve pods. Who gets one, who waits and why, and what happens
//! when one is done.
//!
//! The API server, the claim controller, the scheduler, a pretend driver and two pretend nodes run
//! in this process, on a clock that does not wait. `cargo run -p windlass --example resource_claims`
//! shows it and ends.

use std::time::Duration;

use windlass::client::{DeleteOptions, Patch, WriteOptions};
use windlass::core::{Gvr, condition};
use windlass::prelude::*;
use windlass::testing::Cluster;

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const CLAIMS: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaims");
const SLICES: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceslices");

const NODES: usize = 2;
const DEVICES_PER_NODE: usize = 4;
const DEVICES: usize = NODES * DEVICES_PER_NODE;
const PODS_COUNT: usize = 12;

const TEMPLATE: &str = "
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: { namespace: default, name: one-gpu }
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: { deviceClassName: gpu.windlass.dev }
";

fn pod(number: usize) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "default", "name": (format!("pod-{number:02}")) },
        "spec": {
            "containers": [{
                "name": "main", "image": "train", "resources": { "claims": [{ "name": "gpu" }] },
            }],
            "resourceClaims": [{ "name": "gpu", "resourceClaimTemplateName": "one-gpu" }],
        },
    })
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<()> {
    let cluster = Cluster::builder()
        .controllers(["*"])
        .settings(|settings| {
            settings.node.nodes = NODES;
            settings.driver.devices_per_node = DEVICES_PER_NODE;
        })
        .start()
        .await;
    let slices = async |c: &Cluster| c.list_docs(&SLICES, "", "").await.len() == NODES;
    cluster.until(slices).await;
    println!("{NODES} nodes offer {DEVICES_PER_NODE} devices each.");

    cluster.create_yaml(TEMPLATE).await;
    for number in 1..=PODS_COUNT {
        cluster.create_doc(&pod(number)).await;
    }
    println!("{PODS_COUNT} pods are made from one template that asks for one device.\n");
    cluster
        .until(async |c| is_shared_out(c, PODS_COUNT).await)
        .await;
    show(&cluster).await;

    let done = in_phase(&cluster, "Running").await.remove(0);
    println!("\n{} finishes.", done.meta().name());
    let patch = Patch::Merge(doc!({ "status": { "phase": "Succeeded" } }));
    let api = cluster.api(&PODS, "default");
    api.patch_status(done.meta().name(), &patch, &WriteOptions::default())
        .await?;
    cluster
        .until(async |c| is_shared_out(c, PODS_COUNT - 1).await)
        .await;
    show(&cluster).await;

    println!("\nAll pods are deleted.");
    for pod in cluster.list_docs(&PODS, "default", "").await {
        let options = DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..DeleteOptions::uid(pod.meta().uid_str())
        };
        api.delete(pod.meta().name(), &options).await?;
    }
    cluster
        .until(async |c| devices_in_use(c).await.is_empty())
        .await;
    println!("All {DEVICES} devices are free.");
    Ok(())
}

/// Whether as many pods run as there are devices, and all others know why they wait.
async fn is_shared_out(cluster: &Cluster, pods: usize) -> bool {
    let waiting = in_phase(cluster, "Pending").await;
    let know_why = waiting.iter().filter(|pod| reason(pod).is_some()).count();
    in_phase(cluster, "Running").await.len() == DEVICES && know_why == pods - DEVICES
}

async fn in_phase(cluster: &Cluster, phase: &str) -> Vec<Doc> {
    let mut pods = cluster.list_docs(&PODS, "default", "").await;
    pods.retain(|pod| pod.str_at("/status/phase") == phase);
    pods.sort_by_key(|pod| pod.meta().name().to_owned());
    pods
}

/// The first sentence of why a pod is not scheduled.
fn reason(pod: &Doc) -> Option<String> {
    let scheduled = condition(pod, "PodScheduled")?;
    let first = scheduled.message.split_inclusive(". ").next()?;
    (!scheduled.is_true()).then(|| first.trim_end().to_owned())
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
        let device = device.map(|(_, device)| device.clone());
        let what = device.or_else(|| reason(pod)).unwrap_or_default();
        println!("{name}  {phase:<9}  {what}");
    }
}

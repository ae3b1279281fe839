//! The pod printer: a controller that only looks. It gets keys, reads the cache, and says what it
//! finds; a key that fails is tried five more times and then dropped.
//!
//! `cargo run -p windlass --example pod_printer` shows it on a cluster in this process, and ends.
//! With `USE_EXISTING_CLUSTER=true` it works on the cluster of the kubeconfig.

use std::time::Duration;

use windlass::client::{DeleteOptions, Typed as _};
use windlass::k8s_openapi::api::core::v1::Pod;
use windlass::prelude::*;
use windlass::testing::Cluster;

/// Reconciles a key rather than an object: a pod that is gone is news too.
async fn print(key: Key, cx: Context) -> Result<Action> {
    match cx.lister::<Pod>()?.get(&key) {
        None => println!("Pod {key} does not exist anymore"),
        Some(pod) => println!("Sync/Add/Update for Pod {}", pod.name()),
    }
    Ok(Action::done())
}

#[tokio::main]
async fn main() -> Result<()> {
    let cluster = Cluster::start().await;
    let printer = Controller::of_keys::<Pod>(print)
        .named("pod-printer")
        .only(|spec| spec.labels("lab=pod-printer"))
        .max_retries(5);
    let running = cluster.run(printer);

    let pod = "{apiVersion: v1, kind: Pod,
        metadata: {name: lab-printed, namespace: default, labels: {lab: pod-printer}},
        spec: {containers: [{name: web, image: nginx}]}}";
    let pod = cluster.create_yaml(pod).await.remove(0);
    let key = pod.meta().key();
    let times = |text: &str| text.matches("because ").count();
    cluster
        .until(async |_| times(&running.why(&key)) >= 1)
        .await;

    let at_once = DeleteOptions {
        grace_period: Some(Duration::ZERO),
        ..DeleteOptions::uid(pod.meta().uid_str())
    };
    let pods = cluster.api(&Pod::gvr(), "default");
    pods.delete(pod.meta().name(), &at_once).await?;
    cluster
        .until(async |_| times(&running.why(&key)) >= 2)
        .await;
    Ok(())
}

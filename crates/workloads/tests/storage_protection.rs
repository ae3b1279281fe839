//! The protection of volumes and claims in use, seen by their user.
#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests as well"
)]

use std::time::Duration;

use windlass_client::{Config, Propagation};
use windlass_core::{Doc, Gvr, doc};
use windlass_envtest::real_server;
use windlass_testing::Cluster;
use windlass_workloads::{namespace, pvcprotection, pvprotection};

const CLAIMS: Gvr = Gvr::constant("", "v1", "persistentvolumeclaims");
const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");
const PODS: Gvr = Gvr::constant("", "v1", "pods");
const VOLUMES: Gvr = Gvr::constant("", "v1", "persistentvolumes");

/// A namespace and a claim in it.
async fn create_claim(cluster: &Cluster, namespace: &str) -> (Doc, Doc) {
    let made = doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    let made = cluster.create_doc(&made).await;
    let claim = doc!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": "data", "namespace": namespace },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } }
        }
    });
    (made, cluster.create_doc(&claim).await)
}

async fn create_volume(cluster: &Cluster) -> Doc {
    let volume = doc!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "disk" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
            "hostPath": { "path": "/disk" }
        }
    });
    cluster.create_doc(&volume).await
}

/// A pod that mounts the claim, on a node.
async fn create_pod(cluster: &Cluster, namespace: &str) -> Doc {
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": namespace },
        "spec": {
            "nodeName": "somewhere", "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "c", "image": "i" }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]
        }
    });
    cluster.create_doc(&pod).await
}

async fn until_gone(cluster: &Cluster, resource: &Gvr, key: &str) {
    cluster
        .until(async |cluster| cluster.find(resource, key).await.is_none())
        .await;
}

fn finalizers(object: &Doc) -> Vec<String> {
    object.meta().finalizers().map(str::to_owned).collect()
}

async fn protected() -> Cluster {
    let names = [namespace::NAME, pvcprotection::NAME, pvprotection::NAME];
    Cluster::builder().controllers(names).start().await
}

/// Nobody would take the finalizers away.
#[tokio::test(start_paused = true)]
async fn volumes_claims_and_their_namespaces_can_be_deleted_without_protection() {
    let names = [namespace::NAME];
    let cluster = Cluster::builder().controllers(names).start().await;
    let (_, claim) = create_claim(&cluster, "shop").await;
    assert!(finalizers(&claim).is_empty());
    cluster.delete(&claim, Propagation::Background).await;
    assert_eq!(cluster.find(&CLAIMS, "shop/data").await, None);
    let volume = create_volume(&cluster).await;
    assert!(finalizers(&volume).is_empty());
    cluster.delete(&volume, Propagation::Background).await;
    assert_eq!(cluster.find(&VOLUMES, "disk").await, None);

    let (bank, _) = create_claim(&cluster, "bank").await;
    cluster.delete(&bank, Propagation::Background).await;
    until_gone(&cluster, &NAMESPACES, "bank").await;
}

#[tokio::test(start_paused = true)]
async fn volumes_claims_and_their_namespaces_can_be_deleted_with_protection() {
    let cluster = protected().await;
    let (shop, claim) = create_claim(&cluster, "shop").await;
    assert_eq!(finalizers(&claim), [pvcprotection::FINALIZER]);
    cluster.delete(&claim, Propagation::Background).await;
    until_gone(&cluster, &CLAIMS, "shop/data").await;
    let volume = create_volume(&cluster).await;
    assert_eq!(finalizers(&volume), [pvprotection::FINALIZER]);
    cluster.delete(&volume, Propagation::Background).await;
    until_gone(&cluster, &VOLUMES, "disk").await;
    cluster.delete(&shop, Propagation::Background).await;
    until_gone(&cluster, &NAMESPACES, "shop").await;

    let (bank, _) = create_claim(&cluster, "bank").await;
    cluster.delete(&bank, Propagation::Background).await;
    until_gone(&cluster, &NAMESPACES, "bank").await;
}

async fn what_is_used_stays(cluster: &Cluster) {
    let (_, claim) = create_claim(cluster, "used").await;
    let pod = create_pod(cluster, "used").await;
    cluster.delete(&claim, Propagation::Background).await;
    cluster.pass(Duration::from_secs(5)).await;
    let kept = cluster.find(&CLAIMS, "used/data").await.unwrap();
    assert_eq!(finalizers(&kept), [pvcprotection::FINALIZER]);
    cluster.delete(&pod, Propagation::Background).await;
    until_gone(cluster, &PODS, "used/a").await;
    until_gone(cluster, &CLAIMS, "used/data").await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_stays_while_a_pod_on_a_node_uses_it() {
    what_is_used_stays(&protected().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_of_the_real_server_stays_while_a_pod_on_a_node_uses_it() {
    let Some(server) = real_server() else {
        return;
    };
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let cluster = Cluster::builder().existing(config).start().await;
    let running = cluster.run_with("protection", |manager| {
        pvcprotection::add_to(manager, &Default::default());
    });
    what_is_used_stays(&cluster).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_volume_stays_while_it_is_bound() {
    let cluster = protected().await;
    let volume = create_volume(&cluster).await;
    cluster
        .patch_status(&volume, doc!({ "phase": "Bound" }))
        .await;
    cluster.delete(&volume, Propagation::Background).await;
    cluster.pass(Duration::from_secs(60)).await;
    let kept = cluster.find(&VOLUMES, "disk").await.unwrap();
    assert_eq!(finalizers(&kept), [pvprotection::FINALIZER]);
    cluster
        .patch_status(&kept, doc!({ "phase": "Released" }))
        .await;
    until_gone(&cluster, &VOLUMES, "disk").await;
}

/// Objects that were there before the rule.
#[tokio::test(start_paused = true)]
async fn what_has_no_protection_gets_it() {
    let cluster = Cluster::start().await;
    create_claim(&cluster, "old").await;
    create_volume(&cluster).await;
    cluster.run_with("protection", |manager| {
        pvcprotection::add_to(manager, &Default::default());
        pvprotection::add_to(manager, &Default::default());
    });
    cluster
        .until(async |cluster| {
            let claim = cluster.find(&CLAIMS, "old/data").await.unwrap();
            let volume = cluster.find(&VOLUMES, "disk").await.unwrap();
            finalizers(&claim) == [pvcprotection::FINALIZER]
                && finalizers(&volume) == [pvprotection::FINALIZER]
        })
        .await;
}

//! Pods with PersistentVolumeClaims.

use std::{sync::Arc, time::Duration};

use windlass_core::{Doc, Gvr, doc};
use windlass_placement::{scheduler, volume_binding::VolumeBinding};
use windlass_testing::Cluster;

use crate::support::{
    assert_waits, bare_cluster, find, force_delete, node, node_of, pod, reasons_of, set,
};

const CLAIMS: Gvr = Gvr::constant("", "v1", "persistentvolumeclaims");
const VOLUMES: Gvr = Gvr::constant("", "v1", "persistentvolumes");
const SELECTED: &str = "volume.kubernetes.io/selected-node";

fn class(name: &str, mode: &str, provisioner: &str) -> Doc {
    doc!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": name },
        "provisioner": provisioner, "volumeBindingMode": mode,
    })
}

fn claim(name: &str, class: &str, mode: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "storageClassName": class, "accessModes": [mode],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    })
}

/// A volume that is on one node.
fn volume(name: &str, class: &str, node: &str, size: &str) -> Doc {
    let names = doc!([{ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] }]);
    doc!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
        "spec": {
            "storageClassName": class, "capacity": { "storage": size },
            "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "/data" },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": names }] } },
        },
    })
}

fn user(name: &str, claim: &str) -> Doc {
    let volumes = doc!([{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }]);
    set(&pod(name), "/spec/volumes", volumes)
}

async fn cluster() -> Cluster {
    let cluster = bare_cluster(&[node("a"), node("b"), node("c")]).await;
    for class in [
        class("late", "WaitForFirstConsumer", "example.com/disk"),
        class(
            "local",
            "WaitForFirstConsumer",
            "kubernetes.io/no-provisioner",
        ),
        class("now", "Immediate", "example.com/disk"),
    ] {
        cluster.create_doc(&class).await;
    }
    cluster.run_with("scheduler", |manager| {
        let mut options = scheduler::Options::default();
        options.plugins.push(Arc::new(VolumeBinding::new(manager)));
        scheduler::add_to(manager, &options);
    });
    cluster
}

async fn available(cluster: &Cluster, volume: &Doc) {
    let made = cluster.create_doc(volume).await;
    let status = doc!({ "phase": "Available" });
    cluster.patch_status(&made, status).await;
}

/// Does what a volume controller does: both sides say that they belong together.
async fn complete(cluster: &Cluster, name: &str, volume: &str) {
    let claim = cluster.find(&CLAIMS, &format!("default/{name}")).await;
    let patch = doc!({
        "metadata": { "annotations": { "pv.kubernetes.io/bind-completed": "yes" } },
        "spec": { "volumeName": volume },
    });
    let claim = claim.expect("the claim exists");
    cluster.patch(&claim, patch).await;
}

#[tokio::test(start_paused = true)]
async fn pod_waits_for_a_claim_that_is_missing_or_unbound() {
    let cluster = cluster().await;
    cluster.create_doc(&user("p", "data")).await;
    let reasons = reasons_of(&cluster, "p").await;
    assert_eq!(reasons, "persistentvolumeclaim \"data\" not found.");
    cluster
        .create_doc(&claim("data", "now", "ReadWriteOnce"))
        .await;
    let unbound = async |c: &Cluster| {
        let reasons = reasons_of(c, "p").await;
        reasons == "pod has unbound immediate PersistentVolumeClaims."
    };
    cluster.until(unbound).await;
    assert_waits(&cluster, "p").await;
    available(&cluster, &volume("v", "now", "b", "1Gi")).await;
    complete(&cluster, "data", "v").await;
    assert_eq!(node_of(&cluster, "p").await, "b", "the volume is there");
}

#[tokio::test(start_paused = true)]
async fn pod_without_claims_does_not_wait_for_volumes() {
    let cluster = cluster().await;
    cluster.create_doc(&pod("p")).await;
    node_of(&cluster, "p").await;
}

#[tokio::test(start_paused = true)]
async fn volume_is_provisioned_where_the_pod_goes() {
    let cluster = cluster().await;
    cluster
        .create_doc(&claim("data", "late", "ReadWriteOnce"))
        .await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&user("p", "data")).await;
    let selected = async |c: &Cluster| {
        let claim = c.find(&CLAIMS, "default/data").await.unwrap();
        claim.meta().annotation(SELECTED).map(str::to_owned)
    };
    cluster.until(async |c| selected(c).await.is_some()).await;
    let node = selected(&cluster).await.unwrap();
    assert_waits(&cluster, "p").await;
    available(&cluster, &volume("v", "late", &node, "1Gi")).await;
    complete(&cluster, "data", "v").await;
    assert_eq!(node_of(&cluster, "p").await, node);
}

#[tokio::test(start_paused = true)]
async fn provisioner_that_gives_up_lets_the_pod_be_tried_again() {
    let cluster = cluster().await;
    let claim = cluster
        .create_doc(&claim("data", "late", "ReadWriteOnce"))
        .await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&user("p", "data")).await;
    let selected = async |c: &Cluster| {
        let claim = c.find(&CLAIMS, "default/data").await.unwrap();
        claim.meta().annotation(SELECTED).is_some()
    };
    cluster.until(selected).await;
    let reset = doc!({ "metadata": { "annotations": { SELECTED: null } } });
    cluster.patch(&claim, reset).await;
    let (reason, message) = crate::support::refusal_of(&cluster, "p").await;
    assert_eq!(reason, "SchedulerError");
    assert_eq!(
        message,
        "running PreBind plugin \"VolumeBinding\": binding volumes: selectedNode annotation reset \
         for PVC \"data\""
    );
    cluster.until(selected).await;
}

#[tokio::test(start_paused = true)]
async fn local_volume_decides_about_the_node_and_goes_to_one_claim() {
    let cluster = cluster().await;
    available(&cluster, &volume("large", "local", "b", "9Gi")).await;
    available(&cluster, &volume("small", "local", "b", "2Gi")).await;
    for name in ["one", "two", "three"] {
        let claim = claim(name, "local", "ReadWriteOnce");
        cluster.create_doc(&claim).await;
    }
    cluster.pass(Duration::from_secs(1)).await;
    let taken = async |c: &Cluster, name: &str| {
        let volume = c.find(&VOLUMES, name).await.unwrap();
        volume.str_at("/spec/claimRef/name").to_owned()
    };
    for (pod, volume) in [("one", "small"), ("two", "large")] {
        cluster.create_doc(&user(pod, pod)).await;
        cluster.until(async |c| taken(c, volume).await == pod).await;
        complete(&cluster, pod, volume).await;
        assert_eq!(node_of(&cluster, pod).await, "b");
    }
    cluster.create_doc(&user("three", "three")).await;
    assert_eq!(
        reasons_of(&cluster, "three").await,
        "3 node(s) didn't find available persistent volumes to bind."
    );
    available(&cluster, &volume("new", "local", "c", "1Gi")).await;
    cluster
        .until(async |c| taken(c, "new").await == "three")
        .await;
    complete(&cluster, "three", "new").await;
    assert_eq!(node_of(&cluster, "three").await, "c");
}

#[tokio::test(start_paused = true)]
async fn claim_for_one_pod_keeps_the_next_one_waiting() {
    let cluster = cluster().await;
    available(&cluster, &volume("v", "now", "b", "1Gi")).await;
    cluster
        .create_doc(&claim("data", "now", "ReadWriteOncePod"))
        .await;
    complete(&cluster, "data", "v").await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&user("first", "data")).await;
    assert_eq!(node_of(&cluster, "first").await, "b");
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&user("second", "data")).await;
    assert_eq!(
        reasons_of(&cluster, "second").await,
        "3 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode \
         already in-use by another pod."
    );
    assert_waits(&cluster, "second").await;
    force_delete(&cluster, "first").await;
    assert_eq!(node_of(&cluster, "second").await, "b");
}

#[tokio::test(start_paused = true)]
async fn volume_elsewhere_keeps_a_pod_off_a_node_by_name() {
    let cluster = cluster().await;
    available(&cluster, &volume("v", "now", "b", "1Gi")).await;
    cluster
        .create_doc(&claim("data", "now", "ReadWriteOnce"))
        .await;
    complete(&cluster, "data", "v").await;
    cluster.pass(Duration::from_secs(1)).await;
    let selector = doc!({ "kubernetes.io/hostname": "a" });
    let picky = set(&user("p", "data"), "/spec/nodeSelector", selector);
    cluster.create_doc(&picky).await;
    assert_eq!(
        reasons_of(&cluster, "p").await,
        "1 node(s) didn't match PersistentVolume's node affinity, 2 node(s) didn't match Pod's node \
         affinity/selector."
    );
    assert_eq!(find(&cluster, "p").await.str_at("/spec/nodeName"), "");
}

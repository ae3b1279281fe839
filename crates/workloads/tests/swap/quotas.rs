//! Quotas of all sorts, for which everything that counts is there before they are. Amounts of one
//! resource are written in one format: how a sum of two is written depends on which comes first.

use std::cell::Cell;

use windlass_core::{Doc, Object, doc, merge_patch};
use windlass_workloads::resourcequota;

use crate::{
    normal::bare,
    scripts::{QUOTAS, Script, scripts},
    stage::{PODS, Stage, deployment, orphan, replica_set},
};

/// More than there is of anything.
const FIRST_LIMIT: u32 = 100;

/// The scripts by name.
pub(crate) fn all() -> Vec<(&'static str, Script)> {
    scripts![quotas_of_pods, quotas_of_scopes, quotas_of_objects]
}

/// Runs our controller for the stage.
pub(crate) fn run(stage: &Stage) {
    let manager = stage.manager("resourcequota-controller").build().unwrap();
    resourcequota::add_to(&manager, &resourcequota::Options::default());
    stage.cluster.run_manager(manager);
}

/// What the quotas say.
pub(crate) async fn picture(stage: &Stage) -> String {
    let quotas = stage.list(&QUOTAS).await;
    let lines = quotas.iter().map(|quota| {
        let json = bare(quota).to_json();
        String::from_utf8(json).unwrap()
    });
    lines.collect::<Vec<_>>().join("\n")
}

async fn until_counted(stage: &Stage) {
    stage
        .until(async |s| {
            let quotas = s.list(&QUOTAS).await;
            let is_counted = |it: &Doc| it.at("/spec/hard") == it.at("/status/hard");
            quotas.iter().all(is_counted)
        })
        .await;
}

async fn quota(stage: &Stage, name: &str, spec: Doc) {
    let quota = doc!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": name }, "spec": spec
    });
    stage.create(quota).await;
}

/// Waits until the controller has seen all objects: it does not count again because there are more.
/// Every change of the limits makes it count.
async fn until_seen(stage: &Stage, expected: Doc) {
    let hard = |limit: u32| {
        let names = expected.as_object().unwrap().keys().iter();
        let fields = names.map(|name| (name.clone(), limit.to_string().into()));
        doc!({ "hard": (Doc::from(Object::new(fields.collect()))) })
    };
    quota(stage, "first", hard(FIRST_LIMIT)).await;
    let limit = Cell::new(FIRST_LIMIT);
    let count = async |s: &Stage, limit: u32| {
        let spec = doc!({ "spec": (hard(limit)) });
        s.patch(&QUOTAS, "first", spec).await;
        until_counted(s).await;
    };
    stage
        .until(async |s| {
            limit.set(limit.get() + 1);
            count(s, limit.get()).await;
            *s.get(&QUOTAS, "first").await.at("/status/used") == expected
        })
        .await;
    count(stage, FIRST_LIMIT).await;
}

async fn pod(stage: &Stage, name: &str, spec: Doc) {
    let pod = orphan(name, "web");
    let spec = merge_patch(pod.at("/spec"), &spec);
    stage.create(pod.with("/spec", spec).unwrap()).await;
}

fn container(name: &str, resources: Doc) -> Doc {
    doc!({ "name": name, "image": "nginx", "resources": resources })
}

async fn pods(stage: &Stage) {
    pod(stage, "best", doc!({})).await;
    let some =
        doc!({ "requests": { "cpu": "100m", "memory": "1Gi" }, "limits": { "memory": "2Gi" } });
    pod(
        stage,
        "some",
        doc!({ "containers": [(container("c", some))] }),
    )
    .await;
    let limits =
        doc!({ "limits": { "cpu": "1500m", "memory": "1000Mi", "ephemeral-storage": "1Gi" } });
    pod(
        stage,
        "full",
        doc!({ "containers": [(container("a", limits.clone())), (container("b", limits))], "activeDeadlineSeconds": 0x7fff }),
    )
    .await;
    let big = doc!({ "requests": { "cpu": "3", "memory": "100Mi" } });
    let side = doc!({ "requests": { "cpu": "0.25", "example.com/gpu": "2" }, "limits": { "example.com/gpu": "2" } });
    let mut sidecar = container("side", side);
    sidecar = sidecar.with("/restartPolicy", "Always").unwrap();
    let small = doc!({ "requests": { "cpu": "1", "hugepages-2Mi": "4Mi", "memory": "1Mi" }, "limits": { "hugepages-2Mi": "4Mi" } });
    pod(
        stage,
        "init",
        doc!({ "initContainers": [(sidecar), (container("i", big))], "containers": [(container("c", small))] }),
    )
    .await;
    let level = doc!({ "requests": { "cpu": "2", "memory": "3Gi" }, "limits": { "cpu": "4" } });
    let inner = doc!({ "requests": { "cpu": "1" } });
    pod(
        stage,
        "level",
        doc!({ "resources": level, "containers": [(container("c", inner))] }),
    )
    .await;
    pod(
        stage,
        "critical",
        doc!({ "priorityClassName": "system-cluster-critical" }),
    )
    .await;
    let term = doc!({
        "labelSelector": { "matchLabels": { "a": "b" } }, "namespaces": ["other"],
        "topologyKey": "kubernetes.io/hostname"
    });
    let affinity =
        doc!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    pod(stage, "cross", doc!({ "affinity": affinity })).await;
    for (name, phase) in [("failed", "Failed"), ("done", "Succeeded")] {
        let spec = doc!({ "requests": { "cpu": "7" } });
        pod(
            stage,
            name,
            doc!({ "containers": [(container("c", spec))] }),
        )
        .await;
        stage
            .patch_status(&PODS, name, doc!({ "phase": phase }))
            .await;
    }
    pod(stage, "slow", doc!({ "nodeName": "nowhere" })).await;
    stage.delete(&PODS, "slow").await;
    let counts = doc!({ "count/pods": "10", "pods": "8" });
    until_seen(stage, counts).await;
}

async fn quotas_of_pods(stage: &Stage) {
    pods(stage).await;
    let hard = doc!({
        "pods": "100", "count/pods": "100", "cpu": "50", "memory": "1Ti", "requests.cpu": "50",
        "requests.memory": "1Ti", "limits.cpu": "50", "limits.memory": "1Ti",
        "requests.ephemeral-storage": "1Ti", "limits.ephemeral-storage": "1Ti", "ephemeral-storage": "1Ti",
        "requests.example.com/gpu": "9", "hugepages-2Mi": "1Gi", "requests.hugepages-2Mi": "1Gi"
    });
    quota(stage, "all", doc!({ "hard": hard })).await;
    quota(
        stage,
        "few",
        doc!({ "hard": { "pods": "1", "requests.cpu": "100m" } }),
    )
    .await;
    quota(stage, "none", doc!({ "hard": {} })).await;
    until_counted(stage).await;
}

async fn quotas_of_scopes(stage: &Stage) {
    pods(stage).await;
    for scope in [
        "BestEffort",
        "NotBestEffort",
        "Terminating",
        "NotTerminating",
        "CrossNamespacePodAffinity",
    ] {
        let hard = match scope {
            "BestEffort" | "CrossNamespacePodAffinity" => doc!({ "pods": "9" }),
            _ => doc!({ "pods": "9", "requests.cpu": "99", "limits.memory": "1Ti" }),
        };
        quota(
            stage,
            &scope.to_lowercase(),
            doc!({ "hard": hard, "scopes": [scope] }),
        )
        .await;
    }
    let both = doc!({ "hard": { "pods": "9" }, "scopes": ["NotTerminating", "BestEffort"] });
    quota(stage, "both", both).await;
    for (name, operator, values) in [
        ("in", "In", doc!(["system-cluster-critical"])),
        ("not-in", "NotIn", doc!(["system-cluster-critical"])),
        ("exists", "Exists", doc!([])),
        ("not", "DoesNotExist", doc!([])),
    ] {
        let expression =
            doc!({ "scopeName": "PriorityClass", "operator": operator, "values": values });
        let spec = doc!({
            "hard": { "pods": "9", "cpu": "99" }, "scopeSelector": { "matchExpressions": [expression] }
        });
        quota(stage, name, spec).await;
    }
    until_counted(stage).await;
}

async fn quotas_of_objects(stage: &Stage) {
    for (name, class, size) in [
        ("a", doc!("gold"), "1Gi"),
        ("b", doc!(""), "500M"),
        ("c", doc!(null), "2Gi"),
    ] {
        let claim = doc!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name },
            "spec": { "accessModes": ["ReadWriteOnce"], "storageClassName": class,
                "resources": { "requests": { "storage": size } } }
        });
        stage.create(claim).await;
    }
    for (name, kind, more) in [
        ("a", "ClusterIP", doc!({})),
        ("b", "NodePort", doc!({})),
        ("c", "LoadBalancer", doc!({})),
        (
            "d",
            "LoadBalancer",
            doc!({ "allocateLoadBalancerNodePorts": false }),
        ),
        (
            "e",
            "ExternalName",
            doc!({ "externalName": "example.com", "ports": null }),
        ),
    ] {
        let service = doc!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
            "spec": { "type": kind, "ports": [{ "name": "x", "port": 80 }, { "name": "y", "port": 81 }] }
        });
        let service = merge_patch(&service, &doc!({ "spec": more }));
        stage.create(service).await;
    }
    stage.create(deployment("web", 1)).await;
    stage.create(replica_set("shop", 0)).await;
    let secret = doc!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } });
    stage.create(secret).await;
    let counts = doc!({
        "count/deployments.apps": "1", "count/persistentvolumeclaims": "3",
        "count/replicasets.apps": "1", "count/secrets": "1", "count/services": "5"
    });
    until_seen(stage, counts).await;
    let objects = doc!({
        "persistentvolumeclaims": "9", "requests.storage": "1Ti",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Ti",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "9",
        "lead.storageclass.storage.k8s.io/persistentvolumeclaims": "9",
        "count/persistentvolumeclaims": "9", "services": "9", "services.loadbalancers": "9",
        "services.nodeports": "9", "count/services": "9", "configmaps": "9", "secrets": "9",
        "count/secrets": "9", "replicationcontrollers": "9", "resourcequotas": "9",
        "count/deployments.apps": "9", "count/replicasets.apps": "9", "count/deployments.extensions": "9",
        "count/nothing.example.com": "9", "count/serviceaccounts": "9"
    });
    quota(stage, "all", doc!({ "hard": objects })).await;
    until_counted(stage).await;
}

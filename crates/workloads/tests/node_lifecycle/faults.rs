//! Requests fail, watches lag and the process crashes: the pod that is not tolerated goes, the other
//! one stays, and the taints are those of the conditions.

use std::time::Duration;

use windlass_client::{Patch, WriteOptions};
use windlass_core::{Doc, doc};
use windlass_testing::{
    Call, Cluster, Explored, Failure, Fault, Simulation, Stage, World as Objects,
};
use windlass_workloads::{node_lifecycle, taint_eviction};

use crate::world::{NODES, PODS};

const FAULTS: [Fault; 6] = [
    Fault::Refuse(409, "Conflict"),
    Fault::Refuse(500, "InternalError"),
    Fault::NotSent,
    Fault::LostRequest,
    Fault::LostAnswer,
    Fault::Delay(Duration::from_secs(10)),
];

const LAG: Duration = Duration::from_secs(30);
const REST: Duration = Duration::from_secs(30);

async fn cluster(stage: &Stage) -> Cluster {
    let cluster = Cluster::builder().env(stage.env().clone()).start().await;
    stage.observe(&cluster.transport(), &[PODS, NODES]);
    let (transport, started) = (cluster.transport(), cluster.clone());
    stage.start("nodes", &transport, move |transport| {
        let manager = started.manager_on("nodes", transport).build().unwrap();
        node_lifecycle::add_to(&manager, &node_lifecycle::Options::default());
        taint_eviction::add_to(&manager, &taint_eviction::Options::default());
        async move { manager.run().await.unwrap() }
    });
    cluster
}

async fn post(cluster: &Cluster, name: &str, status: &str) {
    let now = cluster.env().now().to_string();
    let ready = doc!({
        "type": "Ready", "status": status,
        "lastHeartbeatTime": (&now), "lastTransitionTime": (&now)
    });
    let patch = Patch::Strategic(doc!({ "status": { "conditions": [ready] } }));
    let api = cluster.resource(NODES);
    api.patch_status(name, &patch, &WriteOptions::default())
        .await
        .unwrap();
}

/// Lets the kubelets of both nodes post their status until something holds.
async fn live(
    stage: &Stage,
    cluster: &Cluster,
    status: &str,
    what: &str,
    holds: impl AsyncFn() -> bool,
) {
    for _ in 0..30 {
        post(cluster, "n1", status).await;
        post(cluster, "n2", "True").await;
        stage.pass(Duration::from_secs(20)).await;
        if holds().await {
            return;
        }
    }
    stage.fail(format!("not in ten minutes: {what}"));
}

/// A node says that it is not ready.
async fn failing(stage: Stage) -> Vec<Doc> {
    let cluster = cluster(&stage).await;
    for name in ["n1", "n2"] {
        let node = doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
        cluster.create_doc(&node).await;
        post(&cluster, name, "True").await;
    }
    // Without it the pod would get one of five minutes.
    let short = ["not-ready", "unreachable"].map(|key| {
        doc!({
            "key": (format!("node.kubernetes.io/{key}")), "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": 1
        })
    });
    let short = Doc::from(short.to_vec());
    for (name, tolerations) in [("goes", short), ("stays", doc!([{ "operator": "Exists" }]))] {
        let pod = doc!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "nodeName": "n1", "tolerations": tolerations,
                "containers": [{ "name": "c", "image": "i" }]
            }
        });
        cluster.create_doc(&pod).await;
    }
    let is_going = async || {
        let pod = cluster.find(&PODS, "default/goes").await;
        pod.is_none_or(|pod| pod.meta().is_deleting())
    };
    live(&stage, &cluster, "False", "the pod is evicted", is_going).await;
    let is_free = async || {
        let node = cluster.find(&NODES, "n1").await.unwrap();
        node.at("/spec/taints").items().is_empty()
    };
    live(&stage, &cluster, "True", "the taints are gone", is_free).await;
    stage.pass(REST).await;
    let mut all = cluster.list_docs(&PODS, "default", "").await;
    let nodes = cluster.list_docs(&NODES, "", "").await;
    // Heartbeats were posted as often as the test looked.
    all.extend(nodes.iter().map(|node| {
        doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": (node.meta().name()) },
            "spec": (node.at("/spec").clone()) })
    }));
    all
}

fn nobody_else_goes(objects: &Objects) -> Result<(), String> {
    let mut pods = objects.of("pods");
    match pods.any(|pod| pod.meta().name() == "stays" && pod.meta().is_deleting()) {
        true => Err("a pod was evicted that tolerates everything".to_owned()),
        false => Ok(()),
    }
}

fn simulation() -> Simulation {
    Simulation::new("a node that is not ready")
        .on_change(nobody_else_goes)
        .ignore_counts()
}

fn succeeded(outcome: Result<Explored, Failure>) {
    match outcome {
        Ok(explored) => assert!(explored.runs > 0, "{explored:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn survives_a_crash_at_every_call() {
    succeeded(simulation().crash_at_every_call(failing));
}

#[test]
fn survives_every_fault_at_every_call() {
    let is_work = |call: &Call| !call.is_watch && !call.path.contains("/events");
    succeeded(simulation().fault_at_every_call(is_work, &FAULTS, failing));
    let watches = [Fault::Cut(0), Fault::Cut(1), Fault::Lag(LAG)];
    succeeded(simulation().fault_at_every_call(|call| call.is_watch, &watches, failing));
}

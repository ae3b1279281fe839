//! Which pods go when there are too many.

use windlass_core::{Doc, doc};

use crate::replicaset::stage::{PODS, SETS, Stage, on_both, orphan, owner_ref, replica_set};

on_both!(
    the_cheapest_pod_goes,
    restarts_count_where_costs_do_not_differ,
    restarts_count_where_there_are_no_costs,
);

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Two running pods of a set, with costs and restarts; the names of both.
async fn two_pods(stage: &Stage, costs: [Option<&str>; 2], restarts: [i64; 2]) -> [String; 2] {
    stage.run();
    stage.create(replica_set("web", 2)).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    let pods = stage.pods().await;
    let since = stage.cluster.env().now().to_string();
    for (at, pod) in pods.iter().enumerate() {
        if let Some(cost) = costs[at] {
            let patch = doc!({ "metadata": { "annotations": { COST: cost } } });
            stage.patch(&PODS, pod.meta().name(), patch).await;
        }
        let status = doc!({
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": (&since) }],
            "containerStatuses": [{
                "name": "c", "restartCount": (restarts[at]), "image": "nginx", "imageID": "",
                "ready": true
            }]
        });
        stage.patch_status(&PODS, pod.meta().name(), status).await;
    }
    stage
        .until(async |s| {
            let set = s.get(&SETS, "web").await;
            set.at("/status/readyReplicas").as_i64() == Some(2)
        })
        .await;
    stage.settle().await;
    [0, 1].map(|at: usize| pods[at].meta().name().to_owned())
}

async fn only_pod(stage: &Stage) -> String {
    stage.scale(&SETS, "web", 1).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage.pods().await[0].meta().name().to_owned()
}

async fn the_cheapest_pod_goes(stage: &Stage) {
    let names = two_pods(stage, [Some("1000"), Some("100")], [5, 0]).await;
    assert_eq!(only_pod(stage).await, names[0]);
}

async fn restarts_count_where_costs_do_not_differ(stage: &Stage) {
    let names = two_pods(stage, [Some("100"), Some("100")], [5, 0]).await;
    assert_eq!(only_pod(stage).await, names[1]);
}

async fn restarts_count_where_there_are_no_costs(stage: &Stage) {
    let names = two_pods(stage, [None, None], [5, 0]).await;
    assert_eq!(only_pod(stage).await, names[1]);
}

/// A cost that is no number is refused by the server and counts as none in the order of pods.
#[tokio::test(start_paused = true)]
async fn a_negative_cost_is_less_than_none() {
    let stage = Stage::embedded("costs").await;
    let names = two_pods(&stage, [Some("-10"), None], [0, 0]).await;
    assert_eq!(only_pod(&stage).await, names[1]);
}

/// Makes a set that an owner manages, with its hash as a further label.
fn sibling(owner: &Doc, name: &str, replicas: i64) -> Doc {
    let set = replica_set("web", replicas);
    let more = doc!({
        "metadata": { "name": name, "ownerReferences": [(owner_ref(owner, true))] },
        "spec": {
            "selector": { "matchLabels": { "set": name } },
            "template": { "metadata": { "labels": { "set": name } } }
        }
    });
    windlass_core::merge_patch(&set, &more)
}

/// Relatives are the sets of the same owner, those that are being deleted included; how many pods
/// of others a node has does not matter.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_crowded_by_relatives_loses_a_pod_first() {
    let stage = Stage::embedded("crowded").await;
    let owner = |uid: &str| {
        doc!({
            "apiVersion": "example.com/v1", "kind": "Owner",
            "metadata": { "name": "owner", "uid": uid }
        })
    };
    let one = owner("11111111-1111-1111-1111-111111111111");
    let other = owner("22222222-2222-2222-2222-222222222222");
    let old = sibling(&one, "old", 1).with_finalizer("example.com/stay");
    let old = stage.create(old).await;
    let new = stage.create(sibling(&one, "new", 2)).await;
    let foreign = stage.create(sibling(&other, "foreign", 3)).await;
    stage.delete(&SETS, "old").await;
    let since = stage.cluster.env().now().to_string();
    let pods = [
        ("a", &old, "n1"),
        ("b", &new, "n1"),
        ("c", &new, "n2"),
        ("d", &foreign, "n2"),
        ("e", &foreign, "n2"),
        ("f", &foreign, "n2"),
    ];
    for (name, set, node) in pods {
        let labels = set.at("/spec/template/metadata/labels").clone();
        let more = doc!({
            "metadata": { "labels": labels, "ownerReferences": [(owner_ref(set, true))] },
            "spec": { "nodeName": node }
        });
        let pod = orphan(name, "web");
        let pod = stage.create(windlass_core::merge_patch(&pod, &more)).await;
        stage.make_ready_since(&pod, &since).await;
    }
    stage.run();
    let ready = async |stage: &Stage, name: &str| {
        let set = stage.get(&SETS, name).await;
        set.at("/status/readyReplicas").as_i64()
    };
    stage
        .until(async |s| ready(s, "old").await == Some(1) && ready(s, "new").await == Some(2))
        .await;
    stage.scale(&SETS, "new", 1).await;
    stage
        .until(async |s| s.get(&PODS, "b").await.meta().is_deleting())
        .await;
    stage.settle().await;
    assert!(!stage.get(&PODS, "c").await.meta().is_deleting());
}

#[tokio::test(start_paused = true)]
async fn pods_that_have_not_come_far_go_first() {
    let stage = Stage::embedded("stages").await;
    stage.create(replica_set("web", 4)).await;
    let since = stage.cluster.env().now().to_string();
    for name in ["unassigned", "pending", "running", "ready"] {
        let pod = orphan(name, "web");
        let pod = match name {
            "unassigned" => pod,
            _ => pod.with("/spec/nodeName", "n1").unwrap(),
        };
        let pod = stage.create(pod).await;
        match name {
            "running" => {
                stage
                    .patch_status(&PODS, name, doc!({ "phase": "Running" }))
                    .await;
            }
            "ready" => stage.make_ready_since(&pod, &since).await,
            _ => {}
        }
    }
    stage.run();
    for (replicas, victim) in [(3, "unassigned"), (2, "pending"), (1, "running")] {
        stage.settle().await;
        stage.scale(&SETS, "web", replicas).await;
        stage
            .until(async |s| {
                let pod = s.find(&PODS, victim).await;
                pod.is_none_or(|pod| pod.meta().is_deleting())
            })
            .await;
    }
    stage.settle().await;
    assert!(!stage.get(&PODS, "ready").await.meta().is_deleting());
}

#[tokio::test(start_paused = true)]
async fn the_ages_of_deleted_pods_are_counted() {
    let stage = Stage::embedded("ages").await;
    let running = stage.run().unwrap();
    stage.create(replica_set("web", 2)).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    stage.make_all_ready().await;
    stage.cluster.pass(std::time::Duration::from_secs(60)).await;
    stage.scale(&SETS, "web", 1).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    let metrics = running.metrics();
    let line = "replicaset_controller_sorting_deletion_age_ratio_count 1";
    assert!(metrics.contains(line), "{metrics}");
    assert!(
        metrics.contains("workqueue_adds_total{name=\"replicaset\"}"),
        "{metrics}"
    );
}

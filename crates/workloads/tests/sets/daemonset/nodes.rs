//! The nodes that get a pod.

use windlass_client::Propagation;
use windlass_core::{Doc, doc};

use super::set;
use crate::world::{NODES, World, node_of};

fn taint(effect: &str) -> Doc {
    doc!({ "spec": { "taints": [{ "key": "x", "effect": effect }] } })
}

#[tokio::test(start_paused = true)]
async fn each_node_gets_a_pod_that_names_it() {
    let world = World::new().await;
    world.nodes(3).await;
    let created = world.create(set(doc!({}))).await;
    world.settle().await;
    assert_eq!(world.placed().await, ["n1:a", "n2:a", "n3:a"]);
    for pod in world.pods().await {
        assert!(pod.str_at("/spec/nodeName").is_empty());
        assert!(pod.meta().is_controlled_by(&created.meta().uid()));
        assert!(pod.meta().label("controller-revision-hash").is_some());
    }
    world.serve_all().await;
    assert_eq!(world.numbers().await, [3, 3, 0, 3, 3, 3]);
    let agent = world.agent().await;
    assert_eq!(*agent.at("/status/observedGeneration"), 1);
    let events = world.events("agent").await;
    let created = events
        .iter()
        .filter(|it| it.starts_with("Normal SuccessfulCreate Created pod: "));
    assert_eq!(created.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_new_node_gets_a_pod_and_a_removed_one_loses_what_was_not_bound() {
    let world = World::with_agents(1, doc!({})).await;
    world.node("n2", doc!({})).await;
    world.settle().await;
    assert_eq!(world.placed().await, ["n1:a", "n2:a"]);
    for name in ["n1", "n2"] {
        let node = world.get(&NODES, name).await;
        world.cluster.delete(&node, Propagation::Background).await;
    }
    // Nothing happens until something else wakes the controller, as upstream.
    world.change_agent(doc!({ "minReadySeconds": 1 })).await;
    assert_eq!(
        world.placed().await,
        ["n1:a"],
        "the bound one is left to others"
    );
}

#[tokio::test(start_paused = true)]
async fn labels_of_nodes_choose() {
    let world = World::new().await;
    world.nodes(2).await;
    let spec = doc!({ "template": { "spec": { "nodeSelector": { "disk": "ssd" } } } });
    world.create(set(spec)).await;
    world.settle().await;
    assert!(world.pods().await.is_empty());
    let label = |value: Doc| doc!({ "metadata": { "labels": { "disk": value } } });
    world.patch(&NODES, "n2", label("ssd".into())).await;
    world.settle().await;
    assert_eq!(world.placed().await, ["n2:a"]);
    world.serve_all().await;
    world.patch(&NODES, "n2", label("hdd".into())).await;
    world.settle().await;
    assert!(world.placed().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nodes_in_trouble_get_a_pod_all_the_same() {
    let world = World::new().await;
    let taints = |keys: &[(&str, &str)]| -> Doc {
        let taints: Vec<Doc> = keys
            .iter()
            .map(|(key, effect)| {
                doc!({ "key": (format!("node.kubernetes.io/{key}")), "effect": (*effect) })
            })
            .collect();
        doc!({ "spec": { "taints": taints, "unschedulable": true } })
    };
    world
        .node("cordoned", taints(&[("unschedulable", "NoSchedule")]))
        .await;
    world
        .node(
            "down",
            taints(&[("not-ready", "NoExecute"), ("unreachable", "NoExecute")]),
        )
        .await;
    let pressure = [
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
    ];
    world.node("full", taints(&pressure)).await;
    world.create(set(doc!({}))).await;
    world.settle().await;
    assert_eq!(world.placed().await, ["cordoned:a", "down:a", "full:a"]);
}

#[tokio::test(start_paused = true)]
async fn a_taint_against_scheduling_lets_a_pod_stay_but_not_return() {
    let world = World::with_agents(2, doc!({})).await;
    world.patch(&NODES, "n2", taint("NoSchedule")).await;
    world.settle().await;
    assert_eq!(world.placed().await, ["n1:a", "n2:a"]);
    let pod = world.pod_on("n2").await;
    world.delete_pod(pod.meta().name()).await;
    world.remove_deleted().await;
    assert_eq!(world.placed().await, ["n1:a"]);
    assert_eq!(world.numbers().await, [1, 1, 0, 1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_that_it_would_not_come_to_counts_as_misscheduled() {
    let world = World::with_agents(2, doc!({})).await;
    world.patch(&NODES, "n2", taint("NoSchedule")).await;
    world.settle().await;
    // The taint alone refreshes nothing; any other change does.
    assert_eq!(world.numbers().await, [2, 2, 0, 2, 2, 2]);
    world
        .change_agent(doc!({ "revisionHistoryLimit": 3 }))
        .await;
    assert_eq!(world.numbers().await, [1, 1, 1, 1, 1, 1]);
    world
        .patch(&NODES, "n2", doc!({ "spec": { "taints": null } }))
        .await;
    world.settle().await;
    assert_eq!(world.numbers().await, [2, 2, 0, 2, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_taint_against_execution_takes_the_pod_away() {
    let world = World::with_agents(2, doc!({})).await;
    world.patch(&NODES, "n2", taint("NoExecute")).await;
    world.settle().await;
    assert_eq!(world.placed().await, ["n1:a"]);
}

#[tokio::test(start_paused = true)]
async fn tolerations_of_the_template_are_kept() {
    let world = World::new().await;
    world.node("n1", taint("NoExecute")).await;
    let toleration = doc!({ "key": "x", "operator": "Exists" });
    let spec = doc!({ "template": { "spec": { "tolerations": [toleration] } } });
    world.create(set(spec)).await;
    world.settle().await;
    let pod = world.pod_on("n1").await;
    let keys = pod.at("/spec/tolerations").items().iter();
    let keys: Vec<&str> = keys.map(|it| it.str_at("/key")).collect();
    assert!(
        keys.contains(&"x") && keys.contains(&"node.kubernetes.io/pid-pressure"),
        "{keys:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn required_affinity_filters_nodes_and_is_not_passed_on() {
    let world = World::new().await;
    world.nodes(1).await;
    world
        .node("n2", doc!({ "metadata": { "labels": { "zone": "b" } } }))
        .await;
    let expression = doc!({ "key": "zone", "operator": "In", "values": ["b"] });
    let required = doc!({ "nodeSelectorTerms": [{ "matchExpressions": [expression] }] });
    let affinity = doc!({
        "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required }
    });
    let spec = doc!({ "template": { "spec": { "affinity": affinity } } });
    world.create(set(spec)).await;
    world.settle().await;
    assert_eq!(world.placed().await, ["n2:a"]);
    let pods = world.pods().await;
    let terms = pods[0].at(
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
         /nodeSelectorTerms",
    );
    assert_eq!(terms.items().len(), 1);
    assert!(terms.items()[0].get("matchExpressions").is_none());
    assert_eq!(node_of(&pods[0]), "n2");
}

#[tokio::test(start_paused = true)]
async fn many_nodes_are_served_in_batches() {
    let world = World::idle().await;
    world.nodes(600).await;
    world.create(set(doc!({}))).await;
    world.run();
    world.settle().await;
    assert_eq!(world.pods().await.len(), 600);
    assert_eq!(world.numbers().await[..2], [600, 600]);
    // Each sync ends with the status.
    let most = world.most_between(&http::Method::POST, "/pods", "daemonsets/agent/status");
    assert_eq!(most, 250);
}

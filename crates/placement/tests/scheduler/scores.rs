//! Which of several nodes a pod gets.

use windlass_core::{Doc, doc};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn emptier_node_is_better() {
    let cluster = cluster(&[node("a"), node("b")]).await;
    let pinned = set(
        &pod_with("big", "3", "4Gi"),
        "/spec/nodeSelector",
        doc!({ "kubernetes.io/hostname": "a" }),
    );
    cluster.create_doc(&pinned).await;
    node_of(&cluster, "big").await;
    cluster.create_doc(&pod_with("p", "500m", "512Mi")).await;
    assert_eq!(node_of(&cluster, "p").await, "b");
}

#[tokio::test(start_paused = true)]
async fn pods_that_ask_for_nothing_are_spread_too() {
    let cluster = cluster(&[node("a"), node("b"), node("c")]).await;
    let mut nodes = Vec::new();
    for name in ["p1", "p2", "p3"] {
        cluster.create_doc(&pod(name)).await;
        nodes.push(node_of(&cluster, name).await);
    }
    nodes.sort();
    assert_eq!(nodes, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn node_with_a_soft_taint_is_the_last_choice() {
    let taint = doc!([{ "key": "slow", "effect": "PreferNoSchedule" }]);
    let cluster = cluster(&[set(&node("a"), "/spec/taints", taint), node("b")]).await;
    for name in ["p1", "p2", "p3"] {
        cluster.create_doc(&pod_with(name, "1", "1Gi")).await;
        assert_eq!(node_of(&cluster, name).await, "b");
    }
    cluster.create_doc(&pod_with("p4", "3", "1Gi")).await;
    assert_eq!(node_of(&cluster, "p4").await, "a", "better than none");
}

#[tokio::test(start_paused = true)]
async fn wish_for_a_node_decides_between_equals() {
    let cluster = cluster(&[node("a"), labelled("b", "disk", "ssd"), node("c")]).await;
    let term = doc!({ "matchExpressions": [{ "key": "disk", "operator": "Exists" }] });
    let wish = doc!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
        { "weight": 1, "preference": term },
    ] } });
    for name in ["p1", "p2"] {
        cluster
            .create_doc(&set(&pod(name), "/spec/affinity", wish.clone()))
            .await;
        assert_eq!(node_of(&cluster, name).await, "b");
    }
}

fn app(name: &str) -> Doc {
    set(&pod(name), "/metadata/labels", doc!({ "app": "web" }))
}

#[tokio::test(start_paused = true)]
async fn wish_for_company_is_heard_and_wish_for_solitude() {
    let cluster = cluster(&[node("a"), node("b"), node("c")]).await;
    cluster.create_doc(&app("first")).await;
    let there = node_of(&cluster, "first").await;
    let wish = |sort: &str| {
        let term = doc!({
            "labelSelector": { "matchLabels": { "app": "web" } },
            "topologyKey": "kubernetes.io/hostname",
        });
        let wishes = doc!([{ "weight": 100, "podAffinityTerm": term }]);
        doc!({ sort: { "preferredDuringSchedulingIgnoredDuringExecution": wishes } })
    };
    cluster
        .create_doc(&set(&app("near"), "/spec/affinity", wish("podAffinity")))
        .await;
    assert_eq!(node_of(&cluster, "near").await, there);
    cluster
        .create_doc(&set(&app("far"), "/spec/affinity", wish("podAntiAffinity")))
        .await;
    assert_ne!(node_of(&cluster, "far").await, there);
}

#[tokio::test(start_paused = true)]
async fn wish_to_spread_outweighs_emptiness() {
    let zoned = |name: &str, zone: &str| labelled(name, "zone", zone);
    let cluster = cluster(&[zoned("a", "z1"), zoned("b", "z1"), zoned("c", "z2")]).await;
    let other = set(
        &pod_with("other", "1", "1Gi"),
        "/spec/nodeSelector",
        doc!({ "zone": "z2" }),
    );
    cluster.create_doc(&other).await;
    node_of(&cluster, "other").await;
    let first = set(
        &app("first"),
        "/spec/nodeSelector",
        doc!({ "kubernetes.io/hostname": "a" }),
    );
    cluster.create_doc(&first).await;
    node_of(&cluster, "first").await;
    let constraint = doc!({
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": { "app": "web" } },
    });
    let even = set(
        &app("even"),
        "/spec/topologySpreadConstraints",
        doc!([constraint]),
    );
    cluster.create_doc(&even).await;
    assert_eq!(node_of(&cluster, "even").await, "c");
}

//! Rules that reach further than the pod and the node: other namespaces, domains that are missing,
//! nodes that come back.

use windlass_core::{Doc, Gvr, doc};

use crate::support::{
    NODES, add_node, assert_waits, bind, cluster, find, force_delete, labelled, node, node_of, pod,
    reasons_of, set,
};

const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");
const HOST: &str = "kubernetes.io/hostname";

/// A pod of an app that keeps away from others by a term.
fn apart(name: &str, labels: Doc, term: Doc) -> Doc {
    let rule =
        doc!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    set(
        &set(&pod(name), "/metadata/labels", labels),
        "/spec/affinity",
        rule,
    )
}

fn namespace(name: &str, team: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": name, "labels": { "team": team } },
    })
}

#[tokio::test(start_paused = true)]
async fn label_keys_keep_pods_of_one_template_apart_and_no_others() {
    let cluster = cluster(&[node("a")]).await;
    let term = doc!({
        "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": HOST,
        "matchLabelKeys": ["hash"],
    });
    let of = |name: &str, hash: &str| {
        let labels = doc!({ "app": "web", "hash": hash });
        apart(name, labels, term.clone())
    };
    for (name, hash) in [("old", "1"), ("new", "2")] {
        cluster.create_doc(&of(name, hash)).await;
        assert_eq!(node_of(&cluster, name).await, "a");
    }
    cluster.create_doc(&of("newer", "2")).await;
    let reasons = "1 node(s) didn't match pod anti-affinity rules.";
    assert_eq!(reasons_of(&cluster, "newer").await, reasons);
}

#[tokio::test(start_paused = true)]
async fn tenants_that_mismatch_keep_apart() {
    let cluster = cluster(&[node("a")]).await;
    let term = doc!({
        "labelSelector": { "matchExpressions": [{ "key": "tenant", "operator": "Exists" }] },
        "topologyKey": HOST, "mismatchLabelKeys": ["tenant"],
    });
    let of = |name: &str, tenant: &str| apart(name, doc!({ "tenant": tenant }), term.clone());
    for name in ["one", "two"] {
        cluster.create_doc(&of(name, "x")).await;
        assert_eq!(node_of(&cluster, name).await, "a");
    }
    cluster.create_doc(&of("other", "y")).await;
    let reasons = "1 node(s) didn't match pod anti-affinity rules.";
    assert_eq!(reasons_of(&cluster, "other").await, reasons);
}

#[tokio::test(start_paused = true)]
async fn rules_reach_the_namespaces_that_they_select() {
    let cluster = cluster(&[node("a")]).await;
    cluster.create_doc(&namespace("red", "red")).await;
    cluster.create_doc(&namespace("blue", "blue")).await;
    let web = doc!({ "app": "web" });
    let theirs = set(&pod("theirs"), "/metadata/labels", web.clone());
    let theirs = set(&theirs, "/metadata/namespace", "red");
    cluster
        .create_doc(&set(&theirs, "/spec/nodeName", "a"))
        .await;
    let reach = |name: &str, more: Doc| {
        let term =
            doc!({ "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": HOST });
        apart(
            name,
            doc!({ "app": "db" }),
            windlass_core::merge_patch(&term, &more),
        )
    };
    let of_team = |team: &str| doc!({ "namespaceSelector": { "matchLabels": { "team": team } } });
    for (name, more) in [
        ("at-home", doc!({})),
        ("blue-alone", of_team("blue")),
        ("by-name", doc!({ "namespaces": ["blue"] })),
    ] {
        cluster.create_doc(&reach(name, more)).await;
        assert_eq!(node_of(&cluster, name).await, "a", "{name}");
    }
    let both = doc!({
        "namespaces": ["blue"], "namespaceSelector": { "matchLabels": { "team": "red" } },
    });
    for (name, more) in [
        ("red-alone", of_team("red")),
        ("everywhere", doc!({ "namespaceSelector": {} })),
        ("named", doc!({ "namespaces": ["red"] })),
        ("both", both),
    ] {
        cluster.create_doc(&reach(name, more)).await;
        let reasons = "1 node(s) didn't match pod anti-affinity rules.";
        assert_eq!(reasons_of(&cluster, name).await, reasons, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_elsewhere_keep_pods_of_selected_namespaces_away() {
    let cluster = cluster(&[node("a")]).await;
    let default = cluster.find(&NAMESPACES, "default").await.unwrap();
    let label = doc!({ "metadata": { "labels": { "team": "green" } } });
    cluster.create_doc(&namespace("red", "red")).await;
    let term = doc!({
        "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": HOST,
        "namespaceSelector": { "matchLabels": { "team": "green" } },
    });
    let theirs = apart("theirs", doc!({ "app": "db" }), term);
    let theirs = set(&theirs, "/metadata/namespace", "red");
    cluster
        .create_doc(&set(&theirs, "/spec/nodeName", "a"))
        .await;
    let web = |name: &str| set(&pod(name), "/metadata/labels", doc!({ "app": "web" }));
    cluster.create_doc(&web("early")).await;
    assert_eq!(node_of(&cluster, "early").await, "a");
    cluster.patch(&default, label).await;
    cluster.create_doc(&web("late")).await;
    let reasons = "1 node(s) didn't satisfy existing pods anti-affinity rules.";
    assert_eq!(reasons_of(&cluster, "late").await, reasons);
}

#[tokio::test(start_paused = true)]
async fn domains_that_are_missing_count_as_empty() {
    let zoned = |name: &str, zone: &str| labelled(name, "zone", zone);
    let cluster = cluster(&[zoned("a", "z1"), zoned("b", "z2")]).await;
    let even = |name: &str| {
        let pod = set(&pod(name), "/metadata/labels", doc!({ "app": "web" }));
        let constraint = doc!({
            "maxSkew": 1, "minDomains": 3, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "web" } },
        });
        set(&pod, "/spec/topologySpreadConstraints", doc!([constraint]))
    };
    for name in ["p1", "p2"] {
        cluster.create_doc(&even(name)).await;
        node_of(&cluster, name).await;
    }
    cluster.create_doc(&even("p3")).await;
    let reasons = "2 node(s) didn't match pod topology spread constraints.";
    assert_eq!(reasons_of(&cluster, "p3").await, reasons);
    add_node(&cluster, &zoned("c", "z3")).await;
    assert_eq!(node_of(&cluster, "p3").await, "c");
    // There are enough now: the next one goes anywhere.
    cluster.create_doc(&even("p4")).await;
    node_of(&cluster, "p4").await;
}

#[tokio::test(start_paused = true)]
async fn pods_on_a_node_that_is_gone_count_when_it_comes_back() {
    let small = set(&node("a"), "/status/allocatable/pods", "1");
    let cluster = cluster(std::slice::from_ref(&small)).await;
    cluster.create_doc(&pod("first")).await;
    assert_eq!(node_of(&cluster, "first").await, "a");
    let nodes = cluster.api(&NODES, "");
    nodes.delete("a", &Default::default()).await.unwrap();
    cluster.create_doc(&pod("second")).await;
    assert_waits(&cluster, "second").await;
    add_node(&cluster, &small).await;
    assert_waits(&cluster, "second").await;
    force_delete(&cluster, "first").await;
    assert_eq!(node_of(&cluster, "second").await, "a");
}

#[tokio::test(start_paused = true)]
async fn pod_on_its_way_out_keeps_its_place_until_it_is_gone() {
    let small = set(&node("a"), "/status/allocatable/pods", "1");
    let cluster = cluster(&[small]).await;
    let first = cluster.create_doc(&pod("first")).await;
    node_of(&cluster, "first").await;
    cluster
        .delete(&first, windlass_client::Propagation::Background)
        .await;
    assert!(find(&cluster, "first").await.meta().is_deleting());
    cluster.create_doc(&pod("second")).await;
    assert_waits(&cluster, "second").await;
    force_delete(&cluster, "first").await;
    assert_eq!(node_of(&cluster, "second").await, "a");
}

#[tokio::test(start_paused = true)]
async fn taint_that_would_drive_out_is_tolerated_for_some_time() {
    let taint = doc!([{ "key": "drain", "value": "now", "effect": "NoExecute" }]);
    let cluster = cluster(&[set(&node("a"), "/spec/taints", taint)]).await;
    let toleration = |effect: &str, value: &str| {
        doc!([{
            "key": "drain", "operator": "Equal", "value": value, "effect": effect,
            "tolerationSeconds": 60,
        }])
    };
    let wrong = toleration("NoExecute", "later");
    let wrong = set(&pod("wrong"), "/spec/tolerations", wrong);
    cluster.create_doc(&wrong).await;
    let reasons = reasons_of(&cluster, "wrong").await;
    assert!(reasons.contains("untolerated taint"), "{reasons}");
    let right = toleration("NoExecute", "now");
    cluster
        .create_doc(&set(&pod("right"), "/spec/tolerations", right))
        .await;
    assert_eq!(node_of(&cluster, "right").await, "a");
}

#[tokio::test(start_paused = true)]
async fn gated_pod_may_become_choosier_and_is_placed_accordingly() {
    let cluster = cluster(&[labelled("a", "disk", "hdd"), labelled("b", "disk", "ssd")]).await;
    let gated = set(
        &pod("p"),
        "/spec/schedulingGates",
        doc!([{ "name": "example.com/wait" }]),
    );
    let gated = cluster.create_doc(&gated).await;
    let choosy = doc!({ "spec": { "nodeSelector": { "disk": "ssd" } } });
    cluster.patch(&gated, choosy).await;
    assert_waits(&cluster, "p").await;
    let open = doc!({ "spec": { "schedulingGates": null } });
    cluster.patch(&gated, open).await;
    assert_eq!(node_of(&cluster, "p").await, "b");
}

#[tokio::test(start_paused = true)]
async fn ports_of_side_cars_are_taken_and_those_of_init_containers_are_not() {
    let cluster = cluster(&[node("a")]).await;
    let with = |name: &str, policy: Option<&str>| {
        let init = doc!({
            "name": "init", "image": "i", "ports": [{ "containerPort": 80, "hostPort": 8080 }],
        });
        let init = match policy {
            Some(policy) => set(&init, "/restartPolicy", policy),
            None => init,
        };
        set(&pod(name), "/spec/initContainers", doc!([init]))
    };
    cluster.create_doc(&with("init", None)).await;
    assert_eq!(node_of(&cluster, "init").await, "a");
    cluster.create_doc(&with("side", Some("Always"))).await;
    assert_eq!(node_of(&cluster, "side").await, "a");
    let port = doc!([{ "containerPort": 80, "hostPort": 8080 }]);
    let taken = set(&pod("taken"), "/spec/containers/0/ports", port);
    cluster.create_doc(&taken).await;
    let reasons = "1 node(s) didn't have free ports for the requested pod ports.";
    assert_eq!(reasons_of(&cluster, "taken").await, reasons);
}

#[tokio::test(start_paused = true)]
async fn pod_that_somebody_else_binds_while_it_waits_is_forgotten() {
    let full = set(&node("a"), "/spec/unschedulable", true);
    let cluster = cluster(&[full]).await;
    cluster.create_doc(&pod("p")).await;
    reasons_of(&cluster, "p").await;
    bind(&cluster, "p", "a").await;
    cluster.pass(std::time::Duration::from_secs(600)).await;
    let bound = find(&cluster, "p").await;
    let scheduled = windlass_core::condition(&bound, "PodScheduled").unwrap();
    assert!(scheduled.is_true(), "{scheduled:?}");
}

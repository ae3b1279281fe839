//! Which nodes a pod cannot have, and how it is told.

use windlass_core::{Doc, doc};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn refusals_are_counted_and_sorted_as_text() {
    let unschedulable = set(&node("c"), "/spec/unschedulable", true);
    let tainted = set(
        &node("d"),
        "/spec/taints",
        doc!([{ "key": "k", "effect": "NoSchedule" }]),
    );
    let cluster = cluster(&[node("a"), node("b"), unschedulable, tainted]).await;
    cluster.create_doc(&pod_with("p", "5", "1Gi")).await;
    let (reason, message) = refusal_of(&cluster, "p").await;
    assert_eq!(reason, "Unschedulable");
    assert_eq!(
        message,
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were \
         unschedulable, 2 Insufficient cpu. preemption: 0/4 nodes are available: 4 Preemption is \
         not helpful for scheduling."
    );
    let events = events_of(&cluster, "p").await;
    assert_eq!(events, [("FailedScheduling".to_owned(), message)]);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_only_full_could_be_preempted() {
    let cluster = cluster(&[node("a")]).await;
    cluster.create_doc(&pod_with("first", "3", "7Gi")).await;
    node_of(&cluster, "first").await;
    cluster.create_doc(&pod_with("p", "2", "2Gi")).await;
    let (_, message) = refusal_of(&cluster, "p").await;
    assert_eq!(
        message,
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. preemption: 0/1 nodes \
         are available: 1 No preemption victims found for incoming pod."
    );
    cluster
        .create_doc(&doc!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": { "name": "meek" }, "value": 1, "preemptionPolicy": "Never",
        }))
        .await;
    let meek = set(
        &pod_with("meek", "2", "1Gi"),
        "/spec/priorityClassName",
        "meek",
    );
    cluster.create_doc(&meek).await;
    let (_, message) = refusal_of(&cluster, "meek").await;
    assert!(
        message.ends_with("preemption: not eligible due to preemptionPolicy=Never."),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn pods_are_counted_too() {
    let small = set(&node("a"), "/status/allocatable/pods", "1");
    let cluster = cluster(&[small]).await;
    cluster.create_doc(&pod("first")).await;
    node_of(&cluster, "first").await;
    cluster.create_doc(&pod("second")).await;
    assert_eq!(reasons_of(&cluster, "second").await, "1 Too many pods.");
}

#[tokio::test(start_paused = true)]
async fn storage_and_extended_resources_are_counted() {
    let rich = set(&node("a"), "/status/allocatable/example.com~1gpu", "2");
    let cluster = cluster(&[rich]).await;
    let asks = |name: &str, resource: &str, amount: &str| {
        let both = doc!({ "requests": { resource: amount }, "limits": { resource: amount } });
        set(&pod(name), "/spec/containers/0/resources", both)
    };
    cluster
        .create_doc(&asks("gpu", "example.com/gpu", "2"))
        .await;
    node_of(&cluster, "gpu").await;
    cluster
        .create_doc(&asks("gpu2", "example.com/gpu", "1"))
        .await;
    assert_eq!(
        reasons_of(&cluster, "gpu2").await,
        "1 Insufficient example.com/gpu."
    );
    cluster
        .create_doc(&asks("disk", "ephemeral-storage", "11Gi"))
        .await;
    assert_eq!(
        reasons_of(&cluster, "disk").await,
        "1 Insufficient ephemeral-storage."
    );
}

#[tokio::test(start_paused = true)]
async fn huge_pages_of_the_pod_as_a_whole_are_counted() {
    let pages = set(&node("a"), "/status/allocatable/hugepages-2Mi", "8Mi");
    let cluster = cluster(&[pages]).await;
    let asks = |name: &str, pages: &str| {
        let amounts = doc!({ "cpu": "1", "memory": "1Gi", "hugepages-2Mi": pages });
        let both = doc!({ "requests": (amounts.clone()), "limits": amounts });
        set(&pod(name), "/spec/resources", both)
    };
    cluster.create_doc(&asks("first", "6Mi")).await;
    assert_eq!(node_of(&cluster, "first").await, "a");
    cluster.create_doc(&asks("second", "4Mi")).await;
    assert_eq!(
        reasons_of(&cluster, "second").await,
        "1 Insufficient hugepages-2Mi."
    );
    cluster.create_doc(&asks("third", "2Mi")).await;
    assert_eq!(node_of(&cluster, "third").await, "a");
}

#[tokio::test(start_paused = true)]
async fn init_containers_side_cars_and_overhead_count() {
    let cluster = cluster(&[node("a")]).await;
    let container = |name: &str, cpu: &str| doc!({ "name": name, "image": "i", "resources": { "requests": { "cpu": cpu } } });
    let side_car = set(&container("side", "1"), "/restartPolicy", "Always");
    // The greatest step is the second: 1 of the side car and 3 of the step.
    let fits = set(
        &pod_with("fits", "2", "1Gi"),
        "/spec/initContainers",
        doc!([(&side_car), (container("init", "3"))]),
    );
    cluster.create_doc(&fits).await;
    assert_eq!(node_of(&cluster, "fits").await, "a");
    force_delete(&cluster, "fits").await;
    let greedy = set(&fits, "/metadata/name", "greedy");
    let greedy = set(
        &greedy,
        "/spec/initContainers/1",
        container("init", "3500m"),
    );
    cluster.create_doc(&greedy).await;
    assert_eq!(reasons_of(&cluster, "greedy").await, "1 Insufficient cpu.");
    let whole = set(
        &pod_with("whole", "3500m", "1Gi"),
        "/spec/initContainers",
        doc!([side_car]),
    );
    cluster.create_doc(&whole).await;
    assert_eq!(reasons_of(&cluster, "whole").await, "1 Insufficient cpu.");
}

#[tokio::test(start_paused = true)]
async fn taints_keep_pods_away_that_do_not_tolerate_them() {
    let taints = doc!([{ "key": "team", "value": "red", "effect": "NoExecute" }]);
    let tainted = set(&node("a"), "/spec/taints", taints);
    let cluster = cluster(&[tainted]).await;
    cluster.create_doc(&pod("plain")).await;
    assert_eq!(
        reasons_of(&cluster, "plain").await,
        "1 node(s) had untolerated taint(s)."
    );
    let tolerates =
        |name: &str, toleration: Doc| set(&pod(name), "/spec/tolerations", doc!([toleration]));
    let blue = doc!({ "key": "team", "operator": "Equal", "value": "blue" });
    cluster.create_doc(&tolerates("blue", blue)).await;
    refusal_of(&cluster, "blue").await;
    let other = doc!({ "key": "team", "operator": "Exists", "effect": "NoSchedule" });
    cluster.create_doc(&tolerates("other", other)).await;
    refusal_of(&cluster, "other").await;
    let red = doc!({ "key": "team", "operator": "Equal", "value": "red" });
    cluster.create_doc(&tolerates("red", red)).await;
    assert_eq!(node_of(&cluster, "red").await, "a");
    cluster
        .create_doc(&tolerates("all", doc!({ "operator": "Exists" })))
        .await;
    assert_eq!(node_of(&cluster, "all").await, "a");
}

#[tokio::test(start_paused = true)]
async fn unschedulable_node_takes_pods_that_tolerate_it() {
    let cluster = cluster(&[set(&node("a"), "/spec/unschedulable", true)]).await;
    cluster.create_doc(&pod("plain")).await;
    assert_eq!(
        reasons_of(&cluster, "plain").await,
        "1 node(s) were unschedulable."
    );
    let toleration = doc!([{ "key": "node.kubernetes.io/unschedulable", "operator": "Exists" }]);
    cluster
        .create_doc(&set(&pod("daemon"), "/spec/tolerations", toleration))
        .await;
    assert_eq!(node_of(&cluster, "daemon").await, "a");
}

#[tokio::test(start_paused = true)]
async fn node_selector_and_affinity_must_both_match() {
    let both = set(&labelled("c", "disk", "ssd"), "/metadata/labels/zone", "z1");
    let nodes = [node("a"), labelled("b", "disk", "ssd"), both];
    let cluster = cluster(&nodes).await;
    let selector = set(&pod("ssd"), "/spec/nodeSelector", doc!({ "disk": "ssd" }));
    let required = |expression: Doc| {
        let term = doc!({ "matchExpressions": [expression] });
        doc!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [term],
        } } })
    };
    let in_zone = required(doc!({ "key": "zone", "operator": "In", "values": ["z1", "z2"] }));
    cluster
        .create_doc(&set(&selector, "/spec/affinity", in_zone))
        .await;
    assert_eq!(node_of(&cluster, "ssd").await, "c");
    let nowhere = required(doc!({ "key": "zone", "operator": "In", "values": ["z9"] }));
    cluster
        .create_doc(&set(&pod("lost"), "/spec/affinity", nowhere))
        .await;
    let reasons = "3 node(s) didn't match Pod's node affinity/selector.";
    assert_eq!(reasons_of(&cluster, "lost").await, reasons);
    let term =
        doc!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["b"] }] });
    let by_name = doc!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [term],
    } } });
    cluster
        .create_doc(&set(&pod("named"), "/spec/affinity", by_name))
        .await;
    assert_eq!(node_of(&cluster, "named").await, "b");
}

/// A pod for nodes of these names: one term each, all of whose lists must name the node.
fn named(name: &str, terms: &[&[&[&str]]]) -> Doc {
    let term = |lists: &&[&[&str]]| {
        let field = |names: &&[&str]| {
            let names: Vec<Doc> = names.iter().map(|name| Doc::from(*name)).collect();
            doc!({ "key": "metadata.name", "operator": "In", "values": names })
        };
        let fields: Vec<Doc> = lists.iter().map(field).collect();
        doc!({ "matchFields": fields })
    };
    let terms: Vec<Doc> = terms.iter().map(term).collect();
    let rule = doc!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": terms,
    } } });
    set(&pod(name), "/spec/affinity", rule)
}

#[tokio::test(start_paused = true)]
async fn nodes_that_a_pod_does_not_name_are_not_looked_at() {
    let tainted = set(
        &node("c"),
        "/spec/taints",
        doc!([{ "key": "k", "effect": "NoSchedule" }]),
    );
    let cluster = cluster(&[node("a"), node("b"), tainted]).await;
    cluster.create_doc(&named("nowhere", &[&[&["x"]]])).await;
    let (_, message) = refusal_of(&cluster, "nowhere").await;
    assert_eq!(
        message,
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]. preemption: \
         0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    );
    let greedy = set(
        &named("greedy", &[&[&["a"]], &[&["x"]]]),
        "/spec/containers/0/resources",
        doc!({ "requests": { "cpu": "100" } }),
    );
    cluster.create_doc(&greedy).await;
    assert_eq!(
        reasons_of(&cluster, "greedy").await,
        "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    );
    // A named node that lacks a label is looked at, and refused like any other.
    let picky = set(
        &named("picky", &[&[&["b"]]]),
        "/spec/nodeSelector",
        doc!({ "disk": "ssd" }),
    );
    cluster.create_doc(&picky).await;
    assert_eq!(
        reasons_of(&cluster, "picky").await,
        "1 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't satisfy plugin(s) \
         [NodeAffinity]."
    );
    // A term without names leaves all nodes open.
    let open = named("open", &[&[&["x"]]]);
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                 /nodeSelectorTerms/1";
    let labels = doc!([{ "key": "zone", "operator": "Exists" }]);
    let open = set(&open, terms, doc!({ "matchExpressions": labels }));
    cluster.create_doc(&open).await;
    assert_eq!(
        reasons_of(&cluster, "open").await,
        "1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node affinity/selector."
    );
}

#[tokio::test(start_paused = true)]
async fn names_that_exclude_each_other_are_a_conflict() {
    let cluster = cluster(&[node("a"), node("b")]).await;
    cluster
        .create_doc(&named("torn", &[&[&["a"], &["b"]]]))
        .await;
    let (_, message) = refusal_of(&cluster, "torn").await;
    assert_eq!(
        message,
        "0/2 nodes are available: pod affinity terms conflict. preemption: 0/2 nodes are \
         available: 2 Preemption is not helpful for scheduling."
    );
    cluster
        .create_doc(&named("torn-once", &[&[&["a"], &["b"]], &[&["b"]]]))
        .await;
    assert_eq!(node_of(&cluster, "torn-once").await, "b");
}

#[tokio::test(start_paused = true)]
async fn host_ports_are_taken_once_per_address_and_protocol() {
    let cluster = cluster(&[node("a")]).await;
    let on = |name: &str, port: Doc| set(&pod(name), "/spec/containers/0/ports", doc!([port]));
    cluster
        .create_doc(&on("first", doc!({ "containerPort": 80, "hostPort": 80 })))
        .await;
    assert_eq!(node_of(&cluster, "first").await, "a");
    let udp = doc!({ "containerPort": 80, "hostPort": 80, "protocol": "UDP" });
    cluster.create_doc(&on("udp", udp)).await;
    assert_eq!(node_of(&cluster, "udp").await, "a");
    let narrow = doc!({ "containerPort": 80, "hostPort": 80, "hostIP": "127.0.0.1" });
    cluster.create_doc(&on("narrow", narrow)).await;
    let reasons = "1 node(s) didn't have free ports for the requested pod ports.";
    assert_eq!(reasons_of(&cluster, "narrow").await, reasons);
}

fn apart(name: &str) -> Doc {
    let app = set(&pod(name), "/metadata/labels", doc!({ "app": "web" }));
    let term = doc!({
        "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": "kubernetes.io/hostname",
    });
    let rule =
        doc!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    set(&app, "/spec/affinity", rule)
}

#[tokio::test(start_paused = true)]
async fn pods_that_avoid_each_other_get_a_node_each() {
    let cluster = cluster(&[node("a"), node("b")]).await;
    cluster.create_doc(&apart("p1")).await;
    cluster.create_doc(&apart("p2")).await;
    let (one, two) = (node_of(&cluster, "p1").await, node_of(&cluster, "p2").await);
    assert_ne!(one, two);
    cluster.create_doc(&apart("p3")).await;
    let reasons = "2 node(s) didn't match pod anti-affinity rules.";
    assert_eq!(reasons_of(&cluster, "p3").await, reasons);
    // A pod without rules of its own is kept away by theirs.
    let quiet = set(&pod("quiet"), "/metadata/labels", doc!({ "app": "web" }));
    cluster.create_doc(&quiet).await;
    let reasons = "2 node(s) didn't satisfy existing pods anti-affinity rules.";
    assert_eq!(reasons_of(&cluster, "quiet").await, reasons);
    force_delete(&cluster, "p1").await;
    cluster
        .until(async |c| {
            let pods = c.list_docs(&PODS, "default", "").await;
            pods.iter().any(|pod| pod.str_at("/spec/nodeName") == one)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn pods_avoid_only_those_of_their_own_revision() {
    let cluster = cluster(&[node("a")]).await;
    let term = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0";
    let of = |name: &str, revision: &str, list: &str| {
        let pod = set(&apart(name), "/metadata/labels/revision", revision);
        set(&pod, &format!("{term}/{list}"), doc!(["revision"]))
    };
    cluster.create_doc(&of("p1", "1", "matchLabelKeys")).await;
    assert_eq!(node_of(&cluster, "p1").await, "a");
    cluster.create_doc(&of("p2", "2", "matchLabelKeys")).await;
    assert_eq!(node_of(&cluster, "p2").await, "a");
    cluster.create_doc(&of("p3", "1", "matchLabelKeys")).await;
    let reasons = "1 node(s) didn't match pod anti-affinity rules.";
    assert_eq!(reasons_of(&cluster, "p3").await, reasons);
    // Those of another revision are avoided here.
    cluster
        .create_doc(&of("p4", "3", "mismatchLabelKeys"))
        .await;
    assert_eq!(reasons_of(&cluster, "p4").await, reasons);
}

#[tokio::test(start_paused = true)]
async fn pod_follows_the_pods_it_wants_to_be_near() {
    let zoned = |name: &str, zone: &str| labelled(name, "zone", zone);
    let cluster = cluster(&[zoned("a", "z1"), zoned("b", "z2"), node("c")]).await;
    let near = |name: &str, app: &str| {
        let term =
            doc!({ "labelSelector": { "matchLabels": { "app": app } }, "topologyKey": "zone" });
        let rule =
            doc!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
        set(&pod(name), "/spec/affinity", rule)
    };
    cluster.create_doc(&near("early", "db")).await;
    let reasons = "3 node(s) didn't match pod affinity rules.";
    assert_eq!(reasons_of(&cluster, "early").await, reasons);
    let db = set(&pod("db"), "/metadata/labels", doc!({ "app": "db" }));
    cluster
        .create_doc(&set(&db, "/spec/nodeSelector", doc!({ "zone": "z2" })))
        .await;
    assert_eq!(node_of(&cluster, "early").await, "b");
    // The first of a group that wants to be together may start anywhere that has the label.
    let first = set(
        &near("first", "group"),
        "/metadata/labels",
        doc!({ "app": "group" }),
    );
    cluster.create_doc(&first).await;
    assert_ne!(node_of(&cluster, "first").await, "c");
}

#[tokio::test(start_paused = true)]
async fn pods_are_spread_no_wider_than_the_skew() {
    let zoned = |name: &str, zone: &str| labelled(name, "zone", zone);
    let small = set(&zoned("a", "z1"), "/status/allocatable/pods", "1");
    let cluster = cluster(&[small, zoned("b", "z2"), node("c")]).await;
    let even = |name: &str| {
        let pod = set(&pod(name), "/metadata/labels", doc!({ "app": "web" }));
        let constraint = doc!({
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "web" } },
        });
        set(&pod, "/spec/topologySpreadConstraints", doc!([constraint]))
    };
    let mut nodes = Vec::new();
    for name in ["p1", "p2", "p3"] {
        cluster.create_doc(&even(name)).await;
        nodes.push(node_of(&cluster, name).await);
    }
    nodes.sort();
    assert_eq!(nodes, ["a", "b", "b"]);
    cluster.create_doc(&even("p4")).await;
    let reasons = "1 Too many pods, 1 node(s) didn't match pod topology spread constraints, 1 node(s) \
                   didn't match pod topology spread constraints (missing required label).";
    assert_eq!(reasons_of(&cluster, "p4").await, reasons);
}

//! Pods of lower priority leave for one that no node takes.

mod faults;

use std::time::Duration;

use windlass_core::{Doc, Gvr, condition, doc};
use windlass_placement::{node as nodes, scheduler};
use windlass_testing::Cluster;
use windlass_workloads::job;

use crate::support::{
    EVENTS, NODES, PODS, add_node, bare_cluster, events_of, find, force_delete, node, node_of,
    pod_with, refusal_of, run, set,
};

const BUDGETS: Gvr = Gvr::constant("policy", "v1", "poddisruptionbudgets");

/// A priority class whose name says its value: `m` for minus, then the number.
fn class(value: i64) -> Doc {
    doc!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": { "name": (class_name(value)) }, "value": value,
    })
}

fn class_name(value: i64) -> String {
    match value < 0 {
        true => format!("m{}", -value),
        false => format!("p{value}"),
    }
}

/// A pod that asks for processors, and goes at once when it is deleted.
fn ranked(name: &str, priority: i64, cpu: &str) -> Doc {
    let pod = set(
        &pod_with(name, cpu, "1Mi"),
        "/spec/priorityClassName",
        class_name(priority),
    );
    set(&pod, "/spec/terminationGracePeriodSeconds", 0)
}

/// Such a pod that is on a node already.
fn placed(name: &str, priority: i64, cpu: &str, node: &str) -> Doc {
    set(&ranked(name, priority, cpu), "/spec/nodeName", node)
}

/// A cluster with nodes of four processors, priority classes, and a scheduler.
async fn cluster(names: &[&str]) -> Cluster {
    let cluster = classes(names).await;
    run(&cluster, &scheduler::Options::default());
    cluster
}

async fn classes(names: &[&str]) -> Cluster {
    let nodes: Vec<Doc> = names.iter().map(|name| node(name)).collect();
    let cluster = bare_cluster(&nodes).await;
    for value in [-10, -5, 0, 5, 10, 50, 100, 1000] {
        cluster.create_doc(&class(value)).await;
    }
    cluster
}

async fn create(cluster: &Cluster, pods: &[Doc]) {
    for pod in pods {
        cluster.create_doc(pod).await;
    }
}

async fn names(cluster: &Cluster) -> Vec<String> {
    let pods = cluster.list_docs(&PODS, "default", "").await;
    pods.iter()
        .map(|pod| pod.meta().name().to_owned())
        .collect()
}

async fn start_at(cluster: &Cluster, name: &str, time: &str) {
    let pod = find(cluster, name).await;
    cluster
        .patch_status(&pod, doc!({ "startTime": time }))
        .await;
}

/// A budget over pods with the label `app` of this value.
async fn budget(cluster: &Cluster, app: &str, allowed: i64) -> Doc {
    let budget = doc!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": app, "namespace": "default" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": app } } },
    });
    let budget = cluster.create_doc(&budget).await;
    let status = doc!({
        "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
    });
    cluster.patch_status(&budget, status).await
}

fn labelled(pod: &Doc, app: &str) -> Doc {
    set(pod, "/metadata/labels", doc!({ "app": app }))
}

fn nominated(pod: &Doc) -> &str {
    pod.str_at("/status/nominatedNodeName")
}

async fn until_nominated(cluster: &Cluster, name: &str, node: &str) {
    let is_nominated = async |c: &Cluster| nominated(&find(c, name).await) == node;
    cluster.until(is_nominated).await;
}

#[tokio::test(start_paused = true)]
async fn q1_pod_of_higher_priority_takes_the_place_of_a_lower_one() {
    let cluster = cluster(&["a"]).await;
    let held = doc!(["example.com/hold"]);
    let low = set(&placed("low", 0, "4", "a"), "/metadata/finalizers", held);
    let low = cluster.create_doc(&low).await;
    let high = cluster.create_doc(&ranked("high", 100, "4")).await;
    let is_leaving = async |c: &Cluster| find(c, "low").await.meta().is_deleting();
    cluster.until(is_leaving).await;
    let leaving = find(&cluster, "low").await;
    let target = condition(&leaving, "DisruptionTarget").unwrap();
    assert!(target.is_true());
    assert_eq!(target.reason, "PreemptionByScheduler");
    assert_eq!(
        target.message,
        "default-scheduler: preempting to accommodate a higher priority pod"
    );
    until_nominated(&cluster, "high", "a").await;
    let (reason, message) = refusal_of(&cluster, "high").await;
    assert_eq!(reason, "Unschedulable");
    assert_eq!(message, "0/1 nodes are available: 1 Insufficient cpu.");
    let release = doc!({ "metadata": { "finalizers": null } });
    cluster.patch(&low, release).await;
    assert_eq!(node_of(&cluster, "high").await, "a");
    assert_eq!(nominated(&find(&cluster, "high").await), "", "it is bound");
    let expected = (
        "Preempted".to_owned(),
        format!("Preempted by pod {} on node a", high.meta().uid_str()),
    );
    let is_told = async |c: &Cluster| events_of(c, "low").await.contains(&expected);
    cluster.until(is_told).await;
}

#[tokio::test(start_paused = true)]
async fn q2_equal_priority_preempts_nobody() {
    let cluster = cluster(&["a"]).await;
    create(
        &cluster,
        &[placed("low", 10, "4", "a"), ranked("same", 10, "4")],
    )
    .await;
    let (_, message) = refusal_of(&cluster, "same").await;
    assert_eq!(
        message,
        "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: \
         1 No preemption victims found for incoming pod."
    );
    cluster.pass(Duration::from_secs(600)).await;
    assert_eq!(names(&cluster).await, ["low", "same"]);
    assert_eq!(nominated(&find(&cluster, "same").await), "");
}

#[tokio::test(start_paused = true)]
async fn q3_pod_that_never_preempts_waits() {
    let cluster = cluster(&["a"]).await;
    let never = doc!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": { "name": "polite" }, "value": 500, "preemptionPolicy": "Never",
    });
    cluster.create_doc(&never).await;
    let polite = set(
        &ranked("polite", 100, "4"),
        "/spec/priorityClassName",
        "polite",
    );
    create(&cluster, &[placed("low", 0, "4", "a"), polite]).await;
    let (_, message) = refusal_of(&cluster, "polite").await;
    assert!(
        message.ends_with(" preemption: not eligible due to preemptionPolicy=Never."),
        "{message}"
    );
    cluster.pass(Duration::from_secs(600)).await;
    assert_eq!(names(&cluster).await, ["low", "polite"]);
    force_delete(&cluster, "low").await;
    assert_eq!(node_of(&cluster, "polite").await, "a");
}

#[tokio::test(start_paused = true)]
async fn q4_only_as_many_leave_as_must_and_the_important_stay() {
    let cluster = cluster(&["a"]).await;
    let pods = [
        placed("ten", 10, "1", "a"),
        placed("five", 5, "1", "a"),
        placed("zero", 0, "1", "a"),
        placed("old", 0, "1", "a"),
    ];
    create(&cluster, &pods).await;
    start_at(&cluster, "old", "2020-01-01T00:00:00Z").await;
    start_at(&cluster, "zero", "2021-01-01T00:00:00Z").await;
    cluster.create_doc(&ranked("high", 100, "1")).await;
    assert_eq!(node_of(&cluster, "high").await, "a");
    assert_eq!(names(&cluster).await, ["five", "high", "old", "ten"]);
    cluster.create_doc(&ranked("more", 100, "2")).await;
    assert_eq!(node_of(&cluster, "more").await, "a");
    assert_eq!(names(&cluster).await, ["high", "more", "ten"]);
}

#[tokio::test(start_paused = true)]
async fn q5_node_without_a_violated_budget_is_preferred() {
    let cluster = cluster(&["a", "b"]).await;
    budget(&cluster, "guarded", 0).await;
    let guarded = labelled(&placed("guarded", 0, "4", "a"), "guarded");
    create(&cluster, &[guarded, placed("important", 50, "4", "b")]).await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&ranked("high", 100, "4")).await;
    assert_eq!(node_of(&cluster, "high").await, "b");
    assert_eq!(names(&cluster).await, ["guarded", "high"]);
}

#[tokio::test(start_paused = true)]
async fn q6_budgets_are_violated_if_there_is_no_other_way() {
    let cluster = cluster(&["a", "b"]).await;
    budget(&cluster, "guarded", 0).await;
    for (name, node) in [("one", "a"), ("two", "b")] {
        let pod = labelled(&placed(name, 0, "4", node), "guarded");
        cluster.create_doc(&pod).await;
    }
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&ranked("high", 100, "4")).await;
    node_of(&cluster, "high").await;
    assert_eq!(names(&cluster).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn q7_fewer_victims_are_preferred_after_the_priority_of_the_first() {
    let cluster = cluster(&["a", "b"]).await;
    let pods = [
        placed("a1", 10, "2", "a"),
        placed("a2", 10, "2", "a"),
        placed("b1", 10, "4", "b"),
    ];
    create(&cluster, &pods).await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&ranked("high", 100, "4")).await;
    assert_eq!(node_of(&cluster, "high").await, "b");
    assert_eq!(names(&cluster).await, ["a1", "a2", "high"]);
}

#[tokio::test(start_paused = true)]
async fn q7_two_very_unimportant_victims_are_preferred_to_one() {
    let cluster = cluster(&["a", "b"]).await;
    let pods = [
        placed("a1", -10, "2", "a"),
        placed("a2", -10, "2", "a"),
        placed("b1", -5, "4", "b"),
    ];
    create(&cluster, &pods).await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&ranked("high", 100, "4")).await;
    assert_eq!(node_of(&cluster, "high").await, "a");
    assert_eq!(names(&cluster).await, ["b1", "high"]);
}

#[tokio::test(start_paused = true)]
async fn q8_victim_that_started_last_is_preferred() {
    let cluster = cluster(&["a", "b", "c"]).await;
    for (name, node, time) in [
        ("middle", "a", "2021-01-01T00:00:00Z"),
        ("young", "b", "2022-01-01T00:00:00Z"),
        ("old", "c", "2020-01-01T00:00:00Z"),
    ] {
        cluster.create_doc(&placed(name, 0, "4", node)).await;
        start_at(&cluster, name, time).await;
    }
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&ranked("high", 100, "4")).await;
    assert_eq!(node_of(&cluster, "high").await, "b");
    assert_eq!(names(&cluster).await, ["high", "middle", "old"]);
}

#[tokio::test(start_paused = true)]
async fn q9_node_that_the_pod_does_not_want_is_no_candidate() {
    let cluster = cluster(&["a", "b"]).await;
    let pods = [placed("low", 0, "4", "a"), placed("other", 50, "4", "b")];
    create(&cluster, &pods).await;
    let selector = doc!({ "kubernetes.io/hostname": "b" });
    let high = set(&ranked("high", 100, "4"), "/spec/nodeSelector", selector);
    cluster.create_doc(&high).await;
    assert_eq!(node_of(&cluster, "high").await, "b");
    assert_eq!(names(&cluster).await, ["high", "low"]);
}

#[tokio::test(start_paused = true)]
async fn hopeless_preemption_says_what_each_node_lacks() {
    let cluster = cluster(&["a", "b", "c"]).await;
    let pods = [
        placed("fixed", 1000, "2", "a"),
        placed("low", 0, "2", "a"),
        placed("full", 1000, "4", "b"),
    ];
    create(&cluster, &pods).await;
    let cordon = doc!({ "spec": { "unschedulable": true } });
    let node = cluster.find(&NODES, "c").await.unwrap();
    cluster.patch(&node, cordon).await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&ranked("high", 100, "3")).await;
    let (_, message) = refusal_of(&cluster, "high").await;
    assert_eq!(
        message,
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. preemption: \
         0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming \
         pod, 1 Preemption is not helpful for scheduling."
    );
    assert_eq!(names(&cluster).await, ["fixed", "full", "high", "low"]);
}

#[tokio::test(start_paused = true)]
async fn q10_nobody_else_leaves_while_the_victim_has_its_grace() {
    let cluster = cluster(&["a", "b"]).await;
    let slow = set(
        &placed("slow", 0, "4", "a"),
        "/spec/terminationGracePeriodSeconds",
        60,
    );
    create(&cluster, &[slow, placed("other", 50, "4", "b")]).await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&ranked("high", 100, "4")).await;
    until_nominated(&cluster, "high", "a").await;
    // Whatever wakes the pod meanwhile, it preempts nobody else.
    for round in 0..6 {
        cluster.pass(Duration::from_secs(10)).await;
        let bound = placed(&format!("tiny{round}"), 0, "0", "b");
        cluster.create_doc(&bound).await;
        force_delete(&cluster, &format!("tiny{round}")).await;
    }
    assert_eq!(names(&cluster).await, ["high", "other", "slow"]);
    let waiting = find(&cluster, "high").await;
    assert_eq!(nominated(&waiting), "a");
    let scheduled = condition(&waiting, "PodScheduled").unwrap();
    let told = " preemption: not eligible due to a terminating pod on the nominated node.";
    assert!(scheduled.message.ends_with(told), "{}", scheduled.message);
    force_delete(&cluster, "slow").await;
    assert_eq!(node_of(&cluster, "high").await, "a");
    assert_eq!(names(&cluster).await, ["high", "other"]);
}

#[tokio::test(start_paused = true)]
async fn q11_nomination_of_a_lower_pod_is_cleared() {
    let cluster = cluster(&["a"]).await;
    let slow = set(
        &placed("slow", 0, "4", "a"),
        "/spec/terminationGracePeriodSeconds",
        3600,
    );
    let held = set(&slow, "/metadata/labels", doc!({ "app": "slow" }));
    create(&cluster, &[held, ranked("middle", 50, "4")]).await;
    until_nominated(&cluster, "middle", "a").await;
    // A victim is left for the higher one, too.
    cluster.create_doc(&placed("tiny", 0, "0", "a")).await;
    let spread = set(
        &ranked("high", 100, "4"),
        "/spec/affinity",
        doc!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": { "matchLabels": { "app": "tiny" } },
        }] } }),
    );
    let tiny = find(&cluster, "tiny").await;
    let label = doc!({ "metadata": { "labels": { "app": "tiny" } } });
    cluster.patch(&tiny, label).await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&spread).await;
    until_nominated(&cluster, "high", "a").await;
    until_nominated(&cluster, "middle", "").await;
    force_delete(&cluster, "slow").await;
    assert_eq!(node_of(&cluster, "high").await, "a");
    assert_eq!(names(&cluster).await, ["high", "middle"]);
}

#[tokio::test(start_paused = true)]
async fn q12_node_that_was_freed_may_go_to_somebody_more_important() {
    let cluster = cluster(&["a"]).await;
    let slow = set(
        &placed("slow", 0, "4", "a"),
        "/spec/terminationGracePeriodSeconds",
        3600,
    );
    create(&cluster, &[slow, ranked("middle", 50, "4")]).await;
    until_nominated(&cluster, "middle", "a").await;
    cluster.create_doc(&ranked("high", 100, "4")).await;
    refusal_of(&cluster, "high").await;
    force_delete(&cluster, "slow").await;
    assert_eq!(node_of(&cluster, "high").await, "a");
    cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(find(&cluster, "middle").await.str_at("/spec/nodeName"), "");
    add_node(&cluster, &node("b")).await;
    assert_eq!(node_of(&cluster, "middle").await, "b");
}

#[tokio::test(start_paused = true)]
async fn node_is_kept_for_its_nominated_pod() {
    let cluster = cluster(&["a"]).await;
    let slow = set(
        &placed("slow", 0, "3", "a"),
        "/spec/terminationGracePeriodSeconds",
        3600,
    );
    create(&cluster, &[slow, ranked("high", 100, "4")]).await;
    until_nominated(&cluster, "high", "a").await;
    // There is room for it now, but not when the nominated pod comes.
    cluster.create_doc(&ranked("small", 0, "1")).await;
    let (_, message) = refusal_of(&cluster, "small").await;
    assert!(message.contains("1 Insufficient cpu"), "{message}");
    // Who is more important does not care.
    cluster.create_doc(&ranked("urgent", 1000, "1")).await;
    assert_eq!(node_of(&cluster, "urgent").await, "a");
    force_delete(&cluster, "urgent").await;
    force_delete(&cluster, "slow").await;
    assert_eq!(node_of(&cluster, "high").await, "a");
}

#[tokio::test(start_paused = true)]
async fn nominated_node_that_somebody_else_wrote_is_tried_first() {
    let cluster = classes(&["a", "b", "c", "d", "e"]).await;
    let pod = cluster.create_doc(&ranked("p", 0, "1")).await;
    cluster
        .patch_status(&pod, doc!({ "nominatedNodeName": "d" }))
        .await;
    run(&cluster, &scheduler::Options::default());
    assert_eq!(node_of(&cluster, "p").await, "d");
}

#[tokio::test(start_paused = true)]
async fn q13_pod_that_the_server_has_counted_violates_no_budget() {
    let cluster = cluster(&["a", "b"]).await;
    let budget = budget(&cluster, "guarded", 0).await;
    let counted = labelled(&placed("counted", 0, "4", "a"), "guarded");
    let guarded = labelled(&placed("guarded", -10, "4", "b"), "guarded");
    create(&cluster, &[counted, guarded]).await;
    let disrupted = doc!({ "disruptedPods": { "counted": "2026-01-01T00:00:00Z" } });
    cluster.patch_status(&budget, disrupted).await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&ranked("high", 100, "4")).await;
    assert_eq!(node_of(&cluster, "high").await, "a");
    assert_eq!(names(&cluster).await, ["guarded", "high"]);
}

#[tokio::test(start_paused = true)]
async fn budget_is_counted_down_by_each_victim() {
    let cluster = cluster(&["a", "b"]).await;
    budget(&cluster, "guarded", 1).await;
    let one = labelled(&placed("one", 0, "2", "a"), "guarded");
    let two = labelled(&placed("two", 0, "2", "a"), "guarded");
    create(&cluster, &[one, two, placed("b1", 50, "4", "b")]).await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&ranked("high", 100, "4")).await;
    assert_eq!(node_of(&cluster, "high").await, "b", "two are one too many");
    cluster.create_doc(&ranked("next", 10, "2")).await;
    assert_eq!(node_of(&cluster, "next").await, "a");
    let budget = cluster.find(&BUDGETS, "default/guarded").await.unwrap();
    assert_eq!(*budget.at("/status/disruptionsAllowed"), 1);
}

#[tokio::test(start_paused = true)]
async fn q14_victim_of_a_job_that_ignores_disruptions_has_not_failed() {
    let cluster = classes(&[]).await;
    let mut options = nodes::Options::default();
    options.nodes = 1;
    options.capacity.cpu = "4".to_owned();
    cluster.run_with("all", |manager| {
        nodes::add_to(manager, &options);
        scheduler::add_to(manager, &scheduler::Options::default());
        job::add_to(manager, &job::Options::default());
    });
    let pod = set(&ranked("x", 0, "4"), "/spec/restartPolicy", "Never");
    let pod = set(&pod, "/spec/terminationGracePeriodSeconds", 5);
    let lasting = doc!({ (nodes::EXIT_AFTER): (nodes::NEVER) });
    let job = doc!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": "work", "namespace": "default" },
        "spec": {
            "backoffLimit": 0,
            "podFailurePolicy": { "rules": [{
                "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget" }],
            }] },
            "template": { "metadata": { "annotations": lasting }, "spec": (pod.at("/spec")) },
        },
    });
    let jobs = Gvr::constant("batch", "v1", "jobs");
    cluster.create_doc(&job).await;
    let is_active = async |c: &Cluster| {
        let pods = c.list_docs(&PODS, "default", "").await;
        pods.iter()
            .any(|pod| pod.str_at("/status/phase") == "Running")
    };
    cluster.until(is_active).await;
    let first = names(&cluster).await;
    let high = set(
        &ranked("high", 100, "4"),
        "/spec/terminationGracePeriodSeconds",
        5,
    );
    cluster.create_doc(&high).await;
    node_of(&cluster, "high").await;
    let is_replaced = async |c: &Cluster| {
        let now = names(c).await;
        now.len() == 2 && !now.contains(&first[0])
    };
    cluster.until(is_replaced).await;
    let job = cluster.find(&jobs, "default/work").await.unwrap();
    assert_eq!(job.at("/status/failed").as_i64().unwrap_or(0), 0);
    assert!(job.at("/status/conditions").items().is_empty(), "{job:?}");
}

#[tokio::test(start_paused = true)]
async fn q15_pod_without_labels_violates_no_budget() {
    let cluster = cluster(&["a", "b"]).await;
    let all = doc!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "all", "namespace": "default" },
        "spec": { "minAvailable": 1, "selector": { "matchExpressions": [
            { "key": "app", "operator": "DoesNotExist" },
        ] } },
    });
    cluster.create_doc(&all).await;
    budget(&cluster, "guarded", 0).await;
    let guarded = labelled(&placed("guarded", 0, "4", "b"), "guarded");
    create(&cluster, &[placed("bare", 50, "4", "a"), guarded]).await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster.create_doc(&ranked("high", 100, "4")).await;
    assert_eq!(node_of(&cluster, "high").await, "a");
}

#[tokio::test(start_paused = true)]
async fn anti_affinity_of_lower_pods_gives_way() {
    let cluster = cluster(&["a"]).await;
    let apart = doc!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": { "matchLabels": { "app": "web" } },
    }] } });
    let low = set(&placed("low", 0, "1", "a"), "/spec/affinity", apart);
    create(&cluster, &[low, placed("bystander", 0, "1", "a")]).await;
    cluster.pass(Duration::from_secs(1)).await;
    cluster
        .create_doc(&labelled(&ranked("high", 100, "1"), "web"))
        .await;
    assert_eq!(node_of(&cluster, "high").await, "a");
    assert_eq!(names(&cluster).await, ["bystander", "high"]);
}

#[tokio::test(start_paused = true)]
async fn many_waiting_pods_preempt_one_victim_each() {
    let cluster = cluster(&["a", "b", "c"]).await;
    for number in 0..12 {
        let on = ["a", "b", "c"][number % 3];
        let low = placed(&format!("low{number}"), 0, "1", on);
        cluster.create_doc(&low).await;
    }
    cluster.pass(Duration::from_secs(1)).await;
    for number in 0..6 {
        let high = ranked(&format!("high{number}"), 100, "1");
        cluster.create_doc(&high).await;
    }
    for number in 0..6 {
        node_of(&cluster, &format!("high{number}")).await;
    }
    cluster.pass(Duration::from_secs(60)).await;
    let left = names(&cluster).await;
    let low = left.iter().filter(|name| name.starts_with("low"));
    assert_eq!(low.count(), 6, "{left:?}");
    let events = cluster.list_docs(&EVENTS, "default", "").await;
    let told = events
        .iter()
        .filter(|event| event.str_at("/reason") == "Preempted");
    assert_eq!(told.count(), 6);
}

//! What becomes of pods, whatever they ask for.

use std::time::Duration;

use windlass_client::{DeleteOptions, Propagation};
use windlass_core::{condition, doc};
use windlass_placement::{node as nodes, scheduler};
use windlass_testing::{Cluster, Fault, Faults};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn pod_is_bound_with_a_condition_and_an_event() {
    let cluster = cluster(&[node("a")]).await;
    cluster.create_doc(&pod("p")).await;
    assert_eq!(node_of(&cluster, "p").await, "a");
    let bound = find(&cluster, "p").await;
    assert!(condition(&bound, "PodScheduled").unwrap().is_true());
    cluster
        .until(async |c| !events_of(c, "p").await.is_empty())
        .await;
    let events = cluster.list_docs(&EVENTS, "default", "").await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].str_at("/reason"), "Scheduled");
    assert_eq!(events[0].str_at("/type"), "Normal");
    let message = "Successfully assigned default/p to a";
    assert_eq!(events[0].str_at("/message"), message);
    assert_eq!(events[0].str_at("/source/component"), "default-scheduler");
}

#[tokio::test(start_paused = true)]
async fn pods_become_ready_on_pretend_nodes() {
    let cluster = cluster(&[]).await;
    cluster.run_with("nodes", |manager| {
        nodes::add_to(manager, &nodes::Options::default())
    });
    for number in 0..20 {
        cluster.create_doc(&pod(&format!("p{number}"))).await;
    }
    let are_ready = async |c: &Cluster| {
        let pods = c.list_docs(&PODS, "default", "").await;
        pods.iter().all(windlass_workloads::is_pod_ready)
    };
    cluster.until(are_ready).await;
    let nodes = cluster.list_docs(&NODES, "", "").await;
    assert_eq!(nodes.len(), 3);
    let pods = cluster.list_docs(&PODS, "default", "").await;
    for node in &nodes {
        let name = node.meta().name();
        let here = pods
            .iter()
            .filter(|pod| pod.str_at("/spec/nodeName") == name);
        // A percent of a node is about three pods, and the scores do not see less.
        assert!(here.count() >= 6, "{name} has its share");
    }
}

#[tokio::test(start_paused = true)]
async fn cluster_without_nodes_says_so_and_takes_the_pod_later() {
    let cluster = cluster(&[]).await;
    cluster.create_doc(&pod("p")).await;
    let (reason, message) = refusal_of(&cluster, "p").await;
    assert_eq!(reason, "Unschedulable");
    assert_eq!(message, "no nodes available to schedule pods");
    let events = events_of(&cluster, "p").await;
    assert_eq!(events, [("FailedScheduling".to_owned(), message)]);
    add_node(&cluster, &node("a")).await;
    assert_eq!(node_of(&cluster, "p").await, "a");
}

#[tokio::test(start_paused = true)]
async fn pods_of_other_schedulers_and_pods_with_a_node_are_left_alone() {
    let cluster = cluster(&[node("a")]).await;
    cluster
        .create_doc(&set(&pod("other"), "/spec/schedulerName", "mine"))
        .await;
    cluster
        .create_doc(&set(&pod("placed"), "/spec/nodeName", "elsewhere"))
        .await;
    cluster.create_doc(&pod("p")).await;
    assert_eq!(node_of(&cluster, "p").await, "a");
    assert_waits(&cluster, "other").await;
    assert!(condition(&find(&cluster, "other").await, "PodScheduled").is_none());
    let placed = find(&cluster, "placed").await;
    assert_eq!(placed.str_at("/spec/nodeName"), "elsewhere");
    assert!(events_of(&cluster, "placed").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn second_scheduler_serves_the_pods_that_name_it() {
    let cluster = bare_cluster(&[node("a")]).await;
    let mut options = scheduler::Options::default();
    options.scheduler_name = "mine".to_owned();
    run(&cluster, &options);
    cluster
        .create_doc(&set(&pod("p"), "/spec/schedulerName", "mine"))
        .await;
    assert_eq!(node_of(&cluster, "p").await, "a");
}

#[tokio::test(start_paused = true)]
async fn pod_waits_until_its_scheduling_gates_are_gone() {
    let cluster = cluster(&[node("a")]).await;
    let gated = set(
        &pod("p"),
        "/spec/schedulingGates",
        doc!([{ "name": "example.com/wait" }]),
    );
    let gated = cluster.create_doc(&gated).await;
    assert_waits(&cluster, "p").await;
    assert!(
        events_of(&cluster, "p").await.is_empty(),
        "no attempt was made"
    );
    cluster
        .patch(&gated, doc!({ "spec": { "schedulingGates": null } }))
        .await;
    assert_eq!(node_of(&cluster, "p").await, "a");
}

#[tokio::test(start_paused = true)]
async fn pods_of_high_priority_come_first() {
    let cluster = cluster(&[]).await;
    cluster
        .create_doc(&doc!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": { "name": "high" }, "value": 1000,
        }))
        .await;
    for name in ["first", "second"] {
        cluster.create_doc(&pod(name)).await;
    }
    let urgent = cluster
        .create_doc(&set(&pod("urgent"), "/spec/priorityClassName", "high"))
        .await;
    assert_eq!(urgent.at("/spec/priority").as_i64(), Some(1000));
    for name in ["first", "second", "urgent"] {
        refusal_of(&cluster, name).await;
    }
    let one_pod = set(&node("a"), "/status/allocatable/pods", "1");
    add_node(&cluster, &one_pod).await;
    assert_eq!(node_of(&cluster, "urgent").await, "a");
    assert_waits(&cluster, "first").await;
    assert_waits(&cluster, "second").await;
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_is_skipped_and_told_so() {
    let cluster = bare_cluster(&[node("a")]).await;
    let held = set(
        &pod("p"),
        "/metadata/finalizers",
        doc!(["example.com/hold"]),
    );
    let held = cluster.create_doc(&held).await;
    cluster.delete(&held, Propagation::Background).await;
    run(&cluster, &scheduler::Options::default());
    cluster
        .until(async |c| !events_of(c, "p").await.is_empty())
        .await;
    let events = events_of(&cluster, "p").await;
    let message = "skip schedule deleting pod: default/p".to_owned();
    assert_eq!(events, [("FailedScheduling".to_owned(), message)]);
    assert_waits(&cluster, "p").await;
}

#[tokio::test(start_paused = true)]
async fn pod_deleted_in_any_state_leaves_nothing_behind() {
    let whole = |name: &str| pod_with(name, "4", "1Gi");
    let cluster = cluster(&[node("a")]).await;
    cluster.create_doc(&whole("running")).await;
    assert_eq!(node_of(&cluster, "running").await, "a");
    cluster.create_doc(&whole("pool")).await;
    refusal_of(&cluster, "pool").await;
    force_delete(&cluster, "pool").await;
    cluster.create_doc(&whole("next")).await;
    refusal_of(&cluster, "next").await;
    force_delete(&cluster, "running").await;
    assert_eq!(node_of(&cluster, "next").await, "a");
    assert!(cluster.find(&PODS, "default/pool").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn ended_pod_frees_its_node() {
    let cluster = cluster(&[node("a")]).await;
    let first = cluster.create_doc(&pod_with("first", "4", "1Gi")).await;
    assert_eq!(node_of(&cluster, "first").await, "a");
    cluster.create_doc(&pod_with("second", "4", "1Gi")).await;
    refusal_of(&cluster, "second").await;
    cluster
        .patch_status(&first, doc!({ "phase": "Succeeded" }))
        .await;
    assert_eq!(node_of(&cluster, "second").await, "a");
}

#[tokio::test(start_paused = true)]
async fn refused_binding_frees_the_node_and_is_tried_again() {
    let cluster = bare_cluster(&[node("a")]).await;
    let mut refusals = 2;
    let faults = Faults::new(move |call| {
        if call.path.ends_with("/first/binding") && refusals > 0 {
            refusals -= 1;
            return Fault::Refuse(500, "InternalError");
        }
        Fault::None
    });
    let transport = cluster.transport().layer(&faults);
    let manager = cluster.manager_on("scheduler", transport).build().unwrap();
    scheduler::add_to(&manager, &scheduler::Options::default());
    cluster.run_manager(manager);
    cluster.create_doc(&pod_with("first", "4", "1Gi")).await;
    let (reason, message) = refusal_of(&cluster, "first").await;
    assert_eq!(reason, "SchedulerError");
    assert!(
        message.starts_with("running Bind plugin \"DefaultBinder\": "),
        "{message}"
    );
    assert_eq!(node_of(&cluster, "first").await, "a");
}

#[tokio::test(start_paused = true)]
async fn binding_without_an_answer_is_seen_on_the_watch() {
    let cluster = bare_cluster(&[node("a"), node("b")]).await;
    let mut losses = 1;
    let faults = Faults::new(move |call| {
        if call.path.ends_with("/binding") && losses > 0 {
            losses -= 1;
            return Fault::LostAnswer;
        }
        Fault::None
    });
    let transport = cluster.transport().layer(&faults);
    let manager = cluster.manager_on("scheduler", transport).build().unwrap();
    scheduler::add_to(&manager, &scheduler::Options::default());
    cluster.run_manager(manager);
    cluster.create_doc(&pod_with("p", "4", "1Gi")).await;
    let there = node_of(&cluster, "p").await;
    cluster.create_doc(&pod_with("q", "4", "1Gi")).await;
    assert_ne!(node_of(&cluster, "q").await, there);
    cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(node_of(&cluster, "p").await, there);
}

#[tokio::test(start_paused = true)]
async fn two_schedulers_bind_every_pod_once() {
    let cluster = cluster(&[node("a"), node("b"), node("c")]).await;
    run(&cluster, &scheduler::Options::default());
    for number in 0..24 {
        cluster.create_doc(&pod(&format!("p{number}"))).await;
    }
    for number in 0..24 {
        node_of(&cluster, &format!("p{number}")).await;
    }
    cluster.pass(Duration::from_secs(60)).await;
    let events = cluster.list_docs(&EVENTS, "default", "").await;
    let bound = events
        .iter()
        .filter(|event| event.str_at("/reason") == "Scheduled");
    assert_eq!(bound.count(), 24);
}

#[tokio::test(start_paused = true)]
async fn restarted_scheduler_counts_what_is_placed() {
    let cluster = bare_cluster(&[node("a"), node("b")]).await;
    let first = run(&cluster, &scheduler::Options::default());
    cluster.create_doc(&pod_with("p1", "3", "1Gi")).await;
    cluster.create_doc(&pod_with("p2", "3", "1Gi")).await;
    let (one, two) = (node_of(&cluster, "p1").await, node_of(&cluster, "p2").await);
    assert_ne!(one, two);
    first.abort();
    run(&cluster, &scheduler::Options::default());
    cluster.create_doc(&pod_with("p3", "3", "1Gi")).await;
    assert_eq!(reasons_of(&cluster, "p3").await, "2 Insufficient cpu.");
    assert_waits(&cluster, "p3").await;
}

#[tokio::test(start_paused = true)]
async fn metrics_carry_upstreams_names() {
    let cluster = bare_cluster(&[node("a")]).await;
    let running = run(&cluster, &scheduler::Options::default());
    cluster.create_doc(&pod("p")).await;
    cluster.create_doc(&pod_with("q", "5", "1Gi")).await;
    node_of(&cluster, "p").await;
    refusal_of(&cluster, "q").await;
    let text = running.metrics();
    for line in [
        "scheduler_schedule_attempts_total{result=\"scheduled\",profile=\"default-scheduler\"} 1",
        "scheduler_schedule_attempts_total{result=\"unschedulable\",profile=\"default-scheduler\"} 1",
        "scheduler_pending_pods{queue=\"unschedulable\"} 1",
        "scheduler_unschedulable_pods{plugin=\"NodeResourcesFit\"} 1",
        "scheduler_cache_size{type=\"nodes\"} 1",
    ] {
        assert!(text.contains(line), "{line} is in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn pod_bound_by_somebody_else_is_not_bound_again() {
    let cluster = cluster(&[node("a"), node("b")]).await;
    let picky = set(&pod("p"), "/spec/nodeSelector", doc!({ "disk": "ssd" }));
    cluster.create_doc(&picky).await;
    refusal_of(&cluster, "p").await;
    bind(&cluster, "p", "b").await;
    cluster.pass(Duration::from_secs(600)).await;
    assert_eq!(node_of(&cluster, "p").await, "b");
    let options = DeleteOptions::default();
    cluster
        .api(&PODS, "default")
        .delete("p", &options)
        .await
        .unwrap();
}

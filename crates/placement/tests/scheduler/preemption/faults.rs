//! A preemption in which one thing goes wrong each time.

use std::time::Duration;

use http::Method;
use windlass_core::{Doc, doc};
use windlass_placement::scheduler;
use windlass_testing::{Call, Cluster, Fault, Position, Seen, Simulation, Stage};

use super::{class, placed, ranked};
use crate::support::{PODS, add_node, node};

const FAULTS: [Fault; 5] = [
    Fault::Refuse(500, "InternalError"),
    Fault::Throttle(Duration::from_secs(1)),
    Fault::LostRequest,
    Fault::LostAnswer,
    Fault::DelayAnswer(Duration::from_secs(40)),
];

/// Two pods leave for a third one, and another node full of equally unimportant pods stays as it
/// is, because more of them would have to leave.
async fn preemption(stage: Stage) -> Vec<Doc> {
    let cluster = Cluster::builder().env(stage.env().clone()).start().await;
    for value in [0, 5, 100] {
        cluster.create_doc(&class(value)).await;
    }
    for name in ["a", "b"] {
        add_node(&cluster, &node(name)).await;
    }
    for pod in [
        placed("low1", 0, "2", "a"),
        placed("low2", 0, "2", "a"),
        placed("other1", 5, "2", "b"),
        placed("other2", 5, "2", "b"),
    ] {
        cluster.create_doc(&pod).await;
    }
    let (world, transport) = (cluster.clone(), cluster.transport());
    stage.start("scheduler", &transport, move |transport| {
        let manager = world.manager_on("scheduler", transport).build();
        let manager = manager.expect("a manager is built");
        scheduler::add_to(&manager, &scheduler::Options::default());
        async move { manager.run().await.expect("the manager stops in order") }
    });
    cluster.create_doc(&ranked("high", 100, "4")).await;
    let bound = async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let high = cluster.find(&PODS, "default/high").await;
        high.is_some_and(|pod| !pod.str_at("/spec/nodeName").is_empty())
    };
    stage.until("the pod is bound", bound).await;
    stage.pass(Duration::from_secs(60)).await;
    let pods = cluster.list_docs(&PODS, "default", "").await;
    pods.iter()
        .map(|pod| {
            doc!({
                "metadata": { "name": (pod.meta().name()) },
                "spec": { "nodeName": (pod.at("/spec/nodeName")) },
            })
        })
        .collect()
}

fn deletions_name_their_object(seen: &Seen) -> Result<(), String> {
    let is_delete = seen.call.method == Method::DELETE;
    if is_delete && seen.payload.str_at("/preconditions/uid").is_empty() {
        return Err("a deletion does not say which object it means".to_owned());
    }
    Ok(())
}

fn is_work(call: &Call) -> bool {
    !call.is_watch && !call.path.contains("/events")
}

#[test]
fn preemption_is_finished_after_a_crash_anywhere() {
    let simulation = Simulation::new("preemption").on_request(deletions_name_their_object);
    let faults = Position::ALL.map(Fault::Crash);
    let explored = simulation.fault_at_every_call(is_work, &faults, preemption);
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(explored.runs >= 15, "{explored:?}");
}

#[test]
fn preemption_survives_every_fault_of_a_call() {
    let simulation = Simulation::new("preemption").ignore_counts();
    let explored = simulation.fault_at_every_call(is_work, &FAULTS, preemption);
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(explored.runs >= 25, "{explored:?}");
}

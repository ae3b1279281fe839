//! Requests fail, watches lag and the process crashes: never too much is allowed, and in the end
//! everything is as without faults.

use std::{cell::Cell, time::Duration};

use windlass_core::{Doc, doc};
use windlass_testing::{
    Call, Cluster, Explored, Failure, Fault, Simulation, Stage, World as Objects,
};
use windlass_workloads::disruption;

use crate::world::{BUDGETS, PODS, budget, counts, owned_by, owner, pod};

const FAULTS: [Fault; 7] = [
    Fault::Refuse(409, "Conflict"),
    Fault::Refuse(500, "InternalError"),
    Fault::Throttle(Duration::from_secs(1)),
    Fault::NotSent,
    Fault::LostRequest,
    Fault::LostAnswer,
    Fault::Delay(Duration::from_secs(40)),
];

const LAG: Duration = Duration::from_secs(100);
const REST: Duration = Duration::from_secs(150);

async fn cluster(stage: &Stage) -> Cluster {
    let cluster = Cluster::builder().env(stage.env().clone()).start().await;
    stage.observe(&cluster.transport(), &[PODS, BUDGETS]);
    let (transport, started) = (cluster.transport(), cluster.clone());
    stage.start("disruption", &transport, move |transport| {
        let manager = started.manager_on("disruption", transport).build().unwrap();
        disruption::add_to(&manager, &disruption::Options::default());
        async move { manager.run().await.unwrap() }
    });
    cluster
}

async fn until(stage: &Stage, cluster: &Cluster, numbers: [i64; 4]) {
    let what = format!("the budget says {numbers:?}");
    let looked_at = Cell::new(None);
    let holds = async || {
        let changes = Some(stage.changes());
        if looked_at.replace(changes) == changes {
            return false;
        }
        let found = cluster.find(&BUDGETS, "default/web").await.unwrap();
        counts(found.at("/status")) == numbers
    };
    stage.until(&what, holds).await;
}

/// Three pods become ready one after the other, and one is targeted and stays.
async fn counting(stage: Stage) -> Vec<Doc> {
    let cluster = cluster(&stage).await;
    let set = cluster.create_doc(&owner("ReplicaSet", "web", 3)).await;
    let spec = doc!({ "maxUnavailable": 1 });
    cluster.create_doc(&budget("web", spec)).await;
    let mut pods = Vec::new();
    for number in 0..3 {
        let base = pod(&format!("web-{number}"), None);
        let owned = base.with("/metadata/ownerReferences", vec![owned_by(&set)]);
        let created = cluster.create_doc(&owned.unwrap()).await;
        let now = cluster.env().now().to_string();
        let ready = doc!({ "type": "Ready", "status": "True", "lastTransitionTime": now });
        let status = doc!({ "phase": "Running", "conditions": [ready] });
        pods.push(cluster.patch_status(&created, status).await);
    }
    until(&stage, &cluster, [3, 2, 3, 1]).await;
    let now = cluster.env().now().to_string();
    let found = cluster.find(&BUDGETS, "default/web").await.unwrap();
    let status = doc!({ "disruptionsAllowed": 0, "disruptedPods": { "web-0": (&now) } });
    cluster.patch_status(&found, status).await;
    let target = doc!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "lastTransitionTime": (&now)
    });
    let ready = pods[0].at("/status/conditions/0").clone();
    let status = doc!({ "conditions": [ready, target] });
    cluster.patch_status(&pods[0], status).await;
    until(&stage, &cluster, [2, 2, 3, 0]).await;
    until(&stage, &cluster, [3, 2, 3, 1]).await;
    stage.pass(REST).await;
    stage.rest(REST).await;
    let mut all = cluster.list_docs(&BUDGETS, "default", "").await;
    all.extend(cluster.list_docs(&PODS, "default", "").await);
    all
}

/// No more is ever allowed than there are healthy pods above the two that must be.
fn never_too_much(objects: &Objects) -> Result<(), String> {
    for budget in objects.of("poddisruptionbudgets") {
        let [_, _, _, allowed] = counts(budget.at("/status"));
        if allowed > 1 {
            return Err(format!("the budget says {}", budget.at("/status")));
        }
    }
    Ok(())
}

fn simulation() -> Simulation {
    Simulation::new("a disruption budget").on_change(never_too_much)
}

fn succeeded(outcome: Result<Explored, Failure>) {
    match outcome {
        Ok(explored) => assert!(explored.runs > 0, "{explored:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn survives_a_crash_at_every_call() {
    succeeded(simulation().crash_at_every_call(counting));
}

#[test]
fn survives_every_fault_at_every_call() {
    let patient = simulation().ignore_counts();
    let is_work = |call: &Call| !call.is_watch && !call.path.contains("/events");
    succeeded(patient.fault_at_every_call(is_work, &FAULTS, counting));
    let watches = [Fault::Cut(0), Fault::Cut(1), Fault::Lag(LAG)];
    succeeded(patient.fault_at_every_call(|call| call.is_watch, &watches, counting));
}

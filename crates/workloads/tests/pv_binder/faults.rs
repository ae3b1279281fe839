//! Requests fail, watches lag and the process crashes: a volume never belongs to two claims, and in
//! the end everything is as without faults.

use std::{cell::Cell, time::Duration};

use windlass_client::Propagation;
use windlass_core::{Doc, doc};
use windlass_testing::{
    Call, Cluster, Explored, Failure, Fault, Simulation, Stage, World as Objects,
};
use windlass_workloads::{pretend_provisioner, pv_binder};

use crate::world::{CLAIMS, VOLUMES, claim, class, volume};

const FAULTS: [Fault; 7] = [
    Fault::Refuse(409, "Conflict"),
    Fault::Refuse(500, "InternalError"),
    Fault::Throttle(Duration::from_secs(1)),
    Fault::NotSent,
    Fault::LostRequest,
    Fault::LostAnswer,
    Fault::Delay(Duration::from_secs(10)),
];

const LAG: Duration = Duration::from_secs(60);
const REST: Duration = Duration::from_secs(60);

async fn cluster(stage: &Stage) -> Cluster {
    let cluster = Cluster::builder().env(stage.env().clone()).start().await;
    stage.observe(&cluster.transport(), &[CLAIMS, VOLUMES]);
    let (transport, started) = (cluster.transport(), cluster.clone());
    stage.start("binder", &transport, move |transport| {
        let manager = started.manager_on("binder", transport).build().unwrap();
        pv_binder::add_to(&manager, &pv_binder::Options::default());
        let options = pretend_provisioner::Options { has_class: false };
        pretend_provisioner::add_to(&manager, &options);
        async move { manager.run().await.unwrap() }
    });
    cluster
}

async fn until(stage: &Stage, what: &str, holds: impl AsyncFn() -> bool) {
    let looked_at = Cell::new(None);
    let changed = async || {
        let changes = Some(stage.changes());
        looked_at.replace(changes) != changes && holds().await
    };
    stage.until(what, changed).await;
}

async fn until_bound(stage: &Stage, cluster: &Cluster, name: &str) {
    let holds = async || {
        let found = cluster.find(&CLAIMS, &format!("default/{name}")).await;
        found.is_some_and(|it| it.str_at("/status/phase") == "Bound")
    };
    until(stage, &format!("{name} is bound"), holds).await;
}

/// One claim gets a volume that is there, one gets a new one, which goes with it.
async fn binding(stage: Stage) -> Vec<Doc> {
    let cluster = cluster(&stage).await;
    let fields = doc!({ "provisioner": (pretend_provisioner::PROVISIONER_NAME) });
    cluster.create_doc(&class("new", &fields)).await;
    cluster.create_doc(&volume("a", "10Gi", doc!({}))).await;
    cluster.create_doc(&claim("found", doc!({}))).await;
    let new = doc!({ "storageClassName": "new" });
    let made = cluster.create_doc(&claim("made", new)).await;
    until_bound(&stage, &cluster, "found").await;
    until_bound(&stage, &cluster, "made").await;
    cluster.delete(&made, Propagation::Background).await;
    let is_alone = async || cluster.list_docs(&VOLUMES, "", "").await.len() == 1;
    until(&stage, "the volume is deleted", is_alone).await;
    stage.pass(REST).await;
    stage.rest(REST).await;
    let mut all = cluster.list_docs(&CLAIMS, "default", "").await;
    all.extend(cluster.list_docs(&VOLUMES, "", "").await);
    all
}

/// No two claims say that they have the same volume.
fn one_claim_each(objects: &Objects) -> Result<(), String> {
    let mut taken = std::collections::BTreeSet::new();
    for claim in objects.of("persistentvolumeclaims") {
        let name = claim.str_at("/spec/volumeName").to_owned();
        if !name.is_empty() && !taken.insert(name.clone()) {
            return Err(format!("two claims have {name}"));
        }
    }
    Ok(())
}

fn simulation() -> Simulation {
    Simulation::new("binding")
        .on_change(one_claim_each)
        .ignore_counts()
}

fn succeeded(outcome: Result<Explored, Failure>) {
    match outcome {
        Ok(explored) => assert!(explored.runs > 0, "{explored:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

/// V19
#[test]
fn survives_a_crash_at_every_call() {
    succeeded(simulation().crash_at_every_call(binding));
}

#[test]
fn survives_every_fault_at_every_call() {
    let is_work = |call: &Call| !call.is_watch && !call.path.contains("/events");
    succeeded(simulation().fault_at_every_call(is_work, &FAULTS, binding));
    let watches = [Fault::Cut(0), Fault::Cut(1), Fault::Lag(LAG)];
    succeeded(simulation().fault_at_every_call(|call| call.is_watch, &watches, binding));
}

//! What must hold when requests fail, watches lag and the process crashes: a deletion names the
//! object it means, nothing goes that has an owner, and in the end everything is as without faults.

use std::{collections::BTreeSet, time::Duration};

use http::Method;
use windlass_client::{DeleteOptions, DiscoveryClient, Propagation};
use windlass_core::{Doc, Gvr};
use windlass_testing::{Call, Cluster, Explored, Fault, Seen, Simulation, Stage, World as Objects};
use windlass_workloads::garbage_collector::{Options, add_to};

use crate::world::{
    CONFIG_MAPS, CONTROLLERS, PODS, World, blocking, config_map, controller, owned_by, pod,
    reference, with_references,
};

/// What the garbage collector is restricted to here: the fewer calls, the fewer runs.
const KINDS: [Gvr; 3] = [PODS, CONTROLLERS, CONFIG_MAPS];

/// Everything that can go wrong with one call and leaves the process alive.
const FAULTS: [Fault; 6] = [
    Fault::Refuse(409, "Conflict"),
    Fault::Refuse(500, "InternalError"),
    Fault::Throttle(Duration::from_secs(1)),
    Fault::LostRequest,
    Fault::LostAnswer,
    Fault::Delay(Duration::from_secs(40)),
];

/// How long watches lag: longer than anything waits for them, and shorter than they last.
const LAG: Duration = Duration::from_secs(250);

/// How long everything is quiet in the end. Discovery comes more seldom.
const REST: Duration = Duration::from_secs(20);

/// Starts a garbage collector of few kinds.
async fn start(stage: &Stage, world: &World, name: &str) {
    let discovery = DiscoveryClient::new(world.cluster.client().clone());
    let discovery = discovery.discovery().await.unwrap();
    let kept: BTreeSet<_> = KINDS.iter().map(Gvr::group_resource).collect();
    let all = discovery.resources.iter();
    let options = Options {
        workers: 3,
        ignored: all
            .map(|resource| resource.gvr.group_resource())
            .filter(|resource| !kept.contains(resource))
            .collect(),
    };
    let cluster = world.cluster.clone();
    let process = name.to_owned();
    stage.start(name, &world.cluster.transport(), move |transport| {
        let manager = cluster.manager_on(&process, transport).build().unwrap();
        add_to(&manager, &options);
        async move { manager.run().await.unwrap() }
    });
}

async fn world(stage: &Stage) -> World {
    let cluster = Cluster::builder().env(stage.env().clone()).start().await;
    stage.observe(&cluster.transport(), &KINDS);
    World::new(cluster, "shop").await
}

async fn delete(world: &World, object: &Doc, propagation: Propagation) {
    let api = world.cluster.api_of(object).await;
    let options = DeleteOptions::uid(object.meta().uid_str()).propagate(propagation);
    api.delete(object.meta().name(), &options).await.unwrap();
}

async fn all(world: &World) -> Vec<Doc> {
    let mut all = Vec::new();
    for kind in KINDS {
        all.extend(world.cluster.list_docs(&kind, &world.namespace, "").await);
    }
    all
}

async fn names(world: &World) -> Vec<String> {
    let all = all(world).await;
    all.iter().map(|it| it.meta().name().to_owned()).collect()
}

/// Two owners go; what one of them alone owned goes, and nothing else.
async fn background(stage: Stage, collectors: usize) -> Vec<Doc> {
    let world = world(&stage).await;
    let gone = world.create(controller("gone")).await;
    let stays = world.create(controller("stays")).await;
    world.create(owned_by(pod("both"), &[&gone, &stays])).await;
    let middle = world.create(owned_by(pod("middle"), &[&gone])).await;
    world.create(owned_by(config_map("end"), &[&middle])).await;
    world.create(pod("free")).await;
    for number in 0..collectors {
        start(&stage, &world, &format!("collector-{number}")).await;
    }
    stage.pass(Duration::from_secs(5)).await;
    delete(&world, &gone, Propagation::Background).await;
    stage
        .until("only the others are left", async || {
            let both = world.find(&PODS, "both").await;
            let owners = both.map_or(0, |it| it.meta().owner_refs().count());
            names(&world).await == ["both", "free", "stays"] && owners == 1
        })
        .await;
    stage.rest(REST).await;
    all(&world).await
}

/// An owner goes in the foreground, with a chain of dependents that block each other.
async fn foreground(stage: Stage) -> Vec<Doc> {
    let world = world(&stage).await;
    let top = world.create(controller("top")).await;
    let stays = world.create(config_map("stays")).await;
    let middle = with_references(pod("middle"), vec![blocking(&top)]);
    let middle = world.create(middle).await;
    let end = with_references(config_map("end"), vec![blocking(&middle)]);
    world.create(end).await;
    let kept = with_references(pod("kept"), vec![blocking(&top), reference(&stays)]);
    world.create(kept).await;
    start(&stage, &world, "collector").await;
    stage.pass(Duration::from_secs(5)).await;
    delete(&world, &top, Propagation::Foreground).await;
    stage
        .until("only the others are left", async || {
            names(&world).await == ["kept", "stays"]
        })
        .await;
    stage.rest(REST).await;
    all(&world).await
}

/// An owner goes and leaves its dependents.
async fn orphan(stage: Stage) -> Vec<Doc> {
    let world = world(&stage).await;
    let owner = world.create(controller("owner")).await;
    let stays = world.create(config_map("stays")).await;
    world.create(owned_by(pod("alone"), &[&owner])).await;
    let both = with_references(
        config_map("both"),
        vec![blocking(&owner), reference(&stays)],
    );
    world.create(both).await;
    start(&stage, &world, "collector").await;
    stage.pass(Duration::from_secs(5)).await;
    delete(&world, &owner, Propagation::Orphan).await;
    stage
        .until("the owner is gone", async || {
            world.find(&CONTROLLERS, "owner").await.is_none()
        })
        .await;
    stage.rest(REST).await;
    all(&world).await
}

/// Every deletion says which object it means.
fn deletions_name_their_object(seen: &Seen) -> Result<(), String> {
    let is_delete = seen.call.method == Method::DELETE;
    if is_delete && seen.payload.str_at("/preconditions/uid").is_empty() {
        return Err("a deletion does not say which object it means".to_owned());
    }
    Ok(())
}

fn everything(objects: &Objects) -> impl Iterator<Item = &Doc> {
    let kinds = ["pods", "replicationcontrollers", "configmaps"];
    kinds.into_iter().flat_map(|kind| objects.of(kind))
}

fn is_there(objects: &Objects, uid: &str) -> bool {
    everything(objects).any(|it| it.meta().uid_str() == uid)
}

/// What went last, if something did.
fn gone(objects: &Objects) -> Option<&Doc> {
    let changed = objects.changed();
    (!is_there(objects, changed.meta().uid_str())).then_some(changed)
}

/// Nothing goes that an owner keeps. An owner that waits for its dependents keeps none.
fn owners_keep(objects: &Objects) -> Result<(), String> {
    let Some(gone) = gone(objects) else {
        return Ok(());
    };
    let owners: Vec<_> = gone.meta().owner_refs().map(|it| it.uid).collect();
    let keeper = everything(objects).find(|it| {
        let is_owner = owners.contains(&it.meta().uid());
        is_owner && !it.meta().has_finalizer("foregroundDeletion")
    });
    match keeper {
        None => Ok(()),
        Some(keeper) => Err(format!(
            "{} went although {} exists",
            gone.meta().key(),
            keeper.meta().key()
        )),
    }
}

/// An owner does not go before those that block it.
fn blockers_go_first(objects: &Objects) -> Result<(), String> {
    let Some(gone) = gone(objects) else {
        return Ok(());
    };
    let uid = gone.meta().uid();
    let blocks = |it: &&Doc| {
        let mut owners = it.meta().owner_refs();
        owners.any(|owner| owner.uid == uid && owner.block_owner_deletion)
    };
    match everything(objects).find(blocks) {
        None => Ok(()),
        Some(left) => Err(format!(
            "{} went before {}",
            gone.meta().key(),
            left.meta().key()
        )),
    }
}

/// An owner does not go before all have forgotten it.
fn orphans_forget_first(objects: &Objects) -> Result<(), String> {
    let Some(gone) = gone(objects) else {
        return Ok(());
    };
    let uid = gone.meta().uid();
    let refers = |it: &&Doc| it.meta().owner_refs().any(|owner| owner.uid == uid);
    match everything(objects).find(refers) {
        None => Ok(()),
        Some(left) => Err(format!(
            "{} went although {} refers to it",
            gone.meta().key(),
            left.meta().key()
        )),
    }
}

fn simulation(name: &str) -> Simulation {
    Simulation::new(name)
        .on_request(deletions_name_their_object)
        .on_change(owners_keep)
}

/// Runs a scenario with a crash at every call, every fault at every call, and every watch that
/// matters cut and made to lag.
fn explore<S>(simulation: &Simulation, scenario: S)
where
    S: AsyncFn(Stage) -> Vec<Doc>,
{
    let explored = |outcome: Result<Explored, windlass_testing::Failure>| match outcome {
        Ok(explored) => assert!(explored.runs > 0, "{explored:?}"),
        Err(failure) => panic!("{failure}"),
    };
    explored(simulation.crash_at_every_call(&scenario));
    // A request that is refused or lost is repeated.
    let patient = simulation.clone().ignore_counts();
    let is_work = |call: &Call| !call.is_watch && !matches!(&*call.path, "/api" | "/apis");
    explored(patient.fault_at_every_call(is_work, &FAULTS, &scenario));
    let watches = [Fault::Cut(0), Fault::Cut(1), Fault::Lag(LAG)];
    let is_watch = |call: &Call| call.is_watch;
    explored(patient.fault_at_every_call(is_watch, &watches, &scenario));
}

#[test]
fn background_deletion_survives_every_fault() {
    let scenario = async |stage| background(stage, 1).await;
    explore(&simulation("background"), scenario);
}

#[test]
fn two_collectors_at_once_do_what_one_does() {
    let simulation = simulation("two collectors").ignore_counts();
    let scenario = async |stage| background(stage, 2).await;
    let explored = simulation.crash_at_every_call(scenario);
    assert!(explored.unwrap().runs > 0);
}

#[test]
fn foreground_deletion_survives_every_fault() {
    let simulation = simulation("foreground").on_change(blockers_go_first);
    explore(&simulation, foreground);
}

#[test]
fn orphaning_survives_every_fault() {
    let simulation = simulation("orphan").on_change(orphans_forget_first);
    explore(&simulation, orphan);
}

//! What must hold when requests fail, watches lag and the process crashes: never too many pods nor
//! too few, one set per template, revisions that are never used twice, and in the end everything is
//! as without faults. The controller of sets and the nodes work as they should.
//!
//! All calls times all faults are some two thousand runs, too many for every change of the code:
//! each exploration takes an even sample of them, in which every call goes wrong in one way or
//! another and every fault meets calls of every kind.

use std::{collections::BTreeSet, num::NonZeroUsize, time::Duration};

use http::Method;
use windlass_core::{Doc, condition, doc};
use windlass_testing::{Cluster, Seen, Simulation, Stage, World as Objects};
use windlass_workloads::{deployment, replicaset};

use crate::deployment::simulated::{World, explore_crashes, explore_faults, is_active, survives};
use crate::deployment::stage::{self, DEPLOYMENTS, PODS, SETS, number, reason, revision};
use crate::deployment::{is_complete, kubelet, recreating, rolling};

const CONTROLLER: &str = "deployment";
const HASH: &str = "pod-template-hash";
/// How many runs an exploration takes.
const RUNS_LIMIT: NonZeroUsize = NonZeroUsize::new(48).unwrap();
/// A label of a Deployment whose first rollout is over.
const IS_UP: &str = "is-up";

/// What a controller of Deployments may do: no more than this, and on no other path.
fn does_what_it_may(seen: &Seen) -> Result<(), String> {
    let path = seen.call.path.strip_prefix("/apis/apps/v1/");
    let path = path.or(seen.call.path.strip_prefix("/api/v1/"));
    let parts: Vec<&str> = path.unwrap_or_default().split('/').collect();
    let payload = &seen.payload;
    let is_fine = match (&seen.call.method, &parts[..]) {
        (&Method::GET, ["pods" | "replicasets" | "deployments"]) => true,
        (&Method::GET, ["namespaces", _, "replicasets" | "deployments", ..]) => true,
        (&Method::POST, ["namespaces", _, "replicasets"]) => {
            payload
                .meta()
                .owner_refs()
                .filter(|it| it.controller)
                .count()
                == 1
        }
        (&Method::PUT, ["namespaces", _, "replicasets" | "deployments", _]) => {
            !payload.meta().resource_version().is_empty()
        }
        (&Method::DELETE, ["namespaces", _, "replicasets", _]) => {
            !payload.str_at("/preconditions/uid").is_empty()
        }
        (&Method::PATCH, ["namespaces", _, "replicasets", _]) => {
            !payload.str_at("/metadata/uid").is_empty()
        }
        (&Method::PUT, ["namespaces", _, "deployments", _, "status"]) => true,
        (_, ["namespaces", _, "events", ..]) => true,
        _ => false,
    };
    match is_fine {
        true => Ok(()),
        false => Err(format!("a controller of Deployments asked: {seen}")),
    }
}

/// The sets together never ask for more pods than this.
fn never_more_than(most: i64) -> impl Fn(&Objects) -> Result<(), String> {
    move |objects| {
        let sizes = objects
            .of("replicasets")
            .map(|set| number(set, "/spec/replicas"));
        let sum: i64 = sizes.sum();
        match sum > most {
            true => Err(format!("the sets ask for {sum} pods")),
            false => Ok(()),
        }
    }
}

/// Once a Deployment is up, there are never fewer available pods than this.
fn never_fewer_than(least: usize) -> impl Fn(&Objects) -> Result<(), String> {
    move |objects| {
        let is_up = |it: &Doc| it.meta().label(IS_UP).is_some();
        let available = objects
            .of("pods")
            .filter(|pod| is_active(pod))
            .filter(|pod| condition(pod, "Ready").is_some_and(|it| it.is_true()))
            .count();
        match objects.of("deployments").any(is_up) && available < least {
            true => Err(format!("{available} pods are available")),
            false => Ok(()),
        }
    }
}

/// There is one set per template, and each has a revision of its own.
fn sets_differ(objects: &Objects) -> Result<(), String> {
    let (mut hashes, mut revisions) = (BTreeSet::new(), BTreeSet::new());
    for set in objects.of("replicasets") {
        let (hash, number) = (set.meta().label(HASH), revision(set));
        if hash.is_some_and(|hash| !hashes.insert(hash.to_owned())) {
            return Err(format!("two sets have the hash {hash:?}"));
        }
        if number > 0 && !revisions.insert(number) {
            return Err(format!("two sets have the revision {number}"));
        }
    }
    Ok(())
}

/// A set that is removed has no pods and is to have none.
fn only_empty_sets_go(objects: &Objects) -> Result<(), String> {
    let changed = objects.changed();
    let is_there = objects
        .of("replicasets")
        .any(|set| set.meta().uid() == changed.meta().uid());
    let is_gone = changed.str_at("/kind") == "ReplicaSet" && !is_there;
    let pods = number(changed, "/spec/replicas") + number(changed, "/status/replicas");
    match is_gone && pods > 0 {
        true => Err(format!("{} went with its pods", changed.meta().key())),
        false => Ok(()),
    }
}

/// Pods of two templates are never there at the same time.
fn one_template_at_a_time(objects: &Objects) -> Result<(), String> {
    let hashes: BTreeSet<_> = objects
        .of("pods")
        .filter_map(|pod| pod.meta().label(HASH))
        .collect();
    match hashes.len() > 1 {
        true => Err(format!("there are pods of {hashes:?}")),
        false => Ok(()),
    }
}

/// In how many steps sets are scaled depends on what is seen between them, and so does how often
/// their specification changes.
fn simulation(name: &str) -> Simulation {
    Simulation::new(name)
        .ignore_field("generation")
        .ignore_field("observedGeneration")
        .runs_limit(RUNS_LIMIT)
        .on_request(does_what_it_may)
        .on_change(sets_differ)
        .on_change(only_empty_sets_go)
}

impl World {
    /// A world with nodes, a controller of sets, and a Deployment that is looked after by so many.
    async fn with_deployment(stage: &Stage, deployment: Doc, controllers: usize) -> Self {
        let world = Self::new(stage).await;
        world.cluster.run_with("the rest", |manager| {
            replicaset::add_to(manager, &replicaset::Options::default());
            kubelet::add_to(manager, Duration::ZERO);
        });
        world.create(deployment).await;
        for number in 0..controllers {
            world.start(&format!("{CONTROLLER}-{number}"), |manager| {
                deployment::add_to(manager, &deployment::Options::default());
            });
        }
        world
    }

    async fn set_image(&self, image: &str) {
        let patch = doc!({
            "spec": { "template": { "spec": { "containers": [{ "name": "c", "image": image }] } } }
        });
        self.patch(&DEPLOYMENTS, "web", patch).await;
    }

    async fn pause(&self, is_paused: bool) {
        let patch = doc!({ "spec": { "paused": is_paused } });
        self.patch(&DEPLOYMENTS, "web", patch).await;
    }

    async fn until_complete(&self, what: &str) {
        self.until(what, async |world| {
            is_complete(&world.get(&DEPLOYMENTS, "web").await)
        })
        .await;
    }

    /// Says that the first rollout is over. A label, because annotations are passed on to the sets.
    async fn is_up(&self) {
        self.until_complete("the first rollout").await;
        let patch = doc!({ "metadata": { "labels": { IS_UP: "yes" } } });
        self.patch(&DEPLOYMENTS, "web", patch).await;
    }

    /// The sizes of the sets, from the lowest revision to the highest.
    async fn sizes(&self) -> Vec<i64> {
        let mut sets = self.list(&SETS).await;
        sets.sort_by_key(revision);
        sets.iter()
            .map(|set| number(set, "/spec/replicas"))
            .collect()
    }
}

/// Four pods are replaced, one more and one less at a time.
async fn roll(stage: Stage, controllers: usize) -> Vec<Doc> {
    let world = World::with_deployment(&stage, rolling("web", 4, 1, 1), controllers).await;
    world.is_up().await;
    world.set_image("nginx:2").await;
    world.until_complete("the second rollout").await;
    world.end().await
}

async fn rolling_update(stage: Stage) -> Vec<Doc> {
    roll(stage, 1).await
}

/// All old pods end before the first new one starts.
async fn recreate(stage: Stage) -> Vec<Doc> {
    let world = World::with_deployment(&stage, recreating("web", 3), 1).await;
    world.is_up().await;
    world.set_image("nginx:2").await;
    world.until_complete("the second rollout").await;
    world.end().await
}

/// Back to the first template, which makes its set the newest.
async fn undo(stage: Stage) -> Vec<Doc> {
    let world = World::with_deployment(&stage, rolling("web", 2, 1, 0), 1).await;
    world.is_up().await;
    world.set_image("nginx:2").await;
    world.until_complete("the second rollout").await;
    world.set_image("nginx:1").await;
    world
        .until_complete("the rollout of the first template")
        .await;
    let sets = world.list(&SETS).await;
    let mut revisions: Vec<i64> = sets.iter().map(revision).collect();
    revisions.sort_unstable();
    if revisions != [2, 3] {
        stage.fail(format!("the revisions are {revisions:?}"));
    }
    world.end().await
}

/// While it is paused, a Deployment is scaled and nothing else.
async fn pause(stage: Stage) -> Vec<Doc> {
    let world = World::with_deployment(&stage, rolling("web", 2, 1, 0), 1).await;
    world.is_up().await;
    world.pause(true).await;
    world.set_image("nginx:2").await;
    world.scale(&DEPLOYMENTS, "web", 4).await;
    world
        .until("it is scaled", async |world| world.sizes().await == [4])
        .await;
    stage.pass(Duration::from_secs(60)).await;
    if world.sizes().await != [4] {
        stage.fail("a paused Deployment was rolled out".to_owned());
    }
    world.pause(false).await;
    world.until_complete("the second rollout").await;
    world.end().await
}

/// One old set is kept, and no more.
async fn history(stage: Stage) -> Vec<Doc> {
    let deployment = rolling("web", 1, 1, 0).with("/spec/revisionHistoryLimit", 1);
    let world = World::with_deployment(&stage, deployment.unwrap(), 1).await;
    world.is_up().await;
    for image in ["nginx:2", "nginx:3"] {
        world.set_image(image).await;
        world.until_complete(image).await;
    }
    world
        .until("the first set is removed", async |world| {
            world.sizes().await == [0, 1]
        })
        .await;
    world.end().await
}

/// Pods that never become ready use up the time that progress may take.
async fn deadline(stage: Stage) -> Vec<Doc> {
    let deployment = rolling("web", 2, 1, 0).with("/spec/progressDeadlineSeconds", 60);
    let world = World::with_deployment(&stage, deployment.unwrap(), 1).await;
    world.is_up().await;
    world.set_image("broken").await;
    world
        .until("the deadline has passed", async |world| {
            let deployment = world.get(&DEPLOYMENTS, "web").await;
            reason(&deployment, "Progressing") == "ProgressDeadlineExceeded"
        })
        .await;
    world.end().await
}

impl World {
    /// The name that a Deployment gives to its set: tried out in another namespace.
    async fn name_of_set(&self, deployment: &Doc) -> String {
        const ELSEWHERE: &str = "default";
        let manager = self.cluster.manager("probe").namespace(ELSEWHERE).build();
        let manager = manager.unwrap();
        deployment::add_to(&manager, &deployment::Options::default());
        let running = self.cluster.run_manager(manager);
        let deployment = deployment
            .with("/metadata/namespace", ELSEWHERE)
            .and_then(|it| it.with("/spec/replicas", 0));
        let deployment = self.cluster.create_doc(&deployment.unwrap()).await;
        let sets = async |cluster: &Cluster| cluster.list_docs(&SETS, ELSEWHERE, "").await;
        self.cluster
            .until(async |cluster| !sets(cluster).await.is_empty())
            .await;
        running.stop().await;
        let set = sets(&self.cluster).await.remove(0);
        self.delete(&deployment).await;
        self.delete(&set).await;
        set.meta().name().to_owned()
    }
}

/// The name of the new set is taken by one that is not for the Deployment to have.
async fn collision(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await;
    let deployment = stage::deployment("web", 1);
    let name = world.name_of_set(&deployment).await;
    world.create(stage::replica_set(&name, 0)).await;
    world.cluster.run_with("the rest", |manager| {
        replicaset::add_to(manager, &replicaset::Options::default());
        kubelet::add_to(manager, Duration::ZERO);
    });
    world.create(deployment).await;
    world.start(CONTROLLER, |manager| {
        deployment::add_to(manager, &deployment::Options::default());
    });
    world.until_complete("the rollout under another name").await;
    let deployment = world.get(&DEPLOYMENTS, "web").await;
    if number(&deployment, "/status/collisionCount") != 1 {
        stage.fail("there was one collision".to_owned());
    }
    world.end().await
}

/// A set that nobody has is taken over, and makes room for the new one.
async fn adoption(stage: Stage) -> Vec<Doc> {
    let world = World::with_deployment(&stage, rolling("web", 2, 1, 0), 1).await;
    let set = stage::replica_set("web", 1).with("/metadata/name", "left-behind");
    world.create(set.unwrap()).await;
    world
        .until("it is taken over", async |world| {
            let set = world.get(&SETS, "left-behind").await;
            set.meta().controller().is_some() && number(&set, "/spec/replicas") == 0
        })
        .await;
    world.until_complete("the rollout").await;
    world
        .until("its pods are gone", async |world| {
            world.list(&PODS).await.len() == 2
        })
        .await;
    world.end().await
}

survives! {
    rolling_update, simulation("rolling update")
        .on_change(never_more_than(5))
        .on_change(never_fewer_than(3));
    recreate, simulation("recreate").on_change(one_template_at_a_time);
    undo, simulation("undo")
        .on_change(never_more_than(3))
        .on_change(never_fewer_than(2));
    pause, simulation("pause").on_change(never_fewer_than(2));
    history, simulation("history").on_change(never_more_than(2));
    deadline, simulation("deadline").on_change(never_fewer_than(2));
    collision, simulation("collision");
    adoption, simulation("adoption");
}

#[test]
fn two_controllers_at_once_end_as_one_does() {
    let simulation = simulation("two controllers")
        .ignore_counts()
        .on_change(never_more_than(5))
        .on_change(never_fewer_than(3));
    let scenario = async |stage| roll(stage, 2).await;
    explore_crashes(&simulation, scenario);
    explore_faults(&simulation, scenario);
}

//! What must hold when requests fail, watches lag and the process crashes: never a pod too many,
//! none deleted that is needed or belongs to somebody else, and in the end everything is as
//! without faults.

use std::time::Duration;

use http::Method;
use windlass_client::Propagation;
use windlass_core::{Doc, Uid, doc};
use windlass_testing::{Fault, Faults, Seen, Simulation, Stage, World as Objects};
use windlass_workloads::replicaset::{self, Options};

use crate::replicaset::simulated::{
    LAG, World, explore_crashes, explore_faults, is_active, ready, survives,
};
use crate::replicaset::stage::{PODS, SETS, number, orphan, owner_ref, replica_set};

const CONTROLLER: &str = "replicaset";

/// What a controller of sets may do: no more than this, and on no other path.
fn does_what_it_may(seen: &Seen) -> Result<(), String> {
    let path = seen.call.path.strip_prefix("/apis/apps/v1/");
    let path = path.or(seen.call.path.strip_prefix("/api/v1/"));
    let parts: Vec<&str> = path.unwrap_or_default().split('/').collect();
    let is_fine = match (&seen.call.method, &parts[..]) {
        (&Method::GET, ["pods" | "replicasets"]) => true,
        (&Method::GET, ["namespaces", _, "pods" | "replicasets", ..]) => true,
        (&Method::POST, ["namespaces", _, "pods"]) => is_of_one_set(&seen.payload),
        (&Method::DELETE, ["namespaces", _, "pods", _]) => names_its_object(&seen.payload),
        (&Method::PATCH, ["namespaces", _, "pods", _]) => names_its_pod(&seen.payload),
        (&Method::PUT, ["namespaces", _, "replicasets", _, "status"]) => true,
        (_, ["namespaces", _, "events", ..]) => true,
        _ => false,
    };
    match is_fine {
        true => Ok(()),
        false => Err(format!("a controller of sets asked: {seen}")),
    }
}

fn is_of_one_set(pod: &Doc) -> bool {
    let owners: Vec<_> = pod.meta().owner_refs().collect();
    owners.len() == 1 && owners[0].controller && owners[0].kind == "ReplicaSet"
}

fn names_its_object(options: &Doc) -> bool {
    !options.str_at("/preconditions/uid").is_empty()
}

fn names_its_pod(patch: &Doc) -> bool {
    !patch.str_at("/metadata/uid").is_empty()
}

fn controller_of(pod: &Doc) -> Option<Uid> {
    pod.meta().controller().map(|owner| owner.uid)
}

/// The pods that count for a set.
fn replicas<'w>(objects: &'w Objects, set: &Doc) -> impl Iterator<Item = &'w Doc> {
    let uid = set.meta().uid();
    let all = objects.of("pods").filter(|pod| is_active(pod));
    all.filter(move |pod| controller_of(pod).as_ref() == Some(&uid))
}

/// No set ever has more pods than this.
fn never_more_than(most: usize) -> impl Fn(&Objects) -> Result<(), String> {
    move |objects| {
        for set in objects.of("replicasets") {
            let found = replicas(objects, set).count();
            if found > most {
                return Err(format!("{} has {found} pods", set.meta().key()));
            }
        }
        Ok(())
    }
}

/// Pods that go leave at least so many.
fn never_fewer_than(least: usize) -> impl Fn(&Objects) -> Result<(), String> {
    move |objects| {
        let changed = objects.changed();
        let is_there = objects.of("pods").any(|pod| pod == changed);
        let is_going = changed.str_at("/kind") == "Pod" && !(is_there && is_active(changed));
        let owner = controller_of(changed).filter(|_| is_going);
        let set = objects
            .of("replicasets")
            .find(|set| owner == Some(set.meta().uid()));
        let left = set.map_or(least, |set| replicas(objects, set).count());
        match left < least {
            true => Err(format!("{} leaves {left} pods", changed.meta().key())),
            false => Ok(()),
        }
    }
}

/// A pod has one controller at most.
fn one_controller_each(objects: &Objects) -> Result<(), String> {
    for pod in objects.of("pods") {
        let controllers = pod.meta().owner_refs().filter(|owner| owner.controller);
        if controllers.count() > 1 {
            return Err(format!("{} has two controllers", pod.meta().key()));
        }
    }
    Ok(())
}

/// What a set says of its pods could be true, and it says it of a specification there was.
fn statuses_make_sense(objects: &Objects) -> Result<(), String> {
    for set in objects.of("replicasets") {
        let [all, labeled, ready, available] = [
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
        ]
        .map(|name| number(set, &format!("/status/{name}")));
        let is_observed = number(set, "/status/observedGeneration") <= set.meta().generation();
        if labeled > all || ready > all || available > ready || !is_observed {
            return Err(format!("the status is {:?}", set.at("/status")));
        }
    }
    Ok(())
}

fn simulation(name: &str, most: usize) -> Simulation {
    Simulation::new(name)
        .on_request(does_what_it_may)
        .on_change(never_more_than(most))
        .on_change(one_controller_each)
        .on_change(statuses_make_sense)
}

impl World {
    fn control(&self, name: &str) {
        self.start(name, |manager| {
            replicaset::add_to(manager, &Options::default());
        });
    }

    /// Runs a controller all of whose watches are late, also those that it opens again.
    fn control_late(&self, options: Options) {
        let late = Faults::new(|call| match call.is_watch {
            true => Fault::Lag(LAG),
            false => Fault::None,
        });
        let transport = self.cluster.transport().layer(&late);
        self.start_on(CONTROLLER, &transport, move |manager| {
            replicaset::add_to(manager, &options);
        });
    }
}

/// From nothing to five pods that become ready.
async fn grow(stage: Stage, controllers: usize) -> Vec<Doc> {
    let world = World::new(&stage).await;
    world.create(replica_set("web", 0)).await;
    for number in 0..controllers {
        world.control(&format!("{CONTROLLER}-{number}"));
    }
    world.until_counted("web", 0, 0).await;
    world.scale(&SETS, "web", 5).await;
    world.until_counted("web", 5, 0).await;
    world.make_all_ready().await;
    world.until_counted("web", 5, 5).await;
    world.end().await
}

/// A pod of a set, so and so cheap to delete.
fn pod_of(set: &Doc, name: &str, cost: i64) -> Doc {
    let annotation = doc!({
        "controller.kubernetes.io/pod-deletion-cost": (cost.to_string())
    });
    orphan(name, "web")
        .with("/metadata/ownerReferences", vec![owner_ref(set, true)])
        .unwrap()
        .with("/metadata/annotations", annotation)
        .unwrap()
}

/// From six pods to the two that are worth most. A pod of somebody else looks like them.
async fn shrink(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await;
    let set = world.create(replica_set("web", 6)).await;
    for (number, cost) in [0, 0, 20, 0, 10, 0].into_iter().enumerate() {
        let pod = world
            .create(pod_of(&set, &format!("p{number}"), cost))
            .await;
        world.set_status(&pod, ready("2026-01-01T00:00:00Z")).await;
    }
    let other = replica_set("other", 0).with("/metadata/uid", "someone");
    let foreign = pod_of(&other.unwrap(), "foreign", 0);
    world.create(foreign).await;
    world.control(CONTROLLER);
    world.until_counted("web", 6, 6).await;
    world.scale(&SETS, "web", 2).await;
    world.until_counted("web", 2, 2).await;
    let pods = world.list(&PODS).await;
    let names: Vec<_> = pods.iter().map(|pod| pod.meta().name()).collect();
    if names != ["foreign", "p2", "p4"] {
        stage.fail(format!("{names:?} are left"));
    }
    world.end().await
}

/// Scaled again and again without waiting.
async fn waves(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await;
    world.create(replica_set("web", 3)).await;
    world.control(CONTROLLER);
    world.until_counted("web", 3, 0).await;
    for replicas in [0, 4, 1, 3] {
        world.scale(&SETS, "web", replicas).await;
        stage.pass(Duration::from_millis(1)).await;
    }
    world.until_counted("web", 3, 0).await;
    world.end().await
}

/// Orphans come in, and a pod that gets other labels is let go and replaced.
async fn adopt_and_release(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await;
    world.create(orphan("first", "web")).await;
    world.create(orphan("second", "web")).await;
    world.create(orphan("stranger", "db")).await;
    world.create(replica_set("web", 3)).await;
    world.control(CONTROLLER);
    world.until_counted("web", 3, 0).await;
    let patch = doc!({ "metadata": { "labels": { "app": "debug" } } });
    world.patch(&PODS, "first", patch).await;
    world
        .until("the pod is let go", async |world| {
            let first = world.get(&PODS, "first").await;
            controller_of(&first).is_none()
        })
        .await;
    world.until_counted("web", 3, 0).await;
    world.end().await
}

/// The set goes without its pods, and another one takes its name.
async fn recreate(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await;
    let set = world.create(replica_set("web", 2)).await;
    world.control(CONTROLLER);
    world.until_counted("web", 2, 0).await;
    world.delete(&set).await;
    world.create(replica_set("web", 3)).await;
    world.until_counted("web", 3, 0).await;
    let mut end = world.end().await;
    // The pods of the first set wait for a garbage collector that is not here.
    let uid = set.meta().uid();
    let left = end
        .iter()
        .filter(|pod| controller_of(pod) == Some(uid.clone()));
    if left.count() != 2 {
        stage.fail("the pods of the first set were touched".to_owned());
    }
    end.retain(|object| controller_of(object) != Some(uid.clone()));
    end
}

/// One pod is deleted, another one fails.
async fn pods_die(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await;
    world.create(replica_set("web", 3)).await;
    world.control(CONTROLLER);
    world.until_counted("web", 3, 0).await;
    let pods = world.list(&PODS).await;
    world.delete(&pods[0]).await;
    let failed = doc!({ "phase": "Failed" });
    world.set_status(&pods[1], failed).await;
    world
        .until("both are replaced", async |world| {
            let pods = world.list(&PODS).await;
            pods.len() == 4 && pods.iter().filter(|pod| is_active(pod)).count() == 3
        })
        .await;
    world.until_counted("web", 3, 0).await;
    world.end().await
}

/// A set that is being deleted, and waits for somebody, makes no pods any more.
async fn going(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await;
    let set =
        replica_set("web", 3).with("/metadata/finalizers", vec![Doc::from("example.com/wait")]);
    let set = world.create(set.unwrap()).await;
    world.control(CONTROLLER);
    world.until_counted("web", 3, 0).await;
    world.cluster.delete(&set, Propagation::Background).await;
    // However late the watches are, the deletion is known by now.
    stage.pass(2 * LAG).await;
    let pods = world.list(&PODS).await;
    world.delete(&pods[0]).await;
    world.until_counted("web", 2, 0).await;
    world.end().await
}

/// Pods that are there stay as they are when the template changes; new ones are made of it.
async fn new_template(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage).await;
    world.create(replica_set("web", 2)).await;
    world.control(CONTROLLER);
    world.until_counted("web", 2, 0).await;
    let template = doc!({ "spec": { "containers": [{ "name": "c", "image": "nginx:2" }] } });
    let patch = doc!({ "spec": { "replicas": 3, "template": template } });
    world.patch(&SETS, "web", patch).await;
    world.until_counted("web", 3, 0).await;
    let pods = world.list(&PODS).await;
    let image = |pod: &&Doc| pod.str_at("/spec/containers/0/image") == "nginx:2";
    if pods.iter().filter(image).count() != 1 {
        stage.fail("one pod should be of the new template".to_owned());
    }
    world.end().await
}

async fn growing(stage: Stage) -> Vec<Doc> {
    grow(stage, 1).await
}

survives! {
    growing, simulation("growing", 5);
    shrink, simulation("shrinking", 6).on_change(never_fewer_than(2));
    // What is never seen is never done.
    waves, simulation("waves", 4).ignore_counts();
    adopt_and_release, simulation("adopting and releasing", 3);
    recreate, simulation("a set of the same name", 3);
    pods_die, simulation("dying pods", 3);
    going, simulation("a set that goes", 3);
    new_template, simulation("another template", 3);
}

/// Each of two controllers may create what the other one has just created, but no more than that,
/// and they agree in the end.
#[test]
fn two_controllers_at_once_end_as_one_does() {
    let simulation = simulation("two controllers", 10).ignore_counts();
    let scenario = async |stage| grow(stage, 2).await;
    explore_crashes(&simulation, scenario);
    explore_faults(&simulation, scenario);
}

/// To five pods in two steps, under a controller that takes some care and sees everything late.
async fn grow_late(stage: Stage, options: &Options) -> Vec<Doc> {
    let world = World::new(&stage).await;
    world.create(replica_set("web", 0)).await;
    world.control_late(options.clone());
    world.until_counted("web", 0, 0).await;
    world.scale(&SETS, "web", 3).await;
    stage.pass(2 * LAG).await;
    world.scale(&SETS, "web", 5).await;
    world.until_counted("web", 5, 0).await;
    world.end().await
}

/// The bug that the guard is there against: pods that the cache does not show yet are made again.
#[test]
fn without_the_guard_a_pod_too_many_is_found() {
    for waits_for_caches in [false, true] {
        let options = Options {
            waits_for_caches,
            ..Options::default()
        };
        let simulation = simulation("growing behind time", 5).ignore_counts();
        let scenario = async |stage| grow_late(stage, &options).await;
        // The lag is fault enough.
        let explored = simulation.fault_at_every_call(|_| false, &[], scenario);
        match waits_for_caches {
            true => assert!(explored.unwrap().calls > 0),
            false => {
                let found = explored.unwrap_err().to_string();
                assert!(found.contains("shop/web has "), "{found}");
            }
        }
    }
}

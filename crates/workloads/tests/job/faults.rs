//! What must hold when requests fail, watches lag and the process crashes: never a pod too many, every
//! pod counted once, and in the end everything as without faults.

use std::{cell::Cell, time::Duration};

use windlass_client::{DeleteOptions, Propagation};
use windlass_core::{Doc, Gvr, doc};
use windlass_testing::{
    Call, Cluster, Explored, Failure, Fault, Simulation, Stage, World as Objects,
};
use windlass_workloads::{is_pod_active, job};

use crate::world::{JOBS, NAMESPACE, PODS, count, has, index, is_tracked, job as job_of};

/// Everything that can go wrong with one call and leaves the process alive.
const FAULTS: [Fault; 7] = [
    Fault::Refuse(409, "Conflict"),
    Fault::Refuse(500, "InternalError"),
    Fault::Throttle(Duration::from_secs(1)),
    Fault::NotSent,
    Fault::LostRequest,
    Fault::LostAnswer,
    Fault::Delay(Duration::from_secs(40)),
];

/// How long watches lag: longer than expectations last.
const LAG: Duration = Duration::from_secs(400);

/// How long it takes until everything is quiet in the end.
const REST: Duration = Duration::from_secs(60);

/// The cluster of one run.
struct World {
    stage: Stage,
    cluster: Cluster,
}

impl World {
    async fn new(stage: &Stage, controllers: usize) -> Self {
        let cluster = Cluster::builder().env(stage.env().clone()).start().await;
        stage.observe(&cluster.transport(), &[PODS, JOBS]);
        let world = Self {
            stage: stage.clone(),
            cluster,
        };
        for number in 0..controllers {
            world.control(&format!("jobs-{number}"));
        }
        world
    }

    fn control(&self, name: &str) {
        let (cluster, process) = (self.cluster.clone(), name.to_owned());
        let transport = self.cluster.transport();
        self.stage.start(name, &transport, move |transport| {
            let manager = cluster.manager_on(&process, transport).build().unwrap();
            job::add_to(&manager, &job::Options::default());
            async move { manager.run().await.unwrap() }
        });
    }

    async fn list(&self, resource: &Gvr) -> Vec<Doc> {
        self.cluster.list_docs(resource, NAMESPACE, "").await
    }

    async fn job(&self) -> Doc {
        self.cluster.find(&JOBS, "default/pi").await.unwrap()
    }

    async fn active(&self) -> Vec<Doc> {
        let mut pods = self.list(&PODS).await;
        pods.retain(is_pod_active);
        pods.sort_by_key(|pod| pod.meta().annotation(INDEX).is_some().then(|| index(pod)));
        pods
    }

    /// Waits until something holds; it is looked at when a Job or a pod has changed.
    async fn until(&self, what: &str, holds: impl AsyncFn(&Self) -> bool) {
        let looked_at = Cell::new(None);
        let changed = async || {
            let changes = Some(self.stage.changes());
            looked_at.replace(changes) != changes && holds(self).await
        };
        self.stage.until(what, changed).await;
    }

    async fn until_active(&self, pods: usize) -> Vec<Doc> {
        let what = format!("{pods} pods are active and counted");
        self.until(&what, async |world| {
            let counted = count(&world.job().await, "active");
            world.active().await.len() == pods && usize::try_from(counted) == Ok(pods)
        })
        .await;
        self.active().await
    }

    async fn end_pod(&self, pod: &Doc, phase: &str) {
        let status = doc!({ "phase": phase });
        self.cluster.patch_status(pod, status).await;
    }

    async fn until_job(&self, kind: &str) {
        let what = format!("the Job is {kind}");
        let holds = async |world: &Self| has(&world.job().await, kind);
        self.until(&what, holds).await;
    }

    /// Removes pods that are being deleted, as their node does.
    async fn remove_deleted(&self) {
        for pod in self.list(&PODS).await {
            if pod.meta().is_deleting() {
                let options = DeleteOptions {
                    grace_period: Some(Duration::ZERO),
                    ..DeleteOptions::uid(pod.meta().uid_str())
                };
                let api = self.cluster.api(&PODS, NAMESPACE);
                let _ = api.delete(pod.meta().name(), &options).await;
            }
        }
    }

    /// Lets everybody come to rest, makes sure that they do, and returns everything there is.
    async fn end(&self) -> Vec<Doc> {
        self.stage.pass(REST).await;
        self.stage.rest(REST).await;
        let mut all = self.list(&JOBS).await;
        all.extend(self.list(&PODS).await);
        all
    }
}

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// No Job ever has more active pods than this.
fn never_more_than(most: usize) -> impl Fn(&Objects) -> Result<(), String> {
    move |objects| {
        let active = objects.of("pods").filter(|pod| is_pod_active(pod)).count();
        match active > most {
            true => Err(format!("{active} pods are active")),
            false => Ok(()),
        }
    }
}

/// Nothing is counted that has not ended.
fn counts_make_sense(objects: &Objects) -> Result<(), String> {
    for job in objects.of("jobs") {
        let ended = |phase: &str| {
            let pods = objects.of("pods");
            pods.filter(|pod| pod.str_at("/status/phase") == phase)
                .count()
        };
        let succeeded = usize::try_from(count(job, "succeeded")).unwrap_or(0);
        if succeeded > ended("Succeeded") {
            return Err(format!("too many are counted: {}", job.at("/status")));
        }
    }
    Ok(())
}

fn simulation(name: &str, most: usize) -> Simulation {
    Simulation::new(name)
        .on_change(never_more_than(most))
        .on_change(counts_make_sense)
}

fn succeeded(outcome: Result<Explored, Failure>) {
    match outcome {
        Ok(explored) => assert!(explored.runs > 0, "{explored:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

fn explore_crashes(simulation: &Simulation, scenario: impl AsyncFn(Stage) -> Vec<Doc>) {
    succeeded(simulation.crash_at_every_call(&scenario));
}

fn explore_faults(simulation: &Simulation, scenario: impl AsyncFn(Stage) -> Vec<Doc>) {
    let patient = simulation.clone().ignore_counts();
    let is_work = |call: &Call| !call.is_watch && !call.path.contains("/events");
    succeeded(patient.fault_at_every_call(is_work, &FAULTS, &scenario));
    let watches = [Fault::Cut(0), Fault::Cut(1), Fault::Lag(LAG)];
    succeeded(patient.fault_at_every_call(|call| call.is_watch, &watches, &scenario));
}

/// One pod succeeds, the other fails and is replaced.
async fn complete(stage: Stage, controllers: usize) -> Vec<Doc> {
    let world = World::new(&stage, controllers).await;
    let spec = doc!({ "completions": 2, "parallelism": 2 });
    world.cluster.create_doc(&job_of("pi", spec)).await;
    let pods = world.until_active(2).await;
    world.end_pod(&pods[0], "Succeeded").await;
    world.end_pod(&pods[1], "Failed").await;
    let pods = world.until_active(1).await;
    world.end_pod(&pods[0], "Succeeded").await;
    world.until_job("SuccessCriteriaMet").await;
    // Pods that were too many are still going.
    world.stage.pass(REST).await;
    world.remove_deleted().await;
    world.until_job("Complete").await;
    let job = world.job().await;
    if (count(&job, "succeeded"), count(&job, "failed")) != (2, 1) {
        stage.fail(format!("the Job counts {}", job.at("/status")));
    }
    world.end().await
}

async fn completing(stage: Stage) -> Vec<Doc> {
    complete(stage, 1).await
}

/// One failure is too many, and the other pod is stopped.
async fn failing(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage, 1).await;
    let spec = doc!({ "completions": 2, "parallelism": 2, "backoffLimit": 0 });
    world.cluster.create_doc(&job_of("pi", spec)).await;
    let pods = world.until_active(2).await;
    world.end_pod(&pods[0], "Failed").await;
    world.until_job("FailureTarget").await;
    world.stage.pass(REST).await;
    world.remove_deleted().await;
    world.until_job("Failed").await;
    let job = world.job().await;
    if count(&job, "failed") != 2 {
        stage.fail(format!("the Job counts {}", job.at("/status")));
    }
    world.end().await
}

/// One index fails once, and its counts travel to the next pod.
async fn indexed(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage, 1).await;
    let spec = doc!({
        "completionMode": "Indexed", "completions": 2, "parallelism": 2,
        "backoffLimitPerIndex": 1
    });
    world.cluster.create_doc(&job_of("pi", spec)).await;
    let pods = world.until_active(2).await;
    world.end_pod(&pods[0], "Failed").await;
    world.end_pod(&pods[1], "Succeeded").await;
    let pods = world.until_active(1).await;
    let failures = pods[0]
        .meta()
        .annotation("batch.kubernetes.io/job-index-failure-count");
    if failures != Some("1") {
        stage.fail(format!("the next pod counts {failures:?}"));
    }
    world.end_pod(&pods[0], "Succeeded").await;
    world.until_job("Complete").await;
    world.end().await
}

/// A Job is suspended and resumed.
async fn suspending(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage, 1).await;
    let created = world.cluster.create_doc(&job_of("pi", doc!({}))).await;
    world.until_active(1).await;
    let suspend = |is_on: bool| doc!({ "spec": { "suspend": is_on } });
    world.cluster.patch(&created, suspend(true)).await;
    world.until_job("Suspended").await;
    world.until_active(0).await;
    world.remove_deleted().await;
    world.cluster.patch(&created, suspend(false)).await;
    let pods = world.until_active(1).await;
    world.end_pod(&pods[0], "Succeeded").await;
    world.until_job("Complete").await;
    if count(&world.job().await, "failed") != 0 {
        stage.fail("a suspended pod has failed".to_owned());
    }
    world.end().await
}

/// A Job goes, and its pods keep running without the finalizer.
async fn going(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage, 1).await;
    let spec = doc!({ "completions": 2, "parallelism": 2 });
    let created = world.cluster.create_doc(&job_of("pi", spec)).await;
    world.until_active(2).await;
    world
        .cluster
        .delete(&created, Propagation::Background)
        .await;
    world
        .until("the pods are let go", async |world| {
            !world.list(&PODS).await.iter().any(is_tracked)
        })
        .await;
    world.end().await
}

macro_rules! survives {
    ($($scenario:ident, $simulation:expr;)+) => {$(
        mod $scenario {
            use super::*;

            #[test]
            fn survives_a_crash_at_every_call() {
                explore_crashes(&$simulation, super::$scenario);
            }

            #[test]
            fn survives_every_fault_at_every_call() {
                explore_faults(&$simulation, super::$scenario);
            }
        }
    )+};
}

survives! {
    completing, simulation("completing", 2);
    failing, simulation("failing", 2);
    indexed, simulation("an index that fails once", 2);
    suspending, simulation("suspending", 1);
    going, simulation("a Job that goes", 2);
}

/// Each of two controllers may create what the other one has just created, but no more than that, and
/// they agree in the end.
#[test]
fn two_controllers_at_once_end_as_one_does() {
    let simulation = Simulation::new("two controllers")
        .on_change(never_more_than(4))
        .on_change(counts_make_sense)
        .ignore_counts();
    explore_crashes(&simulation, async |stage| complete(stage, 2).await);
}

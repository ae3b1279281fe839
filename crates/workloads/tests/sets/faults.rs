//! What must hold when requests fail, watches lag and the process crashes: never a pod too many, and in
//! the end everything as without faults.

use std::{cell::Cell, time::Duration};

use windlass_client::{DeleteOptions, WriteOptions};
use windlass_core::{Doc, Gvr, doc, merge_patch};
use windlass_testing::{
    Call, Cluster, Explored, Failure, Fault, Simulation, Stage, World as Objects,
};
use windlass_workloads::{daemonset, is_pod_ready, statefulset};

use crate::world::{
    CLAIMS, DAEMON_SETS, NAMESPACE, PODS, REVISIONS, STATEFUL_SETS, image, node_of, number,
    of_image, template,
};

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

/// The lag of watches.
const LAG: Duration = Duration::from_secs(400);

/// The time until everything is quiet in the end.
const REST: Duration = Duration::from_secs(60);

/// The cluster of one run.
struct World {
    stage: Stage,
    cluster: Cluster,
}

impl World {
    async fn new(stage: &Stage, controllers: usize) -> Self {
        let cluster = Cluster::builder().env(stage.env().clone()).start().await;
        let observed = [PODS, STATEFUL_SETS, DAEMON_SETS, REVISIONS, CLAIMS];
        stage.observe(&cluster.transport(), &observed);
        let world = Self {
            stage: stage.clone(),
            cluster,
        };
        for number in 0..controllers {
            world.control(&format!("sets-{number}"));
        }
        world
    }

    fn control(&self, name: &str) {
        let (cluster, process) = (self.cluster.clone(), name.to_owned());
        let transport = self.cluster.transport();
        self.stage.start(name, &transport, move |transport| {
            let manager = cluster.manager_on(&process, transport).build().unwrap();
            statefulset::add_to(&manager, &statefulset::Options::default());
            daemonset::add_to(&manager, &daemonset::Options::default());
            async move { manager.run().await.unwrap() }
        });
    }

    async fn list(&self, resource: &Gvr) -> Vec<Doc> {
        self.cluster.list_docs(resource, NAMESPACE, "").await
    }

    /// Plays the nodes until something holds.
    async fn serve_until(&self, what: &str, holds: impl AsyncFn(&Self) -> bool) {
        let looked_at = Cell::new(None);
        let changed = async || {
            let changes = Some(self.stage.changes());
            if looked_at.replace(changes) == changes {
                return false;
            }
            self.serve().await;
            holds(self).await
        };
        self.stage.until(what, changed).await;
    }

    /// Removes pods that are being deleted, binds those that name a node, and makes all ready.
    async fn serve(&self) {
        let api = self.cluster.api(&PODS, NAMESPACE);
        for pod in self.list(&PODS).await {
            let (meta, node) = (pod.meta(), node_of(&pod).to_owned());
            let name = meta.name();
            if meta.is_deleting() {
                let options = DeleteOptions {
                    grace_period: Some(Duration::ZERO),
                    ..DeleteOptions::uid(meta.uid_str())
                };
                let _ = api.delete(name, &options).await;
                continue;
            }
            if pod.str_at("/spec/nodeName").is_empty() {
                let binding = doc!({
                    "apiVersion": "v1", "kind": "Binding",
                    "metadata": { "name": name, "namespace": NAMESPACE },
                    "target": { "kind": "Node", "name": node }
                });
                let options = WriteOptions::default();
                let _ = api.create_part(name, "binding", &binding, &options).await;
            }
            if !is_pod_ready(&pod) {
                let now = self.cluster.env().now().to_string();
                let ready = doc!({ "type": "Ready", "status": "True", "lastTransitionTime": now });
                let status = doc!({ "phase": "Running", "conditions": [ready] });
                self.cluster.patch_status(&pod, status).await;
            }
        }
    }

    async fn web(&self) -> Doc {
        self.cluster
            .find(&STATEFUL_SETS, "default/web")
            .await
            .unwrap()
    }

    async fn agent(&self) -> Doc {
        self.cluster
            .find(&DAEMON_SETS, "default/agent")
            .await
            .unwrap()
    }

    /// Waits until a StatefulSet is complete at an image.
    async fn until_web(&self, replicas: i64, image: &str) {
        let what = format!("web has {replicas} pods of {image}");
        self.serve_until(&what, async |world| {
            let (web, pods) = (world.web().await, world.list(&PODS).await);
            let counts = ["replicas", "availableReplicas", "updatedReplicas"];
            let is_counted = counts
                .iter()
                .all(|it| number(&web, &format!("/status/{it}")) == replicas);
            let is_new = pods.iter().all(|pod| crate::world::image(pod) == image);
            let observed = number(&web, "/status/observedGeneration") == web.meta().generation();
            observed && is_counted && is_new && pods.len() == usize::try_from(replicas).unwrap()
        })
        .await;
    }

    /// Waits until a DaemonSet is complete at an image.
    async fn until_agent(&self, nodes: i64, wanted: &str) {
        let what = format!("agent has {nodes} pods of {wanted}");
        self.serve_until(&what, async |world| {
            let (agent, pods) = (world.agent().await, world.list(&PODS).await);
            let counts = [
                "numberAvailable",
                "updatedNumberScheduled",
                "desiredNumberScheduled",
            ];
            let is_counted = counts
                .iter()
                .all(|it| number(&agent, &format!("/status/{it}")) == nodes);
            let is_new = pods.iter().all(|pod| image(pod) == wanted);
            let observed =
                number(&agent, "/status/observedGeneration") == agent.meta().generation();
            observed && is_counted && is_new && pods.len() == usize::try_from(nodes).unwrap()
        })
        .await;
    }

    /// Lets everybody come to rest, makes sure that they do, and returns everything there is.
    async fn end(&self) -> Vec<Doc> {
        self.stage.pass(REST).await;
        self.stage.rest(REST).await;
        let mut all = Vec::new();
        for resource in [STATEFUL_SETS, DAEMON_SETS, REVISIONS, PODS, CLAIMS] {
            all.extend(self.list(&resource).await);
        }
        all
    }
}

fn stateful(spec: Doc) -> Doc {
    let claim = doc!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } }
        }
    });
    let base = doc!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "web", "namespace": NAMESPACE },
        "spec": {
            "serviceName": "svc", "selector": { "matchLabels": { "app": "web" } },
            "template": (template("web", doc!({ "nodeName": "n1" }))),
            "volumeClaimTemplates": [claim]
        }
    });
    merge_patch(&base, &doc!({ "spec": spec }))
}

fn daemon(spec: Doc) -> Doc {
    let base = doc!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "agent", "namespace": NAMESPACE },
        "spec": {
            "selector": { "matchLabels": { "app": "agent" } },
            "template": (template("agent", doc!({})))
        }
    });
    merge_patch(&base, &doc!({ "spec": spec }))
}

/// No two pods that are not being deleted are on one node, or more than a surge allows.
fn never_more_on_a_node(most: usize) -> impl Fn(&Objects) -> Result<(), String> {
    move |objects| {
        for node in ["n1", "n2"] {
            let pods = objects.of("pods").filter(|pod| {
                !pod.meta().is_deleting()
                    && node_of(pod) == node
                    && !pod.meta().name().starts_with("web")
            });
            let count = pods.count();
            if count > most {
                return Err(format!("{count} pods are on {node}"));
            }
        }
        Ok(())
    }
}

/// A pod of a StatefulSet is not created before those below it are ready.
fn in_order(objects: &Objects) -> Result<(), String> {
    let exists = |name: &str| objects.of("pods").any(|pod| pod.meta().name() == name);
    let claim = |name: &str| {
        objects
            .of("persistentvolumeclaims")
            .any(|claim| claim.meta().name() == name)
    };
    match exists("web-0") && !claim("data-web-0") {
        true => Err("web-0 has no claim".to_owned()),
        false => Ok(()),
    }
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

/// A StatefulSet comes, is scaled down and updated.
async fn stateful_rollout(stage: Stage, controllers: usize) -> Vec<Doc> {
    let world = World::new(&stage, controllers).await;
    let policy = doc!({ "whenDeleted": "Delete", "whenScaled": "Retain" });
    let spec = doc!({ "replicas": 2, "persistentVolumeClaimRetentionPolicy": policy });
    let created = world.cluster.create_doc(&stateful(spec)).await;
    world.until_web(2, "a").await;
    let patch = merge_patch(&of_image("b"), &doc!({ "spec": { "replicas": 1 } }));
    world.cluster.patch(&created, patch).await;
    world.until_web(1, "b").await;
    world.end().await
}

async fn one_by_one(stage: Stage) -> Vec<Doc> {
    stateful_rollout(stage, 1).await
}

/// The same with all pods at once.
async fn parallel(stage: Stage) -> Vec<Doc> {
    let world = World::new(&stage, 1).await;
    let spec = doc!({ "replicas": 2, "podManagementPolicy": "Parallel" });
    let created = world.cluster.create_doc(&stateful(spec)).await;
    world.until_web(2, "a").await;
    world.cluster.patch(&created, of_image("b")).await;
    world.until_web(2, "b").await;
    world.end().await
}

async fn daemon_rollout(stage: Stage, controllers: usize, spec: Doc) -> Vec<Doc> {
    let world = World::new(&stage, controllers).await;
    for name in ["n1", "n2"] {
        let node = doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
        let node = world.cluster.create_doc(&node).await;
        // The server taints new nodes as not ready.
        let patch = doc!({ "spec": { "taints": null } });
        world.cluster.patch(&node, patch).await;
    }
    let created = world.cluster.create_doc(&daemon(spec)).await;
    world.until_agent(2, "a").await;
    world.cluster.patch(&created, of_image("b")).await;
    world.until_agent(2, "b").await;
    world.end().await
}

async fn one_per_node(stage: Stage) -> Vec<Doc> {
    daemon_rollout(stage, 1, doc!({})).await
}

async fn surging(stage: Stage) -> Vec<Doc> {
    let limits = doc!({ "maxUnavailable": 0, "maxSurge": 1 });
    let strategy = doc!({ "type": "RollingUpdate", "rollingUpdate": limits });
    daemon_rollout(stage, 1, doc!({ "updateStrategy": strategy })).await
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
    one_by_one, Simulation::new("a StatefulSet").on_change(in_order);
    parallel, Simulation::new("a parallel StatefulSet").on_change(in_order);
    one_per_node, Simulation::new("a DaemonSet").on_change(never_more_on_a_node(1));
    surging, Simulation::new("a DaemonSet with surge").on_change(never_more_on_a_node(2));
}

/// Names make two controllers of StatefulSets agree.
#[test]
fn two_controllers_of_a_stateful_set_end_as_one_does() {
    let simulation = Simulation::new("two controllers of a StatefulSet")
        .on_change(in_order)
        .ignore_counts();
    explore_crashes(&simulation, async |stage| stateful_rollout(stage, 2).await);
}

/// Each of two controllers may create what the other one has just created, but no more than that, and
/// they agree in the end.
#[test]
fn two_controllers_of_a_daemon_set_end_as_one_does() {
    let simulation = Simulation::new("two controllers of a DaemonSet")
        .on_change(never_more_on_a_node(2))
        .ignore_counts();
    explore_crashes(&simulation, async |stage| {
        daemon_rollout(stage, 2, doc!({})).await
    });
}

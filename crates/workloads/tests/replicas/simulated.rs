//! A namespace of a cluster in a simulation, with controllers whose calls go wrong.

use std::{cell::Cell, time::Duration};

use windlass_client::{DeleteOptions, Propagation, Transport};
use windlass_core::{Doc, Gvr, condition, doc};
use windlass_runtime::Manager;
use windlass_testing::{Call, Cluster, Explored, Failure, Fault, Simulation, Stage};

use crate::stage::{DEPLOYMENTS, PODS, SETS, number};

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

/// How long watches lag.
pub(crate) const LAG: Duration = Duration::from_secs(400);

/// How long it takes until everything is quiet in the end, and how long it is then looked at.
const REST: Duration = Duration::from_secs(60);

const NAMESPACE: &str = "shop";

/// The cluster of one run.
pub(crate) struct World {
    pub(crate) stage: Stage,
    pub(crate) cluster: Cluster,
}

impl World {
    pub(crate) async fn new(stage: &Stage) -> Self {
        let cluster = Cluster::builder().env(stage.env().clone()).start().await;
        stage.observe(&cluster.transport(), &[PODS, SETS, DEPLOYMENTS]);
        let namespace = doc!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE }
        });
        cluster.create_doc(&namespace).await;
        Self {
            stage: stage.clone(),
            cluster,
        }
    }

    /// Starts a process whose calls go wrong.
    pub(crate) fn start(&self, name: &str, add: impl Fn(&Manager) + Send + 'static) {
        self.start_on(name, &self.cluster.transport(), add);
    }

    /// Starts a process whose calls go wrong on their way to a transport.
    pub(crate) fn start_on(
        &self,
        name: &str,
        transport: &Transport,
        add: impl Fn(&Manager) + Send + 'static,
    ) {
        let (cluster, process) = (self.cluster.clone(), name.to_owned());
        self.stage.start(name, transport, move |transport| {
            let manager = cluster.manager_on(&process, transport).build().unwrap();
            add(&manager);
            async move { manager.run().await.unwrap() }
        });
    }

    pub(crate) async fn create(&self, object: Doc) -> Doc {
        let object = object.with("/metadata/namespace", NAMESPACE).unwrap();
        self.cluster.create_doc(&object).await
    }

    pub(crate) async fn find(&self, resource: &Gvr, name: &str) -> Option<Doc> {
        let key = format!("{NAMESPACE}/{name}");
        self.cluster.find(resource, &key).await
    }

    pub(crate) async fn get(&self, resource: &Gvr, name: &str) -> Doc {
        self.find(resource, name).await.unwrap()
    }

    pub(crate) async fn list(&self, resource: &Gvr) -> Vec<Doc> {
        self.cluster.list_docs(resource, NAMESPACE, "").await
    }

    /// Changes an object by a merge patch.
    pub(crate) async fn patch(&self, resource: &Gvr, name: &str, patch: Doc) {
        let object = self.get(resource, name).await;
        self.cluster.patch(&object, patch).await;
    }

    pub(crate) async fn scale(&self, resource: &Gvr, name: &str, replicas: i64) {
        let patch = doc!({ "spec": { "replicas": replicas } });
        self.patch(resource, name, patch).await;
    }

    pub(crate) async fn set_status(&self, object: &Doc, status: Doc) {
        self.cluster.patch_status(object, status).await;
    }

    /// Removes this one object and nothing that depends on it.
    pub(crate) async fn delete(&self, object: &Doc) {
        let api = self.cluster.api_of(object).await;
        let options = DeleteOptions::uid(object.meta().uid_str());
        let options = options.propagate(Propagation::Background);
        api.delete(object.meta().name(), &options).await.unwrap();
    }

    /// Makes pods ready that are not.
    pub(crate) async fn make_all_ready(&self) {
        for pod in self.list(&PODS).await {
            let is_ready = condition(&pod, "Ready").is_some_and(|it| it.is_true());
            if !is_ready && is_active(&pod) {
                let now = self.stage.env().now().to_string();
                self.set_status(&pod, ready(&now)).await;
            }
        }
    }

    /// Waits until a condition holds that is about pods, sets and Deployments alone: it is looked
    /// at when one of them has changed.
    pub(crate) async fn until(&self, what: &str, condition: impl AsyncFn(&Self) -> bool) {
        let looked_at = Cell::new(None);
        let changed = async || {
            let changes = Some(self.stage.changes());
            looked_at.replace(changes) != changes && condition(self).await
        };
        self.stage.until(what, changed).await;
    }

    /// Waits until a set has so many pods and says so, and so many that are ready.
    pub(crate) async fn until_counted(&self, name: &str, replicas: i64, ready: i64) {
        let what = format!("{name} counts {replicas} pods, {ready} of them ready");
        self.until(&what, async |world| {
            let set = world.get(&SETS, name).await;
            let counts = ["/status/replicas", "/status/readyReplicas"].map(|at| number(&set, at));
            let pods = world.list(&PODS).await;
            let is_of_set = |pod: &&Doc| pod.meta().is_controlled_by(&set.meta().uid());
            let found = pods.iter().filter(|pod| is_active(pod)).filter(is_of_set);
            number(&set, "/status/observedGeneration") == set.meta().generation()
                && counts == [replicas, ready]
                && i64::try_from(found.count()) == Ok(replicas)
        })
        .await;
    }

    /// Lets everybody come to rest, makes sure that they do, and returns everything there is.
    pub(crate) async fn end(&self) -> Vec<Doc> {
        self.stage.pass(REST).await;
        self.stage.rest(REST).await;
        let mut all = Vec::new();
        for resource in [PODS, SETS, DEPLOYMENTS] {
            all.extend(self.list(&resource).await);
        }
        all.iter().map(comparable).collect()
    }
}

/// A Deployment with its conditions sorted and without their messages: they stand in the order in
/// which they came up, and of a rollout that went on while its controller was away the message
/// tells nothing, here as upstream. All other objects as they are.
fn comparable(object: &Doc) -> Doc {
    if object.str_at("/kind") != "Deployment" {
        return object.clone();
    }
    let conditions = object.at("/status/conditions").items().iter();
    let plain = |it: &Doc| ["/type", "/status", "/reason"].map(|at| it.str_at(at).to_owned());
    let mut conditions: Vec<_> = conditions.map(plain).collect();
    conditions.sort();
    let conditions = conditions.iter().map(|it| Doc::from(it.join(" ")));
    let conditions: Vec<Doc> = conditions.collect();
    object.with("/status/conditions", conditions).unwrap()
}

/// The status of a pod that is ready since some time.
pub(crate) fn ready(since: &str) -> Doc {
    doc!({
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": since }]
    })
}

/// Whether a pod counts as a replica.
pub(crate) fn is_active(pod: &Doc) -> bool {
    windlass_workloads::is_pod_active(pod)
}

fn succeeded(outcome: Result<Explored, Failure>) {
    match outcome {
        Ok(explored) => assert!(explored.runs > 0, "{explored:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

/// Runs a scenario with a crash at every call in its three positions.
pub(crate) fn explore_crashes(simulation: &Simulation, scenario: impl AsyncFn(Stage) -> Vec<Doc>) {
    succeeded(simulation.crash_at_every_call(&scenario));
}

/// Runs a scenario with every fault at every call, and with every watch cut and made to lag.
pub(crate) fn explore_faults(simulation: &Simulation, scenario: impl AsyncFn(Stage) -> Vec<Doc>) {
    // A request that is refused or lost is repeated.
    let patient = simulation.clone().ignore_counts();
    let is_work = |call: &Call| !call.is_watch && !call.path.contains("/events");
    succeeded(patient.fault_at_every_call(is_work, &FAULTS, &scenario));
    let watches = [Fault::Cut(0), Fault::Cut(1), Fault::Cut(2), Fault::Lag(LAG)];
    succeeded(patient.fault_at_every_call(|call| call.is_watch, &watches, &scenario));
}

/// One test for crashes and one for all other faults of a scenario, so that they run side by side.
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
pub(crate) use survives;

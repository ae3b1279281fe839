//! A namespace with the Job controller in it, and a kubelet played by the test.

use std::{sync::Arc, time::Duration};

use http::Method;
use parking_lot::Mutex;
use windlass_client::{DeleteOptions, Propagation, RestOptions};
use windlass_core::{Doc, Gvr, Time, condition, doc};
use windlass_runtime::{Manager, Shutdown};
use windlass_testing::{Call, Cluster, Fault, Faults, Running};
use windlass_workloads::job;

pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const JOBS: Gvr = Gvr::constant("batch", "v1", "jobs");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");

pub(crate) const NAMESPACE: &str = "default";

/// How long something may take at most.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A cluster with the Job controller.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    faults: Faults,
    /// The statuses of Jobs as they were written, in order.
    written: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// A cluster without a controller.
    pub(crate) async fn idle() -> Self {
        let world = Self {
            cluster: Cluster::start().await,
            faults: Faults::none(),
            written: Arc::default(),
        };
        world.fail(|_| Fault::None);
        world
    }

    pub(crate) async fn new() -> Self {
        let world = Self::idle().await;
        world.run();
        world
    }

    /// Runs the controller.
    pub(crate) fn run(&self) -> Running {
        let transport = self.cluster.transport().layer(&self.faults);
        let options = RestOptions {
            rate_limit: None,
            user_agent: "jobs".to_owned(),
            retries_limit: 0,
            ..RestOptions::default()
        };
        let manager = Manager::builder("jobs")
            .transport(transport, options)
            .env(self.cluster.env().clone())
            .shutdown(Shutdown::new())
            .build()
            .unwrap();
        job::add_to(&manager, &job::Options::default());
        self.cluster.run_manager(manager)
    }

    /// Chooses what goes wrong with the calls of the controller.
    pub(crate) fn fail(&self, mut choose: impl FnMut(&Call) -> Fault + Send + 'static) {
        let written = self.written.clone();
        self.faults.set(move |call| {
            if call.method == Method::PUT {
                written.lock().push(call.path.clone());
            }
            choose(call)
        });
    }

    /// How often the controller has written a status.
    pub(crate) fn writes(&self) -> usize {
        self.written.lock().len()
    }

    pub(crate) async fn create(&self, job: Doc) -> Doc {
        self.cluster.create_doc(&job).await
    }

    pub(crate) async fn job(&self, name: &str) -> Doc {
        let key = format!("{NAMESPACE}/{name}");
        self.cluster.find(&JOBS, &key).await.unwrap()
    }

    pub(crate) async fn pods(&self) -> Vec<Doc> {
        self.cluster.list_docs(&PODS, NAMESPACE, "").await
    }

    /// The pods that run or will, by name.
    pub(crate) async fn active(&self) -> Vec<Doc> {
        let mut pods = self.pods().await;
        pods.retain(windlass_workloads::is_pod_active);
        pods
    }

    pub(crate) async fn patch(&self, name: &str, spec: Doc) {
        let job = self.job(name).await;
        self.cluster.patch(&job, doc!({ "spec": spec })).await;
    }

    /// Waits until a Job is in some state.
    pub(crate) async fn until(&self, name: &str, holds: impl Fn(&Doc) -> bool) -> Doc {
        let looked = async |_: &Cluster| holds(&self.job(name).await);
        self.cluster.until_within(PATIENCE, looked).await;
        self.job(name).await
    }

    /// Waits until so many pods are active, and returns them.
    pub(crate) async fn until_active(&self, count: usize) -> Vec<Doc> {
        let looked = async |_: &Cluster| self.active().await.len() == count;
        self.cluster.until_within(PATIENCE, looked).await;
        self.active().await
    }

    /// Lets the controller finish what it is at.
    pub(crate) async fn settle(&self) {
        self.cluster.pass(Duration::from_secs(5)).await;
    }

    fn now(&self) -> Time {
        self.cluster.env().now()
    }

    /// Runs a pod and makes it ready, as its node does.
    pub(crate) async fn start(&self, pod: &Doc) {
        let now = self.now().to_string();
        let ready = doc!({ "type": "Ready", "status": "True", "lastTransitionTime": now });
        let status = doc!({ "phase": "Running", "conditions": [ready] });
        self.cluster.patch_status(pod, status).await;
    }

    pub(crate) async fn succeed(&self, pod: &Doc) {
        self.exit(pod, 0).await;
    }

    /// Ends the container of a pod with a code, as its node does.
    pub(crate) async fn exit(&self, pod: &Doc, code: i64) {
        let (now, phase) = (
            self.now().to_string(),
            if code == 0 { "Succeeded" } else { "Failed" },
        );
        let end = doc!({ "exitCode": code, "finishedAt": now, "startedAt": null });
        let container = doc!({
            "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "terminated": end }, "lastState": {}
        });
        let status = doc!({ "phase": phase, "containerStatuses": [container] });
        self.cluster.patch_status(pod, status).await;
    }

    /// Asks for the deletion of a pod.
    pub(crate) async fn delete_pod(&self, pod: &Doc) {
        let options = DeleteOptions::uid(pod.meta().uid_str());
        let api = self.cluster.api(&PODS, NAMESPACE);
        api.delete(pod.meta().name(), &options).await.unwrap();
    }

    /// Removes pods that are being deleted, as their node does.
    pub(crate) async fn remove_deleted(&self) {
        for pod in self.pods().await {
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

    pub(crate) async fn delete_job(&self, name: &str, propagation: Propagation) {
        let job = self.job(name).await;
        self.cluster.delete(&job, propagation).await;
    }

    /// The events of a Job: type, reason and message.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        self.cluster.pass(Duration::from_secs(2)).await;
        let events = self.cluster.list_docs(&EVENTS, NAMESPACE, "").await;
        let of = events
            .iter()
            .filter(|event| event.str_at("/involvedObject/name") == name);
        let text =
            |event: &Doc| ["/type", "/reason", "/message"].map(|at| event.str_at(at).to_owned());
        of.map(|event| text(event).join(" ")).collect()
    }

    pub(crate) async fn has_event(&self, name: &str, text: &str) -> bool {
        self.events(name).await.iter().any(|event| event == text)
    }
}

/// A Job with these fields in its spec, whose pods are on a node.
pub(crate) fn job(name: &str, spec: Doc) -> Doc {
    let base = doc!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "template": {
            "metadata": { "labels": { "app": name } },
            "spec": {
                "restartPolicy": "Never", "nodeName": "n1",
                "containers": [{ "name": "c", "image": "i" }]
            }
        } }
    });
    windlass_core::merge_patch(&base, &doc!({ "spec": spec }))
}

/// A number of the status; zero if it is absent.
pub(crate) fn count(job: &Doc, field: &str) -> i64 {
    job.at(&format!("/status/{field}")).as_i64().unwrap_or(0)
}

/// Returns true if a condition holds.
pub(crate) fn has(job: &Doc, kind: &str) -> bool {
    condition(job, kind).is_some_and(|it| it.is_true())
}

/// The types of the conditions, in order, each with its reason.
pub(crate) fn conditions(job: &Doc) -> Vec<String> {
    let all = job.at("/status/conditions").items().iter();
    let text = |it: &Doc| {
        format!(
            "{}={} {}",
            it.str_at("/type"),
            it.str_at("/status"),
            it.str_at("/reason")
        )
    };
    all.map(text).collect()
}

/// The completion index of a pod.
pub(crate) fn index(pod: &Doc) -> usize {
    let index = pod
        .meta()
        .annotation("batch.kubernetes.io/job-completion-index");
    index.unwrap().parse().unwrap()
}

/// The pod of an index.
pub(crate) fn of_index(pods: &[Doc], wanted: usize) -> &Doc {
    pods.iter().find(|pod| index(pod) == wanted).unwrap()
}

pub(crate) fn is_tracked(pod: &Doc) -> bool {
    pod.meta().has_finalizer(job::FINALIZER)
}

/// Returns true if nothing is left to count.
pub(crate) fn is_settled(job: &Doc) -> bool {
    let uncounted = job.at("/status/uncountedTerminatedPods");
    let is_empty = |at: &str| uncounted.at(at).items().is_empty();
    is_empty("/succeeded") && is_empty("/failed")
}

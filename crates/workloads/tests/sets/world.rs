//! A cluster with the DaemonSet and StatefulSet controllers, and kubelets played by the test.

use std::{sync::Arc, time::Duration};

use http::Method;
use parking_lot::Mutex;
use windlass_client::{DeleteOptions, Propagation, RestOptions, WriteOptions};
use windlass_core::{Doc, Gvr, doc, merge_patch};
use windlass_runtime::{Manager, Shutdown};
use windlass_testing::{Call, Cluster, Fault, Faults, Running};
use windlass_workloads::{daemonset, garbage_collector, is_pod_ready, statefulset};

pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const NODES: Gvr = Gvr::constant("", "v1", "nodes");
pub(crate) const CLAIMS: Gvr = Gvr::constant("", "v1", "persistentvolumeclaims");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");
pub(crate) const STATEFUL_SETS: Gvr = Gvr::constant("apps", "v1", "statefulsets");
pub(crate) const DAEMON_SETS: Gvr = Gvr::constant("apps", "v1", "daemonsets");
pub(crate) const REVISIONS: Gvr = Gvr::constant("apps", "v1", "controllerrevisions");

pub(crate) const NAMESPACE: &str = "default";

/// A cluster with the controllers.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    faults: Faults,
    calls: Arc<Mutex<Vec<(Method, String)>>>,
}

impl World {
    /// A cluster without a controller.
    pub(crate) async fn idle() -> Self {
        let world = Self {
            cluster: Cluster::start().await,
            faults: Faults::none(),
            calls: Arc::default(),
        };
        world.fail(|_| Fault::None);
        world
    }

    pub(crate) async fn new() -> Self {
        let world = Self::idle().await;
        world.run();
        world
    }

    /// Runs the controllers.
    pub(crate) fn run(&self) -> Running {
        let transport = self.cluster.transport().layer(&self.faults);
        let options = RestOptions {
            rate_limit: None,
            user_agent: "sets".to_owned(),
            retries_limit: 0,
            ..RestOptions::default()
        };
        let manager = Manager::builder("sets")
            .transport(transport, options)
            .env(self.cluster.env().clone())
            .shutdown(Shutdown::new())
            .build()
            .unwrap();
        daemonset::add_to(&manager, &daemonset::Options::default());
        statefulset::add_to(&manager, &statefulset::Options::default());
        self.cluster.run_manager(manager)
    }

    /// Runs the garbage collector.
    pub(crate) fn collect_garbage(&self) {
        self.cluster.run_with("gc", |manager| {
            garbage_collector::add_to(manager, &garbage_collector::Options::default());
        });
    }

    /// Chooses what goes wrong with the calls of the controllers.
    pub(crate) fn fail(&self, mut choose: impl FnMut(&Call) -> Fault + Send + 'static) {
        let calls = self.calls.clone();
        self.faults.set(move |call| {
            calls.lock().push((call.method.clone(), call.path.clone()));
            choose(call)
        });
    }

    /// The number of calls of the controllers by method and end of the path.
    pub(crate) fn calls(&self, method: &Method, end: &str) -> usize {
        let calls = self.calls.lock();
        let of = calls
            .iter()
            .filter(|(of, path)| of == method && path.ends_with(end));
        of.count()
    }

    /// The most calls of one sort between two of another.
    pub(crate) fn most_between(&self, method: &Method, end: &str, other: &str) -> usize {
        let (mut most, mut run) = (0, 0);
        for (of, path) in self.calls.lock().iter() {
            if path.ends_with(other) {
                run = 0;
            } else if of == method && path.ends_with(end) {
                run += 1;
                most = most.max(run);
            }
        }
        most
    }

    pub(crate) async fn create(&self, object: Doc) -> Doc {
        self.cluster.create_doc(&object).await
    }

    pub(crate) async fn get(&self, resource: &Gvr, name: &str) -> Doc {
        let found = self.find(resource, name).await;
        found.unwrap_or_else(|| panic!("{resource} {name} does not exist"))
    }

    pub(crate) async fn find(&self, resource: &Gvr, name: &str) -> Option<Doc> {
        let key = match *resource == NODES {
            true => name.to_owned(),
            false => format!("{NAMESPACE}/{name}"),
        };
        self.cluster.find(resource, &key).await
    }

    pub(crate) async fn list(&self, resource: &Gvr) -> Vec<Doc> {
        let mut all = self.cluster.list_docs(resource, NAMESPACE, "").await;
        all.sort_by_key(|it| it.meta().name().to_owned());
        all
    }

    pub(crate) async fn pods(&self) -> Vec<Doc> {
        self.list(&PODS).await
    }

    /// The pods that are not being deleted.
    pub(crate) async fn live(&self) -> Vec<Doc> {
        let mut pods = self.pods().await;
        pods.retain(|pod| !pod.meta().is_deleting());
        pods
    }

    /// The names of all pods, those that are being deleted with a minus.
    pub(crate) async fn names(&self) -> Vec<String> {
        let pods = self.pods().await;
        let name = |pod: &Doc| match pod.meta().is_deleting() {
            true => format!("-{}", pod.meta().name()),
            false => pod.meta().name().to_owned(),
        };
        pods.iter().map(name).collect()
    }

    pub(crate) async fn patch(&self, resource: &Gvr, name: &str, patch: Doc) {
        let object = self.get(resource, name).await;
        self.cluster.patch(&object, patch).await;
    }

    /// Lets the controllers finish what they are at.
    pub(crate) async fn settle(&self) {
        self.cluster.pass(Duration::from_secs(3)).await;
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        self.cluster.pass(Duration::from_secs(seconds)).await;
    }

    /// Sets the readiness of a pod that runs, as its node does.
    pub(crate) async fn show(&self, pod: &Doc, is_ready: bool) {
        let now = self.cluster.env().now().to_string();
        let status = if is_ready { "True" } else { "False" };
        let ready = doc!({ "type": "Ready", "status": status, "lastTransitionTime": now });
        let status = doc!({ "phase": "Running", "conditions": [ready] });
        self.cluster.patch_status(pod, status).await;
    }

    pub(crate) async fn start(&self, name: &str) {
        let pod = self.get(&PODS, name).await;
        self.show(&pod, true).await;
        self.settle().await;
    }

    /// Makes a pod not ready.
    pub(crate) async fn stop(&self, name: &str) {
        let pod = self.get(&PODS, name).await;
        self.show(&pod, false).await;
        self.settle().await;
    }

    pub(crate) async fn end(&self, name: &str, phase: &str) {
        let pod = self.get(&PODS, name).await;
        let status = doc!({ "phase": phase });
        self.cluster.patch_status(&pod, status).await;
        self.settle().await;
    }

    /// Asks for the deletion of a pod.
    pub(crate) async fn delete_pod(&self, name: &str) {
        let pod = self.get(&PODS, name).await;
        let options = DeleteOptions::uid(pod.meta().uid_str());
        let api = self.cluster.api(&PODS, NAMESPACE);
        api.delete(name, &options).await.unwrap();
        self.settle().await;
    }

    pub(crate) async fn delete(&self, resource: &Gvr, name: &str, propagation: Propagation) {
        let object = self.get(resource, name).await;
        self.cluster.delete(&object, propagation).await;
        self.settle().await;
    }

    /// Removes pods that are being deleted, as their nodes do.
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
        self.settle().await;
    }

    /// Binds pods to the nodes that they name.
    pub(crate) async fn bind(&self) {
        let api = self.cluster.api(&PODS, NAMESPACE);
        for pod in self.pods().await {
            if pod.str_at("/spec/nodeName").is_empty() {
                let target = doc!({ "kind": "Node", "name": (node_of(&pod)) });
                let name = pod.meta().name();
                let binding = doc!({
                    "apiVersion": "v1", "kind": "Binding",
                    "metadata": { "name": name, "namespace": NAMESPACE }, "target": target
                });
                let options = WriteOptions::default();
                let bound = api.create_part(name, "binding", &binding, &options).await;
                bound.unwrap();
            }
        }
    }

    /// Does once what nodes do: removes, binds and starts pods. Returns true if there was any.
    pub(crate) async fn serve(&self) -> bool {
        self.remove_deleted().await;
        self.bind().await;
        let mut is_any = false;
        for pod in self.live().await {
            if !is_pod_ready(&pod) && pod.str_at("/spec/containers/0/image") != "broken" {
                self.show(&pod, true).await;
                is_any = true;
            }
        }
        self.settle().await;
        is_any || self.pods().await.len() != self.live().await.len()
    }

    /// Does what nodes do until nothing is left to do.
    pub(crate) async fn serve_all(&self) {
        let mut rounds = 0;
        while self.serve().await {
            rounds += 1;
            assert!(rounds < 100, "pods come and go: {:?}", self.names().await);
        }
    }

    /// The events of an object: type, reason and message.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        self.settle().await;
        let events = self.list(&EVENTS).await;
        let of = events
            .iter()
            .filter(|event| event.str_at("/involvedObject/name") == name);
        let text =
            |event: &Doc| ["/type", "/reason", "/message"].map(|at| event.str_at(at).to_owned());
        of.map(|event| text(event).join(" ")).collect()
    }

    pub(crate) async fn has_event(&self, name: &str, start: &str) -> bool {
        let events = self.events(name).await;
        events.iter().any(|event| event.starts_with(start))
    }

    /// Revisions by number: the number and the image of the template.
    pub(crate) async fn revisions(&self) -> Vec<(i64, String)> {
        let revisions = self.list(&REVISIONS).await;
        let mut all: Vec<_> = revisions
            .iter()
            .map(|it| {
                let image = it.str_at("/data/spec/template/spec/containers/0/image");
                (it.at("/revision").as_i64().unwrap(), image.to_owned())
            })
            .collect();
        all.sort();
        all
    }
}

/// The node that a pod is bound to or names.
pub(crate) fn node_of(pod: &Doc) -> &str {
    let terms = pod.at(
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
         /nodeSelectorTerms",
    );
    match pod.str_at("/spec/nodeName") {
        "" => terms.str_at("/0/matchFields/0/values/0"),
        bound => bound,
    }
}

/// A number in an object; zero if it is absent.
pub(crate) fn number(object: &Doc, pointer: &str) -> i64 {
    object.at(pointer).as_i64().unwrap_or(0)
}

pub(crate) fn image(pod: &Doc) -> &str {
    pod.str_at("/spec/containers/0/image")
}

/// A pod template with labels of a name.
pub(crate) fn template(app: &str, spec: Doc) -> Doc {
    let base = doc!({
        "metadata": { "labels": { "app": app } },
        "spec": { "containers": [{ "name": "c", "image": "a" }] }
    });
    merge_patch(&base, &doc!({ "spec": spec }))
}

/// A patch of the image of a set.
pub(crate) fn of_image(image: &str) -> Doc {
    let containers = doc!([{ "name": "c", "image": image }]);
    doc!({ "spec": { "template": { "spec": { "containers": containers } } } })
}

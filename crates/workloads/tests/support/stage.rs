//! A namespace with controllers in it, on the embedded server or on a real one.

use std::{sync::Arc, time::Duration};

use http::Method;
use parking_lot::Mutex;
use windlass_client::{
    Config, DeleteOptions, DynamicApi, Patch, Propagation, RestOptions, WriteOptions,
};
use windlass_core::{Doc, Env, Gvr, condition, doc};
use windlass_envtest::ControlPlane;
use windlass_runtime::{Manager, ManagerBuilder, Shutdown};
use windlass_testing::{Call, Cluster, Fault, Faults, Running};
use windlass_workloads::{deployment, replicaset, replicationcontroller};

pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const SETS: Gvr = Gvr::constant("apps", "v1", "replicasets");
pub(crate) const DEPLOYMENTS: Gvr = Gvr::constant("apps", "v1", "deployments");
pub(crate) const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");

/// How long a real server may take for anything here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who keeps the sets and Deployments of the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controllers {
    /// Those of this crate.
    Ours,
    /// Somebody else does.
    Others,
}

/// One call of our controllers: method, path, and at what time.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) at: tokio::time::Instant,
}

/// A namespace and the controllers in it.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    controllers: Controllers,
    is_real: bool,
    /// What goes wrong with the calls of our controllers.
    pub(crate) faults: Faults,
    calls: Arc<Mutex<Vec<Seen>>>,
}

impl Stage {
    pub(crate) async fn embedded(name: &str) -> Self {
        Self::new(Cluster::start().await, name, Controllers::Ours, false).await
    }

    /// On a real server, if there is one.
    pub(crate) async fn real(name: &str) -> Option<Self> {
        let server = windlass_envtest::real_server()?;
        Some(Self::on(server, name, Controllers::Ours).await)
    }

    pub(crate) async fn on(server: &ControlPlane, name: &str, controllers: Controllers) -> Self {
        let config = Config::from_file(server.kubeconfig()).await.unwrap();
        let cluster = Cluster::builder().existing(config).patience(PATIENCE);
        Self::new(cluster.start().await, name, controllers, true).await
    }

    /// On a cluster with the time of day of this machine, for programs that look at it.
    pub(crate) async fn embedded_now(name: &str) -> Self {
        let cluster = Cluster::builder().env(Env::real()).patience(PATIENCE);
        Self::new(cluster.start().await, name, Controllers::Ours, true).await
    }

    async fn new(cluster: Cluster, name: &str, controllers: Controllers, is_real: bool) -> Self {
        let mut namespace = name.replace('_', "-");
        namespace.truncate(60);
        let object = doc!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": (&namespace) }
        });
        cluster.create_doc(&object).await;
        let stage = Self {
            cluster,
            namespace,
            controllers,
            is_real,
            faults: Faults::none(),
            calls: Arc::default(),
        };
        stage.no_faults();
        stage
    }

    pub(crate) fn is_real(&self) -> bool {
        self.is_real
    }

    /// Runs the controllers of sets and Deployments.
    pub(crate) fn run(&self) -> Option<Running> {
        self.run_sets(&replicaset::Options::default())
    }

    /// Runs them with other numbers for sets.
    pub(crate) fn run_sets(&self, options: &replicaset::Options) -> Option<Running> {
        if self.controllers == Controllers::Others {
            return None;
        }
        let manager = self.manager("workloads").build().unwrap();
        replicaset::add_to(&manager, options);
        replicationcontroller::add_to(&manager, options);
        deployment::add_to(&manager, &deployment::Options::default());
        Some(self.cluster.run_manager(manager))
    }

    /// A manager for this namespace whose calls are noted.
    pub(crate) fn manager(&self, name: &str) -> ManagerBuilder {
        let transport = self.cluster.transport().layer(&self.faults);
        let options = RestOptions {
            rate_limit: None,
            user_agent: name.to_owned(),
            retries_limit: 0,
            ..RestOptions::default()
        };
        Manager::builder(name)
            .transport(transport, options)
            .env(self.cluster.env().clone())
            .namespace(self.namespace.clone())
            .shutdown(Shutdown::new())
    }

    /// Chooses what goes wrong with the calls of our controllers.
    pub(crate) fn fail(&self, mut choose: impl FnMut(&Call) -> Fault + Send + 'static) {
        let calls = self.calls.clone();
        self.faults.set(move |call| {
            if !call.is_watch {
                calls.lock().push(Seen {
                    method: call.method.clone(),
                    path: call.path.clone(),
                    at: tokio::time::Instant::now(),
                });
            }
            choose(call)
        });
    }

    pub(crate) fn no_faults(&self) {
        self.fail(|_| Fault::None);
    }

    /// The calls of our controllers by method and end of the path, such as `/pods`.
    pub(crate) fn calls(&self, method: &Method, end: &str) -> Vec<Seen> {
        let calls = self.calls.lock();
        let of = calls
            .iter()
            .filter(|call| call.method == *method && call.path.ends_with(end));
        of.cloned().collect()
    }

    /// The calls of our controllers whose paths contain a text.
    pub(crate) fn calls_with(&self, method: &Method, part: &str) -> usize {
        let calls = self.calls.lock();
        let of = calls
            .iter()
            .filter(|call| call.method == *method && call.path.contains(part));
        of.count()
    }

    pub(crate) fn all_calls(&self) -> Vec<Seen> {
        self.calls.lock().clone()
    }

    pub(crate) fn forget_calls(&self) {
        self.calls.lock().clear();
    }

    pub(crate) fn api(&self, resource: &Gvr) -> DynamicApi {
        self.cluster.api(resource, &self.namespace)
    }

    pub(crate) async fn create(&self, object: Doc) -> Doc {
        let object = object
            .with("/metadata/namespace", self.namespace.as_str())
            .unwrap();
        self.cluster.create_doc(&object).await
    }

    pub(crate) async fn find(&self, resource: &Gvr, name: &str) -> Option<Doc> {
        let key = format!("{}/{name}", self.namespace);
        self.cluster.find(resource, &key).await
    }

    pub(crate) async fn get(&self, resource: &Gvr, name: &str) -> Doc {
        let found = self.find(resource, name).await;
        found.unwrap_or_else(|| panic!("{resource} {name} does not exist"))
    }

    pub(crate) async fn list(&self, resource: &Gvr) -> Vec<Doc> {
        self.cluster.list_docs(resource, &self.namespace, "").await
    }

    pub(crate) async fn pods(&self) -> Vec<Doc> {
        self.list(&PODS).await
    }

    /// Sets from the lowest revision to the highest.
    pub(crate) async fn sets(&self) -> Vec<Doc> {
        let mut sets = self.list(&SETS).await;
        sets.sort_by_key(|set| (revision(set), set.meta().name().to_owned()));
        sets
    }

    /// Changes an object by a merge patch.
    pub(crate) async fn patch(&self, resource: &Gvr, name: &str, patch: Doc) -> Doc {
        let (api, options) = (self.api(resource), WriteOptions::default());
        let patched = api.patch(name, &Patch::Merge(patch), &options).await;
        patched.unwrap_or_else(|error| panic!("{name} is not patched: {error}"))
    }

    pub(crate) async fn patch_status(&self, resource: &Gvr, name: &str, status: Doc) -> Doc {
        let (api, options) = (self.api(resource), WriteOptions::default());
        let patch = Patch::Merge(doc!({ "status": status }));
        let patched = api.patch_status(name, &patch, &options).await;
        patched.unwrap_or_else(|error| panic!("{name} has no new status: {error}"))
    }

    pub(crate) async fn scale(&self, resource: &Gvr, name: &str, replicas: i64) {
        let patch = doc!({ "spec": { "replicas": replicas } });
        self.patch(resource, name, patch).await;
    }

    /// Scales by the part of the object that is there for it, as often as somebody is faster.
    pub(crate) async fn put_scale(&self, resource: &Gvr, name: &str, replicas: i64) {
        let (api, options) = (self.api(resource), WriteOptions::default());
        loop {
            let scale = api.get_part(name, "scale").await.unwrap();
            let scale = scale.with("/spec/replicas", replicas).unwrap();
            match api.update_part(name, "scale", &scale, &options).await {
                Err(error) if error.is_conflict() => {}
                result => return drop(result.unwrap()),
            }
        }
    }

    /// Deletes without waiting for dependents.
    pub(crate) async fn delete(&self, resource: &Gvr, name: &str) {
        let options = DeleteOptions::default().propagate(Propagation::Background);
        self.api(resource).delete(name, &options).await.unwrap();
    }

    /// Deletes a pod as its node does when it has ended.
    pub(crate) async fn end_pod(&self, name: &str) {
        let options = DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..DeleteOptions::default()
        };
        // Somebody else may have been faster.
        let _ = self.api(&PODS).delete(name, &options).await;
    }

    pub(crate) async fn until(&self, condition: impl AsyncFn(&Self) -> bool) {
        self.cluster.until(async |_| condition(self).await).await;
    }

    /// Lets our controllers finish what they are at: nothing is written for a while.
    pub(crate) async fn settle(&self) {
        let count = || self.calls.lock().len();
        let quiet = Duration::from_millis(if self.is_real { 700 } else { 5_000 });
        loop {
            let before = (count(), self.newest().await);
            self.cluster.pass(quiet).await;
            if before == (count(), self.newest().await) {
                return;
            }
        }
    }

    async fn newest(&self) -> Vec<String> {
        let mut versions = Vec::new();
        for resource in [DEPLOYMENTS, SETS, PODS] {
            let all = self.list(&resource).await;
            versions.extend(all.iter().map(|it| it.meta().resource_version().to_owned()));
        }
        versions
    }

    /// Makes a pod running and ready.
    pub(crate) async fn make_ready(&self, pod: &Doc) {
        let now = self.cluster.env().now().to_string();
        self.make_ready_since(pod, &now).await;
    }

    pub(crate) async fn make_ready_since(&self, pod: &Doc, since: &str) {
        let status = doc!({
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": since }]
        });
        self.patch_status(&PODS, pod.meta().name(), status).await;
    }

    pub(crate) async fn make_all_ready(&self) {
        for pod in self.pods().await {
            let is_ready = condition(&pod, "Ready").is_some_and(|it| it.is_true());
            if !is_ready && !pod.meta().is_deleting() {
                self.make_ready(&pod).await;
            }
        }
    }

    /// The events of an object: type, reason and message.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String, String)> {
        let events = self.list(&EVENTS).await;
        let of = events
            .iter()
            .filter(|event| event.str_at("/involvedObject/name") == name);
        let text = |event: &Doc, at: &str| event.str_at(at).to_owned();
        of.map(|event| {
            (
                text(event, "/type"),
                text(event, "/reason"),
                text(event, "/message"),
            )
        })
        .collect()
    }

    pub(crate) async fn has_event(&self, name: &str, reason: &str) -> bool {
        let events = self.events(name).await;
        events.iter().any(|(_, of, _)| of == reason)
    }
}

/// The revision of a set or Deployment.
pub(crate) fn revision(object: &Doc) -> i64 {
    let revision = object
        .meta()
        .annotation("deployment.kubernetes.io/revision");
    revision.and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// A number in an object; zero if it is absent.
pub(crate) fn number(object: &Doc, pointer: &str) -> i64 {
    object.at(pointer).as_i64().unwrap_or(0)
}

/// The reason of a condition; empty if there is none.
pub(crate) fn reason(object: &Doc, kind: &str) -> String {
    condition(object, kind).map_or_else(String::new, |it| it.reason)
}

/// A pod template whose pods are on a node, or on none.
pub(crate) fn template(app: &str, image: &str, node: &str) -> Doc {
    let template = doc!({
        "metadata": { "labels": { "app": app } },
        "spec": { "containers": [{ "name": "c", "image": image }] }
    });
    match node {
        "" => template,
        node => template.with("/spec/nodeName", node).unwrap(),
    }
}

pub(crate) fn replica_set(name: &str, replicas: i64) -> Doc {
    doc!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": (template(name, "nginx", ""))
        }
    })
}

pub(crate) fn deployment(name: &str, replicas: i64) -> Doc {
    doc!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": (template(name, "nginx:1", ""))
        }
    })
}

/// A pod that nobody manages.
pub(crate) fn orphan(name: &str, app: &str) -> Doc {
    template(app, "nginx", "")
        .with("/metadata/name", name)
        .unwrap()
        .with("/apiVersion", "v1")
        .unwrap()
        .with("/kind", "Pod")
        .unwrap()
}

/// The reference of an owner.
pub(crate) fn owner_ref(owner: &Doc, is_controller: bool) -> Doc {
    let reference = doc!({
        "apiVersion": (owner.str_at("/apiVersion")), "kind": (owner.str_at("/kind")),
        "name": (owner.meta().name()), "uid": (owner.meta().uid_str())
    });
    match is_controller {
        true => reference.with("/controller", true).unwrap(),
        false => reference,
    }
}

/// Runs bodies on the embedded server and on a real one.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test(start_paused = true)]
            async fn $name() {
                let stage = crate::stage::Stage::embedded(stringify!($name)).await;
                super::$name(&stage).await;
            })+
        }
        mod real {
            $(#[tokio::test]
            async fn $name() {
                if let Some(stage) = crate::stage::Stage::real(stringify!($name)).await {
                    super::$name(&stage).await;
                }
            })+
        }
    };
}
pub(crate) use on_both;

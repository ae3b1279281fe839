//! A namespace in which a script plays, with nodes that only it uses.

use std::{pin::Pin, time::Duration};

use windlass_client::{DeleteOptions, Patch, WriteOptions};
use windlass_core::{Doc, Gvr, doc};
use windlass_testing::Cluster;
use windlass_workloads::is_pod_ready;

pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const NODES: Gvr = Gvr::constant("", "v1", "nodes");
pub(crate) const CLAIMS: Gvr = Gvr::constant("", "v1", "persistentvolumeclaims");
pub(crate) const SERVICES: Gvr = Gvr::constant("", "v1", "services");
pub(crate) const ENDPOINTS: Gvr = Gvr::constant("", "v1", "endpoints");
pub(crate) const SLICES: Gvr = Gvr::constant("discovery.k8s.io", "v1", "endpointslices");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");
pub(crate) const STATEFUL_SETS: Gvr = Gvr::constant("apps", "v1", "statefulsets");
pub(crate) const DAEMON_SETS: Gvr = Gvr::constant("apps", "v1", "daemonsets");
pub(crate) const REVISIONS: Gvr = Gvr::constant("apps", "v1", "controllerrevisions");

/// The longest time that anything takes on a real server.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The time for which nothing changes when everything is done.
const QUIET: Duration = Duration::from_secs(3);

type Played<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A script: its name and what it does in a namespace of its own.
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) play: for<'a> fn(&'a Scene) -> Played<'a>,
}

/// Scripts by name, each a block that works on a scene.
macro_rules! scripts {
    ($($name:ident |$scene:ident| $body:block)+) => {
        pub(crate) const SCRIPTS: &[$crate::scene::Script] = &[$($crate::scene::Script {
            name: stringify!($name),
            play: |$scene| Box::pin(async move $body),
        }),+];
    };
}
pub(crate) use scripts;

/// A namespace in which a script plays.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
}

impl Scene {
    pub(crate) async fn new(cluster: &Cluster, name: &str) -> Self {
        let namespace = name.replace('_', "-");
        let object = doc!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": (&namespace) }
        });
        cluster.create_doc(&object).await;
        Self {
            cluster: cluster.clone(),
            namespace,
        }
    }

    pub(crate) async fn create(&self, object: Doc) -> Doc {
        let namespace = self.namespace.as_str();
        let object = object.with("/metadata/namespace", namespace).unwrap();
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
        let mut all = self.cluster.list_docs(resource, &self.namespace, "").await;
        all.sort_by_key(|it| it.meta().name().to_owned());
        all
    }

    /// Changes an object by a merge patch.
    pub(crate) async fn patch(&self, resource: &Gvr, name: &str, patch: Doc) {
        let api = self.cluster.api(resource, &self.namespace);
        let (patch, options) = (Patch::Merge(patch), WriteOptions::default());
        api.patch(name, &patch, &options).await.unwrap();
    }

    /// Deletes an object; a pod is asked to end.
    pub(crate) async fn delete(&self, resource: &Gvr, name: &str) {
        let api = self.cluster.api(resource, &self.namespace);
        api.delete(name, &DeleteOptions::default()).await.unwrap();
    }

    /// Creates a node for this script alone.
    pub(crate) async fn node(&self, number: usize) {
        let name = self.node_name(number);
        let labels = doc!({ "script": (self.namespace.as_str()) });
        let node = doc!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels }
        });
        let node = self.cluster.create_doc(&node).await;
        // The server taints new nodes as not ready.
        let patch = doc!({ "spec": { "taints": null } });
        self.cluster.patch(&node, patch).await;
    }

    pub(crate) fn node_name(&self, number: usize) -> String {
        format!("{}-{number}", self.namespace)
    }

    pub(crate) async fn patch_node(&self, number: usize, patch: Doc) {
        let api = self.cluster.resource(NODES);
        let (patch, options) = (Patch::Merge(patch), WriteOptions::default());
        let name = self.node_name(number);
        api.patch(&name, &patch, &options).await.unwrap();
    }

    /// Does what nodes do until something holds.
    pub(crate) async fn serve_until(&self, holds: impl AsyncFn() -> bool) {
        self.cluster
            .until(async |_| {
                self.serve().await;
                holds().await
            })
            .await;
    }

    /// Waits until something holds, while nodes do nothing.
    pub(crate) async fn until(&self, holds: impl AsyncFn() -> bool) {
        self.cluster.until(async |_| holds().await).await;
    }

    /// Removes pods that are being deleted, binds those that name a node, and makes all ready.
    pub(crate) async fn serve(&self) {
        let api = self.cluster.api(&PODS, &self.namespace);
        for pod in self.list(&PODS).await {
            let meta = pod.meta();
            let name = meta.name();
            if meta.is_deleting() {
                self.remove(&pod).await;
                continue;
            }
            if pod.str_at("/spec/nodeName").is_empty() {
                let binding = doc!({
                    "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
                    "target": { "kind": "Node", "name": (node_of(&pod)) }
                });
                let options = WriteOptions::default();
                let _ = api.create_part(name, "binding", &binding, &options).await;
            }
            let is_over = matches!(pod.str_at("/status/phase"), "Failed" | "Succeeded");
            if !is_pod_ready(&pod) && !is_over {
                self.show(name, "Running", true).await;
            }
        }
    }

    /// Writes the status of a pod as its node does. The pod may be gone.
    pub(crate) async fn show(&self, name: &str, phase: &str, is_ready: bool) {
        let now = self.cluster.env().now().to_string();
        let status = if is_ready { "True" } else { "False" };
        let ready = doc!({ "type": "Ready", "status": status, "lastTransitionTime": now });
        let status = doc!({ "status": { "phase": phase, "conditions": [ready] } });
        let api = self.cluster.api(&PODS, &self.namespace);
        let (patch, options) = (Patch::Merge(status), WriteOptions::default());
        let _ = api.patch_status(name, &patch, &options).await;
    }

    async fn remove(&self, pod: &Doc) {
        let options = DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..DeleteOptions::uid(pod.meta().uid_str())
        };
        let api = self.cluster.api(&PODS, &self.namespace);
        let _ = api.delete(pod.meta().name(), &options).await;
    }

    /// Lets everybody finish what they are at.
    pub(crate) async fn settle(&self) {
        let state = async || {
            let mut versions = Vec::new();
            let resources = [
                PODS,
                STATEFUL_SETS,
                DAEMON_SETS,
                REVISIONS,
                CLAIMS,
                SLICES,
                EVENTS,
            ];
            for resource in &resources {
                let all = self.list(resource).await;
                versions.extend(all.iter().map(|it| it.meta().resource_version().to_owned()));
            }
            versions
        };
        loop {
            let before = state().await;
            self.cluster.pass(QUIET).await;
            if before == state().await {
                return;
            }
        }
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

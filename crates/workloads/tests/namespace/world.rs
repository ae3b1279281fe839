//! A namespace that is to be deleted.

use windlass_client::{DeleteOptions, Propagation};
use windlass_core::{Doc, Gvr, condition, doc};
use windlass_runtime::Manager;
use windlass_testing::{Cluster, Running};

pub(crate) const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");
pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");

/// A finalizer that nobody removes but the test.
pub(crate) const HELD: &str = "custom.io/finalizer";

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: Doc,
}

pub(crate) fn control(cluster: &Cluster) -> Running {
    cluster.run_with("namespace-controller", add)
}

pub(crate) fn add(manager: &Manager) {
    windlass_workloads::namespace::add_to(manager, &Default::default());
}

impl World {
    pub(crate) async fn embedded() -> Self {
        Self::new(Cluster::start().await, "shop").await
    }

    pub(crate) async fn new(cluster: Cluster, name: &str) -> Self {
        let namespace = cluster.create_doc(&namespace(name)).await;
        Self { cluster, namespace }
    }

    pub(crate) fn name(&self) -> &str {
        self.namespace.meta().name()
    }

    pub(crate) async fn create(&self, object: Doc) -> Doc {
        let object = object.with("/metadata/namespace", self.name()).unwrap();
        self.cluster.create_doc(&object).await
    }

    pub(crate) async fn delete(&self) {
        self.cluster
            .delete(&self.namespace, Propagation::Background)
            .await;
    }

    pub(crate) async fn now(&self) -> Option<Doc> {
        self.cluster.find(&NAMESPACES, self.name()).await
    }

    pub(crate) async fn find(&self, resource: &Gvr, name: &str) -> Option<Doc> {
        let key = format!("{}/{name}", self.name());
        self.cluster.find(resource, &key).await
    }

    pub(crate) async fn until(&self, condition: impl AsyncFn(&Self) -> bool) {
        self.cluster.until(async |_| condition(self).await).await;
    }

    pub(crate) async fn until_gone(&self) {
        self.until(async |world| world.now().await.is_none()).await;
    }

    /// Status, reason and message of a condition of the namespace.
    pub(crate) async fn condition(&self, kind: &str) -> Option<(String, String, String)> {
        let found = condition(&self.now().await?, kind)?;
        Some((found.status, found.reason, found.message))
    }

    /// Ends a pod as a node agent does.
    pub(crate) async fn end(&self, pod: &Doc) {
        let api = self.cluster.api(&PODS, self.name());
        let options = DeleteOptions {
            grace_period: Some(std::time::Duration::ZERO),
            ..DeleteOptions::uid(pod.meta().uid_str())
        };
        api.delete(pod.meta().name(), &options).await.unwrap();
    }
}

pub(crate) fn namespace(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

pub(crate) fn config_map(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

pub(crate) fn pod(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
    })
}

/// A pod on a node, which needs time to end.
pub(crate) fn running_pod(name: &str, grace: i64) -> Doc {
    let pod = pod(name).with("/spec/nodeName", "node-1").unwrap();
    pod.with("/spec/terminationGracePeriodSeconds", grace)
        .unwrap()
}

pub(crate) fn deployment(name: &str) -> Doc {
    doc!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    })
}

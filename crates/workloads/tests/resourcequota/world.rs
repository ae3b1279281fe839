//! A namespace with a quota.

use windlass_client::{DeleteOptions, Error, Patch, WriteOptions};
use windlass_core::{Doc, Gvr, doc};
use windlass_testing::{Cluster, Running};
use windlass_workloads::resourcequota;

pub(crate) const QUOTAS: Gvr = Gvr::constant("", "v1", "resourcequotas");
pub(crate) const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");
pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const SERVICES: Gvr = Gvr::constant("", "v1", "services");
pub(crate) const DEPLOYMENTS: Gvr = Gvr::constant("apps", "v1", "deployments");
pub(crate) const CLAIMS: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaims");

const POD_TEMPLATES: Gvr = Gvr::constant("", "v1", "podtemplates");

/// Something that no case makes.
pub(crate) const SIGN: &str = "count/podtemplates";

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
}

pub(crate) fn control(cluster: &Cluster) -> Running {
    cluster.run_with("resourcequota-controller", |manager| {
        resourcequota::add_to(manager, &resourcequota::Options::default());
    })
}

impl World {
    pub(crate) async fn new(cluster: Cluster, namespace: &str) -> Self {
        let object = doc!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace }
        });
        cluster.create_doc(&object).await;
        Self {
            cluster,
            namespace: namespace.to_owned(),
        }
    }

    /// Asks for an object to be made, which a quota may refuse.
    pub(crate) async fn try_create(&self, resource: &Gvr, object: &Doc) -> Result<Doc, Error> {
        let api = self.cluster.api(resource, &self.namespace);
        api.create(object, &WriteOptions::default()).await
    }

    pub(crate) async fn create(&self, resource: &Gvr, object: Doc) -> Doc {
        self.try_create(resource, &object).await.unwrap()
    }

    pub(crate) async fn patch(&self, resource: &Gvr, name: &str, patch: Doc) {
        let api = self.cluster.api(resource, &self.namespace);
        let patch = Patch::Merge(patch);
        let options = WriteOptions::default();
        api.patch(name, &patch, &options).await.unwrap();
    }

    pub(crate) async fn patch_status(&self, resource: &Gvr, name: &str, status: Doc) {
        let api = self.cluster.api(resource, &self.namespace);
        let patch = Patch::Merge(doc!({ "status": status }));
        let options = WriteOptions::default();
        api.patch_status(name, &patch, &options).await.unwrap();
    }

    pub(crate) async fn delete(&self, resource: &Gvr, name: &str) {
        let api = self.cluster.api(resource, &self.namespace);
        let options = DeleteOptions {
            grace_period: Some(std::time::Duration::ZERO),
            ..DeleteOptions::default()
        };
        api.delete(name, &options).await.unwrap();
    }

    /// A quota with limits, when it is in force. It has one limit more, by which that is seen: the
    /// real server follows quotas through a watch of its own.
    pub(crate) async fn quota(&self, hard: Doc) {
        let hard = hard.with(&format!("/{}", SIGN.replace('/', "~1")), "0");
        self.quota_with(doc!({ "hard": (hard.unwrap()) })).await;
        let template = doc!({
            "apiVersion": "v1", "kind": "PodTemplate", "metadata": { "name": "sign" },
            "template": { "spec": { "containers": [{ "name": "c", "image": "i" }] } },
        });
        let options = WriteOptions::default().dry_run();
        let api = self.cluster.api(&POD_TEMPLATES, &self.namespace);
        self.until(async |_| {
            let refused = api.create(&template, &options).await;
            refused.is_err_and(|error| error.is_forbidden())
        })
        .await;
    }

    pub(crate) async fn quota_with(&self, spec: Doc) {
        let object = doc!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "q" }
        });
        let object = object.with("/spec", spec.clone()).unwrap();
        self.create(&QUOTAS, object).await;
        self.until(async |world| {
            let status = world.status().await;
            status.at("/hard") == spec.at("/hard") && !status.at("/used").is_null()
        })
        .await;
    }

    pub(crate) async fn status(&self) -> Doc {
        let key = format!("{}/q", self.namespace);
        let quota = self.cluster.find(&QUOTAS, &key).await.unwrap();
        quota.at("/status").clone()
    }

    pub(crate) async fn used(&self, name: &str) -> String {
        let status = self.status().await;
        let used = status.at("/used").get(name).cloned().unwrap_or_default();
        used.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn until(&self, condition: impl AsyncFn(&Self) -> bool) {
        self.cluster.until(async |_| condition(self).await).await;
    }

    pub(crate) async fn until_used(&self, name: &str, amount: &str) {
        self.until(async |world| world.used(name).await == amount)
            .await;
    }
}

pub(crate) fn config_map(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

pub(crate) fn pod(name: &str, cpu: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{
            "name": "c", "image": "i", "resources": { "requests": { "cpu": cpu } }
        }] },
    })
}

pub(crate) fn service(name: &str, sort: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
        "spec": { "type": sort, "selector": { "app": "web" }, "ports": [{ "port": 80 }] },
    })
}

pub(crate) fn deployment(name: &str) -> Doc {
    doc!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": 0, "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    })
}

pub(crate) fn claim(name: &str, count: i64) -> Doc {
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": { "name": name },
        "spec": { "devices": { "requests": [
            { "name": "gpus", "exactly": { "deviceClassName": "gpu", "count": count } },
        ] } },
    })
}

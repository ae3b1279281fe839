//! A namespace of a cluster, with a garbage collector.

use windlass_client::{DeleteOptions, DynamicApi, Propagation, WriteOptions};
use windlass_core::{Doc, Gvr, doc};
use windlass_runtime::Manager;
use windlass_testing::{Cluster, Running};

pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const CONTROLLERS: Gvr = Gvr::constant("", "v1", "replicationcontrollers");
pub(crate) const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");
pub(crate) const DEFINITIONS: Gvr =
    Gvr::constant("apiextensions.k8s.io", "v1", "customresourcedefinitions");

/// A namespace that one test has for itself.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
}

/// Runs a garbage collector with upstream's options.
pub(crate) fn collect(cluster: &Cluster) -> Running {
    cluster.run_with("garbage-collector", add)
}

pub(crate) fn add(manager: &Manager) {
    windlass_workloads::garbage_collector::add_to(manager, &Default::default());
}

impl World {
    /// An embedded cluster of its own, without a garbage collector.
    pub(crate) async fn embedded() -> Self {
        Self::new(Cluster::start().await, "shop").await
    }

    pub(crate) async fn new(cluster: Cluster, namespace: &str) -> Self {
        create_namespace(&cluster, namespace).await;
        Self {
            cluster,
            namespace: namespace.to_owned(),
        }
    }

    /// A name outside of namespaces that no other test uses.
    pub(crate) fn unique(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    pub(crate) fn api(&self, resource: &Gvr) -> DynamicApi {
        self.cluster.api(resource, &self.namespace)
    }

    pub(crate) async fn find(&self, resource: &Gvr, name: &str) -> Option<Doc> {
        let key = format!("{}/{name}", self.namespace);
        self.cluster.find(resource, &key).await
    }

    /// The names of all objects of a resource.
    pub(crate) async fn names(&self, resource: &Gvr) -> Vec<String> {
        let all = self.cluster.list_docs(resource, &self.namespace, "").await;
        all.iter().map(|it| it.meta().name().to_owned()).collect()
    }

    /// Creates an object, made by the functions below.
    pub(crate) async fn create(&self, object: Doc) -> Doc {
        let object = object
            .with("/metadata/namespace", &*self.namespace)
            .unwrap();
        self.cluster.create_doc(&object).await
    }

    pub(crate) async fn delete(&self, object: &Doc, propagation: Propagation) {
        self.cluster.delete(object, propagation).await;
    }

    /// Deletes an object without saying what happens to its dependents.
    pub(crate) async fn delete_plainly(&self, object: &Doc) {
        let api = self.cluster.api_of(object).await;
        let options = DeleteOptions::uid(object.meta().uid_str());
        api.delete(object.meta().name(), &options).await.unwrap();
    }

    pub(crate) async fn until(&self, condition: impl AsyncFn(&Self) -> bool) {
        self.cluster.until(async |_| condition(self).await).await;
    }

    pub(crate) async fn until_gone(&self, resource: &Gvr, name: &str) {
        self.until(async |world| world.find(resource, name).await.is_none())
            .await;
    }

    /// Waits until the garbage collector has certainly looked at everything that was there before:
    /// until it has collected something that was created now.
    pub(crate) async fn settle(&self) {
        for round in 0..2 {
            let name = format!("last-{round}");
            let orphan = config_map(&name).with("/metadata/ownerReferences", vec![missing_owner()]);
            self.create(orphan.unwrap()).await;
            self.until_gone(&CONFIG_MAPS, &name).await;
        }
    }

    /// The reasons of the events about an object.
    pub(crate) async fn events_of(&self, object: &Doc) -> Vec<Doc> {
        let uid = object.meta().uid_str();
        let all = self.cluster.list_docs(&EVENTS, "", "").await;
        let about = |event: &Doc| event.str_at("/involvedObject/uid") == uid;
        all.into_iter().filter(about).collect()
    }

    /// Removes the finalizers of an object.
    pub(crate) async fn release(&self, object: &Doc) {
        self.cluster
            .patch(object, doc!({ "metadata": { "finalizers": Doc::NULL } }))
            .await;
    }
}

pub(crate) async fn create_namespace(cluster: &Cluster, name: &str) {
    cluster
        .create_doc(
            &doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }),
        )
        .await;
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

/// A replication controller, whose controller does not run here.
pub(crate) fn controller(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": { "name": name },
        "spec": {
            "replicas": 0,
            "selector": { "app": name },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    })
}

pub(crate) fn owned_by(object: Doc, owners: &[&Doc]) -> Doc {
    let references: Vec<Doc> = owners.iter().map(|owner| reference(owner)).collect();
    with_references(object, references)
}

pub(crate) fn with_references(object: Doc, references: Vec<Doc>) -> Doc {
    let edited = object.with("/metadata/ownerReferences", references);
    edited.unwrap_or(object)
}

/// A reference that does not block its owner.
pub(crate) fn reference(owner: &Doc) -> Doc {
    doc!({
        "apiVersion": owner.str_at("/apiVersion"),
        "kind": owner.str_at("/kind"),
        "name": owner.meta().name(),
        "uid": owner.meta().uid_str(),
    })
}

pub(crate) fn blocking(owner: &Doc) -> Doc {
    reference(owner).with("/blockOwnerDeletion", true).unwrap()
}

pub(crate) fn missing_owner() -> Doc {
    doc!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "never-was",
        "uid": "00000000-0000-4000-8000-000000000000",
    })
}

pub(crate) fn with_finalizer(object: &Doc, finalizer: &str) -> Doc {
    object.with_finalizer(finalizer)
}

/// The UIDs of the owners of an object.
pub(crate) fn owner_uids(object: &Doc) -> Vec<String> {
    let owners = object.meta().owner_refs();
    owners.map(|owner| owner.uid.as_str().to_owned()).collect()
}

/// Defines a kind of custom resources and waits until it is served.
pub(crate) async fn define(world: &World, group: &str, kind: &str, scope: &str) -> (Doc, Gvr) {
    let plural = format!("{}s", kind.to_lowercase());
    let definition = doc!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": scope,
            "names": { "plural": &*plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    let created = world.cluster.create_doc(&definition).await;
    let group_version: windlass_core::GroupVersion = format!("{group}/v1").parse().unwrap();
    let gvr = group_version.with_resource(plural);
    let api = world.cluster.api(&gvr, "");
    world
        .until(async |_| api.list(&Default::default()).await.is_ok())
        .await;
    (created, gvr)
}

pub(crate) fn custom(group: &str, kind: &str, name: &str) -> Doc {
    doc!({ "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": { "name": name } })
}

pub(crate) fn write_options() -> WriteOptions {
    WriteOptions::manager("test")
}

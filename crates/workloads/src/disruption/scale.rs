//! The number of pods that the controllers of a budget's pods want.

use std::collections::BTreeMap;

use windlass_cache::{Obj, SharedInformer};
use windlass_client::{DiscoveryError, DynamicClient};
use windlass_core::{Doc, Gvk, Key, OwnerRef, Uid};
use windlass_runtime::{Error, Manager, ResourceKind, Result};

use super::{Engine, Expected};
use crate::owned::{apps_kind, core_kind};

/// The kinds whose scale is read from caches.
pub(super) fn kinds() -> [ResourceKind; 4] {
    [
        core_kind("ReplicationController", "replicationcontrollers"),
        apps_kind("ReplicaSet", "replicasets"),
        apps_kind("Deployment", "deployments"),
        apps_kind("StatefulSet", "statefulsets"),
    ]
}

/// The caches of the controllers that pods usually have.
pub(super) struct Owners {
    replication_controllers: SharedInformer,
    replica_sets: SharedInformer,
    deployments: SharedInformer,
    stateful_sets: SharedInformer,
    client: DynamicClient,
}

/// A controller and the number of pods that it wants.
struct Scale {
    uid: Uid,
    replicas: i64,
}

impl Owners {
    pub(super) fn new(manager: &Manager) -> Self {
        let informers = kinds().map(|kind| manager.factory().dynamic(kind.gvr().clone()));
        let [
            replication_controllers,
            replica_sets,
            deployments,
            stateful_sets,
        ] = informers;
        Self {
            replication_controllers,
            replica_sets,
            deployments,
            stateful_sets,
            client: manager.dynamic(),
        }
    }

    /// The controller that a reference means, if it is of a kind that is cached. Pods of a
    /// Deployment's ReplicaSets belong to the Deployment.
    fn cached(&self, namespace: &str, reference: &OwnerRef) -> Option<Scale> {
        let key = Key::new(namespace, &reference.name);
        let find = |from: &SharedInformer| {
            let found = from.lister().get(&key)?;
            (found.uid() == reference.uid).then_some(found)
        };
        match (reference.group(), reference.kind.as_str()) {
            ("", "ReplicationController") => {
                find(&self.replication_controllers).as_ref().map(scale)
            }
            ("apps" | "extensions", "ReplicaSet") => {
                self.of_replica_set(&find(&self.replica_sets)?)
            }
            ("apps", "StatefulSet") => find(&self.stateful_sets).as_ref().map(scale),
            _ => None,
        }
    }

    fn of_replica_set(&self, set: &Obj) -> Option<Scale> {
        let Some(owner) = set.meta().controller().filter(|it| it.kind == "Deployment") else {
            return Some(scale(set));
        };
        let key = Key::new(set.namespace(), &owner.name);
        let is_known_group = matches!(owner.group(), "apps" | "extensions");
        let deployment = self.deployments.lister().get(&key)?;
        let is_meant = is_known_group && deployment.uid() == owner.uid;
        is_meant.then(|| scale(&deployment))
    }
}

fn scale(owner: &Obj) -> Scale {
    Scale {
        uid: owner.uid(),
        // The server fills in a number where none is given.
        replicas: owner.doc().at("/spec/replicas").as_i64().unwrap_or(1),
    }
}

impl Engine {
    /// The sum over all controllers of the pods, each of them once.
    pub(super) async fn expected_scale(&self, pods: &[Obj]) -> Result<Expected> {
        let mut scales: BTreeMap<Uid, i64> = BTreeMap::new();
        let mut has_unmanaged = false;
        for pod in pods {
            let Some(reference) = pod.meta().controller() else {
                has_unmanaged = true;
                continue;
            };
            if scales.contains_key(&reference.uid) {
                continue;
            }
            let cached = self.owners.cached(pod.namespace(), &reference);
            let found = match cached {
                Some(found) => Some(found),
                None => self.asked(pod.namespace(), &reference).await?,
            };
            let Some(found) = found else {
                let text = format!("found no controllers for pod {:?}", pod.name());
                return Err(Error::msg(text));
            };
            scales.insert(found.uid, found.replicas);
        }
        Ok(Expected {
            pods: scales.values().sum(),
            healthy: 0,
            has_unmanaged,
        })
    }

    /// Asks the server for the scale of a controller.
    async fn asked(&self, namespace: &str, reference: &OwnerRef) -> Result<Option<Scale>> {
        let gvk = Gvk::parse(&reference.api_version, &reference.kind)?;
        let resource = match self.discovery.resource_of(&gvk).await {
            Ok(resource) => resource,
            Err(DiscoveryError::Unknown { .. }) => {
                let (kind, version) = (gvk.kind(), gvk.api_version());
                let text = format!("no matches for kind {kind:?} in version {version:?}");
                return Err(Error::msg(text));
            }
            Err(error) => return Err(error.into()),
        };
        let api = self.owners.client.resource(resource.gvr.clone());
        let api = api.namespaced(namespace);
        let scale = match api.get_part(&reference.name, "scale").await {
            Ok(scale) => scale,
            Err(error) if error.is_not_found() => {
                // Either the object is gone, or its kind has no scale.
                let known = self.discovery.refresh().await?;
                let resource = known.resource(&resource.gvr);
                if resource.is_some_and(|it| it.subresources.iter().any(|part| part == "scale")) {
                    return Ok(None);
                }
                let name = api.gvr().group_resource();
                let text = format!("{name} does not implement the scale subresource");
                return Err(Error::msg(text));
            }
            Err(error) => return Err(error.into()),
        };
        Ok(found_scale(&scale, reference))
    }
}

fn found_scale(scale: &Doc, reference: &OwnerRef) -> Option<Scale> {
    (scale.meta().uid() == reference.uid).then(|| Scale {
        uid: reference.uid.clone(),
        replicas: scale.at("/spec/replicas").as_i64().unwrap_or(0),
    })
}

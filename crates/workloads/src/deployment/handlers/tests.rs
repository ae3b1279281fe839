use windlass_cache::InformerFactory;
use windlass_client::{RestClient, RestOptions};
use windlass_core::{Doc, doc};
use windlass_testing::{ModelServer, TokioClock};

use super::*;
use crate::owned::{apps_kind, core_kind};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Handlers over caches of what a server has.
struct Stage {
    handlers: Handlers,
    _factory: InformerFactory,
}

impl Stage {
    async fn of(server: &ModelServer) -> Self {
        let client = RestClient::new(server.transport(), RestOptions::default());
        let factory = InformerFactory::on(client).sources().build();
        let deployment_kind = apps_kind("Deployment", "deployments");
        let set_kind = apps_kind("ReplicaSet", "replicasets");
        let informer = |kind: &ResourceKind| factory.dynamic(kind.gvr().clone());
        let (deployments, sets) = (informer(&deployment_kind), informer(&set_kind));
        let pods = informer(&core_kind("Pod", "pods"));
        owned::index_owners(&deployments, owned::label_selector);
        owned::index_children(&sets);
        owned::index_children(&pods);
        factory.start();
        factory.wait_for_sync().await.unwrap();
        let handlers = Handlers {
            deployment_kind,
            set_kind,
            deployments,
            sets,
            pods,
        };
        Self {
            handlers,
            _factory: factory,
        }
    }

    /// The Deployments that a change of a set queues.
    fn of_set(&self, old: Option<&Doc>, new: Option<&Doc>) -> Vec<String> {
        names(&with_change(old, new, |change| {
            self.handlers.on_set(change)
        }))
    }

    /// The Deployments that a change of a pod queues.
    fn of_pod(&self, old: Option<&Doc>, new: Option<&Doc>) -> Vec<String> {
        names(&with_change(old, new, |change| {
            self.handlers.on_pod(change)
        }))
    }
}

fn with_change<T>(old: Option<&Doc>, new: Option<&Doc>, f: impl FnOnce(&Change<'_>) -> T) -> T {
    let object = |doc: &Doc| Obj::new(doc.clone()).unwrap();
    let (old, new) = (old.map(object), new.map(object));
    f(&Change {
        old: old.as_ref(),
        new: new.as_ref(),
        is_initial: false,
    })
}

fn names(triggers: &[Trigger]) -> Vec<String> {
    let mut names: Vec<String> = (triggers.iter())
        .map(|trigger| trigger.key().name().to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

fn deployment(name: &str, app: &str, strategy: &str) -> Doc {
    doc!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": app } }, "strategy": { "type": strategy }
        }
    })
}

/// A child of some kind, with the owner that manages it.
fn child(kind: &str, name: &str, owner: Option<(&Doc, &ResourceKind)>) -> Doc {
    let api_version = if kind == "Pod" { "v1" } else { "apps/v1" };
    let child = doc!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {
            "name": name, "namespace": "default", "resourceVersion": "1",
            "labels": { "app": "web" }
        },
        "spec": { "selector": { "matchLabels": { "app": "web" } } }
    });
    match owner {
        None => child,
        Some((owner, kind)) => {
            let reference = Doc::from(&OwnerRef::controller_of(owner, kind.gvk()));
            child
                .with("/metadata/ownerReferences", vec![reference])
                .unwrap()
        }
    }
}

fn next(object: &Doc) -> Doc {
    object.with("/metadata/resourceVersion", "2").unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_set_queues_the_deployment_that_manages_it() {
    let server = ModelServer::new(TokioClock::new().env(1));
    let one = server.create(DEPLOYMENTS, &deployment("one", "web", "RollingUpdate"));
    server.create(DEPLOYMENTS, &deployment("two", "web", "RollingUpdate"));
    let stage = Stage::of(&server).await;
    let kind = apps_kind("Deployment", "deployments");
    let set = child("ReplicaSet", "set", Some((&one, &kind)));
    assert_eq!(stage.of_set(None, Some(&set)), ["one"]);
    assert_eq!(stage.of_set(Some(&set), Some(&next(&set))), ["one"]);
    assert_eq!(stage.of_set(Some(&set), None), ["one"]);
    assert!(stage.of_set(Some(&set), Some(&set)).is_empty(), "a resync");
    let going = set.with("/metadata/deletionTimestamp", "2026-01-01T00:00:00Z");
    assert_eq!(stage.of_set(None, Some(&going.unwrap())), ["one"]);
    let stranger = set
        .with("/metadata/ownerReferences/0/uid", "other")
        .unwrap();
    assert!(stage.of_set(None, Some(&stranger)).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_orphan_queues_the_deployments_that_want_it() {
    let server = ModelServer::new(TokioClock::new().env(1));
    let one = server.create(DEPLOYMENTS, &deployment("one", "web", "RollingUpdate"));
    server.create(DEPLOYMENTS, &deployment("two", "web", "RollingUpdate"));
    server.create(DEPLOYMENTS, &deployment("three", "db", "RollingUpdate"));
    let stage = Stage::of(&server).await;
    let orphan = child("ReplicaSet", "set", None);
    assert_eq!(stage.of_set(None, Some(&orphan)), ["one", "two"]);
    assert!(stage.of_set(Some(&orphan), Some(&next(&orphan))).is_empty());
    let moved = next(&orphan).with("/metadata/labels/app", "db").unwrap();
    assert_eq!(stage.of_set(Some(&orphan), Some(&moved)), ["three"]);
    assert!(stage.of_set(Some(&orphan), None).is_empty());
    let kind = apps_kind("Deployment", "deployments");
    let managed = child("ReplicaSet", "set", Some((&one, &kind)));
    let freed = next(&orphan).with("/metadata/labels/app", "db").unwrap();
    assert_eq!(stage.of_set(Some(&managed), Some(&freed)), ["one", "three"]);
}

#[tokio::test(start_paused = true)]
async fn the_last_pod_of_a_recreation_queues_it() {
    let (deployment_kind, set_kind) = (
        apps_kind("Deployment", "deployments"),
        apps_kind("ReplicaSet", "replicasets"),
    );
    for (strategy, remaining, expected) in [
        ("Recreate", None, &["web"][..]),
        ("Recreate", Some("first"), &[]),
        ("Recreate", Some("second"), &[]),
        ("Recreate", Some("stray"), &["web"]),
        ("RollingUpdate", None, &[]),
    ] {
        let server = ModelServer::new(TokioClock::new().env(1));
        let owner = server.create(DEPLOYMENTS, &deployment("web", "web", strategy));
        let owner = Some((&owner, &deployment_kind));
        let sets = [("first", owner), ("second", owner), ("stray", None)]
            .map(|(name, owner)| server.create(SETS, &child("ReplicaSet", name, owner)));
        let pod = child("Pod", "gone", Some((&sets[0], &set_kind)));
        for set in sets
            .iter()
            .filter(|set| Some(set.meta().name()) == remaining)
        {
            server.create(PODS, &child("Pod", "rest", Some((set, &set_kind))));
        }
        let stage = Stage::of(&server).await;
        let queued = stage.of_pod(Some(&pod), None);
        assert_eq!(queued, expected, "{strategy} with a pod of {remaining:?}");
        assert!(stage.of_pod(None, Some(&pod)).is_empty());
        assert!(stage.of_pod(Some(&pod), Some(&next(&pod))).is_empty());
    }
}

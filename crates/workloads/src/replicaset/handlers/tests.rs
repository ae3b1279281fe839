use windlass_cache::{InformerFactory, Obj};
use windlass_client::{RestClient, RestOptions};
use windlass_core::{Doc, doc};
use windlass_testing::{ModelServer, TokioClock};

use super::*;
use crate::owned::apps_kind;

const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

/// Handlers over a cache of sets.
struct Stage {
    handlers: Handlers,
    sets: Vec<Doc>,
    _factory: InformerFactory,
}

impl Stage {
    /// Sets `set0`, `set1` and so on, each with the value of the label `app` that it selects.
    async fn with(apps: &[&str]) -> Self {
        let server = ModelServer::new(TokioClock::new().env(1));
        let sets: Vec<Doc> = apps
            .iter()
            .enumerate()
            .map(|(at, app)| server.create(SETS, &set(at, app)))
            .collect();
        let client = RestClient::new(server.transport(), RestOptions::default());
        let factory = InformerFactory::on(client).sources().build();
        let kind = apps_kind("ReplicaSet", "replicasets");
        let informer = factory.dynamic(kind.gvr().clone());
        owned::index_owners(&informer, owned::label_selector);
        factory.start();
        factory.wait_for_sync().await.unwrap();
        let handlers = Handlers::new(&kind, owned::label_selector, &informer);
        Self {
            handlers,
            sets,
            _factory: factory,
        }
    }

    /// A pod with labels and, if given, the set that manages it.
    fn pod(&self, app: &str, owner: Option<usize>) -> Doc {
        let pod = pod(app);
        match owner {
            None => pod,
            Some(at) => {
                let gvk = self.handlers.kind.gvk();
                let reference = OwnerRef::controller_of(&self.sets[at], gvk);
                let references = vec![Doc::from(&reference)];
                pod.with("/metadata/ownerReferences", references).unwrap()
            }
        }
    }

    /// The names of the sets that a change of a pod queues, in order, each with its delay.
    fn delayed(&self, old: Option<&Doc>, new: Option<&Doc>) -> Vec<(String, Option<Duration>)> {
        let object = |doc: &Doc| Obj::new(doc.clone()).unwrap();
        let (old, new) = (old.map(object), new.map(object));
        let change = Change {
            old: old.as_ref(),
            new: new.as_ref(),
            is_initial: false,
        };
        let triggers = self.handlers.on_pod(&change).into_iter();
        let mut keys: Vec<_> = triggers
            .map(|trigger| (trigger.key().name().to_owned(), trigger.delay()))
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }

    fn queued(&self, old: Option<&Doc>, new: Option<&Doc>) -> Vec<String> {
        let keys = self.delayed(old, new).into_iter();
        keys.map(|(name, _)| name).collect()
    }
}

fn set(at: usize, app: &str) -> Doc {
    let selector = match app {
        "" => doc!({}),
        app => doc!({ "matchLabels": { "app": app } }),
    };
    doc!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": (format!("set{at}")) },
        "spec": { "selector": selector, "minReadySeconds": 30 }
    })
}

fn pod(app: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "pod", "namespace": "default", "uid": "pod-uid", "resourceVersion": "1",
            "labels": { "app": app }
        }
    })
}

/// The next version of a pod.
fn next(pod: &Doc) -> Doc {
    let version: u64 = pod.meta().resource_version().parse().unwrap();
    let version = (version + 1).to_string();
    pod.with("/metadata/resourceVersion", version).unwrap()
}

fn deleting(pod: &Doc) -> Doc {
    let pod = next(pod);
    pod.with("/metadata/deletionTimestamp", "2026-01-01T00:00:00Z")
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_change_of_a_managed_pod_queues_its_set_alone() {
    let stage = Stage::with(&["web"; 9]).await;
    let pod = stage.pod("web", Some(4));
    assert_eq!(stage.queued(None, Some(&pod)), ["set4"]);
    let failed = next(&pod).with("/status/phase", "Failed").unwrap();
    assert_eq!(stage.queued(Some(&pod), Some(&failed)), ["set4"]);
    assert_eq!(stage.queued(Some(&failed), None), ["set4"]);
    assert!(stage.queued(Some(&pod), Some(&pod)).is_empty(), "a resync");
}

#[tokio::test(start_paused = true)]
async fn labels_do_not_matter_while_somebody_manages_the_pod() {
    let stage = Stage::with(&["one", "two"]).await;
    let before = stage.pod("one", Some(0));
    let after = next(&before).with("/metadata/labels/app", "two").unwrap();
    assert_eq!(stage.queued(Some(&before), Some(&after)), ["set0"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_let_go_queues_its_former_set_and_those_that_want_it() {
    let stage = Stage::with(&["one", "two"]).await;
    for (app, owner, expected) in [
        ("two", 1, &["set1"][..]),
        ("two", 0, &["set0", "set1"]),
        ("none", 0, &["set0"]),
    ] {
        let before = stage.pod(app, Some(owner));
        let after = next(&stage.pod(app, None));
        assert_eq!(stage.queued(Some(&before), Some(&after)), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphan_queues_the_sets_that_want_it_when_it_comes_or_is_relabelled() {
    let stage = Stage::with(&["web", "web", "db", ""]).await;
    let orphan = stage.pod("web", None);
    assert_eq!(stage.queued(None, Some(&orphan)), ["set0", "set1"]);
    let touched = next(&orphan).with("/status/phase", "Running").unwrap();
    assert!(stage.queued(Some(&orphan), Some(&touched)).is_empty());
    let moved = next(&orphan).with("/metadata/labels/app", "db").unwrap();
    assert_eq!(stage.queued(Some(&orphan), Some(&moved)), ["set2"]);
    assert!(stage.queued(Some(&orphan), None).is_empty());
    let bare = orphan.without("/metadata/labels").unwrap();
    assert!(stage.queued(None, Some(&bare)).is_empty());
    let elsewhere = orphan.with("/metadata/namespace", "other").unwrap();
    assert!(stage.queued(None, Some(&elsewhere)).is_empty());
}

#[tokio::test(start_paused = true)]
async fn pods_of_other_kinds_and_of_former_lives_are_ignored() {
    let stage = Stage::with(&["web"]).await;
    let pod = stage.pod("web", Some(0));
    let changes = [
        ("/metadata/ownerReferences/0/kind", "StatefulSet"),
        ("/metadata/ownerReferences/0/apiVersion", "example.com/v1"),
        ("/metadata/ownerReferences/0/uid", "another-life"),
        ("/metadata/ownerReferences/0/name", "gone"),
    ];
    for (pointer, value) in changes {
        let foreign = pod.with(pointer, value).unwrap();
        assert!(stage.queued(None, Some(&foreign)).is_empty(), "{pointer}");
        assert!(stage.queued(Some(&foreign), None).is_empty(), "{pointer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_turns_ready_is_looked_at_again_when_it_is_available() {
    let stage = Stage::with(&["web"]).await;
    let before = stage.pod("web", Some(0));
    let ready = doc!([{ "type": "Ready", "status": "True" }]);
    let after = next(&before).with("/status/conditions", ready).unwrap();
    let half_minute = Some(Duration::from_secs(30));
    let expected = [("set0".to_owned(), None), ("set0".to_owned(), half_minute)];
    assert_eq!(stage.delayed(Some(&before), Some(&after)), expected);
    let later = next(&after);
    assert_eq!(stage.delayed(Some(&after), Some(&later)), expected[..1]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_queues_its_set_even_if_it_is_going_already() {
    let stage = Stage::with(&["web"]).await;
    let pod = stage.pod("web", Some(0));
    assert_eq!(stage.queued(None, Some(&pod)), ["set0"]);
    assert_eq!(stage.queued(None, Some(&deleting(&pod))), ["set0"]);
}

#[tokio::test(start_paused = true)]
async fn every_step_of_a_deletion_queues_the_set() {
    let stage = Stage::with(&["web"]).await;
    let pod = stage.pod("web", Some(0));
    let going = deleting(&pod);
    assert_eq!(stage.queued(Some(&pod), Some(&going)), ["set0"]);
    assert_eq!(stage.queued(Some(&going), Some(&next(&going))), ["set0"]);
    assert_eq!(stage.queued(Some(&next(&going)), None), ["set0"]);
    assert_eq!(stage.queued(Some(&pod), None), ["set0"]);
}

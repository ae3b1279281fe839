//! Adopting, releasing, creating and deleting the objects of an owner.

use std::{future::Future, sync::Arc, time::Duration};

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use windlass_cache::Obj;
use windlass_client::RestOptions;
use windlass_core::{Doc, Key, OwnerRef, Selector, doc};
use windlass_runtime::{Action, Context, Controller, Manager, ResourceKind, Result, Shutdown};
use windlass_testing::{Fault, Faults, ModelServer, TokioClock};
use windlass_workloads::{PodControl, PodControlError, RefManager};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

struct Stage {
    server: ModelServer,
    faults: Faults,
    set: Doc,
}

impl Stage {
    fn new() -> Self {
        let server = ModelServer::new(TokioClock::new().env(1));
        let set = server.create(
            SETS,
            &doc!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web" },
                "spec": {
                    "template": {
                        "metadata": { "labels": { "app": "web" }, "annotations": { "a": "b" } },
                        "spec": { "nodeName": "n1" }
                    }
                }
            }),
        );
        Self {
            server,
            faults: Faults::none(),
            set,
        }
    }

    /// Runs a function once, inside a reconcile.
    async fn inside<F, Fut, T>(&self, function: F) -> T
    where
        F: FnOnce(Context) -> Fut + Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let (give, take) = oneshot::channel();
        let once = Arc::new(Mutex::new(Some((function, give))));
        let reconcile = move |_: Key, cx: Context| {
            let once = once.lock().take();
            async move {
                if let Some((function, give)) = once {
                    let _ = give.send(function(cx).await);
                }
                Ok(Action::done())
            }
        };
        let shutdown = Shutdown::new();
        let manager = Manager::builder("test")
            .transport(
                self.server.transport().layer(&self.faults),
                RestOptions::default(),
            )
            .env(TokioClock::new().env(2))
            .shutdown(shutdown.clone())
            .build()
            .unwrap();
        manager.add(Controller::of_keys::<ReplicaSet>(reconcile).owns::<Pod>());
        let running = tokio::spawn(manager.run());
        let result = take.await.unwrap();
        shutdown.trigger();
        running.await.unwrap().unwrap();
        result
    }

    fn pod(&self, name: &str, app: &str, owner: Option<&str>) -> Doc {
        let pod = doc!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "labels": { "app": app } }
        });
        let pod = match owner {
            None => pod,
            Some(uid) => {
                let owner = doc!({
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid,
                    "controller": true
                });
                pod.with("/metadata/ownerReferences", vec![owner]).unwrap()
            }
        };
        self.server.create(PODS, &pod)
    }

    /// Claims all pods for an owner: the names of those that are claimed, and what went wrong.
    async fn claim(
        &self,
        owner: Doc,
        finalizers: &'static [&'static str],
    ) -> (Vec<String>, Vec<String>) {
        let pods = self
            .server
            .objects("pods")
            .into_iter()
            .map(|pod| Obj::<Pod>::new(pod).unwrap());
        let pods: Vec<_> = pods.collect();
        self.inside(move |cx| async move {
            let (sets, kind) = (ResourceKind::of::<ReplicaSet>(), ResourceKind::of::<Pod>());
            let selector: Selector = "app=web".parse().unwrap();
            let manager = RefManager::new(&cx, &owner, &sets, &kind, &selector);
            let claimed = manager
                .finalizers(finalizers.iter().copied())
                .claim(pods)
                .await;
            let names = claimed
                .objects
                .iter()
                .map(|pod| pod.name().to_owned())
                .collect();
            (
                names,
                claimed.errors.iter().map(ToString::to_string).collect(),
            )
        })
        .await
    }

    fn owner_uid(&self, pod: &str) -> String {
        let pod = self.server.find("pods", &format!("default/{pod}")).unwrap();
        pod.meta()
            .controller()
            .map_or_else(String::new, |owner| owner.uid.to_string())
    }

    fn uid(&self) -> String {
        self.set.meta().uid_str().to_owned()
    }

    fn events(&self) -> Vec<String> {
        let events = self.server.objects("events");
        let text = |event: &Doc| {
            let (kind, reason) = (event.str_at("/type"), event.str_at("/reason"));
            format!("{kind} {reason}: {}", event.str_at("/message"))
        };
        events.iter().map(text).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn orphans_that_match_are_adopted_and_children_that_do_not_are_released() {
    let stage = Stage::new();
    let uid = stage.uid();
    stage.pod("orphan", "web", None);
    stage.pod("stranger", "db", None);
    stage.pod("mine", "web", Some(&uid));
    stage.pod("grown-apart", "db", Some(&uid));
    stage.pod("theirs", "web", Some("other"));
    let (claimed, errors) = stage.claim(stage.set.clone(), &[]).await;
    assert_eq!(
        (claimed, errors),
        (vec!["mine".to_owned(), "orphan".to_owned()], Vec::new())
    );
    assert_eq!(stage.owner_uid("orphan"), uid);
    assert_eq!(stage.owner_uid("stranger"), "");
    assert_eq!(stage.owner_uid("grown-apart"), "");
    assert_eq!(stage.owner_uid("theirs"), "other");
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_being_deleted_keeps_its_own_and_adopts_nothing() {
    let stage = Stage::new();
    let uid = stage.uid();
    stage.pod("orphan", "web", None);
    stage.pod("mine", "web", Some(&uid));
    stage.pod("grown-apart", "db", Some(&uid));
    let owner = stage
        .set
        .with("/metadata/deletionTimestamp", "2026-01-01T00:00:00Z")
        .unwrap();
    let (claimed, errors) = stage.claim(owner, &[]).await;
    assert_eq!((claimed, errors), (vec!["mine".to_owned()], Vec::new()));
    assert_eq!(stage.owner_uid("orphan"), "");
    assert_eq!(stage.owner_uid("grown-apart"), uid);
}

#[tokio::test(start_paused = true)]
async fn orphans_that_go_or_live_elsewhere_are_not_adopted() {
    let stage = Stage::new();
    let going = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "going", "labels": { "app": "web" }, "finalizers": ["x/y"] }
    });
    stage.server.create(PODS, &going);
    stage.server.delete(&format!("{PODS}/going"));
    let elsewhere = going.with("/metadata/name", "elsewhere").unwrap();
    stage
        .server
        .create("/api/v1/namespaces/other/pods", &elsewhere);
    let (claimed, errors) = stage.claim(stage.set.clone(), &[]).await;
    assert_eq!((claimed, errors), (Vec::new(), Vec::new()));
    // An owner outside of namespaces takes them from anywhere.
    let owner = stage.set.without("/metadata/namespace").unwrap();
    let path = "/apis/apps/v1/replicasets";
    let owner = stage
        .server
        .create(path, &owner.with("/metadata/name", "wide").unwrap());
    let (claimed, errors) = stage.claim(owner, &[]).await;
    assert_eq!(
        (claimed, errors),
        (vec!["elsewhere".to_owned()], Vec::new())
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_the_server_no_longer_has_adopts_nothing_and_is_asked_for_once() {
    let stage = Stage::new();
    stage.pod("one", "web", None);
    stage.pod("two", "web", None);
    let owner = stage.set.with("/metadata/uid", "earlier-life").unwrap();
    let (claimed, errors) = stage.claim(owner, &[]).await;
    assert!(claimed.is_empty());
    assert_eq!(errors.len(), 2);
    assert!(
        errors[0].starts_with("can't adopt Pod default/one ("),
        "{}",
        errors[0]
    );
    let gets = stage
        .server
        .log()
        .into_iter()
        .filter(|it| it.uri == format!("{SETS}/web"));
    assert_eq!(gets.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_adoption_that_fails_does_not_keep_the_other_back() {
    let stage = Stage::new();
    stage.pod("one", "web", None);
    stage.pod("two", "web", None);
    stage.faults.set(
        |call| match call.is_write() && call.path.ends_with("/one") {
            true => Fault::Refuse(403, "Forbidden"),
            false => Fault::None,
        },
    );
    let (claimed, errors) = stage.claim(stage.set.clone(), &[]).await;
    assert_eq!((claimed, errors.len()), (vec!["two".to_owned()], 1));
}

#[tokio::test(start_paused = true)]
async fn finalizers_come_and_go_with_the_ownership() {
    let stage = Stage::new();
    stage.pod("orphan", "web", None);
    stage.claim(stage.set.clone(), &["x/y"]).await;
    let adopted = stage.server.find("pods", "default/orphan").unwrap();
    assert!(adopted.meta().has_finalizer("x/y"));
    let path = format!("{PODS}/orphan");
    stage
        .server
        .update(&path, &adopted.with("/metadata/labels/app", "db").unwrap());
    stage.claim(stage.set.clone(), &["x/y"]).await;
    let released = stage.server.find("pods", "default/orphan").unwrap();
    assert!(!released.meta().has_finalizer("x/y"));
    assert_eq!(stage.owner_uid("orphan"), "");
}

fn reference(set: &Doc) -> OwnerRef {
    OwnerRef::controller_of(set, ResourceKind::of::<ReplicaSet>().gvk())
}

async fn create(stage: &Stage) -> Result<Doc, PodControlError> {
    let set = stage.set.clone();
    stage
        .inside(move |cx| async move {
            PodControl::new(&cx)
                .create(&set, set.at("/spec/template"), &reference(&set))
                .await
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_made_from_its_template_and_told_of() {
    let stage = Stage::new();
    let pod = create(&stage).await.unwrap();
    assert!(pod.meta().name().starts_with("web-") && pod.meta().name().len() == 9);
    assert_eq!(pod.meta().label("app"), Some("web"));
    assert_eq!(pod.meta().annotation("a"), Some("b"));
    assert_eq!(pod.str_at("/spec/nodeName"), "n1");
    assert_eq!(stage.owner_uid(pod.meta().name()), stage.uid());
    let told = format!(
        "Normal SuccessfulCreate: Created pod: {}",
        pod.meta().name()
    );
    assert_eq!(stage.events(), [told]);
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_is_lost_makes_one_pod() {
    let stage = Stage::new();
    let mut is_first = true;
    stage.faults.set(move |call| {
        let is_create = call.method == http::Method::POST && call.path.ends_with("/pods");
        match is_create && std::mem::take(&mut is_first) {
            true => Fault::LostAnswer,
            false => Fault::None,
        }
    });
    let pod = create(&stage).await.unwrap();
    assert_eq!(stage.server.objects("pods"), [pod]);
}

#[tokio::test(start_paused = true)]
async fn a_create_that_is_refused_is_told_of() {
    let stage = Stage::new();
    stage.faults.set(|call| {
        match call.method == http::Method::POST && call.path.ends_with("/pods") {
            true => Fault::Refuse(403, "Forbidden"),
            false => Fault::None,
        }
    });
    assert!(matches!(
        create(&stage).await,
        Err(PodControlError::Create(_))
    ));
    assert!(stage.events()[0].starts_with("Warning FailedCreate: Error creating: "));
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_labels_or_owner_is_not_made() {
    let stage = Stage::new();
    let set = stage.set.clone();
    let errors = stage
        .inside(move |cx| async move {
            let control = PodControl::new(&cx);
            let template = set.at("/spec/template");
            let bare = template.without("/metadata/labels").unwrap();
            let plain = OwnerRef {
                controller: false,
                ..reference(&set)
            };
            [
                control
                    .create(&set, &bare, &reference(&set))
                    .await
                    .unwrap_err()
                    .to_string(),
                control
                    .create(&set, template, &plain)
                    .await
                    .unwrap_err()
                    .to_string(),
            ]
        })
        .await;
    assert_eq!(
        errors,
        [
            "unable to create pods, no labels",
            "controllerRef has no Controller set to true"
        ]
    );
    assert!(stage.server.objects("pods").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_means_one_pod_and_not_its_successor() {
    let stage = Stage::new();
    let pod = stage.pod("one", "web", None);
    let set = stage.set.clone();
    let outcomes = stage
        .inside(move |cx| async move {
            let control = PodControl::new(&cx);
            let earlier = pod.with("/metadata/uid", "earlier-life").unwrap();
            let first = control.delete(&set, &earlier).await;
            let second = control.delete(&set, &pod).await;
            let third = control.delete(&set, &pod).await;
            (
                first.is_err(),
                second.is_ok(),
                matches!(third, Err(PodControlError::NotFound(_))),
            )
        })
        .await;
    assert_eq!(outcomes, (true, true, true));
    let events = stage.events();
    assert_eq!(events.len(), 2);
    assert!(
        events
            .iter()
            .any(|event| event == "Normal SuccessfulDelete: Deleted pod: one")
    );
    assert!(
        events
            .iter()
            .any(|event| event.starts_with("Warning FailedDelete: Error deleting: "))
    );
}

#[tokio::test(start_paused = true)]
async fn a_patch_is_noted_with_its_revision_and_one_that_fails_without() {
    let stage = Stage::new();
    let pod = stage.pod("a", "web", None);
    let missing = stage.pod("b", "web", None);
    stage.server.delete(&format!("{PODS}/b"));
    let shutdown = Shutdown::new();
    let manager = Manager::builder("test")
        .transport(stage.server.transport(), RestOptions::default())
        .env(TokioClock::new().env(2))
        .shutdown(shutdown.clone())
        .build()
        .unwrap();
    let results = Arc::new(Mutex::new(Vec::new()));
    let noted = results.clone();
    let reconcile = move |_: Key, cx: Context| {
        let (pod, missing, noted) = (pod.clone(), missing.clone(), noted.clone());
        async move {
            let pods = PodControl::new(&cx);
            let patch = doc!({ "metadata": { "labels": { "seen": "yes" } } });
            let outcome = pods.patch(&pod, patch.clone()).await;
            noted.lock().push(outcome);
            let outcome = pods.patch(&missing, patch).await;
            noted.lock().push(outcome);
            Ok(Action::done())
        }
    };
    manager.add(Controller::of_keys::<ReplicaSet>(reconcile).owns::<Pod>());
    let inspect = manager.handle();
    let running = tokio::spawn(manager.run());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let why = inspect.why(&Key::new("default", "web"));
    shutdown.trigger();
    running.await.unwrap().unwrap();

    let results = results.lock();
    let [Ok(patched), Err(error)] = &results[..] else {
        panic!("one of the two patches fails: {results:?}");
    };
    assert_eq!(patched.meta().label("seen"), Some("yes"));
    assert!(error.is_not_found());
    let revision = patched.meta().resource_version();
    assert!(
        why.contains(&format!("patch {PODS}/a: 200 at {revision}\n")),
        "{why}"
    );
    assert!(why.contains(&format!("patch {PODS}/b: 404\n")), "{why}");
}

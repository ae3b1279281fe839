//! Both sample controllers, with the runtime and by hand, seen by the users of their Foos: on the
//! embedded server on virtual time, and on a real kube-apiserver. Nobody but the test says there
//! how many replicas of a Deployment are available.

#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests as well"
)]
#![allow(
    clippy::disallowed_names,
    reason = "Foo is the kind that these controllers are about"
)]

#[allow(
    dead_code,
    reason = "a test does not call the main function of a program"
)]
#[path = "../examples/sample_controller_by_hand.rs"]
mod by_hand;
#[allow(
    dead_code,
    reason = "a test does not call the main function of a program"
)]
#[path = "../examples/sample_controller.rs"]
mod with_runtime;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use windlass::client::{Config, DeleteOptions, RestClient, RestOptions, WriteOptions};
use windlass::core::Gvr;
use windlass::prelude::*;
use windlass::runtime::Shutdown;
use windlass::testing::{Cluster, Faults, Running};
use windlass_envtest::real_server;

const FOOS: Gvr = Gvr::constant("samplecontroller.k8s.io", "v1alpha1", "foos");
const DEPLOYMENTS: Gvr = Gvr::constant("apps", "v1", "deployments");
const EVENTS: Gvr = Gvr::constant("", "v1", "events");

/// How long a condition may take on a server whose clock is real.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
enum Program {
    WithRuntime,
    ByHand,
}

/// A program that runs beside a test.
enum Started {
    Manager(Running),
    Task(Shutdown, tokio::task::JoinHandle<Result<()>>),
}

impl Program {
    fn start(self, cluster: &Cluster, calls: &Faults) -> Started {
        let transport = cluster.transport().layer(calls);
        match self {
            Self::WithRuntime => {
                let manager = cluster.manager_on("sample-controller", transport);
                let manager = manager.build().unwrap();
                manager.add(with_runtime::controller());
                Started::Manager(cluster.run_manager(manager))
            }
            Self::ByHand => {
                let options = RestOptions {
                    rate_limit: None,
                    ..RestOptions::default()
                };
                let client = RestClient::new(transport, options);
                let (stop, env) = (Shutdown::new(), cluster.env().clone());
                let stopped = stop.clone();
                let run = async move { by_hand::run(client, &stopped, env).await };
                Started::Task(stop, tokio::spawn(run))
            }
        }
    }
}

impl Started {
    async fn stop(self) {
        match self {
            Self::Manager(running) => running.stop().await,
            Self::Task(stop, task) => {
                stop.trigger();
                task.await.unwrap().unwrap();
            }
        }
    }
}

/// A namespace of a cluster in which a sample controller runs.
struct World {
    cluster: Cluster,
    namespace: String,
    /// What the controller asks of the server.
    calls: Faults,
    /// How many Foos were made for `settle`.
    last: AtomicUsize,
}

impl World {
    async fn new(cluster: Cluster, namespace: String, calls: Faults) -> Self {
        let object = doc!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": &*namespace }
        });
        cluster.create_doc(&object).await;
        Self {
            cluster,
            namespace,
            calls,
            last: AtomicUsize::new(0),
        }
    }

    async fn foo(&self, name: &str, spec: Doc) -> Doc {
        self.cluster.create_doc(&self.unmade(name, spec)).await
    }

    fn unmade(&self, name: &str, spec: Doc) -> Doc {
        doc!({
            "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
            "metadata": { "name": name, "namespace": &*self.namespace },
            "spec": spec
        })
    }

    async fn find(&self, resource: &Gvr, name: &str) -> Option<Doc> {
        let key = format!("{}/{name}", self.namespace);
        self.cluster.find(resource, &key).await
    }

    async fn deployment(&self, name: &str) -> Doc {
        self.until(async |world| world.find(&DEPLOYMENTS, name).await.is_some())
            .await;
        self.find(&DEPLOYMENTS, name).await.unwrap()
    }

    async fn until(&self, condition: impl AsyncFn(&Self) -> bool) {
        self.cluster.until(async |_| condition(self).await).await;
    }

    /// What a Foo says about its replicas; nothing if it says nothing.
    async fn available(&self, name: &str) -> Option<i64> {
        let foo = self.find(&FOOS, name).await?;
        foo.at("/status/availableReplicas").as_i64()
    }

    async fn until_available(&self, name: &str, count: i64) {
        self.until(async |world| world.available(name).await == Some(count))
            .await;
    }

    async fn has_event(&self, about: &Doc, kind: &str, reason: &str, message: &str) -> bool {
        let events = self.cluster.list_docs(&EVENTS, &self.namespace, "").await;
        events.iter().any(|event| {
            event.str_at("/involvedObject/uid") == about.meta().uid_str()
                && event.str_at("/type") == kind
                && event.str_at("/reason") == reason
                && event.str_at("/message") == message
        })
    }

    /// Waits until the controller has certainly looked at what was there before: until it has
    /// served a Foo that came last. Two of its workers may be at it.
    async fn settle(&self) {
        for _ in 0..2 {
            let number = self.last.fetch_add(1, Ordering::Relaxed);
            let name = format!("last-{number}");
            let spec = doc!({ "deploymentName": &*name, "replicas": 1 });
            self.foo(&name, spec).await;
            self.until_available(&name, 0).await;
        }
    }

    /// What the controller wrote to this namespace, events aside.
    fn writes(&self) -> Vec<String> {
        let part = format!("/namespaces/{}/", self.namespace);
        let seen = self.calls.seen().into_iter();
        seen.filter(|seen| seen.call.is_write() && seen.call.path.contains(&part))
            .filter(|seen| !seen.call.path.ends_with("/events"))
            .map(|seen| format!("{} {}", seen.call.method, seen.call.path))
            .collect()
    }
}

fn wants(name: &str, replicas: i64) -> Doc {
    doc!({ "deploymentName": name, "replicas": replicas })
}

async fn foo_gets_a_deployment_and_says_how_much_of_it_is_available(world: &World) {
    let foo = world.foo("a", wants("web", 2)).await;
    let made = world.deployment("web").await;
    assert!(made.meta().is_controlled_by(&foo.meta().uid()));
    assert_eq!(made.at("/spec/replicas").as_i64(), Some(2));
    let labels = doc!({ "app": "nginx", "controller": "a" });
    assert_eq!(*made.at("/spec/selector/matchLabels"), labels);
    assert_eq!(*made.at("/spec/template/metadata/labels"), labels);
    let container = made.at("/spec/template/spec/containers/0");
    assert_eq!(container.str_at("/image"), "nginx:latest");
    world.until_available("a", 0).await;

    let counts = doc!({
        "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2
    });
    world.cluster.patch_status(&made, counts).await;
    world.until_available("a", 2).await;
    world
        .until(async |world| {
            let message = "Foo synced successfully";
            world.has_event(&foo, "Normal", "Synced", message).await
        })
        .await;
}

async fn deployment_has_the_replicas_that_its_foo_wants(world: &World) {
    let foo = world.foo("a", wants("web", 1)).await;
    let made = world.deployment("web").await;
    world.until_available("a", 0).await;
    let has = async |replicas: i64| {
        world
            .until(async |world| {
                let now = world.find(&DEPLOYMENTS, "web").await.unwrap();
                now.at("/spec/replicas").as_i64() == Some(replicas)
            })
            .await;
    };
    let three = doc!({ "spec": { "replicas": 3 } });
    world.cluster.patch(&foo, three).await;
    has(3).await;
    // Somebody else's wish does not last.
    let five = doc!({ "spec": { "replicas": 5 } });
    world.cluster.patch(&made, five).await;
    has(3).await;
    let now = world.find(&DEPLOYMENTS, "web").await.unwrap();
    assert_eq!(now.meta().uid(), made.meta().uid(), "it was not made again");
    let counts = doc!({ "replicas": 3, "readyReplicas": 3, "availableReplicas": 3 });
    world.cluster.patch_status(&made, counts).await;
    world.until_available("a", 3).await;
}

async fn deployment_of_somebody_else_is_left_alone(world: &World) {
    let labels = doc!({ "app": "theirs" });
    let theirs = doc!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "theirs", "namespace": &*world.namespace },
        "spec": {
            "replicas": 4,
            "selector": { "matchLabels": &labels },
            "template": {
                "metadata": { "labels": &labels },
                "spec": { "containers": [{ "name": "theirs", "image": "nginx" }] }
            }
        }
    });
    let theirs = world.cluster.create_doc(&theirs).await;
    // A controller that has not heard of the Deployment yet may think that there is none.
    world.settle().await;
    let before = world.writes();
    let foo = world.foo("a", wants("theirs", 1)).await;
    world
        .until(async |world| {
            let message = "Resource \"theirs\" already exists and is not managed by Foo";
            let reason = "ErrResourceExists";
            world.has_event(&foo, "Warning", reason, message).await
        })
        .await;
    world.settle().await;
    let now = world.find(&DEPLOYMENTS, "theirs").await.unwrap();
    assert_eq!(now, theirs);
    assert_eq!(world.available("a").await, None);
    let about_it = |write: &&String| write.ends_with("/theirs") || write.contains("/foos/a");
    let writes = world.writes();
    let writes: Vec<_> = writes[before.len()..].iter().filter(about_it).collect();
    assert!(writes.is_empty(), "{writes:?}");
}

async fn foo_without_a_name_for_its_deployment_waits_for_one(world: &World) {
    let empty = world.foo("empty", wants("", 1)).await;
    let absent = world.foo("absent", doc!({ "replicas": 1 })).await;
    world.settle().await;
    for name in ["empty", "absent"] {
        assert_eq!(world.available(name).await, None, "{name}");
    }
    let about_it = |write: &&String| write.contains("/empty") || write.contains("/absent");
    let writes = world.writes();
    let writes: Vec<_> = writes.iter().filter(about_it).collect();
    assert!(writes.is_empty(), "{writes:?}");
    for (foo, name) in [(empty, "one"), (absent, "two")] {
        let patch = doc!({ "spec": { "deploymentName": name } });
        world.cluster.patch(&foo, patch).await;
        let made = world.deployment(name).await;
        assert!(made.meta().is_controlled_by(&foo.meta().uid()));
    }
}

async fn foo_that_is_gone_is_forgotten(world: &World) {
    let foo = world.foo("a", wants("web", 1)).await;
    let made = world.deployment("web").await;
    world.until_available("a", 0).await;
    let api = world.cluster.api_of(&foo).await;
    let options = DeleteOptions::uid(foo.meta().uid_str());
    api.delete("a", &options).await.unwrap();
    // Its Deployment is the garbage collector's; changes of it lead to a Foo that is no more.
    let counts = doc!({ "replicas": 1, "readyReplicas": 1, "availableReplicas": 1 });
    let before = world.cluster.patch_status(&made, counts).await;
    world.settle().await;
    if let Some(now) = world.find(&DEPLOYMENTS, "web").await {
        assert_eq!(now, before);
    }
    assert_eq!(world.find(&FOOS, "a").await, None);
}

async fn deleted_deployment_is_made_again(world: &World) {
    let foo = world.foo("a", wants("web", 2)).await;
    let first = world.deployment("web").await;
    world.until_available("a", 0).await;
    let api = world.cluster.api_of(&first).await;
    let options = DeleteOptions::uid(first.meta().uid_str());
    api.delete("web", &options).await.unwrap();
    world
        .until(async |world| {
            let now = world.find(&DEPLOYMENTS, "web").await;
            now.is_some_and(|now| now.meta().uid() != first.meta().uid())
        })
        .await;
    let second = world.find(&DEPLOYMENTS, "web").await.unwrap();
    assert!(second.meta().is_controlled_by(&foo.meta().uid()));
    assert_eq!(second.at("/spec/replicas").as_i64(), Some(2));
}

async fn foo_wants_one_to_ten_replicas(world: &World) {
    let api = world.cluster.api(&FOOS, &world.namespace);
    let options = WriteOptions::default();
    let refusals = [
        (
            0,
            "0: spec.replicas in body should be greater than or equal to 1",
        ),
        (
            11,
            "11: spec.replicas in body should be less than or equal to 10",
        ),
    ];
    for (replicas, why) in refusals {
        let foo = world.unmade("a", wants("web", replicas));
        let error = api.create(&foo, &options).await.unwrap_err();
        let message = format!(
            "Foo.samplecontroller.k8s.io \"a\" is invalid: spec.replicas: Invalid value: {why}"
        );
        assert_eq!(error.status().unwrap().message, message);
        assert_eq!(error.status().unwrap().code, 422);
    }
    for replicas in [1, 10] {
        let name = format!("with-{replicas}");
        world.foo(&name, wants(&name, replicas)).await;
        let made = world.deployment(&name).await;
        assert_eq!(made.at("/spec/replicas").as_i64(), Some(replicas));
    }
}

macro_rules! cases {
    ($($case:ident)*) => {
        mod embedded {
            $(mod $case {
                use crate::{Program, on_the_embedded_server};

                #[tokio::test(start_paused = true)]
                async fn with_runtime() {
                    on_the_embedded_server(Program::WithRuntime, crate::$case).await;
                }

                #[tokio::test(start_paused = true)]
                async fn by_hand() {
                    on_the_embedded_server(Program::ByHand, crate::$case).await;
                }
            })*
        }

        async fn all_cases(cluster: &Cluster, calls: &Faults, program: &str) {
            $(
                let namespace = format!("{program}-{}", stringify!($case).replace('_', "-"));
                let namespace = namespace[..namespace.len().min(63)].trim_end_matches('-');
                let namespace = namespace.to_owned();
                let world = World::new(cluster.clone(), namespace, calls.clone()).await;
                $case(&world).await;
            )*
        }
    };
}

cases! {
    deleted_deployment_is_made_again
    deployment_has_the_replicas_that_its_foo_wants
    deployment_of_somebody_else_is_left_alone
    foo_gets_a_deployment_and_says_how_much_of_it_is_available
    foo_that_is_gone_is_forgotten
    foo_wants_one_to_ten_replicas
    foo_without_a_name_for_its_deployment_waits_for_one
}

async fn on_the_embedded_server(program: Program, case: impl AsyncFn(&World)) {
    let cluster = Cluster::start().await;
    cluster.define(with_runtime::FOOS).await;
    let calls = Faults::none();
    let started = program.start(&cluster, &calls);
    let world = World::new(cluster, "foos".to_owned(), calls).await;
    case(&world).await;
    started.stop().await;
}

#[tokio::test]
async fn every_case_holds_on_the_real_server() {
    let Some(server) = real_server() else { return };
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let cluster = Cluster::builder().existing(config).patience(PATIENCE);
    let cluster = cluster.start().await;
    cluster.define(with_runtime::FOOS).await;
    for (program, name) in [(Program::WithRuntime, "runtime"), (Program::ByHand, "hand")] {
        let calls = Faults::none();
        let started = program.start(&cluster, &calls);
        all_cases(&cluster, &calls, name).await;
        started.stop().await;
    }
}

/// The words for keys that failed and keys that were put off, in the metrics of the runtime.
const TROUBLE: [&str; 2] = [
    "controller_runtime_reconcile_errors_total{controller=\"sample-controller\"}",
    "workqueue_retries_total{name=\"sample-controller\"}",
];

#[tokio::test(start_paused = true)]
async fn absent_foo_and_absent_name_are_no_trouble() {
    let cluster = Cluster::start().await;
    cluster.define(with_runtime::FOOS).await;
    let calls = Faults::none();
    let started = Program::WithRuntime.start(&cluster, &calls);
    let Started::Manager(running) = &started else {
        unreachable!("it is run by a manager");
    };
    let world = World::new(cluster, "foos".to_owned(), calls).await;
    foo_that_is_gone_is_forgotten(&world).await;
    foo_without_a_name_for_its_deployment_waits_for_one(&world).await;
    let metrics = running.metrics();
    for name in TROUBLE {
        let value = metrics.lines().find_map(|line| line.strip_prefix(name));
        assert!(value.is_none_or(|it| it.trim() == "0"), "{name}: {value:?}");
    }
    started.stop().await;
}

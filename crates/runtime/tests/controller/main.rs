//! Controllers on a model server, on virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    core::v1::{ConfigMap, Node, Pod},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, advance, sleep};
use windlass_cache::Obj;
use windlass_client::{RestOptions, WriteOptions};
use windlass_core::{Doc, Key, Str, doc};
use windlass_queue::ItemExponential;
use windlass_runtime::{
    Action, Context, Controller, Error, EventType, Manager, ResourceKind, Result, RunError,
    Shutdown, Trigger, filters,
};
use windlass_testing::{Fault, Faults, ModelServer, TokioClock};

mod own_writes;

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

/// A server, and the manager of one test.
struct Stage {
    server: ModelServer,
    faults: Faults,
    shutdown: Shutdown,
}

impl Stage {
    fn new() -> Self {
        let server = ModelServer::new(TokioClock::new().env(1));
        Self {
            server,
            faults: Faults::none(),
            shutdown: Shutdown::new(),
        }
    }

    fn manager(&self) -> Manager {
        let transport = self.server.transport().layer(&self.faults);
        Manager::builder("test")
            .transport(transport, RestOptions::default())
            .env(TokioClock::new().env(2))
            .shutdown(self.shutdown.clone())
            .build()
            .unwrap()
    }

    /// Runs one controller beside the test.
    fn run(&self, controller: Controller) -> tokio::task::JoinHandle<Result<(), RunError>> {
        let manager = self.manager();
        manager.add(controller);
        tokio::spawn(manager.run())
    }
}

fn pod(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": {} })
}

fn config_map(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } })
}

fn owned_pod(name: &str, owner: &Doc) -> Doc {
    let reference = doc!({
        "apiVersion": owner.str_at("/apiVersion"),
        "kind": owner.str_at("/kind"),
        "name": owner.meta().name(),
        "uid": owner.meta().uid_str(),
        "controller": true
    });
    pod(name)
        .with("/metadata/ownerReferences", vec![reference])
        .unwrap()
}

/// Lets everything that is ready run, without waiting for a timer of any length.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

/// The keys that were reconciled, in order.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    fn note(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    fn by_key(
        &self,
    ) -> impl Fn(Key, Context) -> std::future::Ready<Result<Action>> + Send + Sync + 'static {
        let seen = self.clone();
        move |key, _| {
            seen.note(key.to_string());
            std::future::ready(Ok(Action::done()))
        }
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_reconciled_when_added_changed_and_deleted() {
    let (stage, seen) = (Stage::new(), Seen::default());
    stage.server.create(PODS, &pod("early"));
    let running = stage.run(Controller::of_keys::<Pod>(seen.by_key()));
    settle().await;
    assert_eq!(seen.take(), ["default/early"]);

    let late = stage.server.create(PODS, &pod("late"));
    settle().await;
    assert_eq!(seen.take(), ["default/late"]);

    stage.server.update(
        &format!("{PODS}/late"),
        &late.with("/spec/nodeName", "n1").unwrap(),
    );
    settle().await;
    assert_eq!(seen.take(), ["default/late"]);

    stage.server.delete(&format!("{PODS}/late"));
    settle().await;
    assert_eq!(seen.take(), ["default/late"]);

    stage.shutdown.trigger();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_object_form_gets_the_object_and_skips_one_that_is_gone() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noted = seen.clone();
    let reconcile = move |pod: Obj<Pod>, cx: Context| {
        let noted = noted.clone();
        async move {
            assert_eq!(*cx.key(), pod.key());
            let node = pod.decode()?.spec.and_then(|spec| spec.node_name);
            noted.note(format!("{} on {}", pod.name(), node.unwrap_or_default()));
            Ok(Action::done())
        }
    };
    let _running = stage.run(Controller::of::<Pod>(reconcile));
    settle().await;
    stage
        .server
        .create(PODS, &pod("web").with("/spec/nodeName", "n1").unwrap());
    settle().await;
    stage.server.delete(&format!("{PODS}/web"));
    settle().await;
    assert_eq!(seen.take(), ["web on n1"]);
}

#[tokio::test(start_paused = true)]
async fn owners_of_the_right_group_and_kind_are_reconciled() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let _running = stage.run(Controller::of_keys::<ReplicaSet>(seen.by_key()).owns::<Pod>());
    settle().await;
    let owner = |api_version: &str, kind: &str, name: &str| doc!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name, "uid": name } });
    let cases = [
        (
            "same",
            owner("apps/v1", "ReplicaSet", "a"),
            vec!["default/a"],
        ),
        (
            "older-version",
            owner("apps/v1beta1", "ReplicaSet", "b"),
            vec!["default/b"],
        ),
        (
            "other-group",
            owner("extensions/v1", "ReplicaSet", "c"),
            vec![],
        ),
        ("other-kind", owner("apps/v1", "DaemonSet", "d"), vec![]),
    ];
    for (name, owner, keys) in cases {
        stage.server.create(PODS, &owned_pod(name, &owner));
        settle().await;
        assert_eq!(seen.take(), keys, "{name}");
    }
    stage.server.create(PODS, &pod("orphan"));
    settle().await;
    assert_eq!(seen.take(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_change_of_owner_reconciles_both_and_a_deletion_the_last() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let owner = |name: &str| doc!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": name, "uid": name } });
    stage.server.create(PODS, &owned_pod("web", &owner("a")));
    let _running = stage.run(Controller::of_keys::<ReplicaSet>(seen.by_key()).owns::<Pod>());
    settle().await;
    assert_eq!(seen.take(), ["default/a"]);

    let path = format!("{PODS}/web");
    stage.server.update(&path, &owned_pod("web", &owner("b")));
    settle().await;
    let mut keys = seen.take();
    keys.sort();
    assert_eq!(keys, ["default/a", "default/b"]);

    stage.server.update(
        &path,
        &owned_pod("web", &owner("b"))
            .with("/spec/nodeName", "n1")
            .unwrap(),
    );
    settle().await;
    assert_eq!(seen.take(), ["default/b"]);
    stage.server.delete(&path);
    settle().await;
    assert_eq!(seen.take(), ["default/b"]);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_owner_has_a_key_without_namespace() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let node =
        doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1", "uid": "u" } });
    let _running = stage.run(Controller::of_keys::<Node>(seen.by_key()).owns::<Pod>());
    settle().await;
    stage.server.create(PODS, &owned_pod("mirror", &node));
    settle().await;
    assert_eq!(seen.take(), ["n1"]);
}

#[tokio::test(start_paused = true)]
async fn a_mapper_is_asked_about_the_old_and_the_new_state() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let by_node = |pod: &Obj<Pod>| match pod.doc().str_at("/spec/nodeName") {
        "" => Vec::new(),
        node => vec![Key::cluster(node), Key::cluster(node)],
    };
    let _running = stage.run(Controller::of_keys::<Node>(seen.by_key()).watches::<Pod>(by_node));
    settle().await;
    let on = |node: &str| pod("web").with("/spec/nodeName", node).unwrap();
    stage.server.create(PODS, &on("n1"));
    settle().await;
    assert_eq!(seen.take(), ["n1"]);
    stage.server.update(&format!("{PODS}/web"), &on("n2"));
    settle().await;
    let mut keys = seen.take();
    keys.sort();
    assert_eq!(keys, ["n1", "n2"]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_learned_of_later_is_reacted_to_from_then_on() {
    let stage = Stage::new();
    let seen = Seen::default();
    let (noted, is_known) = (seen.clone(), Arc::new(AtomicU32::new(0)));
    let reconcile = move |key: Key, cx: Context| {
        let (seen, is_known) = (noted.clone(), is_known.clone());
        async move {
            seen.note(key.to_string());
            if is_known.fetch_add(1, SeqCst) == 0 {
                let gvr = ResourceKind::of::<ConfigMap>().gvr().clone();
                let maps = cx.factory().dynamic(gvr);
                cx.react_to(&maps, |change| {
                    let gone = change.old.filter(|_| change.new.is_none());
                    gone.map(|_| Trigger::now(Key::new("default", "a")))
                        .into_iter()
                        .collect()
                })?;
                cx.factory().start();
                maps.wait_for_sync().await?;
            }
            Ok(Action::done())
        }
    };
    let _running = stage.run(Controller::of_keys::<Pod>(reconcile));
    stage.server.create(MAPS, &config_map("m"));
    stage.server.create(PODS, &pod("a"));
    settle().await;
    assert_eq!(seen.take(), ["default/a"]);
    stage.server.create(MAPS, &config_map("n"));
    settle().await;
    assert_eq!(seen.take(), Vec::<String>::new());
    stage.server.delete(&format!("{MAPS}/m"));
    settle().await;
    assert_eq!(seen.take(), ["default/a"]);
}

#[tokio::test(start_paused = true)]
async fn filtered_changes_do_not_reconcile() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let controller = Controller::of_keys::<Pod>(seen.by_key()).filter(filters::generation_changed);
    let _running = stage.run(controller);
    settle().await;
    let web = stage.server.create(PODS, &pod("web"));
    settle().await;
    assert_eq!(seen.take(), ["default/web"]);
    let path = format!("{PODS}/web");
    let labelled = web.with("/metadata/labels", doc!({ "a": "b" })).unwrap();
    let labelled = stage.server.update(&path, &labelled);
    settle().await;
    assert!(seen.take().is_empty());
    stage
        .server
        .update(&path, &labelled.with("/spec/nodeName", "n1").unwrap());
    settle().await;
    assert_eq!(seen.take(), ["default/web"]);
}

/// When a key that always fails is tried, in milliseconds.
async fn attempts(
    stage: &Stage,
    failure: fn() -> Result<Action>,
    tune: fn(Controller) -> Controller,
) -> Vec<u128> {
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = times.clone();
    let controller = Controller::of_keys::<Pod>(move |_: Key, _: Context| {
        noted.lock().push(Instant::now());
        std::future::ready(failure())
    });
    stage.server.create(PODS, &pod("web"));
    let start = Instant::now();
    let running = stage.run(tune(controller));
    sleep(Duration::from_secs(60)).await;
    stage.shutdown.trigger();
    running.await.unwrap().unwrap();
    let times = times.lock();
    times
        .iter()
        .map(|time| (*time - start).as_millis())
        .collect()
}

fn milliseconds(controller: Controller) -> Controller {
    let (base, max) = (Duration::from_millis(10), Duration::from_secs(1000));
    controller.rate_limiter(ItemExponential::new(base, max))
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_is_tried_once_and_five_times_more() {
    let stage = Stage::new();
    let times = attempts(
        &stage,
        || Err(Error::msg("no")),
        |it| milliseconds(it).max_retries(5),
    )
    .await;
    assert_eq!(times.len(), 6);
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits, [10, 20, 40, 80, 160]);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_not_tried_again() {
    let stage = Stage::new();
    let terminal = || Err(Error::msg("no").terminal().context("wrapped"));
    assert_eq!(attempts(&stage, terminal, |it| it).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_with_a_delay_of_its_own_is_tried_after_that() {
    let stage = Stage::new();
    let later = || Err(Error::msg("no").after(Duration::from_secs(25)));
    assert_eq!(attempts(&stage, later, |it| it).await, [0, 25_000, 50_000]);
}

#[tokio::test(start_paused = true)]
async fn requeue_after_forgets_the_failures() {
    let (stage, calls) = (Stage::new(), Arc::new(AtomicUsize::new(0)));
    let times = Arc::new(Mutex::new(Vec::new()));
    let (counted, noted) = (calls.clone(), times.clone());
    let controller = Controller::of_keys::<Pod>(move |_: Key, _: Context| {
        noted.lock().push(Instant::now());
        std::future::ready(match counted.fetch_add(1, SeqCst) {
            0 | 1 | 3 => Err(Error::msg("no")),
            2 => Ok(Action::requeue_after(Duration::from_secs(1))),
            _ => Ok(Action::done()),
        })
    });
    stage.server.create(PODS, &pod("web"));
    let _running = stage.run(milliseconds(controller));
    sleep(Duration::from_secs(10)).await;
    let times = times.lock();
    let waits: Vec<_> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_millis())
        .collect();
    assert_eq!(waits, [10, 20, 1000, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_error_with_back_off() {
    let (stage, calls) = (Stage::new(), Arc::new(AtomicU32::new(0)));
    let counted = calls.clone();
    let manager = stage.manager();
    let controller = Controller::of_keys::<Pod>(move |_: Key, _: Context| {
        assert!(counted.fetch_add(1, SeqCst) > 0, "first call");
        std::future::ready(Ok(Action::done()))
    });
    manager.add(controller);
    stage.server.create(PODS, &pod("web"));
    let inspect = manager.handle();
    let _running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(calls.load(SeqCst), 2);
    let text = inspect.metrics_text();
    assert!(
        text.contains("controller_runtime_reconcile_panics_total{controller=\"pod\"} 1"),
        "{text}"
    );
    assert!(
        text.contains(
            "controller_runtime_reconcile_total{controller=\"pod\",result=\"success\"} 1"
        )
    );
    assert!(
        text.contains("controller_runtime_reconcile_total{controller=\"pod\",result=\"error\"} 1")
    );
    let why = inspect.why(&Key::new("default", "web"));
    assert!(
        why.contains("failed: panic: first call [recovered]"),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_lasts_too_long_has_failed() {
    let (stage, calls) = (Stage::new(), Arc::new(AtomicU32::new(0)));
    let counted = calls.clone();
    let manager = stage.manager();
    let controller = Controller::of_keys::<Pod>(move |_: Key, _: Context| {
        let call = counted.fetch_add(1, SeqCst);
        async move {
            if call == 0 {
                sleep(Duration::from_secs(3600)).await;
            }
            Ok(Action::done())
        }
    });
    manager.add(controller.timeout(Duration::from_secs(5)));
    stage.server.create(PODS, &pod("web"));
    let inspect = manager.handle();
    let _running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(4)).await;
    assert_eq!(calls.load(SeqCst), 1);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(calls.load(SeqCst), 2);
    let text = inspect.metrics_text();
    assert!(
        text.contains("controller_runtime_reconcile_timeouts_total{controller=\"pod\"} 1"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_key_is_never_on_two_workers_and_several_keys_are() {
    let stage = Stage::new();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (running.clone(), most.clone());
    let controller = Controller::of_keys::<Pod>(move |_: Key, _: Context| {
        let (now, peak) = (now.clone(), peak.clone());
        async move {
            peak.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            sleep(Duration::from_secs(1)).await;
            now.fetch_sub(1, SeqCst);
            Ok(Action::done())
        }
    });
    stage.server.create(PODS, &pod("a"));
    let _running = stage.run(controller.workers(3));
    settle().await;
    stage.server.update(
        &format!("{PODS}/a"),
        &pod("a").with("/spec/nodeName", "n").unwrap(),
    );
    sleep(Duration::from_millis(500)).await;
    assert_eq!(most.load(SeqCst), 1);
    sleep(Duration::from_secs(5)).await;
    for name in ["b", "c", "d", "e"] {
        stage.server.create(PODS, &pod(name));
    }
    sleep(Duration::from_secs(5)).await;
    assert_eq!(most.load(SeqCst), 3);
}

/// Makes sure that there are as many pods as a ConfigMap says, and trusts the cache.
async fn replicate(key: Key, cx: Context) -> Result<Action> {
    let Some(map) = cx.lister::<ConfigMap>()?.get(&key) else {
        return Ok(Action::done());
    };
    let wanted: usize = map.doc().str_at("/data/pods").parse()?;
    let pods = cx.lister::<Pod>()?.len();
    let api = cx.api(&ResourceKind::of::<Pod>(), map.namespace());
    for _ in pods..wanted {
        let pod = doc!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "generateName": "web-" },
            "spec": {}
        });
        let reference =
            windlass_core::OwnerRef::controller_of(map.doc(), &map.doc().gvk().unwrap());
        let pod = pod.with("/metadata/ownerReferences", vec![Doc::from(&reference)])?;
        api.create(&pod, &WriteOptions::default()).await?;
    }
    Ok(Action::done())
}

#[tokio::test(start_paused = true)]
async fn a_lagging_cache_never_makes_a_controller_create_twice() {
    let stage = Stage::new();
    let map = config_map("web").with("/data/pods", "3").unwrap();
    stage.server.create(MAPS, &map);
    let manager = stage.manager();
    manager.add(
        Controller::of_keys::<ConfigMap>(replicate)
            .owns::<Pod>()
            .workers(4),
    );
    stage.server.lag("pods", Duration::from_secs(301));
    let inspect = manager.handle();
    let _running = tokio::spawn(manager.run());
    settle().await;
    assert_eq!(stage.server.objects("pods").len(), 3);
    // Each of these changes would be a reason to look at an empty cache.
    for turn in 0..20 {
        let touched = map
            .with("/metadata/labels", doc!({ "turn": turn.to_string() }))
            .unwrap();
        stage.server.update(&format!("{MAPS}/web"), &touched);
        sleep(Duration::from_secs(20)).await;
    }
    sleep(Duration::from_secs(600)).await;
    assert_eq!(stage.server.objects("pods").len(), 3);
    let text = inspect.metrics_text();
    assert!(text.contains("controller_stale_sync_skips_total{controller=\"configmap\",group=\"\",resource=\"pods\"}"), "{text}");
    // It goes on once the cache has caught up.
    stage.server.update(
        &format!("{MAPS}/web"),
        &map.with("/data/pods", "4").unwrap(),
    );
    sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.server.objects("pods").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn without_freshness_a_lagging_cache_makes_a_controller_create_twice() {
    let stage = Stage::new();
    let map = config_map("web").with("/data/pods", "3").unwrap();
    stage.server.create(MAPS, &map);
    stage.server.lag("pods", Duration::from_secs(301));
    let controller = Controller::of_keys::<ConfigMap>(replicate).owns::<Pod>();
    let _running = stage.run(controller.without_freshness());
    settle().await;
    let touched = map.with("/metadata/labels", doc!({ "turn": "1" })).unwrap();
    stage.server.update(&format!("{MAPS}/web"), &touched);
    settle().await;
    assert_eq!(stage.server.objects("pods").len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_is_lost_is_not_made_twice() {
    for fault in [
        Fault::LostAnswer,
        Fault::LostRequest,
        Fault::StallAfter,
        Fault::Refuse(500, ""),
    ] {
        let stage = Stage::new();
        let map = config_map("web").with("/data/pods", "3").unwrap();
        stage.server.create(MAPS, &map);
        stage.server.lag("pods", Duration::from_secs(30));
        let (mut creates, chosen) = (0, fault.clone());
        stage.faults.set(move |call| {
            creates += usize::from(call.is_write() && call.path == PODS);
            let is_first = call.is_write() && creates == 1;
            if is_first {
                chosen.clone()
            } else {
                Fault::None
            }
        });
        let controller = Controller::of_keys::<ConfigMap>(replicate).owns::<Pod>();
        let _running = stage.run(controller.timeout(Duration::from_secs(5)));
        sleep(Duration::from_secs(300)).await;
        assert_eq!(stage.server.objects("pods").len(), 3, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_equal_status_is_not_written() {
    let stage = Stage::new();
    let reconcile = |set: Obj<ReplicaSet>, cx: Context| async move {
        let status = json!({ "replicas": 2, "conditions": null });
        cx.patch_status(&set, status).await?;
        Ok(Action::requeue_after(Duration::from_secs(1)))
    };
    let set =
        doc!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web" } });
    stage.server.create(SETS, &set);
    let _running = stage.run(Controller::of::<ReplicaSet>(reconcile));
    sleep(Duration::from_secs(10)).await;
    let patches = stage
        .server
        .writes()
        .into_iter()
        .filter(|it| it.method == http::Method::PATCH);
    assert_eq!(patches.count(), 1);
    let stored = stage.server.find("replicasets", "default/web").unwrap();
    assert_eq!(stored.at("/status"), &doc!({ "replicas": 2 }));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_applied_in_the_name_of_the_controller_and_of_its_owner() {
    let stage = Stage::new();
    let reconcile = |map: Obj<ConfigMap>, cx: Context| async move {
        let pod: Pod = serde_json::from_value(json!({ "metadata": { "name": "made" } }))?;
        let made = cx.apply(&pod).owned_by(&map).await?;
        cx.event(&map, EventType::Normal, "Synced", made.meta().name());
        Ok(Action::done())
    };
    stage.server.create(MAPS, &config_map("web"));
    let running = stage.run(
        Controller::of::<ConfigMap>(reconcile)
            .owns::<Pod>()
            .named("painter"),
    );
    settle().await;
    let made = stage.server.find("pods", "default/made").unwrap();
    let owner = made.meta().controller().unwrap();
    assert_eq!((&*owner.kind, &*owner.name), ("ConfigMap", "web"));
    let applied = stage
        .server
        .writes()
        .into_iter()
        .find(|it| it.method == http::Method::PATCH)
        .unwrap();
    assert!(applied.uri.contains("fieldManager=painter") && applied.uri.contains("force=true"));
    stage.shutdown.trigger();
    running.await.unwrap().unwrap();
    let events = stage.server.objects("events");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].str_at("/source/component"), "painter");
    assert_eq!(events[0].str_at("/involvedObject/name"), "web");
}

#[tokio::test(start_paused = true)]
async fn the_journal_tells_why_and_what_was_written() {
    let stage = Stage::new();
    let map = config_map("web").with("/data/pods", "1").unwrap();
    let map = stage.server.create(MAPS, &map);
    let manager = stage.manager();
    manager.add(Controller::of_keys::<ConfigMap>(replicate).owns::<Pod>());
    let inspect = manager.handle();
    let _running = tokio::spawn(manager.run());
    settle().await;
    stage.server.update(
        &format!("{MAPS}/web"),
        &map.with("/data/pods", "2").unwrap(),
    );
    settle().await;
    let why = inspect.why(&Key::new("default", "web"));
    assert!(why.starts_with("configmap default/web\n"), "{why}");
    assert!(
        why.contains("because configmaps default/web@1 was there"),
        "{why}"
    );
    assert!(why.contains("changed from 1: data.pods"), "{why}");
    assert!(
        why.contains("create /api/v1/namespaces/default/pods: 201 at 2"),
        "{why}"
    );
    assert!(
        inspect
            .why(&Key::new("default", "other"))
            .contains("nothing is known")
    );
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_refused_fails_the_start_and_names_itself() {
    let stage = Stage::new();
    stage.faults.set(|call| match call.path.ends_with("/pods") {
        true => Fault::Refuse(403, "Forbidden"),
        false => Fault::None,
    });
    let running = stage.run(Controller::of_keys::<Pod>(Seen::default().by_key()));
    let error = running.await.unwrap().unwrap_err();
    assert!(matches!(error, RunError::Sync(_)), "{error}");
    assert!(error.to_string().contains("pods"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_never_answers_fails_the_start_in_time_and_names_itself() {
    let stage = Stage::new();
    stage.faults.set(|call| match call.path.ends_with("/pods") {
        true => Fault::Stall,
        false => Fault::None,
    });
    let start = tokio::time::Instant::now();
    let running = stage.run(Controller::of_keys::<Pod>(Seen::default().by_key()));
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(start.elapsed(), windlass_runtime::CACHE_SYNC_TIMEOUT);
    assert!(error.to_string().contains("pods"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_ends_by_itself_is_not_counted_as_too_long() {
    let stage = Stage::new();
    let manager = stage.manager();
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let controller = Controller::of_keys::<Pod>(move |_: Key, _: Context| {
        let call = counted.fetch_add(1, SeqCst);
        async move {
            // One that gives up before its time, and one that needs nearly all of it.
            let own_limit = Duration::from_secs(if call == 0 { 3 } else { 60 });
            let work = sleep(Duration::from_secs(4));
            tokio::time::timeout(own_limit, work).await?;
            Ok(Action::done())
        }
    });
    manager.add(controller.timeout(Duration::from_secs(5)));
    stage.server.create(PODS, &pod("web"));
    let inspect = manager.handle();
    let _running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(calls.load(SeqCst), 2);
    let text = inspect.metrics_text();
    assert!(
        text.contains("controller_runtime_reconcile_timeouts_total{controller=\"pod\"} 0"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_installed_later_is_waited_for() {
    let (stage, seen) = (Stage::new(), Seen::default());
    stage.faults.set(|call| match call.path.ends_with("/pods") {
        true => Fault::Refuse(404, "NotFound"),
        false => Fault::None,
    });
    stage.server.create(PODS, &pod("web"));
    let _running = stage.run(Controller::of_keys::<Pod>(seen.by_key()));
    sleep(Duration::from_secs(30)).await;
    assert!(seen.take().is_empty());
    stage.faults.set(|_| Fault::None);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(seen.take(), ["default/web"]);
}

#[tokio::test(start_paused = true)]
async fn stopping_before_the_caches_are_complete_is_no_failure() {
    let stage = Stage::new();
    stage.faults.set(|_| Fault::Stall);
    let running = stage.run(Controller::of_keys::<Pod>(Seen::default().by_key()));
    settle().await;
    stage.shutdown.trigger();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_was_not_declared_has_no_cache() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noted = seen.clone();
    let controller = Controller::of_keys::<Pod>(move |_: Key, cx: Context| {
        noted.note(cx.lister::<Node>().unwrap_err().to_string());
        std::future::ready(Ok(Action::done()))
    });
    stage.server.create(PODS, &pod("web"));
    let _running = stage.run(controller);
    settle().await;
    assert_eq!(
        seen.take(),
        ["controller pod does not read Node: name it with `watches` or `reads`"]
    );
}

#[tokio::test(start_paused = true)]
async fn fresh_changes_come_before_what_was_there() {
    let (stage, seen) = (Stage::new(), Seen::default());
    for name in ["a", "b", "c"] {
        stage.server.create(PODS, &pod(name));
    }
    let noted = seen.clone();
    let controller = Controller::of_keys::<Pod>(move |key: Key, _: Context| {
        let noted = noted.clone();
        async move {
            noted.note(key.to_string());
            sleep(Duration::from_secs(1)).await;
            Ok(Action::done())
        }
    });
    let _running = stage.run(controller);
    settle().await;
    stage.server.create(PODS, &pod("z"));
    sleep(Duration::from_secs(10)).await;
    assert_eq!(
        seen.take(),
        ["default/a", "default/z", "default/b", "default/c"]
    );
}

#[tokio::test(start_paused = true)]
async fn two_controllers_of_one_name_do_not_run() {
    let stage = Stage::new();
    let manager = stage.manager();
    manager.add(Controller::of_keys::<Pod>(Seen::default().by_key()));
    manager.add(Controller::of_keys::<Pod>(Seen::default().by_key()));
    let error = manager.run().await.unwrap_err();
    assert_eq!(error.to_string(), "controller with name pod already exists");
}

#[tokio::test(start_paused = true)]
async fn an_index_of_a_shared_cache_can_be_read_in_a_reconcile() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let manager = stage.manager();
    let informer = manager.factory().informer::<Pod>();
    informer
        .add_index("node", |pod: &Obj| {
            vec![Str::new(pod.doc().str_at("/spec/nodeName"))]
        })
        .unwrap();
    let noted = seen.clone();
    manager.add(Controller::of_keys::<Pod>(move |_: Key, cx: Context| {
        let found = cx.lister::<Pod>().unwrap().by_index("node", "n1").unwrap();
        noted.note(format!("{}", found.len()));
        std::future::ready(Ok(Action::done()))
    }));
    stage
        .server
        .create(PODS, &pod("web").with("/spec/nodeName", "n1").unwrap());
    let _running = tokio::spawn(manager.run());
    settle().await;
    advance(Duration::from_secs(1)).await;
    assert_eq!(seen.take(), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_keeps_its_priority_when_it_is_queued_again() {
    let (stage, seen) = (Stage::new(), Seen::default());
    let noted = seen.clone();
    let controller = Controller::of_keys::<Pod>(move |key: Key, _: Context| {
        let noted = noted.clone();
        async move {
            noted.note(key.name());
            sleep(Duration::from_secs(10)).await;
            let again = Action::requeue_after(Duration::from_secs(1));
            Ok(match key.name() {
                "raised" => again.priority(7),
                _ => again,
            })
        }
    });
    // What was there is in the background; of that, one asks for more.
    for name in ["background", "raised"] {
        stage.server.create(PODS, &pod(name));
    }
    let _running = stage.run(controller);
    sleep(Duration::from_secs(15)).await;
    stage.server.create(PODS, &pod("fresh"));
    sleep(Duration::from_secs(35)).await;
    assert_eq!(
        seen.take(),
        ["background", "raised", "fresh", "raised", "fresh"]
    );
}

#[tokio::test(start_paused = true)]
async fn each_controller_sees_its_part_of_a_kind_and_each_object_once() {
    let stage = Stage::new();
    for (namespace, name, app) in [("a", "x", "web"), ("a", "y", "db"), ("b", "x", "web")] {
        let pod = pod(name).with("/metadata/labels", doc!({ "app": app }));
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        stage.server.create(&path, &pod.unwrap());
    }
    let manager = stage.manager();
    let [all, in_a, web, web_in_a] = <[Seen; 4]>::default();
    let controller =
        |name: &str, seen: &Seen| Controller::of_keys::<Pod>(seen.by_key()).named(name);
    manager.add(controller("all", &all));
    manager.add(controller("in-a", &in_a).only(|pods| pods.namespaced("a")));
    manager.add(controller("web", &web).only(|pods| pods.labels("app=web")));
    manager.add(controller("both", &web_in_a).only(|it| it.namespaced("a").labels("app=web")));
    let _running = tokio::spawn(manager.run());
    settle().await;
    let sorted = |seen: &Seen| {
        let mut keys = seen.take();
        keys.sort_unstable();
        keys
    };
    assert_eq!(sorted(&all), ["a/x", "a/y", "b/x"]);
    assert_eq!(sorted(&in_a), ["a/x", "a/y"]);
    assert_eq!(sorted(&web), ["a/x", "b/x"]);
    assert_eq!(sorted(&web_in_a), ["a/x"]);
    // An object that begins to match is new to whoever looks for it, and to nobody else.
    let path = "/api/v1/namespaces/a/pods/y";
    let pod = stage.server.find("pods", "a/y").unwrap();
    stage
        .server
        .update(path, &pod.with("/metadata/labels/app", "web").unwrap());
    settle().await;
    for seen in [&all, &in_a, &web, &web_in_a] {
        assert_eq!(sorted(seen), ["a/y"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_namespace_of_a_manager_is_not_that_of_kinds_without_one() {
    let stage = Stage::new();
    for namespace in ["a", "b"] {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        stage.server.create(&path, &pod("x"));
    }
    let node = doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } });
    stage.server.create("/api/v1/nodes", &node);
    let manager = Manager::builder("test")
        .transport(stage.server.transport(), RestOptions::default())
        .env(TokioClock::new().env(2))
        .shutdown(stage.shutdown.clone())
        .namespace("a")
        .build()
        .unwrap();
    let (pods, nodes) = (Seen::default(), Seen::default());
    manager.add(Controller::of_keys::<Pod>(pods.by_key()));
    manager.add(Controller::of_keys::<Node>(nodes.by_key()));
    let _running = tokio::spawn(manager.run());
    settle().await;
    assert_eq!(
        (pods.take(), nodes.take()),
        (vec!["a/x".to_owned()], vec!["n".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_journal_of_no_keys_knows_nothing() {
    let stage = Stage::new();
    stage.server.create(PODS, &pod("a"));
    let manager = stage.manager();
    let seen = Seen::default();
    manager.add(Controller::of_keys::<Pod>(seen.by_key()).journal_keys(0));
    let inspect = manager.handle();
    let _running = tokio::spawn(manager.run());
    settle().await;
    assert_eq!(seen.take(), ["default/a"]);
    let why = inspect.why(&Key::new("default", "a"));
    assert_eq!(why, "nothing is known of default/a\n");
}

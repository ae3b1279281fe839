//! The order in which a manager starts and stops things.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use windlass_client::{DynamicClient, RestOptions, WriteOptions};
use windlass_core::{Gvr, Key, doc};
use windlass_runtime::{
    Action, BuildError, Context, Controller, ElectionOptions, Error, LeaseRecord, Manager,
    ManagerBuilder, Result, RunError, Shutdown,
};
use windlass_testing::{Fault, Faults, ModelServer, TokioClock};

const PODS: &str = "/api/v1/namespaces/default/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// The events of a test, in order.
#[derive(Clone, Default)]
struct Story(Arc<Mutex<Vec<String>>>);

impl Story {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    fn read(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

struct Stage {
    server: ModelServer,
    faults: Faults,
    shutdown: Shutdown,
    story: Story,
}

impl Stage {
    fn new() -> Self {
        let server = ModelServer::new(TokioClock::new().env(1));
        let (faults, shutdown, story) = (Faults::none(), Shutdown::new(), Story::default());
        Self {
            server,
            faults,
            shutdown,
            story,
        }
    }

    fn builder(&self) -> ManagerBuilder {
        let transport = self.server.transport().layer(&self.faults);
        Manager::builder("test")
            .transport(transport, RestOptions::default())
            .env(TokioClock::new().env(2))
            .shutdown(self.shutdown.clone())
    }

    fn elected(&self, identity: &str) -> ManagerBuilder {
        self.builder()
            .election(ElectionOptions::new(Key::new("default", "lock"), identity))
    }

    /// Adds a task that takes some time to stop.
    fn add(&self, manager: &Manager, name: &'static str, needs_leader: bool, stop_seconds: u64) {
        let story = self.story.clone();
        let task = move |shutdown: Shutdown| async move {
            story.note(format!("{name} starts"));
            shutdown.requested().await;
            sleep(Duration::from_secs(stop_seconds)).await;
            story.note(format!("{name} ends"));
            Ok(())
        };
        match needs_leader {
            true => manager.add_task(name, task),
            false => manager.add_task_without_election(name, task),
        }
    }

    fn holder(&self) -> String {
        let lease = self.server.find("leases", "default/lock");
        lease.map_or_else(String::new, |lease| LeaseRecord::from_lease(&lease).holder)
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_stop_before_controllers_and_the_lease_is_given_back_last() {
    let stage = Stage::new();
    let manager = stage.elected("me").build().unwrap();
    stage.add(&manager, "leader", true, 5);
    stage.add(&manager, "free", false, 5);
    let running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.story.read(), ["free starts", "leader starts"]);
    stage.shutdown.trigger();
    sleep(Duration::from_secs(9)).await;
    assert_eq!(stage.story.read()[2..], ["free ends"]);
    assert_eq!(stage.holder(), "me");
    running.await.unwrap().unwrap();
    assert_eq!(stage.story.read()[2..], ["free ends", "leader ends"]);
    assert_eq!(stage.holder(), "");
    let events: Vec<_> = stage.server.objects("events");
    let messages: Vec<_> = events
        .iter()
        .map(|event| event.str_at("/message"))
        .collect();
    assert_eq!(messages, ["me became leader", "me stopped leading"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_before_the_caches_are_complete() {
    let stage = Stage::new();
    stage.faults.set(|call| match call.path.ends_with("/pods") {
        true => Fault::Delay(Duration::from_secs(20)),
        false => Fault::None,
    });
    let manager = stage.builder().build().unwrap();
    let _informer = manager.factory().informer::<Pod>();
    stage.add(&manager, "leader", true, 0);
    stage.add(&manager, "free", false, 0);
    let _running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(19)).await;
    assert!(stage.story.read().is_empty());
    sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.story.read().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stand_by_that_stops_never_starts_what_needs_a_leader() {
    let stage = Stage::new();
    stage.server.create(
        LEASES,
        &doc!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "lock" },
            "spec": { "holderIdentity": "them", "leaseDurationSeconds": 3600 }
        }),
    );
    let manager = stage.elected("me").build().unwrap();
    stage.add(&manager, "leader", true, 0);
    stage.add(&manager, "free", false, 0);
    let running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(60)).await;
    stage.shutdown.trigger();
    running.await.unwrap().unwrap();
    assert_eq!(stage.story.read(), ["free starts", "free ends"]);
    assert_eq!(stage.holder(), "them");
}

#[tokio::test(start_paused = true)]
async fn a_stand_by_fills_its_caches_once_and_works_when_it_leads() {
    let stage = Stage::new();
    stage.server.create(
        LEASES,
        &doc!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "lock" },
            "spec": { "holderIdentity": "them", "leaseDurationSeconds": 60 }
        }),
    );
    let pod =
        |name: &str| doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name } });
    stage.server.create(PODS, &pod("before"));
    let manager = stage.elected("me").build().unwrap();
    let story = stage.story.clone();
    manager.add(Controller::of_keys::<Pod>(move |key: Key, _: Context| {
        story.note(key.to_string());
        std::future::ready(Ok(Action::done()))
    }));
    let informer = manager.factory().informer::<Pod>();
    let running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(30)).await;
    stage.server.create(PODS, &pod("meanwhile"));
    sleep(Duration::from_secs(1)).await;
    assert!(informer.has_synced());
    assert_eq!(informer.lister().snapshot().len(), 2);
    assert!(
        stage.story.read().is_empty(),
        "nobody works before it leads"
    );
    let requests = |stage: &Stage| {
        let log = stage.server.log();
        log.iter().filter(|it| it.uri.contains("/pods")).count()
    };
    let before = requests(&stage);

    sleep(Duration::from_secs(60)).await;
    assert_eq!(stage.holder(), "me");
    let mut keys = stage.story.read();
    keys.sort_unstable();
    assert_eq!(keys, ["default/before", "default/meanwhile"]);
    assert_eq!(
        requests(&stage),
        before,
        "the caches were not started again"
    );
    stage.shutdown.trigger();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn leadership_that_is_lost_ends_everything_at_once() {
    let stage = Stage::new();
    let manager = stage.elected("me").build().unwrap();
    stage.add(&manager, "leader", true, 3600);
    stage.add(&manager, "free", false, 3600);
    let running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(10)).await;
    let start = Instant::now();
    stage
        .faults
        .set(|call| match call.path.contains("/leases") {
            true => Fault::LostRequest,
            false => Fault::None,
        });
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "leader election lost");
    assert!(
        start.elapsed() < Duration::from_secs(15),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(stage.holder(), "me");
}

#[tokio::test(start_paused = true)]
async fn writes_are_refused_when_the_lease_was_not_renewed_in_time() {
    let stage = Stage::new();
    let manager = stage.elected("me").build().unwrap();
    let pods = DynamicClient::new(manager.client().clone())
        .resource(Gvr::constant("", "v1", "pods"))
        .namespaced("default");
    let pod = doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "generateName": "a-" } });
    let error = pods
        .create(&pod, &WriteOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.outcome(), windlass_client::RequestOutcome::NotSent);
    let _running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(1)).await;
    pods.create(&pod, &WriteOptions::default()).await.unwrap();
    stage
        .faults
        .set(|call| match call.path.contains("/leases") {
            true => Fault::Stall,
            false => Fault::None,
        });
    sleep(Duration::from_millis(10_500)).await;
    pods.create(&pod, &WriteOptions::default())
        .await
        .unwrap_err();
    // Reading goes on.
    pods.list(&Default::default()).await.unwrap();
    assert_eq!(stage.server.objects("pods").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_ends_the_whole_and_every_error_is_told() {
    let stage = Stage::new();
    let manager = stage.builder().build().unwrap();
    stage.add(&manager, "slow", false, 5);
    manager.add_task("bad", |_| async {
        sleep(Duration::from_secs(1)).await;
        Err(Error::msg("broke"))
    });
    manager.add_task("worse", |shutdown: Shutdown| async move {
        shutdown.requested().await;
        Err(Error::msg("broke too"))
    });
    let start = Instant::now();
    let error = manager.run().await.unwrap_err();
    assert_eq!(error.to_string(), "bad: broke; worse: broke too");
    assert_eq!(stage.story.read(), ["slow starts", "slow ends"]);
    assert_eq!(start.elapsed().as_secs(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_is_a_task_that_fails() {
    let stage = Stage::new();
    let manager = stage.builder().build().unwrap();
    manager.add_task("bad", |_| async { panic!("out of luck") });
    let error = manager.run().await.unwrap_err();
    assert!(error.to_string().contains("out of luck"), "{error}");
}

async fn stuck(grace: Option<Duration>) -> (Result<(), RunError>, Duration) {
    let stage = Stage::new();
    let manager = stage.builder().grace_period(grace).build().unwrap();
    stage.add(&manager, "stuck", true, 7200);
    let running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(1)).await;
    let start = Instant::now();
    stage.shutdown.trigger();
    (running.await.unwrap(), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn the_grace_period_is_kept() {
    let (outcome, took) = stuck(Some(Duration::from_secs(30))).await;
    let error = outcome.unwrap_err().to_string();
    assert_eq!(
        error,
        "failed waiting for all runnables to end within grace period of 30s: stuck"
    );
    assert_eq!(took.as_secs(), 30);

    let (outcome, took) = stuck(Some(Duration::ZERO)).await;
    outcome.unwrap();
    assert_eq!(took.as_secs(), 0);

    let (outcome, took) = stuck(None).await;
    outcome.unwrap();
    assert_eq!(took.as_secs(), 7200);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_in_progress_is_finished_and_the_rest_of_the_queue_is_not() {
    let stage = Stage::new();
    for name in ["a", "b", "c"] {
        let pod = doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name } });
        stage.server.create(PODS, &pod);
    }
    let story = stage.story.clone();
    let manager = stage.builder().build().unwrap();
    manager.add(Controller::of_keys::<Pod>(move |key: Key, _: Context| {
        let story = story.clone();
        async move {
            sleep(Duration::from_secs(10)).await;
            story.note(key.to_string());
            Ok(Action::done())
        }
    }));
    let running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(5)).await;
    stage.shutdown.trigger();
    running.await.unwrap().unwrap();
    assert_eq!(stage.story.read(), ["default/a"]);
}

#[tokio::test(start_paused = true)]
async fn a_manager_needs_a_server_and_sound_options() {
    assert!(matches!(
        Manager::builder("test").build(),
        Err(BuildError::NoConnection)
    ));
    let stage = Stage::new();
    let mut options = ElectionOptions::new(Key::new("default", "lock"), "me");
    options.renew_deadline = options.lease_duration;
    let error = stage.builder().election(options).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "leaseDuration must be greater than renewDeadline"
    );
}

#[tokio::test]
async fn health_metrics_and_debug_pages_are_served() {
    let stage = Stage::new();
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = probe.local_addr().unwrap();
    // The address is in use: the start fails and says so.
    let error = stage
        .builder()
        .metrics_address(address)
        .build()
        .unwrap()
        .run()
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&format!("cannot listen on {address}")),
        "{error}"
    );
    drop(probe);

    let manager = stage
        .builder()
        .metrics_address(address)
        .health_address(address)
        .always_allow_paths(["*"])
        .build()
        .unwrap();
    let is_broken = Arc::new(AtomicBool::new(false));
    let broken = is_broken.clone();
    manager.add_live_check(windlass_runtime::Check::new("disk", move || {
        match broken.load(SeqCst) {
            true => Err(windlass_runtime::CheckFailed::new("full")),
            false => Ok(()),
        }
    }));
    manager.add(Controller::of_keys::<Pod>(|_: Key, _: Context| async {
        Ok(Action::done())
    }));
    let running = tokio::spawn(manager.run());
    while get(address, "/readyz").await.0 != 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(get(address, "/healthz").await, (200, "ok".to_owned()));
    is_broken.store(true, SeqCst);
    assert_eq!(get(address, "/livez/disk").await.0, 500);
    assert_eq!(get(address, "/livez/ping").await.0, 200);
    assert!(
        get(address, "/readyz?verbose")
            .await
            .1
            .contains("[+]informer-sync ok")
    );
    let (_, metrics) = get(address, "/metrics").await;
    assert!(
        metrics.contains("workqueue_depth{name=\"pod\"} 0"),
        "{metrics}"
    );
    assert!(
        metrics.contains(
            "informer_objects{name=\"test\",group=\"\",version=\"v1\",resource=\"pods\"} 0"
        )
    );
    assert!(metrics.contains("rest_client_requests_total"));
    assert!(metrics.contains("controller_runtime_max_concurrent_reconciles{controller=\"pod\"} 1"));
    assert!(
        get(address, "/debug/windlass/informers")
            .await
            .1
            .starts_with("pods namespace=*")
    );
    assert!(
        get(address, "/debug/windlass/queues")
            .await
            .1
            .starts_with("pod depth=0")
    );
    assert_eq!(get(address, "/debug/windlass/why").await.0, 400);
    assert_eq!(
        get(address, "/debug/windlass/why?key=a%2Fb").await.1,
        "nothing is known of a/b\n"
    );
    assert_eq!(get(address, "/other").await.0, 404);
    stage.shutdown.trigger();
    running.await.unwrap().unwrap();
}

/// A GET over a plain socket: the status code and the body.
async fn get(address: std::net::SocketAddr, path: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let Ok(mut stream) = tokio::net::TcpStream::connect(address).await else {
        return (0, String::new());
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        body.to_owned(),
    )
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_running_after_the_end() {
    let stage = Stage::new();
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    let manager = stage.elected("me").build().unwrap();
    manager.add(
        Controller::of_keys::<Pod>(|_: Key, _: Context| async { Ok(Action::done()) }).workers(4),
    );
    stage.add(&manager, "leader", true, 1);
    stage.add(&manager, "free", false, 1);
    let running = tokio::spawn(manager.run());
    sleep(Duration::from_secs(30)).await;
    assert!(tasks() > before + 8);
    stage.shutdown.trigger();
    running.await.unwrap().unwrap();
    tokio::task::yield_now().await;
    assert_eq!(tasks(), before);
}

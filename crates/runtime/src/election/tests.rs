use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, advance};
use windlass_client::{RestClient, RestOptions};
use windlass_core::{Clock, Doc, Env, Key, MicroTime, doc};
use windlass_testing::{Fault, Faults, ModelServer, TokioClock};

use super::*;
use crate::Shutdown;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/lock";

fn options(identity: &str) -> ElectionOptions {
    ElectionOptions::new(Key::new("default", "lock"), identity)
}

/// A candidate of a server, and what goes wrong with its calls.
fn candidate(server: &ModelServer, identity: &str) -> (LeaderElector, Faults) {
    let faults = Faults::none();
    let options_of_client = RestOptions {
        timeout: Duration::from_secs(5),
        ..RestOptions::default()
    };
    let client = RestClient::new(server.transport().layer(&faults), options_of_client);
    let elector = LeaderElector::new(client, TokioClock::new().env(7), options(identity)).unwrap();
    (elector, faults)
}

fn server() -> ModelServer {
    ModelServer::new(TokioClock::new().env(1))
}

fn stored(server: &ModelServer) -> LeaseRecord {
    LeaseRecord::from_lease(&server.find("leases", "default/lock").unwrap())
}

fn store(server: &ModelServer, spec: Doc) {
    let lease = doc!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "lock" }, "spec": spec
    });
    match server.find("leases", "default/lock") {
        None => server.create(LEASES, &lease),
        Some(_) => server.update(LEASE, &lease),
    };
}

fn methods(server: &ModelServer) -> Vec<String> {
    server
        .log()
        .iter()
        .map(|logged| logged.method.to_string())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_missing_is_created() {
    let server = server();
    let (elector, _) = candidate(&server, "me");
    assert!(elector.attempt().await);
    let record = stored(&server);
    assert_eq!((&*record.holder, record.transitions), ("me", 0));
    assert_eq!(record.duration, Duration::from_secs(15));
    assert!(elector.guard().check().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_lease_without_a_holder_is_taken_at_once() {
    let server = server();
    store(&server, doc!({}));
    let (elector, _) = candidate(&server, "me");
    assert!(elector.attempt().await);
    assert_eq!(stored(&server).transitions, 1);

    let future = "2099-01-01T00:00:00.000000Z";
    store(
        &server,
        doc!({
            "holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": future, "leaseTransitions": 4
        }),
    );
    let (elector, _) = candidate(&server, "other");
    assert!(elector.attempt().await);
    assert_eq!(stored(&server).transitions, 5);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_taken_after_the_time_that_its_holder_declared() {
    let server = server();
    // The holder's clock is decades off, which must not matter.
    store(
        &server,
        doc!({
            "holderIdentity": "them", "leaseDurationSeconds": 3, "leaseTransitions": 1,
            "acquireTime": "1999-01-01T00:00:00.000000Z", "renewTime": "2099-01-01T00:00:00.000000Z"
        }),
    );
    let (elector, _) = candidate(&server, "me");
    assert!(!elector.attempt().await);
    advance(Duration::from_millis(2900)).await;
    assert!(!elector.attempt().await);
    advance(Duration::from_millis(200)).await;
    assert!(elector.attempt().await);
    let record = stored(&server);
    assert_eq!((&*record.holder, record.transitions), ("me", 2));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_record_is_a_sign_of_life() {
    let server = server();
    let spec = |renewed: &str| doc!({ "holderIdentity": "them", "leaseDurationSeconds": 10, "renewTime": renewed });
    store(&server, spec("2026-01-01T00:00:00.000000Z"));
    let (elector, _) = candidate(&server, "me");
    assert!(!elector.attempt().await);
    advance(Duration::from_secs(9)).await;
    store(&server, spec("2026-01-01T00:00:09.000000Z"));
    assert!(!elector.attempt().await);
    advance(Duration::from_secs(9)).await;
    assert!(!elector.attempt().await);
    advance(Duration::from_secs(2)).await;
    assert!(elector.attempt().await);
}

#[tokio::test(start_paused = true)]
async fn a_duration_without_end_is_respected() {
    let server = server();
    store(
        &server,
        doc!({ "holderIdentity": "them", "leaseDurationSeconds": 9_223_372_036_854_775_807_i64 }),
    );
    let (elector, _) = candidate(&server, "me");
    assert!(!elector.attempt().await);
    advance(Duration::from_secs(1 << 30)).await;
    assert!(!elector.attempt().await);
}

#[tokio::test(start_paused = true)]
async fn renewing_keeps_the_term_and_needs_no_read() {
    let server = server();
    let (elector, _) = candidate(&server, "me");
    assert!(elector.attempt().await);
    let before = stored(&server);
    for _ in 0..2 {
        advance(Duration::from_secs(2)).await;
        assert!(elector.attempt().await);
    }
    let after = stored(&server);
    assert_eq!(
        (after.acquired, after.transitions),
        (before.acquired, before.transitions)
    );
    assert_eq!(
        after.renewed.unwrap().since(before.renewed.unwrap()),
        Duration::from_secs(4)
    );
    assert_eq!(methods(&server), ["GET", "POST", "PUT", "PUT"]);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_while_renewing_is_settled_by_a_read() {
    let server = server();
    let (elector, _) = candidate(&server, "me");
    assert!(elector.attempt().await);
    let labelled = server.find("leases", "default/lock").unwrap();
    server.update(
        LEASE,
        &labelled
            .with("/metadata/labels", doc!({ "a": "b" }))
            .unwrap(),
    );
    advance(Duration::from_secs(2)).await;
    assert!(elector.attempt().await);
    assert_eq!(
        methods(&server),
        ["GET", "POST", "PUT", "PUT", "GET", "PUT"]
    );
    assert_eq!(elector.election_slow_renewals(), 1);
}

#[tokio::test(start_paused = true)]
async fn releasing_reads_first_and_leaves_no_holder() {
    let server = server();
    let (elector, _) = candidate(&server, "me");
    assert!(elector.attempt().await);
    assert!(elector.release().await);
    assert_eq!(methods(&server), ["GET", "POST", "GET", "PUT"]);
    let record = stored(&server);
    assert_eq!(
        (&*record.holder, record.duration),
        ("", Duration::from_secs(1))
    );
    assert_eq!(record.transitions, 0);
    assert_eq!(elector.guard().check(), Err(NotLeader));
    // A second release finds nothing to give back, and writes nothing.
    assert!(elector.release().await);
    assert_eq!(server.writes().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_never_read_is_not_written() {
    let lock = LeaseLock::new(server().client(), Key::new("default", "lock"), Vec::new());
    let error = lock.update(&LeaseRecord::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "lease not initialized, call get or create first"
    );
}

#[tokio::test(start_paused = true)]
async fn labels_are_merged_onto_the_lease() {
    let server = server();
    let labels = vec![("team".to_owned(), "web".to_owned())];
    let lock = LeaseLock::new(server.client(), Key::new("default", "lock"), labels);
    lock.create(&LeaseRecord::default()).await.unwrap();
    let lease = server.find("leases", "default/lock").unwrap();
    assert_eq!(lease.meta().label("team"), Some("web"));
}

#[test]
fn a_record_survives_the_way_to_the_lease_and_back() {
    let record = LeaseRecord {
        holder: "me".to_owned(),
        duration: Duration::from_secs(15),
        acquired: Some(MicroTime::from_unix_micros(1_767_225_600_123_456)),
        renewed: Some(MicroTime::from_unix_micros(1_767_225_601_000_001)),
        transitions: 3,
        strategy: Some("OldestEmulationVersion".to_owned()),
        preferred_holder: Some("you".to_owned()),
    };
    assert_eq!(
        LeaseRecord::from_lease(&doc!({ "spec": record.to_spec() })),
        record
    );
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let check = |change: fn(&mut ElectionOptions)| {
        let mut options = options("me");
        change(&mut options);
        options.validate()
    };
    assert_eq!(check(|_| ()), Ok(()));
    assert_eq!(
        check(|it| it.lease_duration = it.renew_deadline),
        Err(ElectionOptionsError::LeaseDuration)
    );
    let error = check(|it| it.retry_period = Duration::from_millis(8334)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "renewDeadline must be greater than retryPeriod*JitterFactor"
    );
    assert_eq!(
        check(|it| it.retry_period = Duration::ZERO),
        Err(ElectionOptionsError::Zero("retryPeriod"))
    );
    assert_eq!(
        check(|it| it.identity.clear()),
        Err(ElectionOptionsError::Identity)
    );
    assert!(matches!(
        check(|it| it.lease = Key::cluster("x")),
        Err(ElectionOptionsError::Lease(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn health_fails_only_for_a_holder_that_has_not_renewed() {
    let server = server();
    let tolerance = Duration::from_secs(20);
    let (elector, _) = candidate(&server, "me");
    let health = elector.health(tolerance);
    assert!(health.check().is_ok());
    assert!(elector.attempt().await);
    advance(Duration::from_secs(35)).await;
    assert!(health.check().is_ok());
    advance(Duration::from_secs(1)).await;
    let error = health.check().unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed election to renew leadership on lease lock"
    );

    let (other, _) = candidate(&server, "other");
    let health = other.health(tolerance);
    assert!(!other.attempt().await);
    advance(Duration::from_secs(3600)).await;
    assert!(health.check().is_ok());
}

#[tokio::test(start_paused = true)]
async fn health_is_told_while_a_renewal_is_on_its_way() {
    let server = server();
    let (elector, faults) = candidate(&server, "me");
    assert!(elector.attempt().await);
    faults.set(|_| Fault::Delay(Duration::from_secs(3)));
    let health = elector.health(Duration::ZERO);
    let look = async {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert!(health.check().is_ok());
        }
    };
    let started = Instant::now();
    let (is_ours, ()) = tokio::join!(elector.attempt(), look);
    assert!(is_ours && started.elapsed() >= Duration::from_secs(3));
    assert!(health.check().is_ok());
}

#[tokio::test(start_paused = true)]
async fn health_is_told_to_other_threads_while_the_lease_is_renewed() {
    const RENEWALS: usize = 200;
    let server = server();
    let (elector, _) = candidate(&server, "me");
    assert!(elector.attempt().await);
    // The clock of the test stands still on the threads, too: each looks on until it is told.
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let looks: Vec<_> = (0..2)
        .map(|_| {
            let (health, is_over) = (elector.health(Duration::ZERO), is_over.clone());
            tokio::task::spawn_blocking(move || {
                let mut looks = 0_u64;
                while !is_over.load(std::sync::atomic::Ordering::SeqCst) || looks == 0 {
                    assert!(health.check().is_ok());
                    looks += 1;
                }
            })
        })
        .collect();
    for _ in 0..RENEWALS {
        assert!(elector.attempt().await);
    }
    is_over.store(true, std::sync::atomic::Ordering::SeqCst);
    for look in looks {
        look.await.unwrap();
    }
    assert_eq!(server.writes().len(), RENEWALS + 1);
}

#[tokio::test(start_paused = true)]
async fn stopping_before_the_lease_is_ours_never_starts_the_work() {
    let server = server();
    store(
        &server,
        doc!({ "holderIdentity": "them", "leaseDurationSeconds": 3600 }),
    );
    let (elector, _) = candidate(&server, "me");
    let stop = Shutdown::new();
    let stopping = stop.clone();
    let run = elector.run(&stop, || async { unreachable!("the lease is not ours") });
    let later = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        stopping.trigger();
    };
    let (outcome, ()) = tokio::join!(run, later);
    assert_eq!(outcome, Ok(None::<()>));
    assert_eq!(stored(&server).holder, "them");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_others_may_start() {
    let server = server();
    let (elector, faults) = candidate(&server, "me");
    let guard = elector.guard();
    faults.set(move |call| match call.number {
        0..6 => Fault::None,
        _ => Fault::LostRequest,
    });
    let outcome = elector
        .run(&Shutdown::new(), std::future::pending::<()>)
        .await;
    assert_eq!(outcome, Err(LeadershipLost));
    let last = server.writes().last().unwrap().at;
    let gave_up = last.elapsed();
    assert!(gave_up < Duration::from_secs(15), "{gave_up:?}");
    assert_eq!(guard.check(), Err(NotLeader));
    // The Lease was not given back: whoever takes over waits for it.
    assert_eq!(stored(&server).holder, "me");
}

#[tokio::test(start_paused = true)]
async fn the_guard_closes_before_the_leader_gives_up() {
    let server = server();
    let (elector, faults) = candidate(&server, "me");
    assert!(elector.attempt().await);
    let renewed = Instant::now();
    faults.set(|_| Fault::Stall);
    let guard = elector.guard();
    assert_eq!(guard.valid_until(), Some(renewed + Duration::from_secs(10)));
    advance(Duration::from_millis(9_999)).await;
    assert!(guard.check().is_ok());
    advance(Duration::from_millis(1)).await;
    assert_eq!(guard.check(), Err(NotLeader));
    assert_eq!(guard.refused(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_late_counts_from_when_it_was_asked_for() {
    let server = server();
    let (elector, faults) = candidate(&server, "me");
    faults.set(|call| match call.is_write() {
        true => Fault::DelayAnswer(Duration::from_secs(4)),
        false => Fault::None,
    });
    let start = Instant::now();
    assert!(elector.attempt().await);
    assert_eq!(
        elector.guard().valid_until(),
        Some(start + Duration::from_secs(10))
    );
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_is_lost_does_not_extend_the_guard() {
    let server = server();
    let (elector, faults) = candidate(&server, "me");
    assert!(elector.attempt().await);
    let until = elector.guard().valid_until();
    faults.set(|_| Fault::LostAnswer);
    advance(Duration::from_secs(2)).await;
    assert!(!elector.attempt().await);
    assert_eq!(elector.guard().valid_until(), until);
    // The server has the renewal; the next attempt finds that out.
    faults.set(|_| Fault::None);
    advance(Duration::from_secs(2)).await;
    assert!(elector.attempt().await);
    assert_eq!(stored(&server).transitions, 0);
}

#[tokio::test(start_paused = true)]
async fn new_leaders_are_told_of_once() {
    let server = server();
    let seen = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let noted = seen.clone();
    let (elector, _) = candidate(&server, "me");
    let elector = elector.on_new_leader(move |holder| noted.lock().push(holder.to_owned()));
    store(
        &server,
        doc!({ "holderIdentity": "them", "leaseDurationSeconds": 5 }),
    );
    for _ in 0..5 {
        elector.attempt().await;
        advance(Duration::from_secs(2)).await;
    }
    assert_eq!(*seen.lock(), ["them", "me"]);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_given_back_after_the_work_has_ended() {
    let server = server();
    let (elector, _) = candidate(&server, "me");
    let work = || async {
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(stored(&server).holder, "me");
    };
    assert_eq!(elector.run(&Shutdown::new(), work).await, Ok(Some(())));
    assert_eq!(stored(&server).holder, "");
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_a_renewal_is_on_its_way_gives_the_lease_back_once() {
    for fault in [
        Fault::Stall,
        Fault::StallAfter,
        Fault::Delay(Duration::from_secs(3)),
    ] {
        let server = server();
        let (elector, faults) = candidate(&server, "me");
        let work = || async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let mut left = Some(fault.clone());
            faults.set(move |_| left.take().unwrap_or_default());
            // The next renewal is asked for at six seconds, and has no answer at seven.
            tokio::time::sleep(Duration::from_secs(2)).await;
        };
        assert_eq!(elector.run(&Shutdown::new(), work).await, Ok(Some(())));
        assert_eq!(stored(&server).holder, "", "{fault:?}");
        let writes = server.writes();
        let releases = writes
            .iter()
            .filter(|it| it.payload.str_at("/spec/holderIdentity").is_empty());
        assert_eq!(releases.count(), 1, "{fault:?}");
        assert!(writes.last().unwrap().code < 300);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_lease_is_being_acquired_leaves_it_to_others() {
    let server = server();
    let (elector, faults) = candidate(&server, "me");
    let mut is_first = true;
    faults.set(
        move |call| match call.is_write() && std::mem::take(&mut is_first) {
            true => Fault::StallAfter,
            false => Fault::None,
        },
    );
    let stop = Shutdown::new();
    let later = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(stored(&server).holder, "me");
        stop.trigger();
    };
    let run = elector.run(&stop, || async {
        unreachable!("nobody knows that it is ours")
    });
    let (outcome, ()) = tokio::join!(run, later);
    assert_eq!(outcome, Ok(None::<()>));
    assert_eq!(stored(&server).holder, "");
}

/// Clocks of a machine that was suspended for some time: tokio's does not know.
struct SuspendedClock {
    awake: TokioClock,
    /// The time that the machine slept, and by how much the time of day went on meanwhile.
    asleep: parking_lot::Mutex<(Duration, Duration)>,
}

impl Clock for SuspendedClock {
    fn elapsed(&self) -> Duration {
        self.awake.elapsed()
    }

    fn wall(&self) -> MicroTime {
        self.awake.wall() + self.asleep.lock().1
    }

    fn since_boot(&self) -> Duration {
        self.awake.elapsed() + self.asleep.lock().0
    }
}

/// A leader on such a machine, and the client of its controllers.
async fn leader_that_sleeps(
    server: &ModelServer,
) -> (LeaderElector, Arc<SuspendedClock>, RestClient) {
    let clock = Arc::new(SuspendedClock {
        awake: TokioClock::new(),
        asleep: parking_lot::Mutex::default(),
    });
    let env = Env::seeded_with(7, clock.clone());
    let client = RestClient::new(server.transport(), RestOptions::default());
    let elector = LeaderElector::new(client, env, options("me")).unwrap();
    assert!(elector.attempt().await);
    let guarded = server
        .transport()
        .layer(&Slow)
        .layer(&GuardLayer::new(elector.guard()));
    (
        elector,
        clock,
        RestClient::new(guarded, RestOptions::default()),
    )
}

/// A transport that takes a while to connect.
#[derive(Clone)]
struct Slow;

/// The time that it takes.
const CONNECT: Duration = Duration::from_secs(1);

impl<S> tower::Layer<S> for Slow {
    type Service = SlowService<S>;

    fn layer(&self, inner: S) -> SlowService<S> {
        SlowService(inner)
    }
}

#[derive(Clone)]
struct SlowService<S>(S);

impl<S> tower::Service<http::Request<windlass_client::Payload>> for SlowService<S>
where
    S: tower::Service<http::Request<windlass_client::Payload>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send + 'static>>;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<windlass_client::Payload>) -> Self::Future {
        let mut inner = self.0.clone();
        Box::pin(async move {
            tokio::time::sleep(CONNECT).await;
            inner.call(request).await
        })
    }
}

async fn write(client: &RestClient) -> Result<Doc, windlass_client::Error> {
    let pods = windlass_core::Gvr::constant("", "v1", "pods");
    let api = windlass_client::DynamicClient::new(client.clone()).resource(pods);
    let pod = doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" } });
    let options = windlass_client::WriteOptions::default();
    api.namespaced("default").create(&pod, &options).await
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_was_suspended_past_its_lease_writes_nothing() {
    for (asleep, what) in [
        (
            (Duration::from_secs(60), Duration::from_secs(60)),
            "suspended",
        ),
        (
            (Duration::from_secs(60), Duration::ZERO),
            "clock not set yet",
        ),
        (
            (Duration::ZERO, Duration::from_secs(60)),
            "paused from outside",
        ),
    ] {
        let server = server();
        let (elector, clock, client) = leader_that_sleeps(&server).await;
        assert!(write(&client).await.is_ok());
        *clock.asleep.lock() = asleep;
        assert_eq!(elector.guard().check(), Err(NotLeader), "{what}");
        assert!(write(&client).await.is_err(), "{what}");
        // A renewal that succeeds opens it again.
        assert!(elector.attempt().await);
        assert!(elector.guard().check().is_ok(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waits_for_a_connection_is_not_sent_after_a_suspension() {
    let server = server();
    let (_elector, clock, client) = leader_that_sleeps(&server).await;
    let before = methods(&server).len();
    let waiting = tokio::spawn(async move { write(&client).await });
    advance(CONNECT / 2).await;
    *clock.asleep.lock() = (Duration::from_secs(60), Duration::from_secs(60));
    advance(CONNECT).await;
    assert!(waiting.await.unwrap().is_err());
    assert_eq!(methods(&server).len(), before, "{:?}", methods(&server));
}

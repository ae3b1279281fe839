//! Priority and fairness on virtual time.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use tokio::task::JoinSet;
use windlass_core::{Doc, Env, doc};

use super::level::WAIT_LIMIT;
use super::*;
use std::time::Duration;

use crate::open::ServerOptions;
use crate::server::Server;

const PODS: &str = "/api/v1/namespaces/default/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

async fn server() -> Server {
    let options = ServerOptions::memory(Env::seeded(1));
    Server::open(options).await.unwrap()
}

fn classify(server: &Server, user: &User, method: &Method, path: &str) -> FlowRequest {
    let query = Query::default();
    let target = Target::read(method, path, &query).unwrap();
    let inner = server.inner();
    inner.flow.classify(user, &target, &query, &inner.storage)
}

fn schema_of(server: &Server, user: &User, method: &Method, path: &str) -> String {
    classify(server, user, method, path).schema.name.clone()
}

/// Starts requests that take so long, and lets them get their seats or wait.
async fn start(
    server: &Server,
    count: usize,
    user: &User,
    path: &str,
    lasts: Duration,
) -> JoinSet<u16> {
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let request = classify(server, user, &Method::PUT, path);
        let server = server.clone();
        tasks.spawn(async move {
            let work = async {
                tokio::time::sleep(lasts).await;
                Ok(respond::text(http::StatusCode::OK, ""))
            };
            let answer = server.inner().flow.run(request, work).await;
            answer.unwrap().status().as_u16()
        });
    }
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    tasks
}

/// The wait of a request that itself takes no time; `None` if it is refused.
async fn wait_of(server: &Server, user: &User, method: &Method, path: &str) -> Option<Duration> {
    let before = Instant::now();
    let request = classify(server, user, method, path);
    request.enter().await.ok()?;
    Some(before.elapsed())
}

fn jane() -> User {
    User::new("jane", &[])
}

fn node() -> User {
    User::new("system:node:a", &["system:nodes"])
}

/// Seats in use of all levels that are limited.
fn executing(server: &Server) -> i64 {
    let schemas = server.inner().flow.schemas();
    schemas
        .iter()
        .map(|schema| schema.stats.executing().1)
        .sum()
}

#[tokio::test(start_paused = true)]
async fn requests_are_classified_as_upstream_does() {
    let server = server().await;
    let (get, put) = (Method::GET, Method::PUT);
    let scheduler = User::new("system:kube-scheduler", &[]);
    let system_account = User::service_account("kube-system", "job-controller");
    let account = User::service_account("default", "default");
    let node_status = "/api/v1/nodes/a/status";
    let heartbeat = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a";
    for (user, method, path, expected) in [
        (&User::admin(), &get, PODS, "exempt"),
        (&User::anonymous(), &get, "/healthz", "probes"),
        (&User::anonymous(), &get, "/livez", "probes"),
        (&User::anonymous(), &get, "/version", "global-default"),
        (&scheduler, &put, LEASES, "system-leader-election"),
        (&scheduler, &get, PODS, "kube-scheduler"),
        (&system_account, &put, LEASES, "system-leader-election"),
        (&system_account, &get, PODS, "kube-system-service-accounts"),
        (&account, &put, LEASES, "service-accounts"),
        (&node(), &put, node_status, "system-node-high"),
        (&node(), &put, heartbeat, "system-node-high"),
        (&node(), &get, PODS, "system-nodes"),
        (&jane(), &get, PODS, "global-default"),
        (&User::default(), &get, PODS, "catch-all"),
    ] {
        let found = schema_of(&server, user, method, path);
        assert_eq!(found, expected, "{} {path}", user.name);
    }
}

#[tokio::test(start_paused = true)]
async fn levels_have_upstreams_seats() {
    let server = server().await;
    let levels = server.inner().flow.levels();
    let seats: Vec<(&str, usize, usize)> = levels
        .iter()
        .map(|level| (level.name.as_str(), level.nominal, level.lower))
        .collect();
    let expected = [
        ("catch-all", 13, 13),
        ("exempt", 0, 0),
        ("global-default", 49, 24),
        ("leader-election", 25, 25),
        ("node-high", 98, 73),
        ("system", 74, 50),
        ("workload-high", 98, 49),
        ("workload-low", 245, 24),
    ];
    assert_eq!(seats, expected);
}

#[tokio::test(start_paused = true)]
async fn a_user_who_floods_does_not_delay_another() {
    let server = server().await;
    let lasts = Duration::from_millis(100);
    let mallory = User::new("mallory", &[]);
    let flood = start(&server, 3000, &mallory, PODS, lasts).await;
    let wait = wait_of(&server, &jane(), &Method::GET, PODS).await.unwrap();
    assert!(wait <= lasts, "{wait:?}");
    let codes = flood.join_all().await;
    let served = codes.iter().filter(|code| **code == 200).count();
    assert!((300..1000).contains(&served), "{served}");
    assert!(codes.iter().all(|code| matches!(code, 200 | 429)));
    assert_eq!(executing(&server), 0);
}

#[tokio::test(start_paused = true)]
async fn masters_probes_leases_and_heartbeats_pass_while_everything_else_is_full() {
    let server = server().await;
    let day = Duration::from_secs(86_400);
    let mut full = Vec::new();
    for user in [
        User::new("mallory", &[]),
        User::service_account("default", "mallory"),
        User::service_account("kube-system", "mallory"),
        User::default(),
        node(),
    ] {
        full.push(start(&server, 3000, &user, PODS, day).await);
    }
    assert_eq!(wait_of(&server, &jane(), &Method::GET, PODS).await, None);
    let scheduler = User::new("system:kube-scheduler", &[]);
    for (user, method, path) in [
        (User::admin(), Method::GET, PODS),
        (User::anonymous(), Method::GET, "/healthz"),
        (User::anonymous(), Method::GET, "/readyz"),
        (scheduler, Method::PUT, LEASES),
        (node(), Method::PATCH, "/api/v1/nodes/a/status"),
    ] {
        let wait = wait_of(&server, &user, &method, path).await;
        assert_eq!(wait, Some(Duration::ZERO), "{path}");
    }
    drop(full);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_seat_and_is_refused_when_none_becomes_free() {
    let server = server().await;
    let full = start(
        &server,
        3000,
        &User::new("mallory", &[]),
        PODS,
        WAIT_LIMIT * 4,
    )
    .await;
    let before = Instant::now();
    let request = classify(&server, &jane(), &Method::GET, PODS);
    let work = async { Ok(respond::text(http::StatusCode::OK, "")) };
    let refused = server.inner().flow.run(request, work).await.unwrap();
    assert_eq!(before.elapsed(), WAIT_LIMIT);
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert!(refused.headers().contains_key(SCHEMA_HEADER));
    let page = crate::metrics_page::page(&server);
    let row = "apiserver_flowcontrol_rejected_requests_total{flow_schema=\"global-default\",\
               priority_level=\"global-default\",reason=\"time-out\"}";
    assert!(page.contains(row), "{page}");
    drop(full);
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_a_controller_is_served() {
    let server = server().await;
    let controller = User::service_account("kube-system", "replicaset-controller");
    let lasts = Duration::from_millis(10);
    let burst = start(&server, 500, &controller, PODS, lasts).await;
    let codes = burst.join_all().await;
    assert!(codes.iter().all(|code| *code == 200), "idle seats are lent");
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_given_up_leave_no_seat_taken() {
    let server = server().await;
    let mut all = Vec::new();
    for number in 0..20 {
        let user = User::new(&format!("user-{number}"), &[]);
        let lasts = Duration::from_millis(1 + number * 7 % 50);
        all.push(start(&server, 100, &user, PODS, lasts).await);
    }
    for (number, tasks) in all.iter_mut().enumerate() {
        tokio::time::sleep(Duration::from_millis(3)).await;
        match number % 3 {
            0 => tasks.abort_all(),
            _ => drop(tasks.join_next().await),
        }
    }
    drop(all);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(executing(&server), 0);
    let schemas = server.inner().flow.schemas();
    assert!(
        schemas
            .iter()
            .all(|schema| schema.stats.waiting() == (0, 0))
    );
    // All seats are there again, own ones and those that can be borrowed.
    let burst = start(&server, 500, &jane(), PODS, Duration::from_millis(1)).await;
    assert_eq!(executing(&server), 49 + 221 + 49 + 24 + 25);
    drop(burst);
}

#[tokio::test(start_paused = true)]
async fn a_long_list_takes_more_seats() {
    let server = server().await;
    for number in 0..1000 {
        let map = doc!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": (format!("c{number}")), "namespace": "default" }
        });
        server.import(&map).await.unwrap();
    }
    let seats = |path: &str, query: &str| {
        let query = Query::parse(query).unwrap();
        let target = Target::read(&Method::GET, path, &query).unwrap();
        let inner = server.inner();
        let request = inner
            .flow
            .classify(&jane(), &target, &query, &inner.storage);
        request.seats
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(seats(maps, ""), 8, "a sixth of the level at most");
    assert_eq!(seats(maps, "limit=250"), 3);
    assert_eq!(seats(maps, "limit=250&labelSelector=a%3Db"), 8);
    assert_eq!(seats(maps, "watch=1"), 8);
    assert_eq!(seats(maps, "watch=1&resourceVersion=5"), 1);
    assert_eq!(seats("/api/v1/namespaces/other/configmaps", ""), 1);
    assert_eq!(seats("/api/v1/namespaces/default/configmaps/c1", ""), 1);
}

async fn send(server: &Server, user: User, path: &str, body: Option<&Doc>) -> Response<Body> {
    let method = if body.is_some() {
        Method::POST
    } else {
        Method::GET
    };
    let bytes = body.map(Doc::to_json).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .extension(user)
        .body(Full::new(Bytes::from(bytes)))
        .unwrap();
    server.handle(request).await
}

#[tokio::test(start_paused = true)]
async fn changed_schemas_and_levels_take_effect() {
    let server = server().await;
    let level = doc!({
        "metadata": { "name": "narrow" },
        "spec": {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 1, "borrowingLimitPercent": 0,
                "limitResponse": { "type": "Reject" }
            }
        }
    });
    let schema = doc!({
        "metadata": { "name": "jane" },
        "spec": {
            "priorityLevelConfiguration": { "name": "narrow" }, "matchingPrecedence": 50,
            "rules": [{
                "subjects": [{ "kind": "User", "user": { "name": "jane" } }],
                "nonResourceRules": [{ "verbs": ["get"], "nonResourceURLs": ["/v/*"] }],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": [""], "resources": ["pods", "nodes/status"],
                    "namespaces": ["default"]
                }]
            }]
        }
    });
    for (path, object) in [(LEVELS, &level), (SCHEMAS, &schema)] {
        let created = send(&server, User::admin(), path, Some(object)).await;
        assert_eq!(created.status(), 201);
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let get = Method::GET;
    assert_eq!(schema_of(&server, &jane(), &get, PODS), "jane");
    for path in [
        "/api/v1/pods",
        "/api/v1/namespaces/other/pods",
        "/api/v1/namespaces/default/pods/a/status",
        "/version",
    ] {
        assert_eq!(
            schema_of(&server, &jane(), &get, path),
            "global-default",
            "{path}"
        );
    }
    assert_eq!(schema_of(&server, &jane(), &get, "/v/1"), "jane");
    let seats: Vec<FlowRequest> = (0..4)
        .map(|_| classify(&server, &jane(), &get, PODS))
        .collect();
    let mut held = Vec::new();
    for request in &seats {
        held.push(request.enter().await);
    }
    let codes: Vec<bool> = held.iter().map(Result::is_ok).collect();
    assert_eq!(codes, [true, true, true, false], "600 seats for 246 shares");
    assert_eq!(held[3].as_ref().unwrap_err(), &Rejection::ConcurrencyLimit);
    let answer = send(&server, jane(), PODS, None).await;
    let storage = &server.inner().storage;
    let uid = |plural: &str, name: &str| {
        let found = storage.find(GROUP, plural, "", name).unwrap();
        found.meta().uid_str().to_owned()
    };
    // Not allowed to list pods: authorization comes first.
    assert_eq!(answer.status(), 403);
    let answer = send(&server, jane(), "/version", None).await;
    let headers = answer.headers();
    assert_eq!(headers[SCHEMA_HEADER], uid("flowschemas", "global-default"));
    let level = uid("prioritylevelconfigurations", "global-default");
    assert_eq!(headers[LEVEL_HEADER], level);
}

#[test]
fn what_is_known_of_a_user_holds_for_the_same_groups_only() {
    let flow = Flow::default();
    let config = Arc::clone(&flow.config.read());
    let target = Target::read(&Method::GET, PODS, &Query::default()).unwrap();
    let probe = Target::read(&Method::GET, "/healthz", &Query::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(config.classify(&jane(), &target).name, "global-default");
        assert_eq!(config.classify(&jane(), &probe).name, "probes");
        let master = User::new("jane", &["system:masters"]);
        assert_eq!(config.classify(&master, &target).name, "exempt");
        let groups: Vec<String> = (0..1000).map(|number| format!("g{number}")).collect();
        let mut groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        groups.push("system:nodes");
        let crowded = User::new("jane", &groups);
        assert_eq!(config.classify(&crowded, &target).name, "system-nodes");
    }
}

#[test]
fn flows_of_one_schema_have_different_hands() {
    let hands: std::collections::BTreeSet<Vec<usize>> = (0..100)
        .map(|number| queue::deal(hash("global-default", &format!("u{number}")), 128, 6))
        .collect();
    assert_eq!(hands.len(), 100);
    assert_ne!(hash("a", "b"), hash("ab", ""));
}

//! Pretend nodes, seen by the owner of pods.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use windlass_client::{DeleteOptions, WatchEvent, WatchOptions};
use windlass_core::{Doc, Gvr, Time, condition, doc};
use windlass_placement::node::{self, Options, PodResources};
use windlass_testing::Cluster;

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const NODES: Gvr = Gvr::constant("", "v1", "nodes");
const EVENTS: Gvr = Gvr::constant("", "v1", "events");
const LEASES: Gvr = Gvr::constant("coordination.k8s.io", "v1", "leases");

/// A pod on the first node.
fn pod(name: &str, annotations: &[(&str, &str)]) -> Doc {
    let annotations = annotations
        .iter()
        .map(|(key, value)| (*key, Doc::from(*value)));
    let annotations: windlass_core::Object = annotations.collect();
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "annotations": annotations },
        "spec": {
            "nodeName": "pretend-0",
            "containers": [{ "name": "web", "image": "web:1" }],
        },
    })
}

fn set(object: &Doc, pointer: &str, value: impl Into<Doc>) -> Doc {
    object
        .with(pointer, value)
        .expect("the pointer leads somewhere")
}

async fn cluster_with(options: &Options) -> Cluster {
    let cluster = Cluster::start().await;
    cluster.run_with("nodes", |manager| node::add_to(manager, options));
    cluster
        .until(async |c| c.list_docs(&NODES, "", "").await.len() == options.nodes)
        .await;
    cluster
}

async fn cluster() -> Cluster {
    cluster_with(&Options::default()).await
}

async fn find(cluster: &Cluster, name: &str) -> Doc {
    let found = cluster.find(&PODS, &format!("default/{name}")).await;
    found.unwrap_or_else(|| panic!("pod {name} is there"))
}

async fn until(cluster: &Cluster, name: &str, holds: impl Fn(&Doc) -> bool) -> Doc {
    let patience = Duration::from_secs(3600);
    cluster
        .until_within(patience, async |c| holds(&find(c, name).await))
        .await;
    find(cluster, name).await
}

async fn until_gone(cluster: &Cluster, name: &str) {
    let key = format!("default/{name}");
    cluster
        .until(async |c| c.find(&PODS, &key).await.is_none())
        .await;
}

fn is_ready(pod: &Doc) -> bool {
    windlass_workloads::is_pod_ready(pod)
}

fn has_phase(phase: &str) -> impl Fn(&Doc) -> bool {
    move |pod| pod.str_at("/status/phase") == phase
}

fn container(pod: &Doc) -> &Doc {
    pod.at("/status/containerStatuses/0")
}

async fn delete(cluster: &Cluster, name: &str, grace: Option<u64>) {
    let options = DeleteOptions {
        grace_period: grace.map(Duration::from_secs),
        ..DeleteOptions::default()
    };
    let api = cluster.api(&PODS, "default");
    let deleted = api.delete(name, &options).await;
    deleted.expect("the pod is deleted");
}

#[tokio::test(start_paused = true)]
async fn nodes_say_what_they_have_and_that_nothing_runs() {
    let cluster = cluster().await;
    let node = cluster.find(&NODES, "pretend-1").await.unwrap();
    assert_eq!(
        node.meta().label("kubernetes.io/hostname"),
        Some("pretend-1")
    );
    assert_eq!(node.meta().label(node::PRETEND), Some("true"));
    assert_eq!(node.str_at("/status/allocatable/cpu"), "32");
    assert_eq!(node.str_at("/status/capacity/pods"), "1k");
    assert!(condition(&node, "Ready").unwrap().is_true());
    assert!(!condition(&node, "MemoryPressure").unwrap().is_true());
    assert!(
        node.str_at("/status/nodeInfo/osImage")
            .contains("no container runs")
    );
    assert_eq!(node.str_at("/status/nodeInfo/kubeletVersion"), "v1.36.4");
    assert_eq!(node.str_at("/status/addresses/1/address"), "pretend-1");
    assert!(node.at("/spec/taints").is_null());
}

#[tokio::test(start_paused = true)]
async fn leases_are_renewed_and_nodes_report() {
    let cluster = cluster().await;
    let lease = async |c: &Cluster| c.find(&LEASES, "kube-node-lease/pretend-0").await;
    cluster.until(async |c| lease(c).await.is_some()).await;
    let first = lease(&cluster).await.unwrap();
    assert_eq!(first.str_at("/spec/holderIdentity"), "pretend-0");
    assert_eq!(first.at("/spec/leaseDurationSeconds").as_i64(), Some(40));
    assert_eq!(first.str_at("/metadata/ownerReferences/0/kind"), "Node");
    cluster.pass(Duration::from_secs(25)).await;
    let later = lease(&cluster).await.unwrap();
    assert_ne!(
        first.str_at("/spec/renewTime"),
        later.str_at("/spec/renewTime")
    );
    let heartbeat = async |c: &Cluster| {
        let node = c.find(&NODES, "pretend-0").await.unwrap();
        let all = node.at("/status/conditions").items().to_vec();
        let ready = all
            .iter()
            .find(|one| one.str_at("/type") == "Ready")
            .unwrap()
            .clone();
        ready.str_at("/lastHeartbeatTime").parse::<Time>().unwrap()
    };
    let before = heartbeat(&cluster).await;
    cluster.pass(Duration::from_secs(301)).await;
    assert!(heartbeat(&cluster).await > before);
}

#[tokio::test(start_paused = true)]
async fn pod_is_created_then_runs_and_is_ready() {
    let cluster = cluster().await;
    cluster
        .create_doc(&pod(
            "p",
            &[(node::START_AFTER, "2s"), (node::READY_AFTER, "3s")],
        ))
        .await;
    let creating = until(&cluster, "p", |pod| !container(pod).is_null()).await;
    assert_eq!(creating.str_at("/status/phase"), "Pending");
    assert_eq!(
        container(&creating).str_at("/state/waiting/reason"),
        "ContainerCreating"
    );
    let ready = condition(&creating, "Ready").unwrap();
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "ContainersNotReady")
    );
    assert_eq!(ready.message, "containers with unready status: [web]");
    assert!(condition(&creating, "Initialized").unwrap().is_true());
    assert!(
        !condition(&creating, "PodReadyToStartContainers")
            .unwrap()
            .is_true()
    );
    assert!(condition(&creating, "PodScheduled").unwrap().is_true());
    assert!(!creating.str_at("/status/startTime").is_empty());
    let running = until(&cluster, "p", has_phase("Running")).await;
    assert!(!is_ready(&running));
    assert_eq!(container(&running).at("/started").as_bool(), Some(true));
    assert!(
        container(&running)
            .str_at("/containerID")
            .starts_with("windlass://")
    );
    let ready = until(&cluster, "p", is_ready).await;
    assert!(condition(&ready, "ContainersReady").unwrap().is_true());
    assert_eq!(ready.str_at("/status/hostIP"), "172.18.0.2");
    assert!(ready.str_at("/status/podIP").starts_with("10."));
    assert_eq!(
        ready.str_at("/status/podIPs/0/ip"),
        ready.str_at("/status/podIP")
    );
    let since = |pod: &Doc, kind: &str| condition(pod, kind).unwrap().last_transition_time.unwrap();
    let took = since(&ready, "Ready").since(since(&ready, "Initialized"));
    assert_eq!(took, Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn usual_pod_takes_one_write() {
    let cluster = cluster().await;
    let created = cluster.create_doc(&pod("p", &[])).await;
    let options = WatchOptions::from(created.meta().resource_version());
    let mut watch = cluster.api(&PODS, "default").watch(&options).await.unwrap();
    let first = watch.next().await.unwrap().unwrap();
    let WatchEvent::Modified(first) = first else {
        panic!("the status was written, not {first:?}");
    };
    assert!(is_ready(&first));
    cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(
        find(&cluster, "p").await.meta().resource_version(),
        first.meta().resource_version(),
        "nothing is written without need"
    );
}

#[tokio::test(start_paused = true)]
async fn pods_have_addresses_of_their_own() {
    let cluster = cluster().await;
    cluster.create_doc(&pod("p", &[])).await;
    cluster.create_doc(&pod("q", &[])).await;
    let host = set(&pod("host", &[]), "/spec/hostNetwork", true);
    cluster.create_doc(&host).await;
    let mut addresses = Vec::new();
    for name in ["p", "q", "host"] {
        let pod = until(&cluster, name, is_ready).await;
        addresses.push(pod.str_at("/status/podIP").to_owned());
    }
    assert_ne!(addresses[0], addresses[1]);
    assert_eq!(addresses[2], "172.18.0.2");
}

#[tokio::test(start_paused = true)]
async fn pod_without_restarts_ends_as_its_exit_code_says() {
    let cluster = cluster().await;
    let job = |name: &str, policy: &str, code: &str| {
        let pod = pod(name, &[(node::EXIT_AFTER, "3s"), (node::EXIT_CODE, code)]);
        set(&pod, "/spec/restartPolicy", policy)
    };
    cluster.create_doc(&job("good", "Never", "0")).await;
    cluster.create_doc(&job("bad", "Never", "3")).await;
    cluster.create_doc(&job("once", "OnFailure", "0")).await;
    let good = until(&cluster, "good", has_phase("Succeeded")).await;
    let ended = container(&good).at("/state/terminated");
    assert_eq!(ended.at("/exitCode").as_i64(), Some(0));
    assert_eq!(ended.str_at("/reason"), "Completed");
    let (from, to): (Time, Time) = (
        ended.str_at("/startedAt").parse().unwrap(),
        ended.str_at("/finishedAt").parse().unwrap(),
    );
    assert_eq!(to.since(from), Duration::from_secs(3));
    assert_eq!(condition(&good, "Ready").unwrap().reason, "PodCompleted");
    let bad = until(&cluster, "bad", has_phase("Failed")).await;
    assert_eq!(
        container(&bad).at("/state/terminated/exitCode").as_i64(),
        Some(3)
    );
    assert_eq!(container(&bad).str_at("/state/terminated/reason"), "Error");
    until(&cluster, "once", has_phase("Succeeded")).await;
}

#[tokio::test(start_paused = true)]
async fn pod_that_is_not_always_restarted_ends_without_an_annotation() {
    let options = Options::default();
    let cluster = cluster_with(&options).await;
    for (name, policy) in [("once", "Never"), ("retried", "OnFailure")] {
        let job = set(&pod(name, &[]), "/spec/restartPolicy", policy);
        cluster.create_doc(&job).await;
        let done = until(&cluster, name, has_phase("Succeeded")).await;
        let ended = container(&done).at("/state/terminated");
        let time = |at: &str| ended.str_at(at).parse::<Time>().unwrap();
        let ran = time("/finishedAt").since(time("/startedAt"));
        assert_eq!(ran, node::EXIT_AFTER_DEFAULT);
        assert_eq!(ended.at("/exitCode").as_i64(), Some(0));
    }
    cluster.create_doc(&pod("served", &[])).await;
    let lasting = pod("lasting", &[(node::EXIT_AFTER, node::NEVER)]);
    let lasting = set(&lasting, "/spec/restartPolicy", "Never");
    cluster.create_doc(&lasting).await;
    let failing = pod("failing", &[(node::EXIT_CODE, "3")]);
    let failing = set(&failing, "/spec/restartPolicy", "Never");
    cluster.create_doc(&failing).await;
    let failed = until(&cluster, "failing", has_phase("Failed")).await;
    assert_eq!(*container(&failed).at("/state/terminated/exitCode"), 3);
    cluster.pass(Duration::from_secs(3600)).await;
    for name in ["served", "lasting"] {
        let running = find(&cluster, name).await;
        assert!(is_ready(&running), "{name} runs until it is stopped");
    }
}

#[tokio::test(start_paused = true)]
async fn pod_with_work_to_finish_that_is_deleted_has_failed() {
    let cluster = cluster().await;
    let job = set(&held(&pod("p", &[])), "/spec/restartPolicy", "Never");
    let job = cluster.create_doc(&job).await;
    until(&cluster, "p", is_ready).await;
    delete(&cluster, "p", None).await;
    let failed = until(&cluster, "p", has_phase("Failed")).await;
    assert_eq!(*container(&failed).at("/state/terminated/exitCode"), 143);
    let_go(&cluster, &job).await;
    until_gone(&cluster, "p").await;
}

#[tokio::test(start_paused = true)]
async fn crashing_pod_is_restarted_with_growing_delays() {
    let cluster = cluster().await;
    cluster
        .create_doc(&pod("p", &[(node::CRASH, "true")]))
        .await;
    let reason = |pod: &Doc| container(pod).str_at("/state/waiting/reason").to_owned();
    let looping = until(&cluster, "p", |pod| reason(pod) == "CrashLoopBackOff").await;
    assert_eq!(looping.str_at("/status/phase"), "Running");
    let status = container(&looping);
    assert_eq!(
        status.at("/lastState/terminated/exitCode").as_i64(),
        Some(1)
    );
    let message = status.str_at("/state/waiting/message");
    assert!(
        message.starts_with("back-off 10s restarting failed container=web"),
        "{message}"
    );
    assert!(!is_ready(&looping));
    let restarts = |pod: &Doc| container(pod).at("/restartCount").as_i64().unwrap();
    assert_eq!(restarts(&looping), 1, "it counts starts, not exits");
    assert_eq!(
        status.at("/lastState/terminated/containerID"),
        status.at("/containerID")
    );
    let began = tokio::time::Instant::now();
    cluster.pass(Duration::from_secs(28)).await;
    assert_eq!(restarts(&find(&cluster, "p").await), 2);
    until(&cluster, "p", |pod| restarts(pod) >= 3).await;
    let took = began.elapsed().as_secs();
    assert!((29..=31).contains(&took), "10 s and 20 s, not {took} s");
}

#[tokio::test(start_paused = true)]
async fn failed_job_is_restarted_until_it_succeeds() {
    let cluster = cluster().await;
    let job = pod("p", &[(node::EXIT_AFTER, "1s"), (node::EXIT_CODE, "1")]);
    let job = cluster
        .create_doc(&set(&job, "/spec/restartPolicy", "OnFailure"))
        .await;
    until(&cluster, "p", |pod| {
        container(pod).at("/restartCount").as_i64() == Some(2)
    })
    .await;
    let patch = doc!({ "metadata": { "annotations": { (node::EXIT_CODE): "0" } } });
    cluster.patch(&job, patch).await;
    let done = until(&cluster, "p", has_phase("Succeeded")).await;
    assert_eq!(container(&done).at("/restartCount").as_i64(), Some(2));
}

#[tokio::test(start_paused = true)]
async fn deleted_pod_stops_within_its_grace_and_is_removed() {
    let cluster = cluster().await;
    cluster
        .create_doc(&pod("p", &[(node::STOP_AFTER, "5s")]))
        .await;
    until(&cluster, "p", is_ready).await;
    delete(&cluster, "p", None).await;
    cluster.pass(Duration::from_secs(4)).await;
    let going = find(&cluster, "p").await;
    assert!(going.meta().is_deleting());
    assert_eq!(going.str_at("/status/phase"), "Running");
    cluster.pass(Duration::from_secs(2)).await;
    assert!(cluster.find(&PODS, "default/p").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn pod_that_takes_too_long_to_stop_is_killed() {
    let cluster = cluster().await;
    let slow = pod("p", &[(node::STOP_AFTER, "1h")]);
    let held = set(&slow, "/metadata/finalizers", doc!(["example.com/hold"]));
    let held = cluster.create_doc(&held).await;
    until(&cluster, "p", is_ready).await;
    delete(&cluster, "p", Some(7)).await;
    let began = tokio::time::Instant::now();
    let killed = until(&cluster, "p", has_phase("Failed")).await;
    assert_eq!(began.elapsed().as_secs(), 7);
    assert_eq!(
        container(&killed).at("/state/terminated/exitCode").as_i64(),
        Some(137)
    );
    cluster
        .patch(&held, doc!({ "metadata": { "finalizers": null } }))
        .await;
    until_gone(&cluster, "p").await;
}

#[tokio::test(start_paused = true)]
async fn pod_deleted_before_it_started_goes_at_once() {
    let cluster = cluster().await;
    cluster
        .create_doc(&pod("p", &[(node::NEVER_START, "ImagePullBackOff")]))
        .await;
    let stuck = until(&cluster, "p", |pod| !container(pod).is_null()).await;
    assert_eq!(
        container(&stuck).str_at("/state/waiting/reason"),
        "ImagePullBackOff"
    );
    cluster.pass(Duration::from_secs(600)).await;
    assert_eq!(find(&cluster, "p").await.str_at("/status/phase"), "Pending");
    delete(&cluster, "p", None).await;
    until_gone(&cluster, "p").await;
}

/// A pod that stays when it is deleted, until its finalizer is taken away.
fn held(pod: &Doc) -> Doc {
    set(pod, "/metadata/finalizers", doc!(["example.com/hold"]))
}

async fn let_go(cluster: &Cluster, pod: &Doc) {
    let patch = doc!({ "metadata": { "finalizers": null } });
    cluster.patch(pod, patch).await;
    until_gone(cluster, pod.meta().name()).await;
}

#[tokio::test(start_paused = true)]
async fn pod_deleted_before_it_started_has_failed() {
    let cluster = cluster().await;
    for (name, annotation) in [
        ("stuck", (node::NEVER_START, "ImagePullBackOff")),
        ("slow", (node::START_AFTER, "1h")),
    ] {
        let pod = cluster.create_doc(&held(&pod(name, &[annotation]))).await;
        until(&cluster, name, |pod| !container(pod).is_null()).await;
        delete(&cluster, name, None).await;
        let failed = until(&cluster, name, has_phase("Failed")).await;
        let ended = container(&failed).at("/state/terminated");
        assert_eq!(ended.at("/exitCode").as_i64(), Some(137));
        assert_eq!(ended.str_at("/reason"), "ContainerStatusUnknown");
        assert_eq!(
            ended.str_at("/message"),
            "The container could not be located when the pod was terminated"
        );
        assert_eq!(ended.str_at("/startedAt"), "");
        assert_eq!(container(&failed).str_at("/containerID"), "");
        let ready = condition(&failed, "Ready").unwrap();
        assert_eq!(ready.reason, "ContainersNotReady");
        assert_eq!(failed.str_at("/status/podIP"), "");
        cluster.pass(Duration::from_secs(60)).await;
        let later = find(&cluster, name).await;
        assert_eq!(later.at("/status"), failed.at("/status"));
        assert_eq!(later.at("/metadata/deletionGracePeriodSeconds"), 0);
        let_go(&cluster, &pod).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pod_deleted_before_it_was_initialized_has_lost_one_container() {
    let cluster = cluster().await;
    let inits = doc!([{ "name": "one", "image": "i" }, { "name": "two", "image": "i" }]);
    let slow = pod("p", &[(node::START_AFTER, "1h")]);
    let slow = held(&set(&slow, "/spec/initContainers", inits));
    let slow = cluster.create_doc(&slow).await;
    until(&cluster, "p", |pod| !container(pod).is_null()).await;
    delete(&cluster, "p", None).await;
    let failed = until(&cluster, "p", has_phase("Failed")).await;
    let inits = failed.at("/status/initContainerStatuses");
    assert_eq!(
        inits.str_at("/0/state/terminated/reason"),
        "ContainerStatusUnknown"
    );
    assert!(!inits.at("/1/state/waiting").is_null());
    assert_eq!(
        container(&failed).str_at("/state/waiting/reason"),
        "PodInitializing"
    );
    let initialized = condition(&failed, "Initialized").unwrap();
    assert_eq!(initialized.reason, "ContainersNotInitialized");
    let_go(&cluster, &slow).await;
}

#[tokio::test(start_paused = true)]
async fn pod_deleted_between_restarts_has_ended_as_it_last_did() {
    let cluster = cluster().await;
    for (name, code, phase, reason) in [
        ("bad", "3", "Failed", "PodFailed"),
        ("good", "0", "Succeeded", "PodCompleted"),
    ] {
        let exits = [(node::EXIT_AFTER, "1s"), (node::EXIT_CODE, code)];
        let pod = cluster.create_doc(&held(&pod(name, &exits))).await;
        let waits =
            |pod: &Doc| container(pod).str_at("/state/waiting/reason") == "CrashLoopBackOff";
        let waiting = until(&cluster, name, waits).await;
        delete(&cluster, name, None).await;
        let ended = until(&cluster, name, has_phase(phase)).await;
        let last = container(&waiting).at("/lastState/terminated");
        let state = container(&ended).at("/state/terminated");
        for key in [
            "/exitCode",
            "/reason",
            "/startedAt",
            "/finishedAt",
            "/containerID",
        ] {
            assert_eq!(state.at(key), last.at(key), "{key}");
        }
        assert_eq!(state.at("/exitCode").to_string(), code);
        assert_eq!(
            container(&ended).at("/restartCount"),
            container(&waiting).at("/restartCount")
        );
        assert_eq!(condition(&ended, "Ready").unwrap().reason, reason);
        let_go(&cluster, &pod).await;
    }
}

#[tokio::test(start_paused = true)]
async fn restarted_agent_ends_pods_as_the_first_would() {
    let cluster = Cluster::start().await;
    let run = |cluster: &Cluster| {
        cluster.run_with("nodes", |manager| {
            node::add_to(manager, &Options::default())
        })
    };
    let first = run(&cluster);
    let looping = held(&pod("p", &[(node::CRASH, "true")]));
    let looping = cluster.create_doc(&looping).await;
    let waits = |pod: &Doc| container(pod).str_at("/state/waiting/reason") == "CrashLoopBackOff";
    until(&cluster, "p", waits).await;
    first.abort();
    delete(&cluster, "p", None).await;
    run(&cluster);
    let failed = until(&cluster, "p", has_phase("Failed")).await;
    let code = container(&failed).at("/state/terminated/exitCode");
    assert_eq!(code.as_i64(), Some(1));
    let_go(&cluster, &looping).await;
}

#[tokio::test(start_paused = true)]
async fn init_containers_end_before_the_others_start() {
    let cluster = cluster().await;
    let inits = doc!([
        { "name": "setup", "image": "i" }, { "name": "side", "image": "s", "restartPolicy": "Always" },
    ]);
    let pod = set(
        &pod("p", &[(node::START_AFTER, "5s")]),
        "/spec/initContainers",
        inits,
    );
    cluster.create_doc(&pod).await;
    let creating = until(&cluster, "p", |pod| !container(pod).is_null()).await;
    assert_eq!(
        container(&creating).str_at("/state/waiting/reason"),
        "PodInitializing"
    );
    let initialized = condition(&creating, "Initialized").unwrap();
    assert_eq!(initialized.reason, "ContainersNotInitialized");
    assert_eq!(
        initialized.message,
        "containers with incomplete status: [setup side]"
    );
    let ready = until(&cluster, "p", is_ready).await;
    let inits = ready.at("/status/initContainerStatuses");
    assert_eq!(inits.str_at("/0/state/terminated/reason"), "Completed");
    assert!(!inits.str_at("/1/state/running/startedAt").is_empty());
    assert!(condition(&ready, "Initialized").unwrap().is_true());
}

#[tokio::test(start_paused = true)]
async fn readiness_gates_and_probes_delay_readiness() {
    let cluster = cluster().await;
    let gated = set(
        &pod("p", &[]),
        "/spec/readinessGates",
        doc!([{ "conditionType": "example.com/up" }]),
    );
    let gated = cluster.create_doc(&gated).await;
    let waiting = until(&cluster, "p", has_phase("Running")).await;
    assert_eq!(
        condition(&waiting, "Ready").unwrap().reason,
        "ReadinessGatesNotReady"
    );
    assert!(condition(&waiting, "ContainersReady").unwrap().is_true());
    let mut conditions = waiting.at("/status/conditions").items().to_vec();
    conditions.push(doc!({ "type": "example.com/up", "status": "True" }));
    cluster
        .patch_status(&gated, doc!({ "conditions": conditions }))
        .await;
    let ready = until(&cluster, "p", is_ready).await;
    assert!(condition(&ready, "example.com/up").unwrap().is_true());
    let probe = doc!({ "httpGet": { "port": 80 }, "initialDelaySeconds": 3 });
    let probed = set(
        &pod("probed", &[]),
        "/spec/containers/0/readinessProbe",
        probe,
    );
    cluster.create_doc(&probed).await;
    until(&cluster, "probed", has_phase("Running")).await;
    let began = tokio::time::Instant::now();
    until(&cluster, "probed", is_ready).await;
    assert!((2..=4).contains(&began.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn pod_that_is_active_for_too_long_fails() {
    let cluster = cluster().await;
    let lasting = pod("p", &[(node::EXIT_AFTER, node::NEVER)]);
    let job = set(&lasting, "/spec/activeDeadlineSeconds", 5);
    cluster
        .create_doc(&set(&job, "/spec/restartPolicy", "Never"))
        .await;
    let failed = until(&cluster, "p", has_phase("Failed")).await;
    assert_eq!(failed.str_at("/status/reason"), "DeadlineExceeded");
}

#[tokio::test(start_paused = true)]
async fn restarted_agent_goes_on_where_it_was() {
    let cluster = Cluster::start().await;
    let first = cluster.run_with("nodes", |manager| {
        node::add_to(manager, &Options::default())
    });
    let job = pod("p", &[(node::EXIT_AFTER, "10s")]);
    cluster
        .create_doc(&set(&job, "/spec/restartPolicy", "Never"))
        .await;
    let running = until(&cluster, "p", is_ready).await;
    cluster.pass(Duration::from_secs(6)).await;
    first.abort();
    cluster.run_with("nodes", |manager| {
        node::add_to(manager, &Options::default())
    });
    let began = tokio::time::Instant::now();
    let done = until(&cluster, "p", has_phase("Succeeded")).await;
    assert!((3..=5).contains(&began.elapsed().as_secs()));
    assert_eq!(
        done.str_at("/status/podIP"),
        running.str_at("/status/podIP")
    );
    assert_eq!(cluster.list_docs(&NODES, "", "").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn pods_on_other_nodes_are_left_alone() {
    let cluster = cluster().await;
    cluster
        .create_doc(&set(&pod("p", &[]), "/spec/nodeName", "elsewhere"))
        .await;
    cluster.pass(Duration::from_secs(60)).await;
    let left = find(&cluster, "p").await;
    assert_eq!(left.str_at("/status/phase"), "Pending");
    assert!(left.at("/status/containerStatuses").is_null());
}

#[tokio::test(start_paused = true)]
async fn status_of_others_survives_a_conflict() {
    let cluster = cluster().await;
    let claim = doc!([{ "name": "gpu", "resourceClaimTemplateName": "gpu" }]);
    let pod = pod("p", &[(node::START_AFTER, "10s")]);
    let pod = pod.with("/spec/resourceClaims", claim).unwrap();
    let created = cluster.create_doc(&pod).await;
    until(&cluster, "p", |pod| !container(pod).is_null()).await;
    cluster.pass(Duration::from_millis(9_999)).await;
    let claims = doc!([{ "name": "gpu", "resourceClaimName": "p-gpu" }]);
    cluster
        .patch_status(
            &created,
            doc!({ "resourceClaimStatuses": (claims.clone()) }),
        )
        .await;
    let ready = until(&cluster, "p", is_ready).await;
    assert_eq!(*ready.at("/status/resourceClaimStatuses"), claims);
}

/// Devices that become free when a test says so.
#[derive(Default)]
struct Devices {
    is_free: Mutex<bool>,
    log: Mutex<Vec<String>>,
}

impl PodResources for Devices {
    fn prepare(&self, node: &str, pod: &Doc) -> Result<(), String> {
        if !*self.is_free.lock() {
            return Err("no device is free".to_owned());
        }
        let name = pod.meta().name();
        self.log.lock().push(format!("prepare {name} on {node}"));
        Ok(())
    }

    fn unprepare(&self, _node: &str, pod: &Doc) {
        let name = pod.meta().name();
        self.log.lock().push(format!("unprepare {name}"));
    }
}

#[tokio::test(start_paused = true)]
async fn pod_starts_when_what_it_needs_is_prepared() {
    let devices = Arc::new(Devices::default());
    let mut options = Options::default();
    options.resources = Some(devices.clone());
    let cluster = cluster_with(&options).await;
    cluster.create_doc(&pod("p", &[])).await;
    cluster.pass(Duration::from_secs(5)).await;
    let waiting = find(&cluster, "p").await;
    assert_eq!(
        container(&waiting).str_at("/state/waiting/reason"),
        "ContainerCreating"
    );
    let events = cluster.list_docs(&EVENTS, "default", "").await;
    assert_eq!(events[0].str_at("/reason"), "FailedPrepareDynamicResources");
    *devices.is_free.lock() = true;
    until(&cluster, "p", is_ready).await;
    delete(&cluster, "p", None).await;
    until_gone(&cluster, "p").await;
    cluster.pass(Duration::from_secs(1)).await;
    let log = devices.log.lock();
    assert_eq!(log[0], "prepare p on pretend-0");
    assert!(log[1..].iter().all(|line| line == "unprepare p") && log.len() > 1);
}

#[tokio::test(start_paused = true)]
async fn many_pods_on_one_node_become_ready_and_go() {
    let cluster = cluster().await;
    for number in 0..200 {
        cluster.create_doc(&pod(&format!("p{number}"), &[])).await;
    }
    cluster
        .until(async |c| c.list_docs(&PODS, "default", "").await.iter().all(is_ready))
        .await;
    let api = cluster.api(&PODS, "default");
    for number in 0..200 {
        api.delete(&format!("p{number}"), &DeleteOptions::default())
            .await
            .unwrap();
    }
    cluster
        .until(async |c| c.list_docs(&PODS, "default", "").await.is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn shorter_grace_ends_a_pod_that_is_already_stopping() {
    let cluster = cluster().await;
    cluster
        .create_doc(&pod("p", &[(node::STOP_AFTER, "1h")]))
        .await;
    until(&cluster, "p", is_ready).await;
    delete(&cluster, "p", Some(3600)).await;
    cluster.pass(Duration::from_secs(60)).await;
    assert!(find(&cluster, "p").await.meta().is_deleting());
    delete(&cluster, "p", Some(2)).await;
    cluster.pass(Duration::from_secs(5)).await;
    assert!(cluster.find(&PODS, "default/p").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn closed_readiness_gate_takes_readiness_back() {
    let cluster = cluster().await;
    let gate = doc!([{ "conditionType": "example.com/up" }]);
    let gated = set(&pod("p", &[]), "/spec/readinessGates", gate);
    let gated = cluster.create_doc(&gated).await;
    until(&cluster, "p", has_phase("Running")).await;
    for (status, is_up) in [("True", true), ("False", false), ("True", true)] {
        let now = find(&cluster, "p").await;
        let others = now.at("/status/conditions").items().iter();
        let others = others.filter(|one| one.str_at("/type") != "example.com/up");
        let gate = doc!({ "type": "example.com/up", "status": status });
        let conditions: Vec<Doc> = others.cloned().chain([gate]).collect();
        cluster
            .patch_status(&gated, doc!({ "conditions": conditions }))
            .await;
        let shown = until(&cluster, "p", |pod| is_ready(pod) == is_up).await;
        assert!(condition(&shown, "ContainersReady").unwrap().is_true());
    }
}

#[tokio::test(start_paused = true)]
async fn annotation_of_a_running_pod_changes_what_it_does() {
    let cluster = cluster().await;
    let lasting = pod("p", &[(node::EXIT_AFTER, node::NEVER)]);
    let job = set(&lasting, "/spec/restartPolicy", "OnFailure");
    let job = cluster.create_doc(&job).await;
    until(&cluster, "p", is_ready).await;
    cluster.pass(Duration::from_secs(3600)).await;
    let exit = doc!({ "metadata": { "annotations": { (node::EXIT_AFTER): "0s" } } });
    cluster.patch(&job, exit).await;
    let done = until(&cluster, "p", has_phase("Succeeded")).await;
    assert!(!is_ready(&done));
    assert_eq!(condition(&done, "Ready").unwrap().reason, "PodCompleted");
}

#[tokio::test(start_paused = true)]
async fn stopped_pod_that_is_held_stays_as_it_ended() {
    let cluster = cluster().await;
    let held = set(
        &pod("p", &[]),
        "/metadata/finalizers",
        doc!(["example.com/hold"]),
    );
    let held = cluster.create_doc(&held).await;
    until(&cluster, "p", is_ready).await;
    delete(&cluster, "p", None).await;
    let ended = until(&cluster, "p", has_phase("Succeeded")).await;
    cluster.pass(Duration::from_secs(600)).await;
    let after = find(&cluster, "p").await;
    assert_eq!(after.at("/status"), ended.at("/status"));
    // Whoever marks it does not bring it back to life.
    let mark = doc!({ "metadata": { "labels": { "mark": "x" } } });
    cluster.patch(&held, mark).await;
    cluster.pass(Duration::from_secs(600)).await;
    let after = find(&cluster, "p").await;
    assert_eq!(after.at("/status"), ended.at("/status"));
    cluster
        .patch(&held, doc!({ "metadata": { "finalizers": null } }))
        .await;
    until_gone(&cluster, "p").await;
}

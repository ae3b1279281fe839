//! Containers of pretend pods: what the status shows of them, as a kubelet would write it.

use std::time::Duration;

use windlass_client::{Patch, WriteOptions};
use windlass_core::{Doc, Gvr, Time, condition, doc};
use windlass_placement::node::{self, Options};
use windlass_testing::Cluster;

use crate::support::{NODES, PODS, events_of, find, set};

/// How often a pod is looked at, and how many times.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
const LOOKS: usize = 10_000;

const LEASES: Gvr = Gvr::constant("coordination.k8s.io", "v1", "leases");

/// A pod on the first node.
fn pod(annotations: &[(&str, &str)], spec: &Doc) -> Doc {
    let annotations = annotations
        .iter()
        .map(|(key, value)| (*key, Doc::from(*value)));
    let annotations: windlass_core::Object = annotations.collect();
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "p", "namespace": "default", "annotations": annotations },
        "spec": spec,
    });
    set(&pod, "/spec/nodeName", "pretend-0")
}

fn one(container: &Doc) -> Doc {
    let container = set(container, "/name", "web");
    let container = set(&container, "/image", "web:1");
    doc!({ "containers": [container] })
}

fn plain() -> Doc {
    one(&doc!({ "name": "web" }))
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

/// Creates a pod and waits for a state of it.
async fn run(pod: &Doc, holds: impl Fn(&Doc) -> bool) -> (Cluster, Doc) {
    let cluster = cluster().await;
    cluster.create_doc(pod).await;
    let found = until(&cluster, holds).await;
    (cluster, found)
}

/// Waits for a state of the pod. Looks now and then only: hours pass in some of these tests.
async fn until(cluster: &Cluster, holds: impl Fn(&Doc) -> bool) -> Doc {
    for _ in 0..LOOKS {
        let found = find(cluster, "p").await;
        if holds(&found) {
            return found;
        }
        cluster.pass(LOOK_INTERVAL).await;
    }
    panic!(
        "the pod is still {:?}",
        find(cluster, "p").await.at("/status")
    );
}

fn has_phase(phase: &str) -> impl Fn(&Doc) -> bool {
    move |pod| pod.str_at("/status/phase") == phase
}

fn is_ready(pod: &Doc) -> bool {
    windlass_workloads::is_pod_ready(pod)
}

fn main(pod: &Doc) -> &Doc {
    pod.at("/status/containerStatuses/0")
}

fn waits_with(reason: &str) -> impl Fn(&Doc) -> bool {
    move |pod| main(pod).str_at("/state/waiting/reason") == reason
}

async fn reasons(cluster: &Cluster) -> Vec<String> {
    let events = events_of(cluster, "p").await;
    events.into_iter().map(|(reason, _)| reason).collect()
}

#[tokio::test(start_paused = true)]
async fn init_containers_run_one_after_the_other() {
    let spec = doc!({
        "initContainers": [
            { "name": "one", "image": "i" }, { "name": "two", "image": "i" },
        ],
        "containers": [{ "name": "web", "image": "web:1" }],
    });
    let times = [
        ("windlass.dev/exit-after.one", "5s"),
        ("windlass.dev/exit-after.two", "7s"),
    ];
    let first = |pod: &Doc| {
        !pod.at("/status/initContainerStatuses/0/state/running")
            .is_null()
    };
    let (cluster, shown) = run(&pod(&times, &spec), first).await;
    assert_eq!(shown.str_at("/status/phase"), "Pending");
    assert_eq!(
        shown.str_at("/status/initContainerStatuses/1/state/waiting/reason"),
        "PodInitializing"
    );
    assert_eq!(
        main(&shown).str_at("/state/waiting/reason"),
        "PodInitializing"
    );
    let waiting = condition(&shown, "Initialized").unwrap();
    assert_eq!(
        waiting.message,
        "containers with incomplete status: [one two]"
    );
    assert!(
        condition(&shown, "PodReadyToStartContainers")
            .unwrap()
            .is_true()
    );
    let second = |pod: &Doc| {
        !pod.at("/status/initContainerStatuses/1/state/running")
            .is_null()
    };
    let shown = until(&cluster, second).await;
    let done = shown.at("/status/initContainerStatuses/0");
    assert_eq!(done.str_at("/state/terminated/reason"), "Completed");
    assert_eq!(*done.at("/ready"), true);
    let waiting = condition(&shown, "Initialized").unwrap();
    assert_eq!(waiting.message, "containers with incomplete status: [two]");
    let ready = until(&cluster, is_ready).await;
    let since = |kind: &str| {
        condition(&ready, kind)
            .unwrap()
            .last_transition_time
            .unwrap()
    };
    let started: Time = ready.str_at("/status/startTime").parse().unwrap();
    assert_eq!(since("Ready").since(started), Duration::from_secs(12));
}

#[tokio::test(start_paused = true)]
async fn failed_init_container_fails_the_pod_or_is_restarted() {
    let spec = |policy: &str| {
        doc!({
            "restartPolicy": policy,
            "initContainers": [{ "name": "setup", "image": "i" }],
            "containers": [{ "name": "web", "image": "web:1" }],
        })
    };
    let code = [("windlass.dev/exit-code.setup", "3")];
    let (_, failed) = run(&pod(&code, &spec("Never")), has_phase("Failed")).await;
    let setup = failed.at("/status/initContainerStatuses/0");
    assert_eq!(*setup.at("/state/terminated/exitCode"), 3);
    assert_eq!(
        main(&failed).str_at("/state/waiting/reason"),
        "PodInitializing"
    );
    assert_eq!(condition(&failed, "Ready").unwrap().reason, "PodFailed");
    let loops = |pod: &Doc| {
        let setup = pod.at("/status/initContainerStatuses/0");
        setup.str_at("/state/waiting/reason") == "CrashLoopBackOff"
    };
    let (cluster, looping) = run(&pod(&code, &spec("Always")), loops).await;
    assert_eq!(looping.str_at("/status/phase"), "Pending");
    let mend = doc!({ "metadata": { "annotations": { "windlass.dev/exit-code.setup": "0" } } });
    cluster.patch(&looping, mend).await;
    let ready = until(&cluster, is_ready).await;
    let setup = ready.at("/status/initContainerStatuses/0");
    assert!(*setup.at("/restartCount") != 0, "{setup:?}");
}

#[tokio::test(start_paused = true)]
async fn sidecars_start_before_and_end_after_the_work() {
    let spec = doc!({
        "restartPolicy": "Never",
        "initContainers": [{
            "name": "side", "image": "s", "restartPolicy": "Always",
            "startupProbe": { "httpGet": { "port": 80 }, "initialDelaySeconds": 4 },
        }],
        "containers": [{ "name": "web", "image": "web:1" }],
    });
    let side_runs = |pod: &Doc| {
        !pod.at("/status/initContainerStatuses/0/state/running")
            .is_null()
    };
    let times = [(node::EXIT_AFTER, "10s"), (node::STOP_AFTER, "3s")];
    let (cluster, starting) = run(&pod(&times, &spec), side_runs).await;
    assert_eq!(
        *starting.at("/status/initContainerStatuses/0/started"),
        false
    );
    assert_eq!(
        main(&starting).str_at("/state/waiting/reason"),
        "PodInitializing"
    );
    let running = until(&cluster, has_phase("Running")).await;
    assert_eq!(*running.at("/status/initContainerStatuses/0/started"), true);
    let worked = |pod: &Doc| !main(pod).at("/state/terminated").is_null();
    let stopping = until(&cluster, worked).await;
    assert_eq!(
        stopping.str_at("/status/phase"),
        "Running",
        "the sidecar still runs"
    );
    let done = until(&cluster, has_phase("Succeeded")).await;
    let side = done.at("/status/initContainerStatuses/0/state/terminated");
    let time = |ended: &Doc| ended.str_at("/finishedAt").parse::<Time>().unwrap();
    let later = time(side).since(time(main(&done).at("/state/terminated")));
    assert_eq!(later, Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn each_container_restarts_for_itself() {
    let spec = doc!({ "containers": [
        { "name": "good", "image": "a" }, { "name": "bad", "image": "b" },
    ] });
    let crash = [("windlass.dev/crash.bad", "true")];
    let loops = |pod: &Doc| *pod.at("/status/containerStatuses/1/restartCount") == 2;
    let (_, shown) = run(&pod(&crash, &spec), loops).await;
    assert_eq!(*main(&shown).at("/restartCount"), 0);
    assert_eq!(*main(&shown).at("/ready"), true);
    let unready = condition(&shown, "ContainersReady").unwrap();
    assert_eq!(unready.message, "containers with unready status: [bad]");
    assert_eq!(shown.str_at("/status/phase"), "Running");
}

#[tokio::test(start_paused = true)]
async fn backoff_doubles_to_five_minutes_and_is_forgotten_after_a_stable_run() {
    let crash = [(node::CRASH, "true")];
    let message = |pod: &Doc| main(pod).str_at("/state/waiting/message").to_owned();
    let longest = |pod: &Doc| message(pod).starts_with("back-off 5m0s");
    let (cluster, shown) = run(&pod(&crash, &plain()), longest).await;
    assert_eq!(*main(&shown).at("/restartCount"), 6);
    assert_eq!(main(&shown).str_at("/lastState/terminated/reason"), "Error");
    let stable = doc!({ "metadata": { "annotations": {
        (node::CRASH): "false", (node::EXIT_AFTER): "11m", (node::EXIT_CODE): "1",
    } } });
    cluster.patch(&shown, stable).await;
    until(&cluster, is_ready).await;
    let again = |pod: &Doc| *main(pod).at("/restartCount") == 8;
    let began = tokio::time::Instant::now();
    until(&cluster, again).await;
    let took = began.elapsed().as_secs();
    assert!(
        (658..=663).contains(&took),
        "no back-off after 11 minutes, not {took} s"
    );
}

#[tokio::test(start_paused = true)]
async fn rules_of_a_container_decide_about_its_restart() {
    let container = doc!({
        "name": "web", "restartPolicy": "Never",
        "restartPolicyRules": [{
            "action": "Restart", "exitCodes": { "operator": "In", "values": [42] },
        }],
    });
    let spec = set(&one(&container), "/restartPolicy", "Never");
    let code = [(node::EXIT_CODE, "42"), (node::EXIT_AFTER, "1s")];
    let twice = |pod: &Doc| *main(pod).at("/restartCount") == 2;
    let (cluster, shown) = run(&pod(&code, &spec), twice).await;
    assert_eq!(shown.str_at("/status/phase"), "Running");
    let other = doc!({ "metadata": { "annotations": { (node::EXIT_CODE): "7" } } });
    cluster.patch(&shown, other).await;
    let failed = until(&cluster, has_phase("Failed")).await;
    assert_eq!(*main(&failed).at("/state/terminated/exitCode"), 7);
    assert_eq!(*main(&failed).at("/lastState/terminated/exitCode"), 42);
}

#[tokio::test(start_paused = true)]
async fn rule_restarts_all_containers_with_the_init_containers() {
    let spec = doc!({
        "restartPolicy": "Never",
        "initContainers": [{ "name": "setup", "image": "i" }],
        "containers": [
            { "name": "web", "image": "web:1" },
            {
                "name": "watcher", "image": "w", "restartPolicy": "Never",
                "restartPolicyRules": [{
                    "action": "RestartAllContainers",
                    "exitCodes": { "operator": "In", "values": [9] },
                }],
            },
        ],
    });
    let behaviour = [
        (node::EXIT_AFTER, node::NEVER),
        ("windlass.dev/exit-after.watcher", "5s"),
        ("windlass.dev/exit-code.watcher", "9"),
    ];
    let restarted = |pod: &Doc| *main(pod).at("/restartCount") == 1 && is_ready(pod);
    let (_, shown) = run(&pod(&behaviour, &spec), restarted).await;
    assert_eq!(*shown.at("/status/initContainerStatuses/0/restartCount"), 1);
    assert_eq!(
        main(&shown).str_at("/lastState/terminated/reason"),
        "RestartingAllContainers"
    );
    let all = condition(&shown, "AllContainersRestarting").unwrap();
    assert_eq!(all.status, "False");
}

#[tokio::test(start_paused = true)]
async fn liveness_probe_that_fails_restarts_the_container() {
    let probe = doc!({ "httpGet": { "port": 80 }, "periodSeconds": 5, "failureThreshold": 2 });
    let spec = one(&doc!({ "name": "web", "livenessProbe": probe }));
    let fails = [
        (node::FAIL_PROBE, "liveness"),
        (node::FAIL_PROBE_AFTER, "20s"),
    ];
    let (cluster, _) = run(&pod(&fails, &spec), is_ready).await;
    let began = tokio::time::Instant::now();
    let restarted = |pod: &Doc| *main(pod).at("/restartCount") == 1;
    let shown = until(&cluster, restarted).await;
    assert!((24..=26).contains(&began.elapsed().as_secs()));
    assert_eq!(*main(&shown).at("/lastState/terminated/exitCode"), 137);
    let told = events_of(&cluster, "p").await;
    let killing = (
        "Killing".to_owned(),
        "Container web failed liveness probe, will be restarted".to_owned(),
    );
    assert!(told.contains(&killing), "{told:?}");
    assert!(reasons(&cluster).await.contains(&"Unhealthy".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn readiness_probe_that_fails_takes_readiness_back() {
    let probe = doc!({ "httpGet": { "port": 80 }, "periodSeconds": 5, "failureThreshold": 3 });
    let spec = one(&doc!({ "name": "web", "readinessProbe": probe }));
    let fails = [
        (node::FAIL_PROBE, "readiness"),
        (node::FAIL_PROBE_AFTER, "20s"),
    ];
    let (cluster, ready) = run(&pod(&fails, &spec), is_ready).await;
    let unready = until(&cluster, |pod| !is_ready(pod)).await;
    assert_eq!(*main(&unready).at("/restartCount"), 0);
    assert!(!main(&unready).at("/state/running").is_null());
    let mend = doc!({ "metadata": { "annotations": { (node::FAIL_PROBE): null } } });
    cluster.patch(&ready, mend).await;
    until(&cluster, is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn startup_probe_that_fails_kills_the_container_before_it_has_started() {
    let probe = doc!({ "httpGet": { "port": 80 }, "periodSeconds": 10, "failureThreshold": 3 });
    let spec = one(&doc!({ "name": "web", "startupProbe": probe }));
    let fails = [(node::FAIL_PROBE, "startup")];
    let (cluster, starting) = run(&pod(&fails, &spec), has_phase("Running")).await;
    assert_eq!(*main(&starting).at("/started"), false);
    assert!(!is_ready(&starting));
    let began = tokio::time::Instant::now();
    until(&cluster, |pod| *main(pod).at("/restartCount") == 1).await;
    assert!((19..=21).contains(&began.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn image_that_cannot_be_named_or_pulled_keeps_its_container_waiting() {
    let named = set(&plain(), "/containers/0/image", "Not An Image");
    let (_, shown) = run(&pod(&[], &named), waits_with("InvalidImageName")).await;
    let message = main(&shown).str_at("/state/waiting/message");
    assert!(
        message.starts_with("Failed to apply default image tag"),
        "{message}"
    );
    assert_eq!(shown.str_at("/status/phase"), "Pending");
    let tagged = set(&plain(), "/containers/0/image", "web:pull-error");
    let (_, shown) = run(&pod(&[], &tagged), waits_with("ErrImagePull")).await;
    assert!(!is_ready(&shown));
    let broken = [(node::PULL_ERROR, "no such image")];
    let (cluster, shown) = run(&pod(&broken, &plain()), waits_with("ImagePullBackOff")).await;
    assert_eq!(
        main(&shown).str_at("/state/waiting/message"),
        "Back-off pulling image \"web:1\": ErrImagePull: no such image"
    );
    assert_eq!(main(&shown).str_at("/imageID"), "");
    let mend = doc!({ "metadata": { "annotations": { (node::PULL_ERROR): null } } });
    cluster.patch(&shown, mend).await;
    until(&cluster, is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn pod_whose_image_is_never_pulled_costs_little() {
    let broken = [(node::PULL_ERROR, "no such image")];
    let (cluster, _) = run(&pod(&broken, &plain()), waits_with("ImagePullBackOff")).await;
    cluster.pass(Duration::from_secs(3600)).await;
    let version = |pod: &Doc| pod.meta().resource_version().parse::<u64>().unwrap();
    let before = version(&find(&cluster, "p").await);
    cluster.pass(Duration::from_secs(3600)).await;
    // Two writes for each pull in five minutes; leases and events count, too.
    assert!(version(&find(&cluster, "p").await) - before < 1500);
}

#[tokio::test(start_paused = true)]
async fn ephemeral_container_is_started_and_never_restarted() {
    let (cluster, running) = run(&pod(&[], &plain()), is_ready).await;
    let ephemeral =
        doc!({ "spec": { "ephemeralContainers": [{ "name": "debug", "image": "sh" }] } });
    let api = cluster.api(&PODS, "default");
    let patch = Patch::Strategic(ephemeral);
    let options = WriteOptions::default();
    api.patch_part("p", "ephemeralcontainers", &patch, &options)
        .await
        .unwrap();
    let debug = |pod: &Doc| {
        !pod.at("/status/ephemeralContainerStatuses/0/state/running")
            .is_null()
    };
    let shown = until(&cluster, debug).await;
    assert!(is_ready(&shown));
    let exit = doc!({ "metadata": { "annotations": { "windlass.dev/exit-after.debug": "0s" } } });
    cluster.patch(&running, exit).await;
    let ended = |pod: &Doc| {
        !pod.at("/status/ephemeralContainerStatuses/0/state/terminated")
            .is_null()
    };
    let shown = until(&cluster, ended).await;
    assert_eq!(
        *shown.at("/status/ephemeralContainerStatuses/0/restartCount"),
        0
    );
    assert!(is_ready(&shown));
}

#[tokio::test(start_paused = true)]
async fn resize_is_taken_over_or_deferred() {
    let mut options = Options::default();
    options.capacity.cpu = "4".to_owned();
    let cluster = cluster_with(&options).await;
    let requests = doc!({ "requests": { "cpu": "1", "memory": "1Gi" } });
    let spec = set(&plain(), "/containers/0/resources", requests);
    let resized = pod(&[(node::RESIZE_AFTER, "5s")], &spec);
    cluster.create_doc(&resized).await;
    let other = set(&pod(&[], &spec), "/metadata/name", "other");
    cluster.create_doc(&other).await;
    until(&cluster, is_ready).await;
    let resize = async |cpu: &str| {
        let patch = doc!({ "spec": { "containers": [{
            "name": "web", "resources": { "requests": { "cpu": cpu } },
        }] } });
        let api = cluster.api(&PODS, "default");
        let options = WriteOptions::default();
        let patch = Patch::Strategic(patch);
        api.patch_part("p", "resize", &patch, &options).await
    };
    let resized = resize("2").await.expect("the pod may be resized");
    let generation = resized.meta().generation();
    let in_progress = |pod: &Doc| condition(pod, "PodResizeInProgress").is_some();
    let shown = until(&cluster, in_progress).await;
    assert_eq!(main(&shown).str_at("/resources/requests/cpu"), "1");
    assert_eq!(main(&shown).str_at("/allocatedResources/cpu"), "2");
    assert_eq!(shown.at("/status/observedGeneration"), generation);
    let shown = until(&cluster, |pod| !in_progress(pod)).await;
    assert_eq!(main(&shown).str_at("/resources/requests/cpu"), "2");
    assert_eq!(*main(&shown).at("/restartCount"), 0);
    // What no node of this size can hold is refused by the server.
    assert!(resize("9").await.unwrap_err().is_forbidden());
    let pending = |reason: &'static str| {
        move |pod: &Doc| {
            condition(pod, "PodResizePending").is_some_and(|found| found.reason == reason)
        }
    };
    resize("4").await.expect("the pod may be resized");
    let shown = until(&cluster, pending("Deferred")).await;
    assert_eq!(
        condition(&shown, "PodResizePending").unwrap().message,
        "Node didn't have enough resource: cpu, requested: 4000, used: 1000, capacity: 4000"
    );
    assert_eq!(main(&shown).str_at("/resources/requests/cpu"), "2");
    crate::support::force_delete(&cluster, "other").await;
    let shown = until(&cluster, |pod| {
        main(pod).str_at("/resources/requests/cpu") == "4"
    })
    .await;
    assert!(condition(&shown, "PodResizePending").is_none());
}

#[tokio::test(start_paused = true)]
async fn resize_policy_restarts_the_container() {
    let container = doc!({
        "name": "web",
        "resources": { "requests": { "cpu": "1" } },
        "resizePolicy": [{ "resourceName": "cpu", "restartPolicy": "RestartContainer" }],
    });
    let (cluster, _) = run(&pod(&[], &one(&container)), is_ready).await;
    let patch = doc!({ "spec": { "containers": [{
        "name": "web", "resources": { "requests": { "cpu": "2" } },
    }] } });
    let api = cluster.api(&PODS, "default");
    let options = WriteOptions::default();
    api.patch_part("p", "resize", &Patch::Strategic(patch), &options)
        .await
        .unwrap();
    let shown = until(&cluster, |pod| *main(pod).at("/restartCount") == 1).await;
    assert_eq!(main(&shown).str_at("/resources/requests/cpu"), "2");
}

#[tokio::test(start_paused = true)]
async fn status_shows_mounts_and_users_and_the_order_of_conditions() {
    let container = doc!({
        "name": "web",
        "securityContext": { "runAsUser": 1000 },
        "volumeMounts": [
            { "name": "data", "mountPath": "/data" },
            { "name": "data", "mountPath": "/ro", "readOnly": true },
        ],
    });
    let spec = set(
        &one(&container),
        "/volumes",
        doc!([{ "name": "data", "emptyDir": {} }]),
    );
    let context = doc!({ "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [4000] });
    let spec = set(&spec, "/securityContext", context);
    let spec = set(&spec, "/automountServiceAccountToken", false);
    let (_, shown) = run(&pod(&[], &spec), is_ready).await;
    assert_eq!(
        *main(&shown).at("/volumeMounts"),
        doc!([
            { "name": "data", "mountPath": "/data" },
            {
                "name": "data", "mountPath": "/ro", "readOnly": true,
                "recursiveReadOnly": "Disabled",
            },
        ])
    );
    assert_eq!(
        *main(&shown).at("/user/linux"),
        doc!({ "uid": 1000, "gid": 3000, "supplementalGroups": [2000, 3000, 4000] })
    );
    let kinds = shown.at("/status/conditions").items().iter();
    let kinds: Vec<&str> = kinds.map(|one| one.str_at("/type")).collect();
    let expected = [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(shown.str_at("/status/qosClass"), "BestEffort");
    assert_eq!(
        shown.at("/status/observedGeneration"),
        shown.at("/metadata/generation")
    );
}

#[tokio::test(start_paused = true)]
async fn pre_stop_hook_that_sleeps_uses_up_the_grace_period() {
    let hook = doc!({ "name": "web", "lifecycle": { "preStop": { "sleep": { "seconds": 8 } } } });
    let (cluster, running) = run(&pod(&[], &one(&hook)), is_ready).await;
    cluster
        .delete(&running, windlass_client::Propagation::Background)
        .await;
    cluster.pass(Duration::from_secs(8)).await;
    assert!(find(&cluster, "p").await.meta().is_deleting());
    cluster.pass(Duration::from_secs(2)).await;
    assert!(cluster.find(&PODS, "default/p").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn annotation_that_cannot_be_read_is_told_and_the_pod_runs() {
    let bad = [
        (node::READY_AFTER, "soon"),
        (node::EXIT_CODE, "1000"),
        (node::FAIL_PROBE, "liveness"),
        (node::CRASH, "perhaps"),
        ("windlass.dev/exit-cod", "1"),
        ("windlass.dev/exit-code.nobody", "1"),
    ];
    let (cluster, _) = run(&pod(&bad, &plain()), is_ready).await;
    let is_told = async |c: &Cluster| events_of(c, "p").await.len() == bad.len();
    cluster.until(is_told).await;
    let told = events_of(&cluster, "p").await;
    for (key, _) in bad {
        let names = |(reason, message): &(String, String)| {
            reason == "InvalidAnnotation" && message.contains(key)
        };
        assert!(told.iter().any(names), "{key} is named in {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn stopped_node_falls_silent_until_it_is_started_again() {
    let cluster = cluster().await;
    let lease = async |c: &Cluster| {
        let lease = c.find(&LEASES, "kube-node-lease/pretend-0").await;
        lease.map(|lease| lease.str_at("/spec/renewTime").to_owned())
    };
    cluster.until(async |c| lease(c).await.is_some()).await;
    let node = cluster.find(&NODES, "pretend-0").await.unwrap();
    let stop = |value: Doc| doc!({ "metadata": { "annotations": { (node::STOPPED): value } } });
    cluster.patch(&node, stop("true".into())).await;
    cluster.pass(Duration::from_secs(1)).await;
    let (before, status) = (
        lease(&cluster).await,
        cluster.find(&NODES, "pretend-0").await.unwrap(),
    );
    cluster.create_doc(&pod(&[], &plain())).await;
    cluster.pass(Duration::from_secs(900)).await;
    assert_eq!(lease(&cluster).await, before);
    let later = cluster.find(&NODES, "pretend-0").await.unwrap();
    assert_eq!(later.at("/status"), status.at("/status"));
    assert!(
        find(&cluster, "p")
            .await
            .at("/status/containerStatuses")
            .is_null()
    );
    let others = cluster
        .find(&LEASES, "kube-node-lease/pretend-1")
        .await
        .unwrap();
    assert!(Some(others.str_at("/spec/renewTime")) > before.as_deref());
    cluster.patch(&node, stop(Doc::NULL)).await;
    until(&cluster, is_ready).await;
    cluster.until(async |c| lease(c).await != before).await;
}

#[tokio::test(start_paused = true)]
async fn restarted_agent_knows_the_state_of_every_container() {
    let spec = doc!({
        "initContainers": [
            { "name": "setup", "image": "i" },
            { "name": "side", "image": "s", "restartPolicy": "Always" },
        ],
        "containers": [{ "name": "web", "image": "a" }, { "name": "bad", "image": "b" }],
    });
    let cluster = Cluster::start().await;
    let agent = || {
        cluster.run_with("nodes", |manager| {
            node::add_to(manager, &Options::default())
        })
    };
    let first = agent();
    let crash = [("windlass.dev/crash.bad", "true")];
    cluster.create_doc(&pod(&crash, &spec)).await;
    let loops = |pod: &Doc| {
        let bad = pod.at("/status/containerStatuses/1");
        *bad.at("/restartCount") == 1 && !bad.at("/state/waiting").is_null()
    };
    let before = until(&cluster, loops).await;
    first.stop().await;
    cluster.pass(Duration::from_secs(1)).await;
    agent();
    let again = |pod: &Doc| *pod.at("/status/containerStatuses/1/restartCount") == 2;
    let after = until(&cluster, again).await;
    for at in [
        "/status/initContainerStatuses/0",
        "/status/initContainerStatuses/1/state",
    ] {
        assert_eq!(before.at(at), after.at(at), "{at}");
    }
    assert_eq!(main(&before).at("/state"), main(&after).at("/state"));
}

#[tokio::test(start_paused = true)]
async fn two_agents_that_disagree_about_a_pod_write_its_status_now_and_then() {
    let cluster = Cluster::start().await;
    let agent = |name: &str, start_after: u64| {
        let mut options = Options::default();
        options.start_after = Duration::from_secs(start_after);
        cluster.run_with(name, |manager| node::add_to(manager, &options))
    };
    let slow = agent("slow", 7200);
    let crash = [("windlass.dev/crash.bad", "true")];
    let spec = doc!({
        "containers": [{ "name": "web", "image": "a" }, { "name": "bad", "image": "b" }],
    });
    cluster.create_doc(&pod(&crash, &spec)).await;
    until(&cluster, waits_with("ContainerCreating")).await;
    agent("fast", 0);
    // The fast one shows that the pod runs, and the slow one takes that back.
    let address = |pod: &Doc| !pod.str_at("/status/podIP").is_empty();
    until(&cluster, address).await;
    let sandbox = async || {
        let sandbox = condition(&find(&cluster, "p").await, "PodReadyToStartContainers");
        sandbox.unwrap().last_transition_time
    };
    let before = sandbox().await;
    let writes = writes_in(&cluster, Duration::from_secs(3600)).await;
    // Each agent writes 1100 times for its nodes, and every ten seconds for the pod.
    assert!(writes < 2 * 1100 + 2 * 360 + 100, "{writes} writes");
    assert_ne!(sandbox().await, before);
    slow.stop().await;
    until(&cluster, has_phase("Running")).await;
    cluster.pass(Duration::from_secs(60)).await;
    let alone = find(&cluster, "p").await;
    assert_eq!(alone.str_at("/status/phase"), "Running");
}

#[tokio::test(start_paused = true)]
async fn status_that_somebody_overwrites_is_written_again_after_a_while() {
    let (cluster, ready) = run(&pod(&[], &plain()), is_ready).await;
    let overwrite = Patch::Merge(doc!({ "status": { "phase": "Unknown" } }));
    let api = cluster.api(&PODS, "default");
    let options = WriteOptions::default();
    let overwritten = api.patch_part("p", "status", &overwrite, &options).await;
    overwritten.expect("anybody may write the status");
    cluster.pass(Duration::from_secs(5)).await;
    assert_eq!(find(&cluster, "p").await.str_at("/status/phase"), "Unknown");
    cluster.pass(Duration::from_secs(6)).await;
    let mended = find(&cluster, "p").await;
    assert_eq!(mended.at("/status"), ready.at("/status"));
}

/// The writes to all objects while some time passes.
async fn writes_in(cluster: &Cluster, time: Duration) -> u64 {
    let revision = async |name: &str| {
        let mark = doc!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": "default" },
        });
        let mark = cluster.create_doc(&mark).await;
        let revision = mark.meta().resource_version().parse::<u64>();
        revision.expect("a revision is a number")
    };
    let first = revision("first").await;
    cluster.pass(time).await;
    revision("last").await - first
}

#[tokio::test(start_paused = true)]
async fn idle_nodes_write_leases_and_little_else() {
    let cluster = cluster().await;
    let writes = writes_in(&cluster, Duration::from_secs(3600)).await;
    // Three nodes, six leases a minute each, and a status every five minutes.
    assert!((1000..1200).contains(&writes), "{writes} writes");
}

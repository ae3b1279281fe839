//! The same scripts of Jobs with kube-controller-manager's controller and with ours end in the same
//! objects and events.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::{collections::BTreeMap, pin::Pin, time::Duration};

use futures_util::future::join_all;
use windlass_client::{Config, DeleteOptions};

use windlass_core::{Doc, Gvr, condition, doc, merge_patch};
use windlass_envtest::{ControlPlane, Options};
use windlass_testing::Cluster;
use windlass_workloads::job;

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const JOBS: Gvr = Gvr::constant("batch", "v1", "jobs");
const EVENTS: Gvr = Gvr::constant("", "v1", "events");

/// How long anything may take on a real server.
const PATIENCE: Duration = Duration::from_secs(60);

/// For how long nothing changes when everything is done.
const QUIET: Duration = Duration::from_secs(3);

type Played<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A script: its name and what it does in a namespace of its own.
struct Script {
    name: &'static str,
    play: for<'a> fn(&'a Scene) -> Played<'a>,
}

/// A namespace with one Job, `pi`.
struct Scene {
    cluster: Cluster,
    namespace: String,
}

impl Scene {
    async fn new(cluster: &Cluster, name: &str) -> Self {
        let namespace = name.replace('_', "-");
        let object = doc!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": (&namespace) }
        });
        cluster.create_doc(&object).await;
        Self {
            cluster: cluster.clone(),
            namespace,
        }
    }

    async fn create(&self, spec: Doc) {
        let base = doc!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": "pi", "namespace": (&self.namespace) },
            "spec": { "template": { "spec": {
                "restartPolicy": "Never", "nodeName": "n1",
                "containers": [{ "name": "c", "image": "i" }]
            } } }
        });
        let job = merge_patch(&base, &doc!({ "spec": spec }));
        self.cluster.create_doc(&job).await;
    }

    async fn job(&self) -> Doc {
        let key = format!("{}/pi", self.namespace);
        self.cluster.find(&JOBS, &key).await.unwrap()
    }

    async fn patch(&self, spec: Doc) {
        let job = self.job().await;
        self.cluster.patch(&job, doc!({ "spec": spec })).await;
    }

    async fn pods(&self) -> Vec<Doc> {
        self.cluster.list_docs(&PODS, &self.namespace, "").await
    }

    /// Waits until so many pods are active and counted. They come in the order of their indexes.
    async fn active(&self, count: usize) -> Vec<Doc> {
        let active = async || {
            let mut pods = self.pods().await;
            pods.retain(windlass_workloads::is_pod_active);
            pods.sort_by_key(|pod| pod.meta().annotation(INDEX).map(str::to_owned));
            pods
        };
        self.cluster
            .until(async |_| {
                let counted = self.job().await.at("/status/active").as_u64().unwrap_or(0);
                active().await.len() == count && usize::try_from(counted) == Ok(count)
            })
            .await;
        active().await
    }

    async fn until(&self, kind: &str) {
        let holds = async |_: &Cluster| {
            let job = self.job().await;
            condition(&job, kind).is_some_and(|it| it.is_true())
        };
        self.cluster.until(holds).await;
    }

    /// Waits until so many pods are counted as succeeded.
    async fn succeeded(&self, count: u64) {
        let holds = async |_: &Cluster| {
            let found = self.job().await.at("/status/succeeded").as_u64();
            found == Some(count)
        };
        self.cluster.until(holds).await;
    }

    async fn exit(&self, pod: &Doc, code: i64) {
        let now = self.cluster.env().now().to_string();
        let end = doc!({ "exitCode": code, "finishedAt": now });
        let container = doc!({
            "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "terminated": end }
        });
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let status = doc!({ "phase": phase, "containerStatuses": [container] });
        self.cluster.patch_status(pod, status).await;
    }

    /// Removes pods that are being deleted, as their node does.
    async fn remove_deleted(&self) {
        for pod in self.pods().await {
            if pod.meta().is_deleting() {
                let options = DeleteOptions {
                    grace_period: Some(Duration::ZERO),
                    ..DeleteOptions::uid(pod.meta().uid_str())
                };
                let api = self.cluster.api(&PODS, &self.namespace);
                let _ = api.delete(pod.meta().name(), &options).await;
            }
        }
    }

    /// Lets everybody finish what they are at.
    async fn settle(&self) {
        let state = async || {
            let events = self.cluster.list_docs(&EVENTS, &self.namespace, "").await;
            let objects = self.pods().await.into_iter().chain([self.job().await]);
            let versions = objects.chain(events);
            versions
                .map(|it| it.meta().resource_version().to_owned())
                .collect::<Vec<_>>()
        };
        loop {
            let before = state().await;
            self.cluster.pass(QUIET).await;
            if before == state().await {
                return;
            }
        }
    }

    /// Everything there is, without what is random or a time.
    async fn picture(&self) -> String {
        let mut lines = vec![picture_of_job(&self.job().await)];
        lines.extend(self.pods().await.iter().map(picture_of_pod));
        let events = self.cluster.list_docs(&EVENTS, &self.namespace, "").await;
        lines.extend(events.iter().map(|event| {
            let text = ["/type", "/reason", "/message", "/source/component"];
            format!("event {}", text.map(|at| event.str_at(at)).join(" "))
        }));
        let mut lines: Vec<String> = lines.iter().map(|line| self.masked(line)).collect();
        lines.sort();
        lines.join("\n")
    }

    /// A text without the random ends of names.
    fn masked(&self, text: &str) -> String {
        let text = text.replace(&self.namespace, "NAMESPACE");
        let words = text.split(' ').map(|word| {
            let (start, name) = word.split_at(word.find("pi-").unwrap_or(word.len()));
            match name.rsplit_once('-') {
                Some((prefix, _)) => format!("{start}{prefix}-*"),
                None => word.to_owned(),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

fn picture_of_job(job: &Doc) -> String {
    let status = job.at("/status");
    let conditions = status.at("/conditions").items().iter();
    let conditions = conditions.map(|it| {
        let text = ["/type", "/status", "/reason", "/message"];
        text.map(|at| it.str_at(at)).join(" ")
    });
    let conditions: Vec<String> = conditions.collect();
    let fields = [
        "active",
        "ready",
        "terminating",
        "succeeded",
        "failed",
        "completedIndexes",
        "failedIndexes",
        "uncountedTerminatedPods",
    ];
    let fields = fields.map(|field| format!("{field}={}", status.at(&format!("/{field}"))));
    let times = ["startTime", "completionTime"];
    let times = times.map(|field| format!("{field}={}", status.get(field).is_some()));
    format!(
        "job {} {} {conditions:?}",
        fields.join(" "),
        times.join(" ")
    )
}

fn picture_of_pod(pod: &Doc) -> String {
    let meta = pod.meta();
    let finalizers: Vec<&str> = meta.finalizers().collect();
    let owner = meta
        .controller()
        .map(|it| format!("{} {}", it.kind, it.name));
    let labels: BTreeMap<_, _> = meta.labels().iter().collect();
    let labels: Vec<_> = labels
        .iter()
        .filter(|(key, _)| !key.ends_with("controller-uid"))
        .collect();
    let annotations: BTreeMap<_, _> = meta.annotations().iter().collect();
    let spec = ["/spec/hostname", "/status/phase", "/metadata/generateName"];
    let spec = spec.map(|at| pod.str_at(at));
    let (is_deleting, env) = (meta.is_deleting(), pod.at("/spec/containers/0/env"));
    format!(
        "pod {} {spec:?} {is_deleting} {finalizers:?} {owner:?} {labels:?} {annotations:?} {env}",
        meta.name()
    )
}

/// Scripts by name, each a block that works on a scene.
macro_rules! scripts {
    ($($name:ident |$scene:ident| $body:block)+) => {
        const SCRIPTS: &[Script] = &[$(Script {
            name: stringify!($name),
            play: |$scene| Box::pin(async move $body),
        }),+];
    };
}

scripts! {
    completes_one_by_one |scene| {
        scene.create(doc!({ "completions": 2 })).await;
        for done in 1..3 {
            let pods = scene.active(1).await;
            scene.exit(&pods[0], 0).await;
            scene.succeeded(done).await;
        }
        scene.until("Complete").await;
    }
    replaces_a_failure |scene| {
        scene.create(doc!({ "completions": 2, "parallelism": 2 })).await;
        let pods = scene.active(2).await;
        scene.exit(&pods[0], 1).await;
        scene.active(1).await;
        let pods = scene.active(2).await;
        for pod in &pods {
            scene.exit(pod, 0).await;
        }
        scene.until("Complete").await;
    }
    fails_and_stops_the_rest |scene| {
        scene.create(doc!({ "completions": 3, "parallelism": 3, "backoffLimit": 0 })).await;
        let pods = scene.active(3).await;
        scene.exit(&pods[0], 1).await;
        scene.until("FailureTarget").await;
        scene.active(0).await;
        scene.remove_deleted().await;
        scene.until("Failed").await;
    }
    passes_its_deadline |scene| {
        scene.create(doc!({ "activeDeadlineSeconds": 3 })).await;
        scene.active(1).await;
        scene.until("FailureTarget").await;
        scene.active(0).await;
        scene.remove_deleted().await;
        scene.until("Failed").await;
    }
    without_completions |scene| {
        scene.create(doc!({ "parallelism": 2 })).await;
        let pods = scene.active(2).await;
        scene.exit(&pods[0], 0).await;
        scene.active(1).await;
        scene.exit(&pods[1], 0).await;
        scene.until("Complete").await;
    }
    scales_down |scene| {
        scene.create(doc!({ "completions": 5, "parallelism": 3 })).await;
        scene.active(3).await;
        scene.patch(doc!({ "parallelism": 1 })).await;
        scene.active(1).await;
        scene.remove_deleted().await;
    }
    is_suspended_and_resumed |scene| {
        scene.create(doc!({ "completions": 2, "parallelism": 2 })).await;
        scene.active(2).await;
        scene.patch(doc!({ "suspend": true })).await;
        scene.until("Suspended").await;
        scene.active(0).await;
        scene.remove_deleted().await;
        scene.patch(doc!({ "suspend": false })).await;
        for pod in &scene.active(2).await {
            scene.exit(pod, 0).await;
        }
        scene.until("Complete").await;
    }
    starts_suspended |scene| {
        scene.create(doc!({ "suspend": true })).await;
        scene.until("Suspended").await;
    }
    is_indexed |scene| {
        let spec = doc!({ "completionMode": "Indexed", "completions": 4, "parallelism": 4 });
        scene.create(spec).await;
        let pods = scene.active(4).await;
        for at in [3, 0, 1] {
            scene.exit(&pods[at], 0).await;
        }
        scene.active(1).await;
        scene.exit(&pods[2], 0).await;
        scene.until("Complete").await;
    }
    fails_an_index |scene| {
        scene.create(doc!({
            "completionMode": "Indexed", "completions": 3, "parallelism": 3,
            "backoffLimitPerIndex": 0
        })).await;
        let pods = scene.active(3).await;
        scene.exit(&pods[1], 1).await;
        scene.active(2).await;
        scene.exit(&pods[0], 0).await;
        scene.exit(&pods[2], 0).await;
        scene.until("Failed").await;
    }
    exceeds_its_failed_indexes |scene| {
        scene.create(doc!({
            "completionMode": "Indexed", "completions": 3, "parallelism": 3,
            "backoffLimitPerIndex": 0, "maxFailedIndexes": 0
        })).await;
        let pods = scene.active(3).await;
        scene.exit(&pods[0], 1).await;
        scene.until("FailureTarget").await;
        scene.active(0).await;
        scene.remove_deleted().await;
        scene.until("Failed").await;
    }
    fails_by_policy |scene| {
        let rule = doc!({
            "action": "FailJob", "onExitCodes": { "operator": "In", "values": [42] }
        });
        scene.create(doc!({ "podFailurePolicy": { "rules": [rule] } })).await;
        let pods = scene.active(1).await;
        scene.exit(&pods[0], 42).await;
        scene.until("Failed").await;
    }
    succeeds_by_policy |scene| {
        scene.create(doc!({
            "completionMode": "Indexed", "completions": 3, "parallelism": 3,
            "successPolicy": { "rules": [{ "succeededIndexes": "1" }] }
        })).await;
        let pods = scene.active(3).await;
        scene.exit(&pods[1], 0).await;
        scene.until("SuccessCriteriaMet").await;
        scene.active(0).await;
        scene.remove_deleted().await;
        scene.until("Complete").await;
    }
    shrinks_with_its_indexes |scene| {
        let spec = doc!({ "completionMode": "Indexed", "completions": 3, "parallelism": 3 });
        scene.create(spec).await;
        let pods = scene.active(3).await;
        scene.exit(&pods[2], 0).await;
        scene.active(2).await;
        scene.patch(doc!({ "completions": 1, "parallelism": 1 })).await;
        scene.active(1).await;
        scene.remove_deleted().await;
    }
    is_managed_elsewhere |scene| {
        scene.create(doc!({ "managedBy": "example.com/other" })).await;
    }
}

/// What every script ends in.
async fn play(cluster: &Cluster) -> BTreeMap<&'static str, String> {
    let plays = SCRIPTS.iter().map(async |script| {
        let scene = Scene::new(cluster, script.name).await;
        (script.play)(&scene).await;
        scene.settle().await;
        (script.name, scene.picture().await)
    });
    join_all(plays).await.into_iter().collect()
}

async fn cluster_of(server: &ControlPlane) -> Cluster {
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let cluster = Cluster::builder().existing(config).patience(PATIENCE);
    cluster.start().await
}

#[tokio::test]
async fn jobs_end_alike_with_their_controller_and_with_ours() {
    if windlass_envtest::real_server().is_none() {
        return;
    }
    let bare = ControlPlane::start(&Options::default()).unwrap();
    let cluster = cluster_of(&bare).await;
    let running = cluster.run_with("jobs", |manager| {
        job::add_to(manager, &job::Options::default());
    });
    let ours = play(&cluster).await;
    running.stop().await;
    drop(bare);
    let options = Options::default()
        .controllers(["job-controller"])
        .controller_manager_flag("--kube-api-qps=1000")
        .controller_manager_flag("--kube-api-burst=1000");
    let server = ControlPlane::start(&options).unwrap();
    let theirs = play(&cluster_of(&server).await).await;
    assert_eq!((ours.len(), theirs.len()), (SCRIPTS.len(), SCRIPTS.len()));
    let mut different = Vec::new();
    for (name, theirs) in &theirs {
        if ours[name] != *theirs {
            different.push(format!("{name}\ntheirs:\n{theirs}\nours:\n{}", ours[name]));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

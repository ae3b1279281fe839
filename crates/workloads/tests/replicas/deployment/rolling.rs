//! Rolling updates: new sets come, old ones go, within limits.

use windlass_client::DeleteOptions;
use windlass_core::{Gvr, doc};

use crate::deployment::{
    is_complete, rolling,
    stage::{
        DEPLOYMENTS, PODS, SETS, Stage, deployment, number, on_both, reason, replica_set, revision,
    },
};

const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");

on_both!(
    a_deployment_gets_a_set_and_its_pods,
    each_image_is_a_revision,
    a_broken_image_stops_at_the_limits,
    a_rollout_can_be_overtaken,
    annotations_go_to_the_set,
    a_longer_wait_for_readiness_reaches_the_set,
    pods_being_deleted_do_not_hold_a_rollout,
    a_set_that_never_becomes_available_does_not_take_over,
    nothing_is_made_in_a_namespace_that_goes,
);

const HASH: &str = "pod-template-hash";

async fn a_deployment_gets_a_set_and_its_pods(stage: &Stage) {
    stage.run();
    stage.run_kubelet();
    let patient = deployment("web", 20).with("/spec/minReadySeconds", 4);
    stage.create(patient.unwrap()).await;
    stage.until_complete("web").await;
    let set = stage.sets().await.remove(0);
    let hash = set.meta().label(HASH).unwrap();
    assert_eq!(set.meta().name(), format!("web-{hash}"));
    assert_eq!(
        set.str_at("/spec/selector/matchLabels/pod-template-hash"),
        hash
    );
    assert_eq!(
        set.str_at("/spec/template/metadata/labels/pod-template-hash"),
        hash
    );
    let pods = stage.pods().await;
    assert_eq!(pods.len(), 20);
    assert!(pods.iter().all(|pod| pod.meta().label(HASH) == Some(hash)));
    let found = stage.get(&DEPLOYMENTS, "web").await;
    assert_eq!((revision(&found), revision(&set)), (1, 1));
    let annotation = |name: &str| {
        let name = format!("deployment.kubernetes.io/{name}");
        set.meta().annotation(&name).map(str::to_owned)
    };
    // A quarter more is allowed.
    assert_eq!(annotation("desired-replicas").as_deref(), Some("20"));
    assert_eq!(annotation("max-replicas").as_deref(), Some("25"));
    assert_eq!(number(&set, "/spec/minReadySeconds"), 4);
    let message = format!("Scaled up replica set web-{hash} from 0 to 20");
    let event = ("Normal".to_owned(), "ScalingReplicaSet".to_owned(), message);
    stage
        .until(async |s| s.events("web").await.contains(&event))
        .await;
    assert_eq!(found.at("/status/terminatingReplicas").as_i64(), Some(0));
}

async fn each_image_is_a_revision(stage: &Stage) {
    stage.run();
    stage.run_kubelet();
    stage.create(deployment("web", 3)).await;
    stage.until_complete("web").await;
    for number in 2..=4 {
        stage.set_image("web", &format!("nginx:{number}")).await;
        stage.until_complete("web").await;
        assert_eq!(revision(&stage.get(&DEPLOYMENTS, "web").await), number);
    }
    let sets = stage.sets().await;
    assert_eq!(sets.iter().map(revision).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(stage.sizes().await, [0, 0, 0, 3]);
}

async fn a_broken_image_stops_at_the_limits(stage: &Stage) {
    stage.run();
    stage.run_kubelet();
    stage.create(rolling("web", 10, 3, 2)).await;
    stage.until_complete("web").await;
    stage.set_image("web", "broken").await;
    stage.until(async |s| s.sizes().await == [8, 5]).await;
    stage.settle().await;
    assert_eq!(stage.sizes().await, [8, 5]);
    let found = stage.get(&DEPLOYMENTS, "web").await;
    assert_eq!(number(&found, "/status/availableReplicas"), 8);
    assert_eq!(number(&found, "/status/unavailableReplicas"), 5);
    assert_eq!(number(&found, "/status/updatedReplicas"), 5);
}

async fn a_rollout_can_be_overtaken(stage: &Stage) {
    stage.run();
    stage.run_kubelet();
    stage.create(rolling("web", 4, 1, 1)).await;
    stage.until_complete("web").await;
    stage.set_image("web", "broken").await;
    stage.until(async |s| s.sizes().await == [3, 2]).await;
    stage.set_image("web", "nginx:3").await;
    stage.until_complete("web").await;
    assert_eq!(stage.sizes().await, [0, 0, 4]);
    assert_eq!(revision(&stage.get(&DEPLOYMENTS, "web").await), 3);
}

async fn annotations_go_to_the_set(stage: &Stage) {
    stage.run();
    let note = doc!({
        "example.com/note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"
    });
    stage
        .create(
            deployment("web", 1)
                .with("/metadata/annotations", note)
                .unwrap(),
        )
        .await;
    let annotation = async |s: &Stage, name: &str| {
        let set = s.sets().await.pop()?;
        set.meta().annotation(name).map(str::to_owned)
    };
    stage
        .until(async |s| annotation(s, "example.com/note").await.as_deref() == Some("x"))
        .await;
    let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
    assert_eq!(annotation(stage, last_applied).await, None);
    let cause = doc!({
        "metadata": { "annotations": { "kubernetes.io/change-cause": "why", "example.com/note": null } }
    });
    stage.patch(&DEPLOYMENTS, "web", cause).await;
    stage
        .until(async |s| {
            annotation(s, "kubernetes.io/change-cause").await.as_deref() == Some("why")
        })
        .await;
    // What the Deployment no longer says is history, and stays.
    assert_eq!(
        annotation(stage, "example.com/note").await.as_deref(),
        Some("x")
    );
    assert_eq!(stage.sets().await.len(), 1);
}

async fn a_longer_wait_for_readiness_reaches_the_set(stage: &Stage) {
    stage.run();
    let patient = deployment("web", 4)
        .with("/spec/minReadySeconds", 3600)
        .unwrap();
    stage
        .create(patient.with("/spec/progressDeadlineSeconds", 7200).unwrap())
        .await;
    let counts = async |s: &Stage| {
        let found = s.get(&DEPLOYMENTS, "web").await;
        [
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
        ]
        .map(|count| number(&found, &format!("/status/{count}")))
    };
    stage
        .until(async |s| counts(s).await == [4, 4, 0, 0, 4])
        .await;
    let availability = async |s: &Stage| reason(&s.get(&DEPLOYMENTS, "web").await, "Available");
    assert_eq!(availability(stage).await, "MinimumReplicasUnavailable");
    let long_ago = "2026-01-01T00:00:00Z"
        .parse::<windlass_core::Time>()
        .unwrap();
    let since = match stage.is_real() {
        true => stage.cluster.env().now(),
        false => long_ago,
    };
    for pod in stage.pods().await {
        stage.make_ready_since(&pod, &since.to_string()).await;
    }
    stage
        .until(async |s| counts(s).await == [4, 4, 4, 0, 4])
        .await;
    stage
        .patch(
            &DEPLOYMENTS,
            "web",
            doc!({ "spec": { "minReadySeconds": 1 } }),
        )
        .await;
    stage
        .until(async |s| counts(s).await == [4, 4, 4, 4, 0])
        .await;
    assert_eq!(availability(stage).await, "MinimumReplicasAvailable");
    let sets = stage.sets().await;
    assert_eq!(sets.len(), 1);
    assert_eq!(number(&sets[0], "/spec/minReadySeconds"), 1);
}

async fn pods_being_deleted_do_not_hold_a_rollout(stage: &Stage) {
    stage.run();
    let template = crate::deployment::stage::template("web", "nginx:1", "node");
    stage
        .create(
            rolling("web", 3, 1, 0)
                .with("/spec/template", template)
                .unwrap(),
        )
        .await;
    // Pods become ready, but nobody ends those that are being deleted.
    let ready = async |s: &Stage| {
        s.make_all_ready().await;
        is_complete(&s.get(&DEPLOYMENTS, "web").await)
    };
    stage.until(ready).await;
    stage.set_image("web", "nginx:2").await;
    stage.until(ready).await;
    let pods = stage.pods().await;
    let deleting = pods.iter().filter(|pod| pod.meta().is_deleting()).count();
    assert_eq!((pods.len(), deleting), (6, 3));
    let found = stage.get(&DEPLOYMENTS, "web").await;
    assert_eq!(number(&found, "/status/terminatingReplicas"), 3);
    assert_eq!(number(&found, "/status/replicas"), 3);
}

async fn a_set_that_never_becomes_available_does_not_take_over(stage: &Stage) {
    stage.run();
    stage.run_kubelet();
    stage.create(rolling("web", 1, 1, 0)).await;
    stage.until_complete("web").await;
    stage.set_image("web", "broken").await;
    stage.until(async |s| s.sizes().await == [1, 1]).await;
    stage.settle().await;
    assert_eq!(stage.sizes().await, [1, 1]);
    // One more is asked for: the old set, which works, does not shrink for it.
    stage.scale(&DEPLOYMENTS, "web", 2).await;
    stage
        .until(async |s| s.sizes().await.iter().sum::<i64>() == 3)
        .await;
    stage.settle().await;
    assert!(stage.sizes().await[0] >= 1);
}

async fn nothing_is_made_in_a_namespace_that_goes(stage: &Stage) {
    stage.create(deployment("web", 2)).await;
    stage.create(replica_set("db", 2)).await;
    let namespaces = stage.cluster.resource(NAMESPACES);
    let options = DeleteOptions::default();
    namespaces.delete(&stage.namespace, &options).await.unwrap();
    stage.run();
    stage
        .until(async |s| number(&s.get(&SETS, "db").await, "/status/observedGeneration") > 0)
        .await;
    stage.settle().await;
    let sets = stage.sets().await;
    let names: Vec<_> = sets.iter().map(|set| set.meta().name()).collect();
    assert_eq!(names, ["db"]);
    assert!(stage.pods().await.is_empty());
    for (resource, name) in [(&DEPLOYMENTS, "web"), (&SETS, "db")] {
        let object = stage.get(resource, name).await;
        assert!(object.at("/status/conditions").is_null(), "{object:?}");
        assert_eq!(stage.events(name).await, []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollout_of_five_thousand_pods_never_leaves_its_bounds() {
    const REPLICAS: i64 = 5000;
    let stage = Stage::embedded("large").await;
    stage.run();
    // New pods do not help for a while: the controller goes as far as it may in both directions.
    stage.run_slow_kubelet(std::time::Duration::from_secs(5));
    let percent = doc!({
        "type": "RollingUpdate",
        "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" }
    });
    stage
        .create(
            deployment("web", REPLICAS)
                .with("/spec/strategy", percent)
                .unwrap(),
        )
        .await;
    let patience = std::time::Duration::from_secs(3600);
    let complete =
        async |_: &windlass_testing::Cluster| is_complete(&stage.get(&DEPLOYMENTS, "web").await);
    stage.cluster.until_within(patience, complete).await;
    let mut watched = Bounds::start(&stage, REPLICAS + 1250, REPLICAS - 1250).await;
    stage.set_image("web", "nginx:2").await;
    loop {
        watched.catch_up().await;
        if complete(&stage.cluster).await {
            break;
        }
        stage
            .cluster
            .pass(std::time::Duration::from_millis(10))
            .await;
    }
    watched.catch_up().await;
    assert!(
        watched.looks > 10_000,
        "{} states were looked at",
        watched.looks
    );
    let extremes = (watched.most, watched.least);
    assert_eq!(
        extremes,
        (watched.max, watched.min),
        "both bounds are reached"
    );
    assert_eq!(stage.sizes().await, [0, REPLICAS]);
}

/// Follows every revision of the pods and sets of a stage, and checks each.
struct Bounds {
    pods: windlass_client::WatchStream,
    sets: windlass_client::WatchStream,
    /// Whether each pod that counts as a replica is ready.
    replicas: std::collections::HashMap<String, bool>,
    ready: i64,
    sizes: std::collections::HashMap<String, i64>,
    max: i64,
    min: i64,
    /// The most pods that were asked for, and the fewest that were ready.
    most: i64,
    least: i64,
    looks: usize,
}

impl Bounds {
    async fn start(stage: &Stage, max: i64, min: i64) -> Self {
        use windlass_client::{ListOptions, WatchOptions};
        let pods = stage
            .api(&PODS)
            .list_all(&ListOptions::default())
            .await
            .unwrap();
        let sets = stage
            .api(&SETS)
            .list_all(&ListOptions::default())
            .await
            .unwrap();
        let from = |version: &str| WatchOptions::from(version);
        let mut bounds = Self {
            pods: stage
                .api(&PODS)
                .watch(&from(pods.head.resource_version()))
                .await
                .unwrap(),
            sets: stage
                .api(&SETS)
                .watch(&from(sets.head.resource_version()))
                .await
                .unwrap(),
            replicas: std::collections::HashMap::new(),
            ready: 0,
            sizes: std::collections::HashMap::new(),
            max,
            min,
            most: 0,
            least: max,
            looks: 0,
        };
        pods.items.iter().for_each(|pod| bounds.pod(pod, false));
        sets.items.iter().for_each(|set| bounds.set(set, false));
        bounds
    }

    /// Looks at everything that has happened by now.
    async fn catch_up(&mut self) {
        use windlass_client::WatchEvent::{Added, Bookmark, Deleted, Modified};
        let quiet = std::time::Duration::from_millis(1);
        loop {
            let event = tokio::select! {
                biased;
                event = self.pods.next() => (true, event),
                event = self.sets.next() => (false, event),
                () = tokio::time::sleep(quiet) => return,
            };
            let (is_pod, event) = (event.0, event.1.expect("the watch goes on").unwrap());
            let (object, is_gone) = match &event {
                Added(object) | Modified(object) => (object, false),
                Deleted(object) => (object, true),
                Bookmark(_) => continue,
            };
            match is_pod {
                true => self.pod(object, is_gone),
                false => self.set(object, is_gone),
            }
            self.check();
        }
    }

    fn pod(&mut self, pod: &windlass_core::Doc, is_gone: bool) {
        let name = pod.meta().name().to_owned();
        let is_ready = windlass_core::condition(pod, "Ready").is_some_and(|it| it.is_true());
        let before = match is_gone || pod.meta().is_deleting() {
            true => self.replicas.remove(&name),
            false => self.replicas.insert(name.clone(), is_ready),
        };
        self.ready -= i64::from(before == Some(true));
        self.ready += i64::from(self.replicas.get(&name) == Some(&true));
    }

    fn set(&mut self, set: &windlass_core::Doc, is_gone: bool) {
        let name = set.meta().name().to_owned();
        match is_gone {
            true => self.sizes.remove(&name),
            false => self.sizes.insert(name, number(set, "/spec/replicas")),
        };
    }

    fn check(&mut self) {
        self.looks += 1;
        let (count, sizes) = (self.replicas.len() as i64, self.sizes.values().sum::<i64>());
        (self.most, self.least) = (self.most.max(sizes), self.least.min(self.ready));
        assert!(count <= self.max, "{count} pods");
        assert!(sizes <= self.max, "{sizes} pods are asked for");
        assert!(self.ready >= self.min, "{} pods are ready", self.ready);
    }
}

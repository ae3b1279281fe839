//! Pods whose devices are tainted.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::time::Duration;

use windlass_client::{DeleteOptions, WriteOptions};
use windlass_core::{Doc, Gvr, condition, doc};
use windlass_testing::Cluster;
use windlass_workloads::device_taint_eviction::{self, Options};

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const CLAIMS: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaims");
const EVENTS: Gvr = Gvr::constant("", "v1", "events");

struct World {
    cluster: Cluster,
}

impl World {
    async fn new() -> Self {
        let cluster = Cluster::start().await;
        cluster.run_with("devices", |manager| {
            device_taint_eviction::add_to(manager, &Options::default());
        });
        Self { cluster }
    }

    async fn pass(&self, seconds: u64) {
        self.cluster.pass(Duration::from_secs(seconds)).await;
    }

    /// A slice of the pool with two devices, the first of which has these taints.
    async fn slice(&self, name: &str, generation: i64, taints: Vec<Doc>) -> Doc {
        let slice = doc!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": { "name": name },
            "spec": {
                "driver": "gpu.example.com", "nodeName": "n1",
                "pool": { "name": "n1", "generation": generation, "resourceSliceCount": 1 },
                "devices": [{ "name": "gpu-0", "taints": taints }, { "name": "gpu-1" }]
            }
        });
        self.cluster.create_doc(&slice).await
    }

    fn taint(&self, effect: &str) -> Doc {
        let now = self.cluster.env().now().to_string();
        doc!({ "key": "broken", "value": "yes", "effect": effect, "timeAdded": now })
    }

    async fn set_taints(&self, slice: &Doc, taints: Vec<Doc>) {
        let devices = doc!([{ "name": "gpu-0", "taints": taints }, { "name": "gpu-1" }]);
        let patch = doc!({ "spec": { "devices": devices } });
        self.cluster.patch(slice, patch).await;
    }

    /// A claim that has a device.
    async fn claim(&self, name: &str, device: &str, tolerations: Vec<Doc>) {
        let claim = doc!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "devices": { "requests": [
                { "name": "r", "exactly": { "deviceClassName": "gpu" } }
            ] } }
        });
        let created = self.cluster.create_doc(&claim).await;
        let result = doc!({
            "request": "r", "driver": "gpu.example.com", "pool": "n1", "device": device,
            "tolerations": tolerations
        });
        let status = doc!({ "allocation": { "devices": { "results": [result] } } });
        self.cluster.patch_status(&created, status).await;
    }

    /// A pod on a node that uses claims.
    async fn pod(&self, name: &str, claims: &[&str]) -> Doc {
        let pod = self.cluster.create_doc(&pod(name, claims, "n1")).await;
        for claim in claims {
            self.reserve(claim, &pod).await;
        }
        pod
    }

    async fn reserve(&self, claim: &str, pod: &Doc) {
        let key = format!("default/{claim}");
        let claim = self.cluster.find(&CLAIMS, &key).await.unwrap();
        let mut users = claim.at("/status/reservedFor").items().to_vec();
        let (name, uid) = (pod.meta().name(), pod.meta().uid_str());
        users.push(doc!({ "resource": "pods", "name": name, "uid": uid }));
        let status = doc!({ "reservedFor": users });
        self.cluster.patch_status(&claim, status).await;
    }

    async fn is_evicted(&self, name: &str) -> bool {
        let pod = self.cluster.find(&PODS, &format!("default/{name}")).await;
        pod.is_none_or(|pod| {
            let target = condition(&pod, "DisruptionTarget");
            let is_target = target.is_some_and(|it| it.reason == "DeletionByDeviceTaintManager");
            assert_eq!(is_target, pod.meta().is_deleting(), "{pod}");
            is_target
        })
    }

    async fn events(&self, name: &str) -> Vec<String> {
        self.pass(2).await;
        let events = self.cluster.list_docs(&EVENTS, "default", "").await;
        let of = events
            .iter()
            .filter(|event| event.str_at("/involvedObject/name") == name);
        of.map(|it| format!("{} {}", it.str_at("/reason"), it.str_at("/message")))
            .collect()
    }
}

fn pod(name: &str, claims: &[&str], node: &str) -> Doc {
    let claims = claims
        .iter()
        .map(|claim| doc!({ "name": (*claim), "resourceClaimName": (*claim) }));
    let claims: Vec<Doc> = claims.collect();
    doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "nodeName": node, "resourceClaims": claims,
            "containers": [{ "name": "c", "image": "i" }]
        }
    })
}

fn tolerates(seconds: i64) -> Doc {
    doc!({ "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds })
}

/// X1 and X2
#[tokio::test(start_paused = true)]
async fn pods_with_a_tainted_device_go() {
    let world = World::new().await;
    let slice = world.slice("s", 1, Vec::new()).await;
    world.claim("a", "gpu-0", Vec::new()).await;
    world.claim("b", "gpu-1", Vec::new()).await;
    world.pod("a", &["a"]).await;
    world.pod("b", &["b"]).await;
    world
        .set_taints(&slice, vec![world.taint("NoSchedule")])
        .await;
    world.pass(60).await;
    assert!(!world.is_evicted("a").await);
    world
        .set_taints(&slice, vec![world.taint("NoExecute")])
        .await;
    world.pass(1).await;
    assert!(world.is_evicted("a").await);
    assert!(!world.is_evicted("b").await);
    let events = world.events("a").await;
    assert_eq!(events, ["DeviceTaintManagerEviction Marking for deletion"]);
}

/// X3
#[tokio::test(start_paused = true)]
async fn a_toleration_counts_from_when_the_taint_was_added() {
    let world = World::new().await;
    let slice = world.slice("s", 1, Vec::new()).await;
    world.claim("a", "gpu-0", vec![tolerates(60)]).await;
    world.pod("a", &["a"]).await;
    world
        .set_taints(&slice, vec![world.taint("NoExecute")])
        .await;
    world.pass(50).await;
    assert!(!world.is_evicted("a").await);
    world.pass(15).await;
    assert!(world.is_evicted("a").await);
    // For a pod that comes now that time is over.
    world.claim("late", "gpu-0", vec![tolerates(60)]).await;
    world.pod("late", &["late"]).await;
    world.pass(1).await;
    assert!(world.is_evicted("late").await);
}

/// X4
#[tokio::test(start_paused = true)]
async fn a_taint_that_goes_in_time_evicts_nobody() {
    let world = World::new().await;
    let slice = world.slice("s", 1, Vec::new()).await;
    world.claim("a", "gpu-0", vec![tolerates(60)]).await;
    world.pod("a", &["a"]).await;
    world
        .set_taints(&slice, vec![world.taint("NoExecute")])
        .await;
    world.pass(30).await;
    world.set_taints(&slice, Vec::new()).await;
    world.pass(100).await;
    assert!(!world.is_evicted("a").await);
    let events = world.events("a").await;
    assert_eq!(events, ["DeviceTaintManagerEviction Cancelling deletion"]);
}

/// X5 and X7
#[tokio::test(start_paused = true)]
async fn all_pods_of_a_claim_go_with_the_earliest_of_their_claims() {
    let world = World::new().await;
    world.claim("shared", "gpu-0", vec![tolerates(60)]).await;
    world.claim("soon", "gpu-0", vec![tolerates(10)]).await;
    for name in ["a", "b"] {
        world.pod(name, &["shared"]).await;
    }
    world.pod("c", &["shared", "soon"]).await;
    let taint = world.taint("NoExecute");
    world.slice("s", 1, vec![taint]).await;
    world.pass(15).await;
    assert!(world.is_evicted("c").await);
    assert!(!world.is_evicted("a").await);
    world.pass(60).await;
    for name in ["a", "b"] {
        assert!(world.is_evicted(name).await);
    }
}

/// X6
#[tokio::test(start_paused = true)]
async fn taints_of_an_older_generation_do_not_count() {
    let world = World::new().await;
    world.slice("new", 2, Vec::new()).await;
    let taint = world.taint("NoExecute");
    world.slice("old", 1, vec![taint]).await;
    world.claim("a", "gpu-0", Vec::new()).await;
    world.pod("a", &["a"]).await;
    world.pass(60).await;
    assert!(!world.is_evicted("a").await);
}

/// X9
#[tokio::test(start_paused = true)]
async fn a_pod_without_a_node_waits() {
    let world = World::new().await;
    let taint = world.taint("NoExecute");
    world.slice("s", 1, vec![taint]).await;
    world.claim("a", "gpu-0", Vec::new()).await;
    let unbound = pod("a", &["a"], "").without("/spec/nodeName").unwrap();
    let created = world.cluster.create_doc(&unbound).await;
    world.reserve("a", &created).await;
    world.pass(60).await;
    assert!(!world.is_evicted("a").await);
    let binding = doc!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "a" },
        "target": { "apiVersion": "v1", "kind": "Node", "name": "n1" }
    });
    let api = world.cluster.api(&PODS, "default");
    api.create_part("a", "binding", &binding, &WriteOptions::default())
        .await
        .unwrap();
    world.pass(1).await;
    assert!(world.is_evicted("a").await);
}

/// X10
#[tokio::test(start_paused = true)]
async fn a_new_pod_of_the_same_name_stays() {
    let world = World::new().await;
    let slice = world.slice("s", 1, Vec::new()).await;
    world.claim("a", "gpu-0", vec![tolerates(60)]).await;
    world.pod("a", &["a"]).await;
    world
        .set_taints(&slice, vec![world.taint("NoExecute")])
        .await;
    world.pass(30).await;
    let options = DeleteOptions {
        grace_period: Some(Duration::ZERO),
        ..DeleteOptions::default()
    };
    let api = world.cluster.api(&PODS, "default");
    api.delete("a", &options).await.unwrap();
    // The claim is not reserved for this one.
    world.cluster.create_doc(&pod("a", &["a"], "n1")).await;
    world.pass(100).await;
    assert!(!world.is_evicted("a").await);
}

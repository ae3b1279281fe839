//! One pod on a node, whatever happens to it.

use http::Method;
use windlass_core::{Doc, doc};
use windlass_testing::Fault;

use super::set;
use crate::world::{DAEMON_SETS, PODS, World, number};

fn stray(name: &str, node: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": "agent" } },
        "spec": { "nodeName": node, "containers": [{ "name": "c", "image": "old" }] }
    })
}

impl World {
    /// Lets the pod of a node fail, and returns the seconds until it is gone.
    async fn fail_on(&self, node: &str) -> u64 {
        let pod = self.pod_on(node).await;
        let status = doc!({ "phase": "Failed" });
        self.cluster.patch_status(&pod, status).await;
        let mut seconds = 0;
        while self
            .live()
            .await
            .iter()
            .any(|it| it.meta().uid() == pod.meta().uid())
        {
            self.pass(1).await;
            seconds += 1;
            assert!(seconds < 100);
        }
        self.remove_deleted().await;
        self.bind().await;
        seconds
    }
}

#[tokio::test(start_paused = true)]
async fn failed_pods_are_replaced_ever_more_slowly() {
    let world = World::with_agents(1, doc!({})).await;
    let name = world.pod_on("n1").await.meta().name().to_owned();
    // Removing and binding takes a few seconds each time, so the first delays are hidden by that.
    let mut delays = Vec::new();
    for _ in 0..7 {
        delays.push(world.fail_on("n1").await);
    }
    assert!(delays[0] <= 1 && delays[1] <= 2, "{delays:?}");
    assert!(delays[6] > 20 && delays[6] <= 33, "{delays:?}");
    assert!(delays.is_sorted(), "{delays:?}");
    let text = format!(
        "Warning FailedDaemonPod Found failed daemon pod default/{name} on node n1, will try to \
         kill it"
    );
    assert!(world.has_event("agent", &text).await);
}

#[tokio::test(start_paused = true)]
async fn succeeded_pods_are_replaced() {
    let world = World::with_agents(1, doc!({})).await;
    let pod = world.pod_on("n1").await;
    let name = pod.meta().name().to_owned();
    world.end(&name, "Succeeded").await;
    world.serve_all().await;
    assert_ne!(world.pod_on("n1").await.meta().name(), name);
    let text = format!(
        "Normal SucceededDaemonPod Found succeeded daemon pod default/{name} on node n1, will try \
         to delete it"
    );
    assert!(world.has_event("agent", &text).await);
}

#[tokio::test(start_paused = true)]
async fn the_older_of_two_pods_stays() {
    let world = World::idle().await;
    world.nodes(1).await;
    world.create(stray("first", "n1")).await;
    world.pass(2).await;
    world.create(stray("second", "n1")).await;
    let on_delete = doc!({ "updateStrategy": { "type": "OnDelete" } });
    let created = world.create(set(on_delete)).await;
    world.run();
    world.settle().await;
    assert_eq!(world.names().await, ["first", "-second"]);
    let first = world.get(&PODS, "first").await;
    assert!(first.meta().is_controlled_by(&created.meta().uid()));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_being_deleted_is_not_replaced_before_it_is_gone() {
    let world = World::with_agents(1, doc!({})).await;
    let pod = world.pod_on("n1").await;
    world.delete_pod(pod.meta().name()).await;
    world.pass(60).await;
    assert_eq!(world.pods().await.len(), 1);
    world.remove_deleted().await;
    assert_eq!(world.placed().await, ["n1:a"]);
}

#[tokio::test(start_paused = true)]
async fn pods_become_available_by_the_passing_of_time() {
    let world = World::with_agents(1, doc!({ "minReadySeconds": 30 })).await;
    assert_eq!(world.numbers().await, [1, 1, 0, 1, 1, 0]);
    let agent = world.agent().await;
    assert_eq!(number(&agent, "/status/numberUnavailable"), 1);
    world.pass(31).await;
    assert_eq!(world.numbers().await, [1, 1, 0, 1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_being_deleted_is_left_alone() {
    let world = World::with_agents(2, doc!({})).await;
    let patch = doc!({ "metadata": { "finalizers": ["x.io/y"] } });
    world.patch(&DAEMON_SETS, "agent", patch).await;
    world
        .delete(
            &DAEMON_SETS,
            "agent",
            windlass_client::Propagation::Background,
        )
        .await;
    let before = world.agent().await;
    let pod = world.pod_on("n1").await;
    world.delete_pod(pod.meta().name()).await;
    world.remove_deleted().await;
    assert_eq!(world.placed().await, ["n2:a"]);
    assert_eq!(world.agent().await.at("/status"), before.at("/status"));
}

#[tokio::test(start_paused = true)]
async fn refused_pods_are_told_of_and_tried_again() {
    let world = World::idle().await;
    world.nodes(10).await;
    let mut created = 0;
    world.fail(move |call| {
        if call.method == Method::POST && call.path.ends_with("/pods") {
            created += 1;
            if created > 1 {
                return Fault::Refuse(403, "Forbidden");
            }
        }
        Fault::None
    });
    world.create(set(doc!({}))).await;
    world.run();
    world.settle().await;
    assert_eq!(world.pods().await.len(), 1);
    let events = world.events("agent").await;
    assert!(
        events
            .iter()
            .any(|it| it.starts_with("Warning FailedCreate Error creating: "))
    );
    let tries = world.calls(&Method::POST, "/pods");
    assert!(tries < 100, "slow start keeps the {tries} tries few");
    world.fail(|_| Fault::None);
    world.pass(60).await;
    assert_eq!(world.pods().await.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn sets_with_the_same_selector_do_not_take_each_others_pods() {
    let world = World::with_agents(2, doc!({})).await;
    let other = set(doc!({})).with("/metadata/name", "other").unwrap();
    let other = world.create(other).await;
    world.settle().await;
    world.serve_all().await;
    let pods = world.pods().await;
    assert_eq!(pods.len(), 4);
    let uid = other.meta().uid();
    let of_other = pods.iter().filter(|it| it.meta().is_controlled_by(&uid));
    assert_eq!(of_other.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_selects_everything_is_refused_by_the_server() {
    let world = World::new().await;
    world.nodes(1).await;
    let empty = set(doc!({})).with("/spec/selector", doc!({})).unwrap();
    let api = world.cluster.api(&DAEMON_SETS, "default");
    let created = api
        .create(&empty, &windlass_client::WriteOptions::default())
        .await;
    // The server refuses it, so that the controller never sees one.
    assert!(created.unwrap_err().is_invalid());
}

//! The cluster of a test, seen by its user.

use std::time::Duration;

use futures_util::FutureExt as _;
use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    core::v1::{ConfigMap, Namespace},
};
use windlass_cache::Obj;
use windlass_client::{Config, DiscoveryClient, ListOptions, Propagation, RestClient};
use windlass_core::{Doc, Gvr, doc};
use windlass_runtime::{Action, Context, Controller, EventType, ResourceKind, Result};
use windlass_testing::Cluster;

const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");
const DEPLOYMENTS: Gvr = Gvr::constant("apps", "v1", "deployments");

fn config_map(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default" },
    })
}

/// Marks each map once it is seen.
async fn mark(map: Obj<ConfigMap>, cx: Context) -> Result<Action> {
    if map.meta().annotation("seen").is_none() {
        cx.event(&map, EventType::Normal, "Seen", "a new map");
        let api = cx
            .clientset()
            .api::<ConfigMap>()
            .namespaced(map.namespace());
        let patch = doc!({ "metadata": { "annotations": { "seen": "yes" } } });
        let patch = windlass_client::Patch::Merge(patch);
        api.patch(map.name(), &patch, &cx.write_options()).await?;
    }
    Ok(Action::done())
}

#[tokio::test(start_paused = true)]
async fn a_cluster_has_what_every_cluster_has() {
    let cluster = Cluster::start().await;
    let namespaces = cluster.list::<Namespace>("").await;
    let names: Vec<_> = namespaces.iter().map(Obj::name).collect();
    assert_eq!(
        names,
        ["default", "kube-node-lease", "kube-public", "kube-system"]
    );
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_changed_and_deleted() {
    let cluster = Cluster::start().await;
    let created = cluster.create(ConfigMap {
        metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
            name: Some("a".to_owned()),
            namespace: Some("default".to_owned()),
            ..Default::default()
        },
        ..Default::default()
    });
    let created = created.await;
    let patched = cluster
        .patch(created.doc(), doc!({ "data": { "k": "v" } }))
        .await;
    assert_eq!(patched.str_at("/data/k"), "v");
    let read = cluster.get::<ConfigMap>("default/a").await.unwrap();
    assert_eq!(*read.doc(), patched);
    cluster.delete(&patched, Propagation::Background).await;
    assert_eq!(cluster.find(&CONFIG_MAPS, "default/a").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_controller_runs_beside_the_test() {
    let cluster = Cluster::start().await;
    let running = cluster.run(Controller::of::<ConfigMap>(mark).named("marker"));
    cluster.create_doc(&config_map("a")).await;
    cluster
        .until(async |c| {
            let map = c.get::<ConfigMap>("default/a").await;
            map.is_some_and(|map| map.meta().annotation("seen") == Some("yes"))
        })
        .await;
    assert!(running.metrics().contains("workqueue_adds_total"));
    running.stop().await;
    cluster.create_doc(&config_map("b")).await;
    cluster.pass(Duration::from_secs(60)).await;
    let unseen = cluster.get::<ConfigMap>("default/b").await.unwrap();
    assert_eq!(unseen.meta().annotation("seen"), None);
}

#[tokio::test(start_paused = true)]
async fn a_failed_wait_shows_the_object_its_events_and_why() {
    let cluster = Cluster::builder()
        .patience(Duration::from_secs(5))
        .start()
        .await;
    cluster.run(Controller::of::<ConfigMap>(mark).named("marker"));
    cluster.create_doc(&config_map("a")).await;
    let waiting = cluster.until(async |c| {
        let map = c.get::<ConfigMap>("default/a").await;
        map.is_some_and(|map| map.meta().annotation("seen") == Some("no"))
    });
    let failure = std::panic::AssertUnwindSafe(waiting).catch_unwind().await;
    let failure = failure.expect_err("it does not come to hold");
    let text = failure.downcast_ref::<String>().unwrap();
    for part in [
        "seen: \"yes\"",
        "event: Normal Seen a new map",
        "why:",
        "marker",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_names() {
    let uid = async |seed| {
        let cluster = Cluster::builder().seed(seed).start().await;
        let created = cluster.create_doc(&config_map("a")).await;
        created.meta().uid_str().to_owned()
    };
    assert_eq!(uid(7).await, uid(7).await);
    assert_ne!(uid(7).await, uid(8).await);
}

#[tokio::test]
async fn other_programs_reach_the_cluster_by_its_kubeconfig() {
    let cluster = Cluster::start().await;
    let path = cluster.kubeconfig().await.unwrap();
    let config = Config::from_file(path).await.unwrap();
    let client = RestClient::connect(&config).await.unwrap();
    let version = DiscoveryClient::new(client).server_version().await.unwrap();
    assert_eq!(version.str_at("/major"), "1");
}

#[tokio::test(start_paused = true)]
async fn built_in_controllers_are_switched_on_by_name() {
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web},
        spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {
            metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}}}";
    let ready = async |c: &Cluster| {
        let deployment = c.find(&DEPLOYMENTS, "default/web").await.unwrap();
        deployment.at("/status/readyReplicas").as_i64()
    };
    let all = Cluster::builder().controllers(["*"]).start().await;
    all.create_yaml(deployment).await;
    all.until(async |c| ready(c).await == Some(2)).await;

    let none = Cluster::start().await;
    none.create_yaml(deployment).await;
    none.pass(Duration::from_secs(60)).await;
    assert_eq!(ready(&none).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_defined_kind_is_served_at_once() {
    let cluster = Cluster::start().await;
    let definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
        metadata: {name: foos.example.com}, spec: {group: example.com, scope: Namespaced,
        names: {kind: Foo, plural: foos}, versions: [{name: v1, served: true, storage: true,
        schema: {openAPIV3Schema: {type: object}}}]}}";
    cluster.define(definition).await;
    let foo = "{apiVersion: example.com/v1, kind: Foo, metadata: {name: a}}";
    let created = cluster.create_yaml(foo).await;
    assert_eq!(created[0].meta().name(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_list_can_be_read_by_its_path() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    let list = client.get("/api/v1/namespaces").into_doc().await.unwrap();
    assert_eq!(list.str_at("/kind"), "NamespaceList");
    assert!(!list.at("/items").items().is_empty());
    let bytes = client.get("/api/v1/namespaces").bytes().await.unwrap();
    assert_eq!(Doc::parse(&bytes).unwrap(), list);
}

/// Adds one to `count` of the map at every reconcile, and asks for the next.
async fn count_up(map: Obj<ConfigMap>, cx: Context) -> Result<Action> {
    let count: u32 = map.doc().str_at("/data/count").parse().unwrap_or_default();
    let api = cx
        .clientset()
        .api::<ConfigMap>()
        .namespaced(map.namespace());
    let patch = doc!({ "data": { "count": (count + 1).to_string() } });
    let patch = windlass_client::Patch::Merge(patch);
    api.patch(map.name(), &patch, &cx.write_options()).await?;
    Ok(Action::requeue_after(Duration::from_secs(1)))
}

/// Counts once a second: its own writes do not wake it.
fn counter() -> Controller {
    Controller::of::<ConfigMap>(count_up).filter(|change| change.old.is_none())
}

async fn count_of(cluster: &Cluster) -> u32 {
    let map = cluster
        .get::<ConfigMap>("default/a")
        .await
        .expect("the map is there");
    map.doc().str_at("/data/count").parse().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn an_aborted_manager_reconciles_nothing_any_more() {
    let cluster = Cluster::start().await;
    cluster.create_doc(&config_map("a")).await;
    let running = cluster.run(counter());
    cluster.until(async |c| count_of(c).await > 3).await;
    running.abort();
    tokio::task::yield_now().await;
    let count = count_of(&cluster).await;
    cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(count_of(&cluster).await, count);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_reconciles_nothing_any_more() {
    let cluster = Cluster::start().await;
    cluster.create_doc(&config_map("a")).await;
    let manager = cluster.manager("test").build().unwrap();
    manager.add(counter());
    tokio::select! {
        ended = manager.run() => panic!("{ended:?}"),
        () = cluster.until(async |c| count_of(c).await > 3) => {}
    }
    let count = count_of(&cluster).await;
    cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(count_of(&cluster).await, count);
}

/// Writes the status of a ReplicaSet to and fro, and leaves it as it was.
async fn there_and_back(set: Obj<ReplicaSet>, cx: Context) -> Result<Action> {
    for replicas in [7, 0] {
        cx.patch_status(&set, doc!({ "replicas": replicas }))
            .await?;
    }
    Ok(Action::done())
}

#[tokio::test(start_paused = true)]
async fn a_status_is_compared_with_the_writes_of_the_same_reconcile() {
    let cluster = Cluster::start().await;
    cluster.run(Controller::of::<ReplicaSet>(there_and_back).filter(|change| change.old.is_none()));
    let labels = doc!({ "app": "a" });
    cluster
        .create_doc(&doc!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": { "name": "a", "namespace": "default" },
            "spec": {
                "selector": { "matchLabels": (labels.clone()) },
                "template": {
                    "metadata": { "labels": (labels) },
                    "spec": { "containers": [{ "name": "a", "image": "a" }] },
                },
            },
        }))
        .await;
    let find = async |c: &Cluster| c.get::<ReplicaSet>("default/a").await.unwrap();
    // The create, and the two writes of the status.
    cluster
        .until(async |c| {
            find(c)
                .await
                .doc()
                .at("/metadata/managedFields")
                .items()
                .len()
                > 1
        })
        .await;
    cluster.pass(Duration::from_secs(1)).await;
    assert_eq!(find(&cluster).await.doc().at("/status/replicas"), &doc!(0));
}

#[tokio::test(start_paused = true)]
async fn pretend_nodes_and_their_pods_have_resource_metrics() {
    let cluster = Cluster::builder().controllers(["*"]).start().await;
    cluster
        .create_doc(&doc!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "a", "namespace": "default",
                "annotations": { "windlass.dev/cpu-usage": "250m" },
            },
            "spec": { "containers": [{ "name": "a", "image": "a" }] },
        }))
        .await;
    let read = async |c: &Cluster, resource: &'static str| {
        let api = c.resource(Gvr::constant("metrics.k8s.io", "v1beta1", resource));
        api.list(&ListOptions::default()).await.unwrap().items
    };
    cluster
        .until(async |c| read(c, "pods").await.len() == 1)
        .await;
    let pods = read(&cluster, "pods").await;
    let container = pods[0].get("containers").unwrap().items()[0].clone();
    assert_eq!(
        container.get("usage").unwrap().get("cpu"),
        Some(&doc!("250m"))
    );
    let nodes = read(&cluster, "nodes").await;
    let used = nodes.iter().filter(|node| {
        let cpu = node.get("usage").and_then(|usage| usage.get("cpu"));
        cpu == Some(&doc!("250m"))
    });
    assert_eq!(used.count(), 1);
    let without = Cluster::start().await;
    let groups = DiscoveryClient::new(without.client().clone())
        .discovery()
        .await
        .unwrap();
    assert!(!format!("{groups:?}").contains("metrics.k8s.io"));
}

/// Applies a map that is owned by a map in another namespace.
async fn own_across(map: Obj<ConfigMap>, cx: Context) -> Result<Action> {
    if map.name() == "a" {
        let child = doc!({ "metadata": { "name": "child", "namespace": "kube-public" } });
        let kind = ResourceKind::of::<ConfigMap>();
        cx.apply_doc(&kind, child).owned_by(&map).await?;
    }
    Ok(Action::done())
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_another_namespace_is_refused() {
    let cluster = Cluster::start().await;
    let running = cluster.run(Controller::of::<ConfigMap>(own_across));
    cluster.create_doc(&config_map("a")).await;
    let key = windlass_core::Key::new("default", "a");
    let refusal = "cross-namespace owner references are disallowed, owner's namespace default";
    cluster
        .until(async |_| running.why(&key).contains(refusal))
        .await;
    assert!(
        cluster
            .get::<ConfigMap>("kube-public/child")
            .await
            .is_none()
    );
}

//! The cluster of a test, seen by its user.

use std::time::Duration;

use futures_util::FutureExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use windlass_cache::Obj;
use windlass_client::{Config, DiscoveryClient, Propagation, RestClient};
use windlass_core::{Doc, Gvr, doc};
use windlass_runtime::{Action, Context, Controller, EventType, Result};
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

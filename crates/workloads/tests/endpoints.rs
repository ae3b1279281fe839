//! Endpoints, the older form of EndpointSlices.

use std::time::Duration;

use windlass_client::{DeleteOptions, Propagation};
use windlass_core::{Doc, Gvr, doc};
use windlass_testing::Cluster;
use windlass_workloads::endpoints;

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const ENDPOINTS: Gvr = Gvr::constant("", "v1", "endpoints");

async fn cluster() -> Cluster {
    let cluster = Cluster::start().await;
    cluster.run_with("endpoints", |manager| {
        endpoints::add_to(manager, &endpoints::Options::default());
    });
    cluster
}

async fn service(cluster: &Cluster) -> Doc {
    let service = doc!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "namespace": "default", "labels": { "team": "x" } },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": 8080 }] }
    });
    cluster.create_doc(&service).await
}

async fn pod(cluster: &Cluster, number: usize, is_ready: bool) -> Doc {
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": (format!("p{number}")), "namespace": "default", "labels": { "app": "web" }
        },
        "spec": { "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] }
    });
    let pod = cluster.create_doc(&pod).await;
    show(cluster, &pod, number, is_ready).await;
    pod
}

async fn show(cluster: &Cluster, pod: &Doc, number: usize, is_ready: bool) {
    let ip = format!("10.0.{}.{}", number / 250, number % 250 + 1);
    let ready = if is_ready { "True" } else { "False" };
    let status = doc!({
        "phase": "Running", "podIP": (&ip), "podIPs": [{ "ip": (&ip) }],
        "conditions": [{ "type": "Ready", "status": ready }]
    });
    cluster.patch_status(pod, status).await;
}

async fn find(cluster: &Cluster) -> Option<Doc> {
    cluster.pass(Duration::from_secs(2)).await;
    cluster.find(&ENDPOINTS, "default/web").await
}

fn ips(endpoints: &Doc, list: &str) -> Vec<String> {
    let all = endpoints.at(&format!("/subsets/0/{list}")).items().iter();
    all.map(|it| it.str_at("/ip").to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn pods_are_addresses_that_are_ready_or_not() {
    let cluster = cluster().await;
    service(&cluster).await;
    let empty = find(&cluster).await.unwrap();
    assert!(empty.at("/subsets").items().is_empty());
    for number in [2, 0] {
        pod(&cluster, number, true).await;
    }
    let late = pod(&cluster, 1, false).await;
    let found = find(&cluster).await.unwrap();
    assert_eq!(found.at("/subsets").items().len(), 1);
    assert_eq!(ips(&found, "addresses"), ["10.0.0.1", "10.0.0.3"]);
    assert_eq!(ips(&found, "notReadyAddresses"), ["10.0.0.2"]);
    assert_eq!(*found.at("/subsets/0/ports/0/port"), 8080);
    assert_eq!(found.meta().label("team"), Some("x"));
    let manager = found.meta().label("endpoints.kubernetes.io/managed-by");
    assert_eq!(manager, Some("endpoint-controller"));
    assert_eq!(found.str_at("/subsets/0/addresses/0/targetRef/name"), "p0");
    show(&cluster, &late, 1, true).await;
    assert_eq!(ips(&find(&cluster).await.unwrap(), "addresses").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_being_deleted_is_no_address() {
    let cluster = cluster().await;
    service(&cluster).await;
    pod(&cluster, 0, true).await;
    pod(&cluster, 1, true).await;
    let api = cluster.api(&PODS, "default");
    api.delete("p0", &DeleteOptions::default()).await.unwrap();
    assert_eq!(
        ips(&find(&cluster).await.unwrap(), "addresses"),
        ["10.0.0.2"]
    );
}

#[tokio::test(start_paused = true)]
async fn endpoints_go_with_their_service_and_those_of_others_stay() {
    let cluster = cluster().await;
    let web = service(&cluster).await;
    pod(&cluster, 0, true).await;
    assert!(find(&cluster).await.is_some());
    let hand = doc!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": { "name": "hand", "namespace": "default" },
        "subsets": [{ "addresses": [{ "ip": "1.2.3.4" }] }]
    });
    cluster.create_doc(&hand).await;
    cluster.delete(&web, Propagation::Background).await;
    assert!(find(&cluster).await.is_none());
    assert!(cluster.find(&ENDPOINTS, "default/hand").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_others_change_is_put_right() {
    let cluster = cluster().await;
    service(&cluster).await;
    pod(&cluster, 0, true).await;
    let found = find(&cluster).await.unwrap();
    cluster.patch(&found, doc!({ "subsets": null })).await;
    let again = find(&cluster).await.unwrap();
    assert_eq!(again.at("/subsets"), found.at("/subsets"));
}

#[tokio::test(start_paused = true)]
async fn more_than_a_thousand_addresses_are_truncated() {
    let cluster = cluster().await;
    for number in 0..1100 {
        pod(&cluster, number, number % 20 != 0).await;
    }
    service(&cluster).await;
    let found = find(&cluster).await.unwrap();
    assert_eq!(ips(&found, "addresses").len(), 1000);
    assert!(ips(&found, "notReadyAddresses").is_empty());
    let mark = found
        .meta()
        .annotation("endpoints.kubernetes.io/over-capacity");
    assert_eq!(mark, Some("truncated"));
}

//! The service account controller and the root CA publisher, seen by their user.
#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests as well"
)]

use std::time::Duration;

use windlass_client::{Config, Propagation};
use windlass_core::{Doc, Gvr, doc};
use windlass_envtest::real_server;
use windlass_runtime::Manager;
use windlass_testing::Cluster;
use windlass_workloads::{namespace, root_ca, service_account};

const ACCOUNTS: Gvr = Gvr::constant("", "v1", "serviceaccounts");
const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");
const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");

const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

fn add(manager: &Manager) {
    service_account::add_to(manager, &Default::default());
    root_ca::add_to(manager, &root_ca::Options::new(AUTHORITY));
}

async fn create_namespace(cluster: &Cluster, name: &str) -> Doc {
    let namespace = doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    cluster.create_doc(&namespace).await
}

async fn account(cluster: &Cluster, namespace: &str) -> Option<Doc> {
    let key = format!("{namespace}/default");
    cluster.find(&ACCOUNTS, &key).await
}

async fn authority(cluster: &Cluster, namespace: &str) -> Option<Doc> {
    let key = format!("{namespace}/kube-root-ca.crt");
    cluster.find(&CONFIG_MAPS, &key).await
}

/// Waits until a namespace has both; returns them.
async fn furnished(cluster: &Cluster, namespace: &str) -> (Doc, Doc) {
    cluster
        .until(async |cluster| {
            account(cluster, namespace).await.is_some()
                && authority(cluster, namespace).await.is_some()
        })
        .await;
    (
        account(cluster, namespace).await.unwrap(),
        authority(cluster, namespace).await.unwrap(),
    )
}

async fn every_namespace_is_furnished(cluster: &Cluster) {
    furnished(cluster, "default").await;
    create_namespace(cluster, "furnished").await;
    let (account, authority) = furnished(cluster, "furnished").await;
    assert_eq!(*authority.at("/data"), doc!({ "ca.crt": AUTHORITY }));
    let description = authority.meta().annotation("kubernetes.io/description");
    assert!(description.unwrap().starts_with("Contains a CA bundle"));

    // What is deleted comes back, under another UID.
    cluster.delete(&account, Propagation::Background).await;
    cluster.delete(&authority, Propagation::Background).await;
    let (new_account, new_authority) = furnished(cluster, "furnished").await;
    assert_ne!(new_account.meta().uid_str(), account.meta().uid_str());
    assert_ne!(new_authority.meta().uid_str(), authority.meta().uid_str());

    // What is changed is put right.
    let changed =
        doc!({ "data": { "ca.crt": "x", "more": "y" }, "metadata": { "annotations": Doc::NULL } });
    cluster.patch(&new_authority, changed).await;
    cluster
        .until(async |cluster| {
            let now = crate::authority(cluster, "furnished").await.unwrap();
            let is_described = now.meta().annotation("kubernetes.io/description");
            *now.at("/data") == doc!({ "ca.crt": AUTHORITY }) && is_described.is_some()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn every_namespace_has_an_account_and_the_authority() {
    let cluster = Cluster::start().await;
    let running = cluster.run_with("accounts", add);
    every_namespace_is_furnished(&cluster).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_namespace_of_the_real_server_has_an_account_and_the_authority() {
    let Some(server) = real_server() else {
        return;
    };
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let cluster = Cluster::builder().existing(config).start().await;
    let running = cluster.run_with("accounts", add);
    every_namespace_is_furnished(&cluster).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_goes_is_not_furnished_again() {
    let cluster = Cluster::start().await;
    cluster.run_with("controllers", |manager| {
        add(manager);
        namespace::add_to(manager, &Default::default());
    });
    let shop = create_namespace(&cluster, "shop").await;
    furnished(&cluster, "shop").await;
    cluster.delete(&shop, Propagation::Background).await;
    cluster
        .until(async |cluster| cluster.find(&NAMESPACES, "shop").await.is_none())
        .await;
    cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(account(&cluster, "shop").await, None);
    assert_eq!(authority(&cluster, "shop").await, None);
}

#[tokio::test(start_paused = true)]
async fn nothing_to_publish_publishes_nothing() {
    let cluster = Cluster::start().await;
    cluster.run_with("publisher", |manager| {
        root_ca::add_to(manager, &root_ca::Options::new(""));
        service_account::add_to(manager, &Default::default());
    });
    cluster
        .until(async |cluster| account(cluster, "default").await.is_some())
        .await;
    assert_eq!(authority(&cluster, "default").await, None);
}

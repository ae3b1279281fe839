//! Tokens of service accounts that are kept in Secrets.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::{sync::Arc, time::Duration};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_client::{Propagation, WriteOptions};
use windlass_core::{Doc, Gvr, doc};
use windlass_server::Server;
use windlass_testing::{Cluster, Running};
use windlass_workloads::service_account_tokens::{self, Options, TokenSource};

const SECRETS: Gvr = Gvr::constant("", "v1", "secrets");
const ACCOUNTS: Gvr = Gvr::constant("", "v1", "serviceaccounts");
const REVIEWS: Gvr = Gvr::constant("authentication.k8s.io", "v1", "tokenreviews");
const UID: &str = "kubernetes.io/service-account.uid";

/// The server of the test signs.
struct Tokens(Server);

impl TokenSource for Tokens {
    fn sign(&self, claims: &Doc) -> Option<String> {
        self.0.sign_token(claims)
    }
}

fn run(cluster: &Cluster, root_ca: &str) -> Running {
    let source = Tokens(cluster.server().unwrap().clone());
    let options = Options {
        source: Some(Arc::new(source)),
        root_ca: root_ca.to_owned(),
        ..Options::default()
    };
    cluster.run_with("tokens", |manager| {
        service_account_tokens::add_to(manager, &options);
    })
}

async fn cluster() -> Cluster {
    let cluster = Cluster::start().await;
    run(&cluster, "a certificate");
    cluster
}

async fn account(cluster: &Cluster) -> Doc {
    let account = doc!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": "robot", "namespace": "default" },
        "secrets": [{ "name": "token" }, { "name": "other" }]
    });
    cluster.create_doc(&account).await
}

fn secret() -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": "token", "namespace": "default",
            "annotations": { "kubernetes.io/service-account.name": "robot" }
        }
    })
}

async fn find(cluster: &Cluster) -> Option<Doc> {
    cluster.find(&SECRETS, "default/token").await
}

async fn settle(cluster: &Cluster) {
    cluster.pass(Duration::from_secs(10)).await;
}

fn data(secret: &Doc, key: &str) -> String {
    let encoded = secret.at("/data").get(key).and_then(Doc::as_str);
    String::from_utf8(BASE64.decode(encoded.unwrap_or("")).unwrap()).unwrap()
}

/// The user of a token, if the server knows it.
async fn user_of(cluster: &Cluster, token: &str) -> Option<String> {
    let review = doc!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": { "token": token }
    });
    let api = cluster.resource(REVIEWS);
    let answer = api.create(&review, &WriteOptions::default()).await.unwrap();
    let is_known = answer.at("/status/authenticated").as_bool() == Some(true);
    is_known.then(|| answer.str_at("/status/user/username").to_owned())
}

/// A3
#[tokio::test(start_paused = true)]
async fn a_secret_gets_a_token_that_the_server_takes() {
    let cluster = cluster().await;
    let account = account(&cluster).await;
    cluster.create_doc(&secret()).await;
    settle(&cluster).await;
    let filled = find(&cluster).await.unwrap();
    assert_eq!(data(&filled, "namespace"), "default");
    assert_eq!(data(&filled, "ca.crt"), "a certificate");
    assert_eq!(
        filled.meta().annotation(UID),
        Some(account.meta().uid_str())
    );
    let token = data(&filled, "token");
    let user = user_of(&cluster, &token).await;
    assert_eq!(user.as_deref(), Some("system:serviceaccount:default:robot"));
    // Without its Secret a token is worth nothing.
    cluster.delete(&filled, Propagation::Background).await;
    settle(&cluster).await;
    assert_eq!(user_of(&cluster, &token).await, None);
    let account = cluster.find(&ACCOUNTS, "default/robot").await.unwrap();
    assert_eq!(*account.at("/secrets"), doc!([{ "name": "other" }]));
}

/// A4
#[tokio::test(start_paused = true)]
async fn a_secret_of_nobody_goes() {
    let cluster = cluster().await;
    cluster.create_doc(&secret()).await;
    settle(&cluster).await;
    assert_eq!(find(&cluster).await, None);
}

/// A5
#[tokio::test(start_paused = true)]
async fn a_secret_goes_with_its_account() {
    let cluster = cluster().await;
    let account = account(&cluster).await;
    cluster.create_doc(&secret()).await;
    settle(&cluster).await;
    let token = data(&find(&cluster).await.unwrap(), "token");
    cluster.delete(&account, Propagation::Background).await;
    settle(&cluster).await;
    assert_eq!(find(&cluster).await, None);
    assert_eq!(user_of(&cluster, &token).await, None);
}

/// A6
#[tokio::test(start_paused = true)]
async fn a_secret_of_an_earlier_account_goes() {
    let cluster = Cluster::start().await;
    let first = run(&cluster, "");
    let old = account(&cluster).await;
    cluster.create_doc(&secret()).await;
    settle(&cluster).await;
    first.stop().await;
    cluster.delete(&old, Propagation::Background).await;
    account(&cluster).await;
    run(&cluster, "");
    settle(&cluster).await;
    assert_eq!(find(&cluster).await, None);
}

/// A7
#[tokio::test(start_paused = true)]
async fn a_new_certificate_leaves_the_token() {
    let cluster = Cluster::start().await;
    let first = run(&cluster, "old");
    account(&cluster).await;
    cluster.create_doc(&secret()).await;
    settle(&cluster).await;
    let before = find(&cluster).await.unwrap();
    first.stop().await;
    run(&cluster, "new");
    settle(&cluster).await;
    let after = find(&cluster).await.unwrap();
    assert_eq!(data(&after, "ca.crt"), "new");
    assert_eq!(data(&after, "token"), data(&before, "token"));
}

/// A8
#[tokio::test(start_paused = true)]
async fn an_emptied_token_is_made_again() {
    let cluster = cluster().await;
    account(&cluster).await;
    cluster.create_doc(&secret()).await;
    settle(&cluster).await;
    let filled = find(&cluster).await.unwrap();
    let empty = doc!({ "data": { "token": null } });
    cluster.patch(&filled, empty).await;
    settle(&cluster).await;
    let again = find(&cluster).await.unwrap();
    assert!(user_of(&cluster, &data(&again, "token")).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn other_secrets_are_left_alone() {
    let cluster = cluster().await;
    let plain = secret().with("/type", "Opaque").unwrap();
    cluster.create_doc(&plain).await;
    settle(&cluster).await;
    assert!(find(&cluster).await.unwrap().get("data").is_none());
}

//! Ways to say who we are.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use windlass_client::{
    Api, Clientset, Config, ListOptions, RequestOutcome, RestClient, WriteOptions,
};
use windlass_core::{Doc, doc};
use windlass_envtest::ControlPlane;

use crate::setup::{named, namespace, server};

/// A token of a new service account in a namespace of its own.
async fn token(client: &Clientset, space: &str) -> String {
    namespace(client, space).await;
    let accounts: Api<ServiceAccount> = client.api().namespaced(space);
    let account = ServiceAccount {
        metadata: named("robot"),
        ..ServiceAccount::default()
    };
    accounts
        .create(&account, &WriteOptions::default())
        .await
        .unwrap();
    let spec = TokenRequestSpec {
        expiration_seconds: Some(600),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest {
        spec: Some(spec),
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token("robot", &request, &WriteOptions::default())
        .await
        .unwrap();
    answer.status.unwrap().token.unwrap()
}

/// The administrator's configuration with another user.
fn with_user(server: &ControlPlane, name: &str, user: Doc) -> PathBuf {
    let text = std::fs::read_to_string(server.kubeconfig()).unwrap();
    let config = &Doc::parse_yaml(&text).unwrap()[0];
    let config = config.with("/users/0/user", user).unwrap();
    let path = server.directory().join(name);
    std::fs::write(&path, config.to_json()).unwrap();
    path
}

async fn connect(path: &Path) -> Clientset {
    let config = Config::from_file(path).await.unwrap();
    Clientset::new(RestClient::connect(&config).await.unwrap())
}

/// The user name of the client as the server knows it, from its refusal.
async fn refused_as(client: &Clientset) -> String {
    let secrets = client
        .api::<Namespace>()
        .delete("default", &Default::default())
        .await;
    let error = secrets.unwrap_err();
    assert!(error.is_forbidden(), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn a_token_from_the_file_a_token_file_or_a_plug_in_names_the_service_account() {
    let Some((server, client)) = server().await else {
        return;
    };
    let token = token(&client, "auth-token").await;
    let user = "system:serviceaccount:auth-token:robot";

    let inline = with_user(server, "inline.json", doc!({ "token": &*token }));
    assert!(refused_as(&connect(&inline).await).await.contains(user));

    let file = server.directory().join("robot.token");
    std::fs::write(&file, &token).unwrap();
    let by_file = with_user(
        server,
        "by-file.json",
        doc!({ "tokenFile": file.to_str().unwrap() }),
    );
    assert!(refused_as(&connect(&by_file).await).await.contains(user));

    let plug_in = plug_in(server, "plug-in", &token);
    let exec = doc!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": plug_in.to_str().unwrap(),
        "interactiveMode": "Never",
    } });
    let by_plug_in = with_user(server, "by-plug-in.json", exec);
    assert!(refused_as(&connect(&by_plug_in).await).await.contains(user));
}

/// A program that prints a credential, as an exec plug-in does.
fn plug_in(server: &ControlPlane, name: &str, token: &str) -> PathBuf {
    let path = server.directory().join(name);
    let credential = doc!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": { "token": token },
    });
    let json = String::from_utf8(credential.to_json()).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .create_new(true)
        .write(true)
        .mode(0o755)
        .open(&path)
        .unwrap();
    write!(file, "#!/bin/sh\ncat <<'END'\n{json}\nEND\n").unwrap();
    path
}

/// The token again, with its expiry moved to `expiry` and signed by the server's own key.
fn resigned(server: &ControlPlane, token: &str, expiry: i64) -> String {
    let [header, claims, _] = token.split('.').collect::<Vec<_>>()[..] else {
        panic!("a token has three parts");
    };
    let claims = Doc::parse(&BASE64.decode(claims).unwrap()).unwrap();
    let claims = claims.with("/exp", expiry).unwrap();
    let text = format!("{header}.{}", BASE64.encode(claims.to_json()));
    let pem = std::fs::read_to_string(server.directory().join("service-account.key")).unwrap();
    let key: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::from_pkcs8(
        &ECDSA_P256_SHA256_FIXED_SIGNING,
        &STANDARD.decode(key).unwrap(),
        &random,
    );
    let signature = key.unwrap().sign(&random, text.as_bytes()).unwrap();
    format!("{text}.{}", BASE64.encode(signature))
}

#[tokio::test]
async fn an_expired_token_is_unauthorized() {
    let Some((server, admin)) = server().await else {
        return;
    };
    let token = token(&admin, "auth-expired").await;
    let expiry = windlass_core::Env::real().now().unix();
    let valid = with_user(
        server,
        "unexpired.json",
        doc!({ "token": (resigned(server, &token, expiry + 300)) }),
    );
    let valid = refused_as(&connect(&valid).await).await;
    assert!(valid.contains("auth-expired:robot"), "known: {valid}");

    let expired = resigned(server, &token, expiry - 300);
    let path = with_user(server, "expired.json", doc!({ "token": expired }));
    let client = connect(&path).await;
    let maps: Api<ConfigMap> = client.api().namespaced("default");
    let error = maps.list(&ListOptions::default()).await.unwrap_err();
    assert!(error.is_unauthorized(), "{error:?}");
    assert_eq!(error.outcome(), RequestOutcome::Rejected);
    let error = maps.watch(&Default::default()).await.unwrap_err();
    assert!(error.is_unauthorized(), "{error:?}");
}

#[tokio::test]
async fn the_administrator_may_act_as_somebody_else() {
    let Some((server, _)) = server().await else {
        return;
    };
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let config = config.impersonate("somebody", &["a-group"]);
    let client = Clientset::new(RestClient::connect(&config).await.unwrap());
    assert!(refused_as(&client).await.contains("User \"somebody\""));
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_not_trusted() {
    let Some((server, _)) = server().await else {
        return;
    };
    let url = server.url();
    let client = RestClient::connect(&Config::from_url(&url).unwrap())
        .await
        .unwrap();
    let error = client.get("/version").into_doc().await.unwrap_err();
    assert_eq!(error.outcome(), RequestOutcome::NotSent, "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn http2_at_the_finest_log_level_shows_no_token_and_no_secret_data() {
    const CANARY: &str = "canary-5b7d20";
    let Some((server, client)) = server().await else {
        return;
    };
    let token = token(&client, "auth-log").await;
    let (log, _guard) = crate::log::everything();
    let admin = connect(server.kubeconfig()).await;
    let secrets: Api<Secret> = admin.api().namespaced("auth-log");
    let secret = Secret {
        metadata: named("s"),
        string_data: Some([("key".to_owned(), CANARY.to_owned())].into()),
        ..Secret::default()
    };
    secrets
        .create(&secret, &WriteOptions::default())
        .await
        .unwrap();
    secrets.list(&ListOptions::default()).await.unwrap();
    let path = with_user(server, "logged.json", doc!({ "token": &*token }));
    refused_as(&connect(&path).await).await;
    let log = log.text();
    assert!(log.contains("h2::"), "HTTP/2 is in use and its log is seen");
    let encoded = "Y2FuYXJ5LTViN2QyMA";
    for secret in [CANARY, encoded, &token] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

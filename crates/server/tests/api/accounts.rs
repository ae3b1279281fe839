//! Service accounts of pods, where the server demands them.

use std::time::Duration;

use windlass_core::{Doc, doc};

use crate::support::{Api, PODS, pod};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn with(mut pod: Doc, pointer: &str, value: impl Into<Doc>) -> Doc {
    pod = pod.with(pointer, value).unwrap();
    pod
}

/// A pod that was made on a server with accounts.
async fn made(api: &Api, pod: &Doc) -> Doc {
    api.post(PODS, pod).await.expect(201).body
}

#[tokio::test]
async fn pod_runs_as_the_default_account_and_mounts_its_token() {
    let api = Api::with_accounts().await;
    let pod = made(&api, &pod("a")).await;
    assert_eq!(pod.at("/spec/serviceAccountName"), "default");
    assert_eq!(pod.at("/spec/serviceAccount"), "default");
    let name = pod.str_at("/spec/volumes/0/name");
    assert_eq!(name.len(), "kube-api-access-".len() + 5);
    assert!(name.starts_with("kube-api-access-"), "{name}");
    let mount = doc!({ "name": name, "readOnly": true, "mountPath": MOUNT_PATH });
    assert_eq!(pod.at("/spec/containers/0/volumeMounts"), &doc!([mount]));
    let field = doc!({ "apiVersion": "v1", "fieldPath": "metadata.namespace" });
    let expected = doc!({
        "defaultMode": 420,
        "sources": [
            { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
            { "configMap": {
                "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }]
            } },
            { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": field }] } }
        ]
    });
    assert_eq!(pod.at("/spec/volumes/0/projected"), &expected);
}

#[tokio::test]
async fn nobody_owns_what_the_account_brought() {
    let api = Api::with_accounts().await;
    let pod = made(&api, &pod("a")).await;
    let owned = pod.at("/metadata/managedFields/0/fieldsV1/f:spec");
    assert_eq!(owned.get("f:volumes"), None);
    assert_eq!(owned.get("f:serviceAccountName"), None);
}

#[tokio::test]
async fn account_that_is_missing_is_refused() {
    let api = Api::with_accounts().await;
    let object = with(pod("a"), "/spec/serviceAccountName", "nope");
    let answer = api.post(PODS, &object).await.expect(403);
    assert_eq!(
        answer.str_at("/message"),
        "pods \"a\" is forbidden: error looking up service account default/nope: serviceaccount \
         \"nope\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn default_account_of_a_new_namespace_is_waited_for() {
    let api = Api::with_accounts().await;
    let namespace = doc!({ "metadata": { "name": "new" } });
    api.post("/api/v1/namespaces", &namespace).await.expect(201);
    let controller = api.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let account = doc!({ "metadata": { "name": "default" } });
        let path = "/api/v1/namespaces/new/serviceaccounts";
        controller.post(path, &account).await.expect(201);
    });
    api.post("/api/v1/namespaces/new/pods", &pod("a"))
        .await
        .expect(201);
}

#[tokio::test(start_paused = true)]
async fn default_account_that_never_comes_is_refused() {
    let api = Api::with_accounts().await;
    let namespace = doc!({ "metadata": { "name": "new" } });
    api.post("/api/v1/namespaces", &namespace).await.expect(201);
    let answer = api.post("/api/v1/namespaces/new/pods", &pod("a")).await;
    let answer = answer.expect(403);
    assert_eq!(
        answer.str_at("/message"),
        "pods \"a\" is forbidden: error looking up service account new/default: serviceaccount \
         \"default\" not found"
    );
}

#[tokio::test]
async fn pod_can_do_without_a_token() {
    let api = Api::with_accounts().await;
    let object = with(pod("a"), "/spec/automountServiceAccountToken", false);
    let made = made(&api, &object).await;
    assert_eq!(made.at("/spec/serviceAccountName"), "default");
    assert_eq!(made.at("/spec/volumes"), &Doc::NULL);
}

#[tokio::test]
async fn account_can_do_without_a_token_and_brings_pull_secrets() {
    let api = Api::with_accounts().await;
    let account = doc!({
        "metadata": { "name": "quiet" }, "automountServiceAccountToken": false,
        "imagePullSecrets": [{ "name": "pull" }]
    });
    api.post(ACCOUNTS, &account).await.expect(201);
    let object = with(pod("a"), "/spec/serviceAccountName", "quiet");
    let quiet = made(&api, &object).await;
    assert_eq!(quiet.at("/spec/volumes"), &Doc::NULL);
    assert_eq!(
        quiet.at("/spec/imagePullSecrets"),
        &doc!([{ "name": "pull" }])
    );
    let object = with(pod("b"), "/spec/serviceAccountName", "quiet");
    let object = with(object, "/spec/automountServiceAccountToken", true);
    let loud = made(&api, &object).await;
    assert_eq!(loud.at("/spec/volumes").items().len(), 1);
}

#[tokio::test]
async fn own_mount_at_the_place_of_the_token_is_kept() {
    let api = Api::with_accounts().await;
    let mount = doc!([{ "name": "own", "mountPath": MOUNT_PATH }]);
    let object = with(pod("a"), "/spec/containers/0/volumeMounts", mount);
    let volumes = doc!([{ "name": "own", "emptyDir": {} }]);
    let made = made(&api, &with(object, "/spec/volumes", volumes.clone())).await;
    assert_eq!(made.at("/spec/volumes"), &volumes);
}

#[tokio::test]
async fn account_that_lists_its_secrets_allows_no_others() {
    let api = Api::with_accounts().await;
    let account = doc!({
        "metadata": {
            "name": "strict",
            "annotations": { "kubernetes.io/enforce-mountable-secrets": "true" }
        },
        "secrets": [{ "name": "ok" }]
    });
    api.post(ACCOUNTS, &account).await.expect(201);
    let object = |secret: &str| {
        let volumes = doc!([{ "name": "s", "secret": { "secretName": secret } }]);
        let object = with(pod(secret), "/spec/serviceAccountName", "strict");
        with(object, "/spec/volumes", volumes)
    };
    made(&api, &object("ok")).await;
    let answer = api.post(PODS, &object("bad")).await.expect(403);
    assert_eq!(
        answer.str_at("/message"),
        "pods \"bad\" is forbidden: volume with secret.secretName=\"bad\" is not allowed because \
         service account strict does not reference that secret"
    );
}

#[tokio::test]
async fn mirror_pod_has_no_account() {
    let api = Api::with_accounts().await;
    let mirror = doc!({ "kubernetes.io/config.mirror": "x" });
    let object = with(pod("a"), "/metadata/annotations", mirror);
    let object = with(object, "/spec/nodeName", "n1");
    let made = made(&api, &object).await;
    assert_eq!(made.at("/spec/serviceAccountName"), &Doc::NULL);
}

#[tokio::test]
async fn server_without_the_rule_leaves_accounts_alone() {
    let api = Api::new().await;
    let made = made(&api, &pod("a")).await;
    assert_eq!(made.at("/spec/serviceAccountName"), &Doc::NULL);
    let accounts = api.get(ACCOUNTS).await.expect(200);
    assert_eq!(accounts.body.at("/items").items().len(), 0);
}

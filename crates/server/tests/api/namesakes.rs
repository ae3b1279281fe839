//! Custom kinds that are called like built-in ones: a kind is known by its registry row, not by its
//! name.

use windlass_core::{Doc, doc};

use crate::support::Api;

const RANGES: &str = "/api/v1/namespaces/default/limitranges";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

/// A server with a custom kind in the group `example.com`, and the path of its objects.
async fn namesake(plural: &str, kind: &str, scope: &str) -> (Api, String) {
    let api = Api::new().await;
    let schema = doc!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = doc!({
        "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": schema }
    });
    let definition = doc!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": (format!("{plural}.example.com")) },
        "spec": {
            "group": "example.com", "scope": scope, "versions": [version],
            "names": {
                "plural": plural, "singular": (kind.to_lowercase()), "kind": kind,
                "listKind": (format!("{kind}List"))
            }
        }
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    api.post(path, &definition).await.expect(201);
    let place = match scope {
        "Cluster" => "",
        _ => "/namespaces/default",
    };
    (api, format!("/apis/example.com/v1{place}/{plural}"))
}

fn object(kind: &str, spec: Doc) -> Doc {
    doc!({
        "apiVersion": "example.com/v1", "kind": kind, "metadata": { "name": "a" }, "spec": spec
    })
}

/// A limit range that asks something of each sort of object.
async fn limit(api: &Api) {
    let range = doc!({
        "metadata": { "name": "r" },
        "spec": { "limits": [
            { "type": "Container", "default": { "cpu": "1" }, "max": { "cpu": "1" } },
            { "type": "Pod", "max": { "cpu": "1" } },
            { "type": "PersistentVolumeClaim", "min": { "storage": "1Gi" } }
        ] }
    });
    api.post(RANGES, &range).await.expect(201);
}

#[tokio::test]
async fn a_limit_range_does_not_limit_custom_kinds_named_like_pods_and_claims() {
    for (plural, kind) in [
        ("pods", "Pod"),
        ("persistentvolumeclaims", "PersistentVolumeClaim"),
    ] {
        let (api, path) = namesake(plural, kind, "Namespaced").await;
        limit(&api).await;
        let spec =
            doc!({ "containers": [{ "name": "c", "resources": { "limits": { "cpu": "9" } } }] });
        let created = api
            .post(&path, &object(kind, spec.clone()))
            .await
            .expect(201);
        assert_eq!(*created.body.at("/spec"), spec, "{plural}");
        let label = doc!({ "metadata": { "labels": { "a": "b" } } });
        api.merge(&format!("{path}/a"), &label).await.expect(200);
    }
}

#[tokio::test]
async fn a_quota_of_pods_does_not_count_custom_kinds_of_that_name() {
    let (api, path) = namesake("pods", "Pod", "Namespaced").await;
    let hard = doc!({ "pods": "1", "limits.cpu": "1", "count/pods.example.com": "1" });
    let quota = doc!({ "metadata": { "name": "q" }, "spec": { "hard": (hard.clone()) } });
    api.post(QUOTAS, &quota).await.expect(201);
    let used = doc!({ "pods": "1", "limits.cpu": "0", "count/pods.example.com": "0" });
    let status = doc!({ "status": { "hard": hard, "used": used } });
    let status = api.merge(&format!("{QUOTAS}/q/status"), &status).await;
    status.expect(200);
    // It is counted under its own name, and needs no limits.
    api.post(&path, &object("Pod", doc!({}))).await.expect(201);
    let quota = api.get(&format!("{QUOTAS}/q")).await.expect(200);
    let used = quota.body.at("/status/used");
    assert_eq!(used.get("pods").unwrap(), &Doc::from("1"));
    assert_eq!(used.get("count/pods.example.com").unwrap(), &Doc::from("1"));
}

#[tokio::test]
async fn priority_and_tolerations_are_not_given_to_custom_kinds_named_pods() {
    let (api, path) = namesake("pods", "Pod", "Namespaced").await;
    let spec = doc!({ "priorityClassName": "absent", "priority": 7 });
    let created = api
        .post(&path, &object("Pod", spec.clone()))
        .await
        .expect(201);
    assert_eq!(*created.body.at("/spec"), spec);
}

#[tokio::test]
async fn a_custom_kind_named_priorityclasses_may_have_two_defaults() {
    let (api, path) = namesake("priorityclasses", "PriorityClass", "Cluster").await;
    let built_in = doc!({ "metadata": { "name": "d" }, "globalDefault": true, "value": 1 });
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    api.post(classes, &built_in).await.expect(201);
    let class = object("PriorityClass", doc!({}))
        .with("/globalDefault", true)
        .unwrap();
    api.post(&path, &class).await.expect(201);
}

#[tokio::test]
async fn a_custom_kind_named_like_signing_requests_needs_no_certificate() {
    let kind = "CertificateSigningRequest";
    let (api, path) = namesake("certificatesigningrequests", kind, "Cluster").await;
    let spec = doc!({ "signerName": "kubernetes.io/kube-apiserver-client", "request": "none" });
    let created = api
        .post(&path, &object(kind, spec.clone()))
        .await
        .expect(201);
    assert_eq!(*created.body.at("/spec"), spec);
}

#[tokio::test]
async fn custom_kinds_named_like_services_roles_and_volumes_are_stored_as_they_are() {
    let kinds = [
        ("services", "Service"),
        ("roles", "Role"),
        ("rolebindings", "RoleBinding"),
        ("persistentvolumes", "PersistentVolume"),
        ("nodes", "Node"),
        ("bindings", "Binding"),
        ("customresourcedefinitions", "CustomResourceDefinition"),
    ];
    for (plural, kind) in kinds {
        let (api, path) = namesake(plural, kind, "Namespaced").await;
        let spec = doc!({ "type": "NodePort", "ports": [{ "port": 80 }] });
        let created = api
            .post(&path, &object(kind, spec.clone()))
            .await
            .expect(201);
        assert_eq!(*created.body.at("/spec"), spec, "{plural}");
        assert!(
            created.body.at("/metadata/finalizers").is_null(),
            "{plural}"
        );
        api.delete(&format!("{path}/a")).await.expect(200);
    }
}

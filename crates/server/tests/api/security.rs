//! Authentication, authorization and reviews.

use http::Method;
use windlass_core::doc;
use windlass_server::User;

use crate::support::{Api, CONFIG_MAPS, PODS, config_map, request};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Every kind of path that must not answer to a stranger.
const GUARDED: &[&str] = &[
    "/",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/apps/v1",
    "/api/v1/namespaces",
    "/api/v1/secrets",
    "/api/v1/namespaces/default/pods?watch=1",
    "/api/v1/watch/secrets",
    "/apis/apps/v1/namespaces/default/deployments/a/scale",
    "/openapi/v3",
    "/metrics",
    "/nowhere",
];

#[tokio::test]
async fn strangers_see_health_and_version_only() {
    let api = Api::new().await.asked_by_nobody();
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        api.get(path).await.expect(200);
    }
    for path in GUARDED {
        let message = api.get(path).await.refused(403, "Forbidden");
        assert!(
            message.contains("User \"system:anonymous\" cannot "),
            "{message}"
        );
    }
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let answer = api
            .send(request(
                method,
                &format!("{PODS}/a"),
                "application/json",
                "{}",
            ))
            .await;
        answer.refused(403, "Forbidden");
    }
}

#[tokio::test]
async fn a_bad_token_is_worse_than_none() {
    let api = Api::new().await.asked_by_nobody();
    for token in ["Bearer nonsense", "Bearer a.b.c", "bearer "] {
        let mut request = request(Method::GET, "/version", "", "");
        request
            .headers_mut()
            .insert("authorization", token.parse().unwrap());
        let answer = api.send(request).await;
        assert!(
            answer.code == 401 || token == "bearer ",
            "{token}: {}",
            answer.text
        );
    }
}

#[tokio::test]
async fn refusals_name_user_verb_resource_and_place() {
    let api = Api::new().await.asked_by(User::new("bob", &[]));
    let message = api
        .get(&format!("{PODS}/p"))
        .await
        .refused(403, "Forbidden");
    assert_eq!(
        message,
        "pods \"p\" is forbidden: User \"bob\" cannot get resource \"pods\" in API group \"\" in \
         the namespace \"default\""
    );
    let message = api.get("/api/v1/nodes").await.refused(403, "Forbidden");
    assert_eq!(
        message,
        "nodes is forbidden: User \"bob\" cannot list resource \"nodes\" in API group \"\" at the \
         cluster scope"
    );
    let path = "/apis/apps/v1/namespaces/default/deployments/d/scale";
    let message = api.get(path).await.refused(403, "Forbidden");
    assert!(message.contains("cannot get resource \"deployments/scale\" in API group \"apps\""));
    let message = api.get("/metrics").await.refused(403, "Forbidden");
    assert_eq!(
        message,
        "forbidden: User \"bob\" cannot get path \"/metrics\""
    );
}

#[tokio::test]
async fn a_role_binding_gives_rights_in_its_namespace() {
    let api = Api::new().await;
    let bob = api.asked_by(User::new("bob", &["team"]));
    let rules =
        doc!([{ "verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"] }]);
    let role = doc!({ "metadata": { "name": "reader" }, "rules": rules });
    api.post(&format!("{RBAC}/namespaces/default/roles"), &role)
        .await
        .expect(201);
    let binding = doc!({
        "metadata": { "name": "team" }, "roleRef": { "kind": "Role", "name": "reader" },
        "subjects": [{ "kind": "Group", "name": "team" }]
    });
    bob.get(CONFIG_MAPS).await.refused(403, "Forbidden");
    api.post(&format!("{RBAC}/namespaces/default/rolebindings"), &binding)
        .await
        .expect(201);
    bob.get(CONFIG_MAPS).await.expect(200);
    bob.get("/api/v1/configmaps")
        .await
        .refused(403, "Forbidden");
    bob.get("/api/v1/namespaces/kube-system/configmaps")
        .await
        .refused(403, "Forbidden");
    bob.get(&format!("{CONFIG_MAPS}?watch=1"))
        .await
        .refused(403, "Forbidden");
    bob.post(CONFIG_MAPS, &config_map("a"))
        .await
        .refused(403, "Forbidden");
    api.delete(&format!("{RBAC}/namespaces/default/rolebindings/team"))
        .await
        .expect(200);
    bob.get(CONFIG_MAPS).await.refused(403, "Forbidden");
}

#[tokio::test]
async fn a_right_to_one_name_does_not_list() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("mine")).await.expect(201);
    let bob = api.asked_by(User::new("bob", &[]));
    let rules = doc!([{
        "verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"]
    }]);
    let role = doc!({ "metadata": { "name": "one" }, "rules": rules });
    api.post(&format!("{RBAC}/clusterroles"), &role)
        .await
        .expect(201);
    let binding = doc!({
        "metadata": { "name": "one" }, "roleRef": { "kind": "ClusterRole", "name": "one" },
        "subjects": [{ "kind": "User", "name": "bob" }]
    });
    api.post(&format!("{RBAC}/clusterrolebindings"), &binding)
        .await
        .expect(201);
    bob.get(&format!("{CONFIG_MAPS}/mine")).await.expect(200);
    bob.get(&format!("{CONFIG_MAPS}/other"))
        .await
        .refused(403, "Forbidden");
    bob.get(CONFIG_MAPS).await.refused(403, "Forbidden");
    bob.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name=mine"))
        .await
        .expect(200);
}

#[tokio::test]
async fn nobody_gives_more_than_they_have() {
    let api = Api::new().await;
    let bob = api.asked_by(User::new("bob", &[]));
    let binding = |role: &str| {
        doc!({
            "metadata": { "name": "bob" }, "roleRef": { "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": "User", "name": "bob" }]
        })
    };
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    api.post(&bindings, &binding("admin")).await.expect(201);
    let roles = format!("{RBAC}/namespaces/default/roles");
    let role = |verb: &str, resource: &str| {
        doc!({
            "metadata": { "name": resource },
            "rules": [{ "verbs": [verb], "apiGroups": [""], "resources": [resource] }]
        })
    };
    bob.post(&roles, &role("get", "pods")).await.expect(201);
    let message = bob
        .post(&roles, &role("get", "nodes"))
        .await
        .refused(403, "Forbidden");
    assert!(message.contains("attempting to grant RBAC permissions not currently held"));
    let all = binding("cluster-admin")
        .with("/metadata/name", "all")
        .unwrap();
    bob.post(&bindings, &all).await.refused(403, "Forbidden");
    let stronger = doc!({ "rules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }] });
    bob.merge(&format!("{roles}/pods"), &stronger)
        .await
        .refused(403, "Forbidden");
}

#[tokio::test]
async fn impersonation_needs_a_right_and_then_counts() {
    let api = Api::new().await;
    let get = |path: &str, user: &str| {
        let mut request = request(Method::GET, path, "", "");
        request
            .headers_mut()
            .insert("impersonate-user", user.parse().unwrap());
        request
    };
    api.send(get(PODS, "bob")).await.refused(403, "Forbidden");
    api.send(get("/version", "bob")).await.expect(200);
    let bob = api.asked_by(User::new("bob", &[]));
    let message = bob
        .send(get("/version", "alice"))
        .await
        .refused(403, "Forbidden");
    assert!(
        message.contains("cannot impersonate-on:user-info:get path \"/version\""),
        "{message}"
    );
}

#[tokio::test]
async fn reviews_answer_and_store_nothing() {
    let api = Api::new().await;
    let bob = api.asked_by(User::new("bob", &[]));
    let attributes = doc!({ "verb": "get", "resource": "pods", "namespace": "default" });
    let review = doc!({ "spec": { "resourceAttributes": (&attributes) } });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(
        *api.post(path, &review)
            .await
            .expect(201)
            .body
            .at("/status/allowed"),
        true
    );
    assert_eq!(
        *bob.post(path, &review)
            .await
            .expect(201)
            .body
            .at("/status/allowed"),
        false
    );
    let other = doc!({ "spec": { "user": "bob", "resourceAttributes": (&attributes) } });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    assert_eq!(
        *api.post(path, &other)
            .await
            .expect(201)
            .body
            .at("/status/allowed"),
        false
    );
    bob.post(path, &other).await.refused(403, "Forbidden");
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let me = bob.post(path, &doc!({})).await.expect(201);
    assert_eq!(me.str_at("/status/userInfo/username"), "bob");
    bob.get(path).await.refused(403, "Forbidden");
    api.get(path).await.refused(405, "MethodNotAllowed");
}

//! The options of a server, each by its effect.

use bytes::Bytes;
use http::Method;
use windlass_core::{Env, doc};
use windlass_server::{Server, ServerOptions, StaticToken, User};

use crate::support::{Api, request};

async fn opened(change: impl FnOnce(&mut ServerOptions)) -> Api {
    let mut options = ServerOptions::memory(Env::seeded(1));
    change(&mut options);
    Api::of(Server::open(options).await.unwrap(), User::admin())
}

#[tokio::test]
async fn anonymous_requests_are_refused_where_they_are_switched_off() {
    let api = opened(|options| options.authentication.refuses_anonymous = true).await;
    let nobody = api.asked_by_nobody();
    nobody.get("/readyz").await.expect(401);
    nobody.get("/api/v1/namespaces").await.expect(401);
    api.get("/readyz").await.expect(200);
    let api = opened(|_| ()).await;
    api.asked_by_nobody().get("/readyz").await.expect(200);
}

#[tokio::test]
async fn a_static_token_is_its_user() {
    let api = opened(|options| {
        options.authentication.tokens = vec![StaticToken {
            token: "secret".to_owned(),
            user: User::new("ann", &["system:masters"]),
        }];
    })
    .await;
    let nobody = api.asked_by_nobody();
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = doc!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"
    });
    for (token, code) in [("secret", 201), ("secrets", 401)] {
        let mut asked = request(Method::POST, path, "application/json", review.to_json());
        let bearer = format!("Bearer {token}").parse().unwrap();
        asked.headers_mut().insert("authorization", bearer);
        let answer = nobody.send(asked).await.expect(code);
        if code == 201 {
            assert_eq!(answer.body.str_at("/status/userInfo/username"), "ann");
        }
    }
    // A token is no part of the path.
    let asked = request(Method::GET, "/api", "", Bytes::new());
    nobody.send(asked).await.expect(403);
}

#[tokio::test]
async fn services_get_addresses_of_the_network_of_the_server() {
    let api = opened(|options| options.service_network = "10.7.0.0/28".parse().unwrap()).await;
    let own = api
        .get("/api/v1/namespaces/default/services/kubernetes")
        .await;
    assert_eq!(own.body.str_at("/spec/clusterIP"), "10.7.0.1");
    let service = |name: &str| {
        doc!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
            "spec": { "ports": [{ "port": 80 }] }
        })
    };
    let path = "/api/v1/namespaces/default/services";
    for number in 0..13 {
        let made = api.post(path, &service(&format!("s{number}"))).await;
        let made = made.expect(201);
        assert!(made.body.str_at("/spec/clusterIP").starts_with("10.7.0."));
    }
    let full = api.post(path, &service("one-too-many")).await;
    let full = full.expect(500);
    assert!(full.text.contains("range is full"), "{}", full.text);
}

#[tokio::test]
async fn a_disabled_plugin_does_nothing() {
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "a", "image": "a" }] }
    });
    for (name, tolerations) in [("Priority", 2), ("DefaultTolerationSeconds", 0)] {
        let api = opened(|options| {
            let disabled = options.admission.disabled.with(name).unwrap();
            options.admission.disabled = disabled;
        })
        .await;
        let made = api.post("/api/v1/namespaces/default/pods", &pod).await;
        let made = made.expect(201);
        let found = made.body.at("/spec/tolerations").items().len();
        assert_eq!(found, tolerations, "{name}");
        assert_eq!(made.body.at("/spec/priority").is_null(), name == "Priority");
    }
    let api = opened(|options| {
        let disabled = options
            .admission
            .disabled
            .with("NamespaceLifecycle")
            .unwrap();
        options.admission.disabled = disabled;
    })
    .await;
    api.post("/api/v1/namespaces/absent/pods", &pod)
        .await
        .expect(201);
}

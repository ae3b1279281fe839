//! Bad input and its bounds: the right code, a proper refusal, nothing changed.

use http::Method;
use windlass_core::doc;

use crate::support::{Api, CONFIG_MAPS, MERGE_PATCH, PODS, pod, request};

#[tokio::test]
async fn malformed_bodies_of_every_kind_are_bad_requests() {
    let api = Api::new().await;
    let discovery = api.get("/apis").await;
    let mut collections = vec!["/api/v1".to_owned()];
    for group in discovery.body.at("/groups").items() {
        collections.push(format!(
            "/apis/{}",
            group.str_at("/preferredVersion/groupVersion")
        ));
    }
    let mut checked = 0;
    for base in collections {
        let resources = api.get(&base).await.expect(200);
        for row in resources.body.at("/resources").items() {
            let name = row.str_at("/name");
            let verbs = row.at("/verbs").items();
            if name.contains('/') || !verbs.contains(&"create".into()) {
                continue;
            }
            let place = if *row.at("/namespaced") == true {
                "/namespaces/default"
            } else {
                ""
            };
            let path = format!("{base}{place}/{name}");
            for body in [
                "",
                "{",
                "[]",
                "null",
                "5",
                "\"x\"",
                "\u{0}",
                "{\"metadata\":5}",
                "{\"metadata\":{\"name\":5}}",
            ] {
                let answer = api.post_text(&path, "application/json", body).await;
                answer.refused(400, "BadRequest");
                checked += 1;
            }
        }
    }
    assert!(checked > 400, "{checked}");
}

#[tokio::test]
async fn odd_values_inside_an_object_never_break_the_server() {
    let api = Api::new().await;
    let odd = [
        "null",
        "5",
        "\"x\"",
        "[]",
        "[5]",
        "{}",
        "{\"a\":5}",
        "true",
        "1e9",
        "[[[]]]",
    ];
    for collection in [
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/services",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/batch/v1/namespaces/default/cronjobs",
        "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
        "/api/v1/namespaces",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/api/v1/namespaces/default/secrets",
    ] {
        for field in ["spec", "status", "data", "rules", "type"] {
            for value in odd {
                let body = format!(r#"{{"metadata":{{"generateName":"x"}},"{field}":{value}}}"#);
                let answer = api.post_text(collection, "application/json", &body).await;
                assert!(
                    answer.code.as_u16() < 500,
                    "{collection} {body}: {}",
                    answer.text
                );
            }
        }
    }
}

#[tokio::test]
async fn a_body_has_a_limit() {
    let api = Api::new().await;
    let body = |bytes: usize| {
        let frame = r#"{"metadata":{"name":"a"}}"#;
        format!("{frame}{}", " ".repeat(bytes - frame.len()))
    };
    let limit = 3 * 1024 * 1024;
    let answer = api
        .post_text(CONFIG_MAPS, "application/json", &body(limit + 1))
        .await;
    assert_eq!(
        answer.refused(413, "RequestEntityTooLarge"),
        "Request entity too large: limit is 3145728"
    );
    api.get(&format!("{CONFIG_MAPS}/a"))
        .await
        .refused(404, "NotFound");
    api.post_text(CONFIG_MAPS, "application/json", &body(limit))
        .await
        .expect(201);
}

#[tokio::test]
async fn deep_bodies_are_refused() {
    let api = Api::new().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    api.post_text(CONFIG_MAPS, "application/json", &deep)
        .await
        .refused(400, "BadRequest");
    let yaml = format!("a: {deep}");
    assert!(
        api.post_text(CONFIG_MAPS, "application/yaml", &yaml)
            .await
            .code
            .is_client_error()
    );
}

#[tokio::test]
async fn nulls_deep_inside_cost_no_more_than_others() {
    let api = Api::new().await;
    let depth = 200;
    let nested = format!("{}null{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let body = format!(r#"{{"metadata":{{"name":"a"}},"spec":{nested},"x":null}}"#);
    let path = "/apis/networking.k8s.io/v1/ingressclasses";
    let created = api
        .post_text(path, "application/json", &body)
        .await
        .expect(201);
    assert!(created.body.get("x").is_none());
}

#[tokio::test]
async fn media_types_that_are_not_read_are_named() {
    let api = Api::new().await;
    for media_type in ["text/plain", "application/cbor"] {
        let message = api
            .post_text(CONFIG_MAPS, media_type, "x")
            .await
            .refused(415, "UnsupportedMediaType");
        assert!(
            message.contains("accepted media types include: application/json"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn paths_that_need_cleaning_lead_nowhere() {
    let api = Api::new().await;
    for path in [
        "/api/v1/namespaces/default/../../secrets",
        "/api/v1//namespaces",
        "/api/v1/namespaces/default/configmaps/a%2Fb",
        "/api/v1/namespaces/%2e%2e/configmaps",
        "/api/v1/namespaces/default/configmaps/%00",
        "/api/v1/namespaces/default/configmaps/%ff",
    ] {
        api.get(path).await.refused(404, "NotFound");
    }
}

#[tokio::test]
async fn unknown_methods_are_refused() {
    let api = Api::new().await;
    for method in [
        Method::OPTIONS,
        Method::TRACE,
        Method::from_bytes(b"FLY").unwrap(),
    ] {
        let answer = api.send(request(method.clone(), CONFIG_MAPS, "", "")).await;
        assert!(answer.code.is_client_error(), "{method}: {}", answer.text);
    }
    let answer = api.send(request(Method::POST, "/version", "", "")).await;
    answer.refused(405, "MethodNotAllowed");
}

#[tokio::test]
async fn a_field_manager_has_a_limit() {
    let api = Api::new().await;
    let path = format!("{CONFIG_MAPS}?fieldManager={}", "x".repeat(129));
    api.post(&path, &doc!({ "metadata": { "name": "a" } }))
        .await
        .refused(422, "Invalid");
    api.patch(&path, MERGE_PATCH, "{}")
        .await
        .refused(405, "MethodNotAllowed");
}

#[tokio::test]
async fn numbers_without_bounds_are_bounded() {
    let api = Api::new().await;
    let huge = i64::MAX;
    let mut watch = api
        .watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds={huge}"))
        .await;
    api.post(CONFIG_MAPS, &doc!({ "metadata": { "name": "a" } }))
        .await
        .expect(201);
    assert_eq!(watch.short().await, "ADDED a");
    api.get(&format!("{CONFIG_MAPS}?limit={huge}"))
        .await
        .expect(200);
    api.get(&format!("{CONFIG_MAPS}?timeout={huge}h"))
        .await
        .refused(400, "BadRequest");
    let later = |revision: &str| {
        format!(
            "{CONFIG_MAPS}?resourceVersion={revision}&limit=1&resourceVersionMatch=NotOlderThan\
             &timeout=1ns"
        )
    };
    api.get(&later("9999999999999999999"))
        .await
        .refused(504, "Timeout");
    // Go reads no more than 64 bits.
    api.get(&later("99999999999999999999999"))
        .await
        .refused(400, "BadRequest");
    api.post(PODS, &pod("p")).await.expect(201);
    let binding = doc!({ "metadata": { "name": "p" }, "target": { "name": "n" } });
    api.post(&format!("{PODS}/p/binding"), &binding)
        .await
        .expect(201);
    let path = format!("{PODS}/p");
    for grace in [huge, huge - 1, 1, i64::MIN] {
        let answer = api
            .delete_with(&path, &doc!({ "gracePeriodSeconds": grace }))
            .await
            .expect(200);
        let left = answer
            .body
            .at("/metadata/deletionGracePeriodSeconds")
            .as_i64()
            .unwrap();
        assert!(left <= grace.max(1), "{}", answer.text);
    }
}

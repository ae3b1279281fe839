//! Requests that take their time, on a server behind a socket. Each test has one thread for all
//! connections, so whatever computes on it holds up everything else.

use std::sync::Arc;

use http::Method;
use http_body_util::Full;
use windlass_core::{Doc, doc};

use super::tls::{Running, Show, TOKEN, run};

const SLOW: &str = "/apis/example.com/v1/namespaces/default/slows";
/// Items of the list that the rules go through in pairs.
const ITEMS: i64 = 300;
/// Rules of the kind. Together they stay below what the rules of one object may cost.
const RULES: usize = 9;

async fn send(running: &Running, method: Method, path: &str, body: Option<&Doc>) -> (u16, String) {
    let mut request = running.request(path, "localhost", Some(TOKEN));
    *request.method_mut() = method;
    if let Some(body) = body {
        *request.body_mut() = Full::new(body.to_json().into());
    }
    running.get(Show::Nothing, "h2", request).await
}

/// A server with a kind whose rules are about as expensive as rules may be.
async fn with_slow_kind() -> Arc<Running> {
    let running = run().await;
    let rule = |bound: usize| {
        let bound = i64::try_from(bound).unwrap();
        let text = format!("self.all(x, self.all(y, x + y >= -{bound}))");
        doc!({ "rule": text })
    };
    let rules: Vec<Doc> = (0..RULES).map(rule).collect();
    let definition = doc!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "slows.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "slows", "singular": "slow", "kind": "Slow", "listKind": "SlowList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "numbers": {
                        "type": "array", "maxItems": ITEMS, "items": { "type": "integer" },
                        "x-kubernetes-validations": rules
                    }
                } } }
            }]
        }
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, text) = send(&running, Method::POST, path, Some(&definition)).await;
    assert_eq!(code, 201, "{text}");
    Arc::new(running)
}

fn slow_object() -> Doc {
    let numbers: Vec<Doc> = (0..ITEMS).map(Doc::from).collect();
    doc!({
        "apiVersion": "example.com/v1", "kind": "Slow", "metadata": { "name": "a" },
        "numbers": numbers
    })
}

/// Begins to create the slow object; returns when the server is at it.
async fn begin(running: &Arc<Running>) -> tokio::task::JoinHandle<(u16, String)> {
    let creating = tokio::spawn({
        let running = running.clone();
        async move { send(&running, Method::POST, SLOW, Some(&slow_object())).await }
    });
    let at_work = "apiserver_current_inflight_requests{request_kind=\"mutating\"} 1";
    loop {
        let (_, metrics) = send(running, Method::GET, "/metrics", None).await;
        if metrics.contains(at_work) {
            return creating;
        }
        assert!(!creating.is_finished(), "{metrics}");
    }
}

#[tokio::test]
async fn rules_of_one_object_do_not_hold_up_other_requests() {
    let running = with_slow_kind().await;
    let creating = begin(&running).await;
    let mut answers = 0;
    while !creating.is_finished() {
        let (code, text) = send(&running, Method::GET, "/api/v1/namespaces/default", None).await;
        assert_eq!(code, 200, "{text}");
        answers += 1;
    }
    let (code, text) = creating.await.unwrap();
    assert_eq!(code, 201, "{text}");
    assert!(answers >= 3, "{answers} answers while the rules ran");
}

#[tokio::test]
async fn work_that_is_out_of_time_is_answered_and_stores_nothing() {
    let running = with_slow_kind().await;
    let path = format!("{SLOW}?timeout=20ms");
    let (code, text) = send(&running, Method::POST, &path, Some(&slow_object())).await;
    assert_eq!(code, 504, "{text}");
    let status = Doc::parse(text.as_bytes()).unwrap();
    assert_eq!(status.str_at("/reason"), "Timeout");
    assert_eq!(
        status.str_at("/message"),
        "Timeout: request did not complete within the allotted timeout"
    );
    // If the first one were still to be stored, this one would find it.
    let (code, text) = send(&running, Method::POST, SLOW, Some(&slow_object())).await;
    assert_eq!(code, 201, "{text}");
}

#[tokio::test]
async fn the_server_ends_while_rules_run() {
    let running = with_slow_kind().await;
    let creating = begin(&running).await;
    let path = format!("{SLOW}/a");
    let (code, text) = send(&running, Method::GET, &path, None).await;
    assert_eq!(code, 404, "{text}");
    running.stop.notify_one();
    let (code, text) = creating.await.unwrap();
    assert_eq!(code, 503, "{text}");
    let running = Arc::into_inner(running).unwrap();
    running.done.await.unwrap();
}

/// A large body is read on another thread, and what becomes of it is the same.
#[tokio::test]
async fn large_bodies_are_answered_as_small_ones() {
    let running = run().await;
    let path = "/api/v1/namespaces/default/configmaps";
    for (name, bytes) in [("small", 10), ("large", 200 << 10)] {
        let data = "x".repeat(bytes);
        let object = doc!({ "metadata": { "name": name }, "data": { "k": data } });
        let (code, text) = send(&running, Method::POST, path, Some(&object)).await;
        assert_eq!(code, 201, "{text}");
        let (code, text) = send(&running, Method::POST, path, Some(&object)).await;
        assert_eq!(code, 409, "{text}");
    }
}

//! Retries: requests that are sent once more, those that are not, and their outcome.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tower::service_fn;
use windlass_client::{
    Content, DynamicClient, Error, Metrics, Payload, RateLimit, RequestOutcome, RestClient,
    RestOptions, Transport, WriteOptions,
};
use windlass_core::{Gvr, doc};

use crate::script::Say::{Answer, Broken};
use crate::script::scripted;

fn count(asked: &Arc<Mutex<Vec<String>>>) -> usize {
    asked.lock().unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn a_refusal_with_a_wait_is_repeated_after_it_whatever_the_verb() {
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        for code in [429, 503] {
            let (client, asked) = scripted(vec![
                Answer(code, Some(7), "{}"),
                Answer(200, None, r#"{"a":1}"#),
            ]);
            let start = Instant::now();
            let answer = client
                .request(method.parse().unwrap(), "/x")
                .into_doc()
                .await
                .unwrap();
            assert_eq!(answer, doc!({ "a": 1 }));
            assert_eq!(
                (count(&asked), start.elapsed().as_secs()),
                (2, 7),
                "{method} {code}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_repeated_only_where_twice_is_the_same_as_once() {
    for (method, attempts) in [
        ("GET", 2),
        ("PUT", 2),
        ("DELETE", 2),
        ("POST", 1),
        ("PATCH", 1),
    ] {
        for code in [500, 504] {
            let (client, asked) =
                scripted(vec![Answer(code, Some(1), "{}"), Answer(200, None, "{}")]);
            let answer = client
                .request(method.parse().unwrap(), "/x")
                .into_doc()
                .await;
            assert_eq!(count(&asked), attempts, "{method} {code}");
            if let Err(error) = answer {
                assert_eq!(error.outcome(), RequestOutcome::Unknown);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_wait_nothing_is_repeated() {
    for code in [429, 500, 503, 504] {
        let (client, asked) = scripted(vec![Answer(code, None, "{}")]);
        client.get("/x").into_doc().await.unwrap_err();
        assert_eq!(count(&asked), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_repeated_for_reads_only() {
    let broken = || Broken {
        may_have_arrived: true,
    };
    let (client, asked) = scripted(vec![broken(), Answer(200, None, "{}")]);
    client.get("/x").into_doc().await.unwrap();
    assert_eq!(count(&asked), 2);
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let (client, asked) = scripted(vec![broken()]);
        let error = client
            .request(method.parse().unwrap(), "/x")
            .into_doc()
            .await
            .unwrap_err();
        assert_eq!(
            (count(&asked), error.outcome()),
            (1, RequestOutcome::Unknown),
            "{method}"
        );
    }
    let (client, _) = scripted(vec![Broken {
        may_have_arrived: false,
    }]);
    let error = client.post("/x").into_doc().await.unwrap_err();
    assert_eq!(error.outcome(), RequestOutcome::NotSent);
}

#[tokio::test(start_paused = true)]
async fn ten_repetitions_are_enough() {
    let answers = (0..11).map(|_| Answer(429, Some(1), "{}")).collect();
    let (client, asked) = scripted(answers);
    let error = client.get("/x").into_doc().await.unwrap_err();
    assert!(error.is_too_many_requests());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(count(&asked), 11);
}

#[tokio::test(start_paused = true)]
async fn a_server_cannot_impose_a_wait_of_days() {
    let (client, _) = scripted(vec![
        Answer(429, Some(1 << 40), "{}"),
        Answer(200, None, "{}"),
    ]);
    let start = Instant::now();
    client.get("/x").into_doc().await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn a_status_is_told_apart_by_its_reason() {
    type Case = (u16, &'static str, fn(&Error) -> bool);
    let cases: [Case; 8] = [
        (
            404,
            r#"{"reason":"NotFound","message":"pods \"a\" not found"}"#,
            Error::is_not_found,
        ),
        (409, r#"{"reason":"Conflict"}"#, Error::is_conflict),
        (
            409,
            r#"{"reason":"AlreadyExists"}"#,
            Error::is_already_exists,
        ),
        (410, r#"{"reason":"Expired"}"#, Error::is_gone),
        (403, r#"{"reason":"Forbidden"}"#, Error::is_forbidden),
        (422, r#"{"reason":"Invalid"}"#, Error::is_invalid),
        (401, r#"{"reason":"Unauthorized"}"#, Error::is_unauthorized),
        (404, "not json at all", Error::is_not_found),
    ];
    for (code, body, is_it) in cases {
        let (client, _) = scripted(vec![Answer(code, None, body)]);
        let error = client.get("/x").into_doc().await.unwrap_err();
        assert!(is_it(&error), "{code} {body}: {error:?}");
        assert_eq!(error.outcome(), RequestOutcome::Rejected);
        let conflict_and_exists = error.is_conflict() && error.is_already_exists();
        assert!(!conflict_and_exists, "{error:?}");
    }
}

fn limited(limit: RateLimit, metrics: &Metrics) -> RestClient {
    let transport = Transport::new(service_fn(|_: http::Request<Payload>| async {
        Ok::<_, std::convert::Infallible>(http::Response::new(Content::Doc(doc!({}))))
    }));
    let options = RestOptions {
        rate_limit: Some(limit),
        metrics: metrics.clone(),
        host: "api.example:6443".to_owned(),
        ..RestOptions::default()
    };
    RestClient::new(transport, options)
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_limit_wait_and_watches_do_not() {
    let client = limited(RateLimit { qps: 5.0, burst: 2 }, &Metrics::default());
    let start = Instant::now();
    for _ in 0..4 {
        client.get("/x").into_doc().await.unwrap();
    }
    assert_eq!(start.elapsed().as_millis(), 400);
    for _ in 0..100 {
        client.get("/x").watching().send().await.unwrap();
    }
    assert_eq!(start.elapsed().as_millis(), 400);
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_told_in_the_words_of_upstream_but_not_too_often() {
    let (log, _guard) = crate::log::everything();
    let client = limited(RateLimit { qps: 0.5, burst: 1 }, &Metrics::default());
    for _ in 0..4 {
        client.get("/x").into_doc().await.unwrap();
    }
    let log = log.text();
    let line = "Waited before sending request delay=2s \
                reason=\"client-side throttling, not priority and fairness\" verb=\"GET\" URL=\"/x\"";
    let lines = |level: &str| {
        let told = log.lines().filter(|told| told.contains(line));
        told.filter(|told| told.contains(level)).count()
    };
    assert_eq!((lines("DEBUG"), lines("INFO")), (3, 1), "{log}");
}

#[tokio::test(start_paused = true)]
async fn metrics_carry_the_names_of_upstream() {
    let metrics = Metrics::default();
    let client = limited(
        RateLimit {
            qps: 10.0,
            burst: 1,
        },
        &metrics,
    );
    client.get("/x").into_doc().await.unwrap();
    client
        .post("/x")
        .body("application/json", "{}")
        .into_doc()
        .await
        .unwrap();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        r#"rest_client_requests_total{code="200",method="GET",host="api.example:6443"} 1"#,
        r#"rest_client_requests_total{code="200",method="POST",host="api.example:6443"} 1"#,
        r#"rest_client_request_duration_seconds_count{verb="GET",host="api.example:6443"} 1"#,
        r#"rest_client_rate_limiter_duration_seconds_bucket{le="0.1",verb="POST",host="api.example:6443"} 1"#,
        r#"rest_client_request_size_bytes_sum{verb="POST",host="api.example:6443"} 2.0"#,
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_and_answer_sizes_are_counted() {
    let (client, _) = scripted(vec![Answer(429, Some(1), "{}"), Answer(200, None, "{}")]);
    client.get("/x").into_doc().await.unwrap();
    let mut registry = Registry::default();
    client.options().metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        r#"rest_client_requests_total{code="429",method="GET",host="local"} 1"#,
        r#"rest_client_request_retries_total{code="200",verb="GET",host="local"} 1"#,
        r#"rest_client_response_size_bytes_sum{verb="GET",host="local"} 2.0"#,
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn of_an_answer_only_the_metadata_is_read_where_no_more_is_wanted() {
    const BODY: &str = r#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7","managedFields":[{}]},
        "spec":{"nodeName":"n"},"status":{"phase":"Pending"}}"#;
    let whole = windlass_core::Doc::parse(BODY.as_bytes()).unwrap();
    let brief = doc!({ "kind": "Pod", "metadata": { "name": "a", "resourceVersion": "7" } });
    let options = WriteOptions::default();
    for (options, expected) in [(options.clone(), &whole), (options.metadata_only(), &brief)] {
        let (client, _) = scripted(vec![Answer(201, None, BODY); 2]);
        let pods = DynamicClient::new(client).resource(Gvr::constant("", "v1", "pods"));
        let pods = pods.namespaced("default");
        assert_eq!(&pods.create(&whole, &options).await.unwrap(), expected);
        let updated = pods.update_status(&whole, &options).await.unwrap();
        assert_eq!(&updated, expected);
    }
}

//! No server can hang or exhaust the client.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};
use windlass_client::{
    Cause, DecodeError, ListError, ListOptions, RequestOutcome, RestOptions, WatchError,
    WatchOptions,
};
use windlass_core::Gvr;

use crate::script::{endless, once, plain, small, tcp};

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";

#[tokio::test]
async fn an_endless_line_of_a_watch_ends_at_the_limit() {
    let start = format!("{JSON}{{\"type\":\"ADDED\",\"object\":{{\"x\":\"");
    let config = tcp(move |stream| {
        let start = start.clone();
        async move { endless(stream, &start, &[b'a'; 4096]).await }
    });
    let client = small(&config.await).await;
    let mut watch = client
        .watch(&PODS, None, &WatchOptions::default())
        .await
        .unwrap();
    let error = watch.next().await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            WatchError::Decode(DecodeError::TooLong { limit: 65536 })
        ),
        "{error}"
    );
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn an_endless_item_of_a_list_ends_at_the_limit() {
    let config = tcp(|stream| async move {
        endless(
            stream,
            &format!("{JSON}{{\"items\":[{{\"x\":\""),
            &[b'a'; 4096],
        )
        .await;
    });
    let client = small(&config.await).await;
    let mut list = client
        .list(&PODS, None, &ListOptions::default())
        .await
        .unwrap();
    let error = list.next().await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            ListError::Decode(DecodeError::TooLong { limit: 65536 })
        ),
        "{error}"
    );
    assert!(list.next().await.is_none());
}

#[tokio::test]
async fn an_endless_object_ends_at_the_limit() {
    let config =
        tcp(|stream| async move { endless(stream, &format!("{JSON}\""), &[b'a'; 4096]).await });
    let error = small(&config.await)
        .await
        .get("/x")
        .into_doc()
        .await
        .unwrap_err();
    assert!(
        matches!(error.cause(), Cause::TooLong { limit: 65536 }),
        "{error}"
    );
}

#[tokio::test]
async fn endless_headers_end_the_connection() {
    let config = tcp(|stream| async move {
        endless(stream, "HTTP/1.1 200 OK\r\n", b"x-more: of the same\r\n").await;
    });
    let error = small(&config.await)
        .await
        .get("/x")
        .into_doc()
        .await
        .unwrap_err();
    assert!(matches!(error.cause(), Cause::Connection(_)), "{error}");
    assert_eq!(error.outcome(), RequestOutcome::Unknown);
}

#[tokio::test]
async fn a_wrong_content_type_is_named() {
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
    let client = small(&tcp(move |stream| once(stream, html)).await).await;
    let named =
        |cause: &Cause| matches!(cause, Cause::ContentType { found } if found == "text/html");
    let object = client.get("/x").into_doc().await.unwrap_err();
    assert!(named(object.cause()), "{object}");
    let list = client
        .list(&PODS, None, &ListOptions::default())
        .await
        .unwrap_err();
    assert!(named(list.cause()), "{list}");
    let watch = client
        .watch(&PODS, None, &WatchOptions::default())
        .await
        .unwrap_err();
    assert!(named(watch.cause()), "{watch}");
}

#[tokio::test]
async fn a_page_of_html_from_a_proxy_is_a_status_without_its_text() {
    let html = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n\
                <html>gateway!";
    let client = small(&tcp(move |stream| once(stream, html)).await).await;
    let error = client.get("/x").into_doc().await.unwrap_err();
    assert_eq!(error.status().unwrap().code, 502);
    assert!(!error.to_string().contains("gateway!"), "{error}");
    assert_eq!(error.outcome(), RequestOutcome::Unknown);
}

#[tokio::test]
async fn plain_text_of_an_error_is_its_message() {
    let text = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\n\
                Content-Length: 19\r\n\r\n404 page not found\n";
    let client = small(&tcp(move |stream| once(stream, text)).await).await;
    let error = client.get("/x").into_doc().await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(error.to_string(), "GET /x: 404 page not found");
}

#[tokio::test]
async fn compressed_bytes_that_nobody_asked_for_are_not_opened() {
    let bomb = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\
                Content-Length: 10\r\n\r\n0123456789";
    let client = small(&tcp(move |stream| once(stream, bomb)).await).await;
    let error = client
        .list(&PODS, None, &ListOptions::default())
        .await
        .unwrap_err();
    assert!(
        matches!(error.cause(), Cause::Encoding { found } if found == "gzip"),
        "{error}"
    );
    let error = client.get("/x").bytes().await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Encoding { .. }), "{error}");
}

#[tokio::test]
async fn half_a_body_is_not_a_whole_one() {
    let half = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n\
                {\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"metad";
    let client = small(&tcp(move |stream| once(stream, half)).await).await;
    let mut list = client
        .list(&PODS, None, &ListOptions::default())
        .await
        .unwrap();
    assert_eq!(
        list.next().await.unwrap().unwrap().str_at("/metadata/name"),
        "a"
    );
    assert!(matches!(
        list.next().await,
        Some(Err(ListError::Connection(_)))
    ));
    let error = client.get("/x").into_doc().await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Connection(_)), "{error}");
}

#[tokio::test]
async fn a_body_that_ends_in_the_middle_of_an_event_is_cut() {
    let body = format!("{JSON}{}\n{}", event("a"), &event("b")[..20]);
    let client = tcp(move |stream| {
        let body = body.clone();
        async move { once(stream, &body).await }
    });
    let client = small(&client.await).await;
    let mut watch = client
        .watch(&PODS, None, &WatchOptions::default())
        .await
        .unwrap();
    assert!(watch.next().await.unwrap().is_ok());
    assert!(watch.next().await.unwrap().unwrap_err().is_cut());
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn half_a_chunk_of_a_watch_is_a_broken_connection() {
    let body = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\
                \r\n100\r\n{\"type\":\"ADDED\"";
    let client = small(&tcp(move |stream| once(stream, body)).await).await;
    let mut watch = client
        .watch(&PODS, None, &WatchOptions::default())
        .await
        .unwrap();
    let error = watch.next().await.unwrap().unwrap_err();
    assert!(matches!(error, WatchError::Connection(_)), "{error}");
}

fn event(name: &str) -> String {
    format!("{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"{name}\"}}}}}}")
}

/// A body that gives one byte at a time, with a pause after each.
struct Drip {
    bytes: Bytes,
    pause: Duration,
    wait: Option<Pin<Box<Sleep>>>,
}

impl Drip {
    fn new(text: impl Into<Bytes>, pause: Duration) -> Self {
        Self {
            bytes: text.into(),
            pause,
            wait: None,
        }
    }
}

impl Body for Drip {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let pause = self.pause;
        let wait = self.wait.get_or_insert_with(|| Box::pin(sleep(pause)));
        if wait.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.wait = None;
        let next = (!self.bytes.is_empty()).then(|| Ok(Frame::data(self.bytes.split_to(1))));
        Poll::Ready(next)
    }
}

fn json(body: Drip) -> http::Response<Drip> {
    http::Response::builder()
        .header("content-type", "application/json")
        .body(body)
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_slow_drip_ends_with_the_timeout() {
    let list = format!("{{\"items\":[{}]}}", vec!["{}"; 100].join(","));
    let client = plain(RestOptions::default(), move |_| {
        let body = json(Drip::new(list.clone(), Duration::from_secs(1)));
        async { body }
    });
    let error = client
        .get("/x")
        .timeout(Duration::from_secs(30))
        .into_doc()
        .await
        .unwrap_err();
    assert!(
        matches!(error.cause(), Cause::Timeout(limit) if limit.as_secs() == 30),
        "{error}"
    );

    let options = ListOptions {
        timeout: Some(Duration::from_secs(30)),
        ..Default::default()
    };
    let mut list = client.list(&PODS, None, &options).await.unwrap();
    let mut items = 0;
    let error = loop {
        match list.next().await.unwrap() {
            Ok(_) => items += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, ListError::Timeout(limit) if limit.as_secs() == 30),
        "{error}"
    );
    assert!((1..10).contains(&items), "{items}");
}

#[tokio::test(start_paused = true)]
async fn a_list_may_take_its_reader_as_long_as_it_likes() {
    let client = plain(RestOptions::default(), |_| async {
        json(Drip::new(
            r#"{"items":[{},{},{}]}"#,
            Duration::from_millis(1),
        ))
    });
    let options = ListOptions {
        timeout: Some(Duration::from_secs(1)),
        ..Default::default()
    };
    let mut list = client.list(&PODS, None, &options).await.unwrap();
    let mut items = 0;
    while let Some(item) = list.next().await {
        item.unwrap();
        items += 1;
        sleep(Duration::from_secs(100)).await;
    }
    assert_eq!(items, 3);
}

#[tokio::test(start_paused = true)]
async fn a_watch_may_be_silent_between_events_but_not_within_one() {
    let options = RestOptions {
        timeout: Duration::from_secs(20),
        ..RestOptions::default()
    };
    let client = plain(options, |_| async {
        let line = format!("{}\n", event("a"));
        json(Drip::new(line.clone() + &line, Duration::from_secs(1)))
    });
    let mut watch = client
        .watch(&PODS, None, &WatchOptions::default())
        .await
        .unwrap();
    let error = watch.next().await.unwrap().unwrap_err();
    assert!(
        matches!(error, WatchError::Timeout(limit) if limit.as_secs() == 20),
        "{error}"
    );

    let client = plain(RestOptions::default(), |_| async {
        json(Drip::new("\n".repeat(20), Duration::from_secs(1000)))
    });
    let mut watch = client
        .watch(&PODS, None, &WatchOptions::default())
        .await
        .unwrap();
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_forgets_to_end_is_ended() {
    let client = plain(RestOptions::default(), |_| async {
        json(Drip::new("\n".repeat(1000), Duration::from_secs(10)))
    });
    let options = WatchOptions::default().timeout(Duration::from_secs(300));
    let start = tokio::time::Instant::now();
    let mut watch = client.watch(&PODS, None, &options).await.unwrap();
    assert!(matches!(
        watch.next().await,
        Some(Err(WatchError::Timeout(_)))
    ));
    assert_eq!(start.elapsed().as_secs(), 330);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let client = plain(RestOptions::default(), |_| async {
        std::future::pending::<http::Response<Drip>>().await
    });
    let error = client
        .post("/x")
        .timeout(Duration::from_secs(5))
        .into_doc()
        .await
        .unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(error.outcome(), RequestOutcome::Unknown);
}

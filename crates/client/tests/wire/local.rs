//! A server in this process that speaks in documents.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tower::{Layer, Service, service_fn};
use windlass_client::{
    Content, DocList, DynamicClient, Events, ListOptions, Payload, RestClient, RestOptions, Status,
    Transport, WatchError, WatchEvent, WatchOptions, WriteOptions,
};
use windlass_core::{Doc, Gvr, doc};

const FOOS: Gvr = Gvr::constant("example.org", "v1", "foos");

struct Queue(VecDeque<Result<WatchEvent, WatchError>>);

impl Stream for Queue {
    type Item = Result<WatchEvent, WatchError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front())
    }
}

fn foo(name: &str) -> Doc {
    doc!({ "apiVersion": "example.org/v1", "kind": "Foo", "metadata": { "name": name } })
}

/// A foo as the server holds it; the client leaves the managed fields out on this way too.
fn held(name: &str) -> Doc {
    foo(name)
        .with("/metadata/managedFields", doc!([{ "manager": "someone" }]))
        .unwrap()
}

fn answer(request: &http::Request<Payload>) -> Content {
    match (
        request.method().as_str(),
        request.uri().query().unwrap_or_default(),
    ) {
        ("POST", _) => match request.body() {
            Payload::Doc(doc) => Content::Doc(doc.with("/metadata/uid", "1").unwrap()),
            other => panic!("a document, not {other:?}"),
        },
        (_, query) if query.contains("watch=true") => Content::Events(Events::new(Queue(
            [
                Ok(WatchEvent::Added(held("a"))),
                Err(WatchError::Status(Box::new(Status::failure(
                    410, "Expired", "too old",
                )))),
                Ok(WatchEvent::Added(foo("never"))),
            ]
            .into(),
        ))),
        _ => Content::List(DocList {
            api_version: "example.org/v1".to_owned(),
            kind: "FooList".to_owned(),
            metadata: doc!({ "resourceVersion": "5" }),
            items: Box::new([held("a"), held("b")].into_iter()),
        }),
    }
}

fn client() -> DynamicClient {
    let service = service_fn(|request: http::Request<Payload>| async move {
        Ok::<_, Infallible>(http::Response::new(answer(&request)))
    });
    DynamicClient::new(RestClient::new(
        Transport::new(service),
        RestOptions::default(),
    ))
}

#[tokio::test]
async fn documents_cross_without_becoming_bytes() {
    let foos = client().resource(FOOS).namespaced("x");
    let created = foos
        .create(&foo("a"), &WriteOptions::default())
        .await
        .unwrap();
    assert_eq!(created, foo("a").with("/metadata/uid", "1").unwrap());
    let list = foos.list(&ListOptions::default()).await.unwrap();
    assert_eq!(list.items, [foo("a"), foo("b")]);
    assert_eq!(list.head.resource_version(), "5");
}

#[tokio::test]
async fn events_end_with_the_error_that_ends_the_watch() {
    let foos = client().resource(FOOS);
    let mut watch = foos.watch(&WatchOptions::from("1")).await.unwrap();
    assert_eq!(
        watch.next().await.unwrap().unwrap(),
        WatchEvent::Added(foo("a"))
    );
    assert!(watch.next().await.unwrap().unwrap_err().is_gone());
    assert!(watch.next().await.is_none());
}

/// A layer such as one that injects faults.
struct Forbid;

#[derive(Clone)]
struct Forbidding(Transport);

impl Layer<Transport> for Forbid {
    type Service = Forbidding;

    fn layer(&self, inner: Transport) -> Forbidding {
        Forbidding(inner)
    }
}

impl Service<http::Request<Payload>> for Forbidding {
    type Response = http::Response<Content>;
    type Error = windlass_client::BoxError;
    type Future = <Transport as Service<http::Request<Payload>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Payload>) -> Self::Future {
        if request.method() != http::Method::DELETE {
            return self.0.call(request);
        }
        let status = doc!({ "reason": "Forbidden", "message": "not today" });
        let response = http::Response::builder()
            .status(403)
            .body(Content::Doc(status))
            .unwrap();
        Box::pin(async { Ok(response) })
    }
}

#[tokio::test]
async fn a_layer_sits_between_client_and_server() {
    let service = service_fn(|request: http::Request<Payload>| async move {
        Ok::<_, Infallible>(http::Response::new(answer(&request)))
    });
    let transport = Transport::new(service).layer(&Forbid);
    let foos =
        DynamicClient::new(RestClient::new(transport, RestOptions::default())).resource(FOOS);
    assert_eq!(
        foos.list(&ListOptions::default())
            .await
            .unwrap()
            .items
            .len(),
        2
    );
    let error = foos.delete("a", &Default::default()).await.unwrap_err();
    assert!(error.is_forbidden());
    assert_eq!(
        error.to_string(),
        "DELETE /apis/example.org/v1/foos/a: not today"
    );
}

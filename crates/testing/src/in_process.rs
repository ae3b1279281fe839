//! The way from a client to a server in the same process.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::JoinHandle,
};
use tower::Service;
use windlass_client::{
    Body, Content, DocList, Events, Payload, Status, Transport, WatchError, WatchEvent,
};
use windlass_core::Doc;
use windlass_server::{DocWatch, Given, InProcess, Server, User};

/// A transport to a server in this process, in the name of a user. Objects go and come back, alone,
/// in lists and in watch events, as documents: nothing is written or parsed on the way.
#[must_use]
pub fn transport_to(server: &Server, user: User) -> Transport {
    Transport::new(Bridge(server.as_user(user)))
}

/// Turns the answers of the server into those that a client takes.
#[derive(Clone, Debug)]
struct Bridge(InProcess);

type Answer = Pin<Box<dyn Future<Output = Result<Response<Content>, Infallible>> + Send>>;

impl Service<Request<Payload>> for Bridge {
    type Response = Response<Content>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Payload>) -> Answer {
        let (mut parts, payload) = request.into_parts();
        let bytes = match payload {
            Payload::Doc(doc) => {
                parts.extensions.insert(Given(doc));
                Bytes::new()
            }
            payload => payload.into_bytes(),
        };
        let request = Request::from_parts(parts, Full::new(bytes));
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = Elsewhere::run(answer).await?;
            Ok(answer.map(|body| content(body.into_content())))
        })
    }
}

/// Runs the server's part of a call in a task of its own where there are several threads, so that
/// the calls which one task makes at a time are answered on all of them, as those over a network
/// are. Where there is one thread, simulations keep their order.
enum Elsewhere<F: Future> {
    Here(Pin<Box<F>>),
    There(JoinHandle<F::Output>),
}

impl<F> Elsewhere<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    fn run(call: F) -> Self {
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => Self::There(tokio::spawn(call)),
            _ => Self::Here(Box::pin(call)),
        }
    }
}

impl<F: Future> Future for Elsewhere<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match &mut *self {
            Self::Here(call) => call.as_mut().poll(context),
            Self::There(task) => match ready!(Pin::new(task).poll(context)) {
                Ok(answer) => Poll::Ready(answer),
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The runtime ends, and this task with it.
                    Err(_) => Poll::Pending,
                },
            },
        }
    }
}

impl<F: Future> Drop for Elsewhere<F> {
    /// A call that nobody waits for any more ends, as one whose connection is closed does.
    fn drop(&mut self) {
        if let Self::There(task) = self {
            task.abort();
        }
    }
}

fn content(content: windlass_server::Content) -> Content {
    match content {
        windlass_server::Content::Doc(doc) => Content::Doc(doc),
        windlass_server::Content::List(list) => Content::List(DocList {
            api_version: list.api_version,
            kind: list.kind,
            metadata: list.metadata,
            items: Box::new(list.items.into_iter()),
        }),
        windlass_server::Content::Watch(watch) => Content::Events(events(watch)),
        windlass_server::Content::Bytes(bytes) => Content::Body(Body::new(Full::new(bytes))),
        // Whatever else a server may learn to say has no meaning here yet.
        _ => Content::Body(Body::new(Full::new(Bytes::new()))),
    }
}

fn events(watch: DocWatch) -> Events {
    Events::new(futures_util::stream::unfold(watch, async |mut watch| {
        let event = event(watch.next().await?);
        Some((event, watch))
    }))
}

fn event(event: windlass_server::WatchEvent) -> Result<WatchEvent, WatchError> {
    match event {
        windlass_server::WatchEvent::Added(doc) => Ok(WatchEvent::Added(doc)),
        windlass_server::WatchEvent::Modified(doc) => Ok(WatchEvent::Modified(doc)),
        windlass_server::WatchEvent::Deleted(doc) => Ok(WatchEvent::Deleted(doc)),
        windlass_server::WatchEvent::Bookmark(doc) => Ok(WatchEvent::Bookmark(doc)),
        windlass_server::WatchEvent::Error(status) => Err(refusal(&status.to_doc())),
    }
}

fn refusal(status: &Doc) -> WatchError {
    let status = status.decode::<Status>();
    WatchError::Status(Box::new(status.unwrap_or_else(|error| {
        Status::failure(500, "InternalError", error.to_string())
    })))
}

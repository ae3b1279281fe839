//! The server for clients in the same process: objects go and come back, alone, in lists and in
//! watch events, as documents. Nothing is written or parsed on the way.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::Full;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;
use tower::Service;
use windlass_access::User;
use windlass_wire::{Content, Payload};

use crate::body::Body;
use crate::dispatch::InProcess;
use crate::negotiate::{JSON, PROTOBUF};
use crate::rest::Given;
use crate::server::Server;

/// The server as one user sees it, in documents: a transport for clients in this process.
#[derive(Clone, Debug)]
pub struct DocService(InProcess);

impl Server {
    /// The server in documents, for a user who needs no credentials, because the process vouches
    /// for them.
    #[must_use]
    pub fn doc_service(&self, user: User) -> DocService {
        DocService(self.as_user(user))
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Content>, Infallible>> + Send>>;

impl Service<Request<Payload>> for DocService {
    type Response = Response<Content>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Payload>) -> Answer {
        let (mut parts, payload) = request.into_parts();
        without_protobuf(&mut parts.headers);
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
            Ok(answer.map(Body::into_content))
        })
    }
}

/// Documents are handed over as they are, so a client that would accept protobuf gets them without
/// anybody writing it.
fn without_protobuf(headers: &mut HeaderMap) {
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let Some(accept) = accept.filter(|accept| accept.contains(PROTOBUF)) else {
        return;
    };
    if let Ok(value) = HeaderValue::from_str(&accept.replace(PROTOBUF, JSON)) {
        headers.insert(header::ACCEPT, value);
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

//! The writes of reconciles, noted below the client.
//!
//! The client that a reconcile gets from its [`Context`](crate::Context) carries the scope of that
//! reconcile in every request. One layer over the transport notes each such write with the
//! revision it got, for the freshness guard and for the journal. It does not matter which task
//! sends the request, or whether the reconcile has returned by then.

mod own;
mod scope;

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Response};
use tower::{Layer, Service};
use windlass_client::{
    BODY_BYTES_LIMIT, Body, BoxError, Content, Encoding, MetadataOnly, Payload, RequestTarget,
    TransportError,
};
use windlass_core::{Doc, Revision};

use crate::election::is_write;
pub(crate) use own::OwnWrites;
use scope::InFlight;
pub(crate) use scope::{Doubt, Doubts, WriteScope, Writes};

type Answer = Result<Response<Content>, BoxError>;

/// One write of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The verb, such as `create`.
    pub verb: &'static str,
    /// The path, without the query.
    pub path: String,
    /// The revision it got, if it was carried out.
    pub revision: Option<Revision>,
    /// The status code, or why there is none.
    pub result: String,
}

/// Notes the writes of reconciles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotingLayer;

impl<S> Layer<S> for NotingLayer {
    type Service = NotingService<S>;

    fn layer(&self, inner: S) -> NotingService<S> {
        NotingService { inner }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct NotingService<S> {
    inner: S,
}

impl<S> Service<http::Request<Payload>> for NotingService<S>
where
    S: Service<http::Request<Payload>, Response = Response<Content>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = Response<Content>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: http::Request<Payload>) -> Self::Future {
        let scope = request.extensions().get::<Arc<WriteScope>>().cloned();
        let Some(scope) = scope.filter(|_| is_counted(&request)) else {
            let answer = self.inner.call(request);
            return Box::pin(async { answer.await.map_err(Into::into) });
        };
        let path = request.uri().path().to_owned();
        let target = request.extensions().get::<RequestTarget>();
        let brief = request.extensions().get::<MetadataOnly>().copied();
        let is_named = target.is_some_and(|target| target.name.is_some());
        let verb = verb(request.method(), is_named);
        let doubt = target.map(|target| Doubt::of(target, request.method()));
        let in_flight = scope.begin(doubt);
        let answer = self.inner.call(request);
        let answer = async { answer.await.map_err(Into::into) };
        let answer = async move {
            match answer.await {
                Ok(response) => read(response, brief).await,
                failed => failed,
            }
        };
        Box::pin(async move { in_flight.land(answer, verb, path).await })
    }
}

impl InFlight {
    async fn land(
        mut self,
        answer: impl Future<Output = Answer>,
        verb: &'static str,
        path: String,
    ) -> Answer {
        let answer = answer.await;
        let (revision, result) = match &answer {
            Ok(response) => (revision_of(response), response.status().as_str().to_owned()),
            Err(error) => (None, error.to_string()),
        };
        self.landed(
            is_certain(&answer),
            Write {
                verb,
                path,
                revision,
                result,
            },
        );
        answer
    }
}

/// Returns true if the answer says what became of the write. A server that ran out of time or broke off
/// inside may have carried it out.
fn is_certain(answer: &Answer) -> bool {
    match answer {
        Ok(response) => !matches!(response.status().as_u16(), 500 | 502 | 504..),
        Err(error) => {
            let error = error.downcast_ref::<TransportError>();
            error.is_some_and(|error| !error.may_have_arrived)
        }
    }
}

fn is_counted(request: &http::Request<Payload>) -> bool {
    let is_dry_run = request
        .uri()
        .query()
        .is_some_and(|query| query.contains("dryRun=All"));
    is_write(request.method()) && !is_dry_run
}

fn verb(method: &Method, is_named: bool) -> &'static str {
    match (method.as_str(), is_named) {
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "write",
    }
}

/// Reads a body here, so that it is parsed once: whoever asked gets the document.
async fn read(response: Response<Content>, brief: Option<MetadataOnly>) -> Answer {
    let Some(encoding) = Encoding::of(response.headers()) else {
        return Ok(response);
    };
    if !response.status().is_success() {
        return Ok(response);
    }
    let (head, content) = response.into_parts();
    let content = match content {
        Content::Body(body) => parse(body, encoding, brief).await?,
        other => other,
    };
    Ok(Response::from_parts(head, content))
}

async fn parse(
    body: Body,
    encoding: Encoding,
    brief: Option<MetadataOnly>,
) -> Result<Content, BoxError> {
    let bytes = collect(body).await?;
    let doc = match (brief, encoding) {
        (Some(brief), _) => brief.read(encoding, &bytes),
        (None, Encoding::Json) => Doc::parse(&bytes).ok(),
        _ => None,
    };
    // If it cannot be read, whoever asked finds out what is wrong with it.
    Ok(doc.map_or_else(|| Content::Body(Body::from(bytes)), Content::Doc))
}

/// All bytes of a body. One that comes in a single chunk, as most do, is not copied.
async fn collect(mut body: Body) -> Result<Bytes, BoxError> {
    let (mut first, mut rest) = (Bytes::new(), Vec::new());
    while let Some(chunk) = body.chunk().await {
        let chunk = chunk?;
        if first.len() + rest.len() + chunk.len() > BODY_BYTES_LIMIT {
            return Err(format!("the answer is longer than {BODY_BYTES_LIMIT} bytes").into());
        }
        if first.is_empty() && rest.is_empty() {
            first = chunk;
            continue;
        }
        rest.extend_from_slice(&std::mem::take(&mut first));
        rest.extend_from_slice(&chunk);
    }
    Ok(if rest.is_empty() { first } else { rest.into() })
}

fn revision_of(response: &Response<Content>) -> Option<Revision> {
    match response.body() {
        Content::Doc(doc) if response.status().is_success() => doc.meta().revision(),
        _ => None,
    }
}

//! What a reconcile writes, noticed below the client.
//!
//! Whatever client a reconcile uses, its requests pass one layer over the transport. There each
//! write is noted with the revision it got, for the freshness guard and for the journal. A task
//! that a reconcile spawns is not noticed; wrap it with [`Context::follow`](crate::Context::follow).

mod path;

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Response};
use parking_lot::Mutex;
use tower::{Layer, Service};
use windlass_client::{
    BODY_BYTES_LIMIT, Body, BoxError, Content, Encoding, MetadataOnly, Payload, TransportError,
};
use windlass_core::{Doc, GroupResource, Revision};

use crate::election::is_write;
pub(crate) use path::Target;

/// How many writes of one reconcile the journal tells of; all of them count for freshness.
const WRITES_LIMIT: usize = 32;

tokio::task_local! {
    static SCOPE: Arc<WriteScope>;
}

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

/// The writes of one reconcile.
#[derive(Debug, Default)]
pub(crate) struct WriteScope(Mutex<Writes>);

#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// The first ones.
    pub(crate) list: Vec<Write>,
    /// How many there were.
    pub(crate) count: usize,
    /// The newest revision per resource.
    pub(crate) revisions: BTreeMap<GroupResource, Revision>,
    /// Where a write may or may not have been carried out.
    pub(crate) doubts: Doubts,
}

/// Resources in which a write may or may not have been carried out, each with its namespace.
pub(crate) type Doubts = BTreeMap<GroupResource, Option<String>>;

impl WriteScope {
    /// Runs a future, noting its writes here.
    pub(crate) async fn follow<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
        SCOPE.scope(self.clone(), future).await
    }

    /// Takes what was noted so far.
    pub(crate) fn take(&self) -> Writes {
        std::mem::take(&mut *self.0.lock())
    }

    fn note(&self, target: &Target, write: Write) {
        let mut writes = self.0.lock();
        writes.count += 1;
        if let (Some(revision), Some(resource)) = (&write.revision, &target.resource) {
            let newest = writes
                .revisions
                .entry(resource.clone())
                .or_insert_with(|| revision.clone());
            if *newest < *revision {
                *newest = revision.clone();
            }
        }
        if writes.list.len() < WRITES_LIMIT {
            writes.list.push(write);
        }
    }
}

/// A write that is on its way. One that is given up before its answer is a doubt.
struct InFlight {
    scope: Arc<WriteScope>,
    target: Target,
    is_certain: bool,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let (false, Some(resource)) = (self.is_certain, self.target.resource.take()) {
            let namespace = self.target.namespace.take();
            self.scope.0.lock().doubts.insert(resource, namespace);
        }
    }
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
        let scope = SCOPE.try_with(Arc::clone).ok();
        let Some(scope) = scope.filter(|_| is_counted(&request)) else {
            let answer = self.inner.call(request);
            return Box::pin(async { answer.await.map_err(Into::into) });
        };
        let path = request.uri().path().to_owned();
        let target = Target::parse(&path);
        let brief = request.extensions().get::<MetadataOnly>().copied();
        let verb = verb(request.method(), target.name.is_some());
        let in_flight = InFlight {
            scope,
            target,
            is_certain: false,
        };
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
        self.is_certain = is_certain(&answer);
        let (revision, result) = match &answer {
            Ok(response) => (revision_of(response), response.status().as_str().to_owned()),
            Err(error) => (None, error.to_string()),
        };
        let write = Write {
            verb,
            path,
            revision,
            result,
        };
        self.scope.note(&self.target, write);
        answer
    }
}

/// Whether the answer says what became of the write. A server that ran out of time or broke off
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

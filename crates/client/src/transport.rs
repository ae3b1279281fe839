//! The seam between a client and a server: one request in, one answer out.
//!
//! A [`Transport`] is any [`tower::Service`] from [`http::Request<Payload>`] to
//! [`http::Response<Content>`]. Over the network both are bytes. A server in the same process may
//! take and give [`Doc`]s instead, so that an object crosses without being written and parsed.
//! Layers for faults, recording and the like wrap a transport with [`Transport::layer`].

mod ahead;
mod batch;
mod lanes;
mod wire;

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http_body_util::Full;
use tower::{Layer, Service, ServiceExt};
use windlass_atlas::ProtobufDecoder;
use windlass_core::{Doc, ParseOptions, Parser, Prune};

use crate::encoding::Encoding;

pub(crate) use wire::connect;

pub use windlass_wire::{Body, BoxError, Content, DocList, Events, Payload};

/// A future that is sent between threads.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Marks a request as a watch. A transport keeps watches apart from other requests, so that
/// neither waits for the other on one connection.
#[derive(Clone, Copy, Debug)]
pub struct Watching;

/// Marks a request of whose answer only the metadata matters. Whoever reads the answer from bytes
/// need not read the rest.
#[derive(Clone, Copy, Debug)]
pub struct MetadataOnly;

impl MetadataOnly {
    /// The fields of the answer that are not decoded.
    #[must_use]
    pub fn prune(self) -> Prune {
        static PRUNE: LazyLock<Prune> =
            LazyLock::new(|| Prune::managed_fields().and("spec").and("status"));
        PRUNE.clone()
    }

    /// Reads the body of such an answer; `None` if it cannot be read. Answers are alike, and many:
    /// a thread knows from the ones before what comes again.
    #[must_use]
    pub fn read(self, encoding: Encoding, body: &[u8]) -> Option<Doc> {
        thread_local! {
            static PARSER: RefCell<Parser> =
                RefCell::new(Parser::new(ParseOptions::pruning(MetadataOnly.prune())));
            static DECODER: RefCell<ProtobufDecoder> =
                RefCell::new(ProtobufDecoder::new(MetadataOnly.prune()));
        }
        match encoding {
            Encoding::Json => {
                PARSER.with_borrow_mut(|parser| parser.parse(body).ok().map(|parsed| parsed.doc))
            }
            Encoding::Protobuf => DECODER.with_borrow_mut(|decoder| decoder.decode(body).ok()),
        }
    }
}

/// Says whether a request that failed in the transport had left the process.
///
/// A service may return this as its error; any other error is taken for a request that may have
/// arrived.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct TransportError {
    /// True if the server may have seen the request.
    pub may_have_arrived: bool,
    /// The error.
    #[source]
    pub source: BoxError,
}

/// A shared handle to a service that answers requests.
#[derive(Clone)]
pub struct Transport {
    call: Arc<dyn Call>,
    /// True if documents reach the server as such. If not, they are encoded before the request is
    /// sent, once, however often it is repeated.
    takes_docs: bool,
}

/// The answer of a transport.
pub(crate) type TransportResult = Result<http::Response<Content>, BoxError>;

trait Call: Send + Sync {
    fn call(&self, request: http::Request<Payload>) -> BoxFuture<TransportResult>;
}

struct ServiceCall<S>(S);

impl<S> Call for ServiceCall<S>
where
    S: Service<http::Request<Payload>, Response = http::Response<Content>>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
{
    fn call(&self, request: http::Request<Payload>) -> BoxFuture<TransportResult> {
        let service = self.0.clone();
        Box::pin(async move { service.oneshot(request).await.map_err(Into::into) })
    }
}

impl Transport {
    /// A transport from a service that may speak in documents.
    pub fn new<S>(service: S) -> Self
    where
        S: Service<http::Request<Payload>, Response = http::Response<Content>>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
    {
        Self {
            call: Arc::new(ServiceCall(service)),
            takes_docs: true,
        }
    }

    /// A transport from a plain HTTP service, such as an API server in this process.
    pub fn http<S, B>(service: S) -> Self
    where
        S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self {
            takes_docs: false,
            ..Self::new(HttpService(service))
        }
    }

    /// This transport inside a layer, as for faults or for recording calls.
    #[must_use]
    pub fn layer<L>(self, layer: &L) -> Self
    where
        L: Layer<Self>,
        L::Service: Service<http::Request<Payload>, Response = http::Response<Content>>,
        L::Service: Clone + Send + Sync + 'static,
        <L::Service as Service<http::Request<Payload>>>::Future: Send,
        <L::Service as Service<http::Request<Payload>>>::Error: Into<BoxError>,
    {
        let takes_docs = self.takes_docs;
        Self {
            takes_docs,
            ..Self::new(layer.layer(self))
        }
    }

    pub(crate) fn send(&self, request: http::Request<Payload>) -> BoxFuture<TransportResult> {
        self.call.call(request)
    }

    /// Returns true if documents reach the server as such, and so cost nothing, however large they
    /// are.
    pub(crate) fn takes_docs(&self) -> bool {
        self.takes_docs
    }
}

impl Service<http::Request<Payload>> for Transport {
    type Response = http::Response<Content>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = TransportResult> + Send>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), BoxError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Payload>) -> Self::Future {
        self.send(request)
    }
}

/// Turns documents into bytes on the way to a plain HTTP service.
#[derive(Clone)]
struct HttpService<S>(S);

impl<S, B> Service<http::Request<Payload>> for HttpService<S>
where
    S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>>,
    S: Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = http::Response<Content>;
    type Error = BoxError;
    type Future = BoxFuture<TransportResult>;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: http::Request<Payload>) -> Self::Future {
        let answer = self
            .0
            .call(request.map(|payload| Full::new(payload.into_bytes())));
        Box::pin(async move {
            let response = answer.await.map_err(Into::into)?;
            Ok(response.map(|body| Content::Body(Body::new(body))))
        })
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport(..)")
    }
}

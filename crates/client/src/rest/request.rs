//! One request, from its parts to its answer.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument;
use windlass_core::Doc;

use super::answer::{self, RestResponse};
use super::{RestClient, retry};
use crate::encoding::{self, Encoding, JSON, PROTOBUF};
use crate::path::RequestTarget;
use crate::transport::{Content, MetadataOnly, Payload, Watching};
use crate::{Cause, Error, RequestOutcome, WriteOptions};

/// Metadata alone where the server can do that, and else the object.
const PARTIAL_OR_WHOLE: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
);

/// The same from a server that speaks protobuf.
const PROTOBUF_PARTIAL_OR_WHOLE: HeaderValue = HeaderValue::from_static(
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
     application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
);

/// A request that has not been sent yet.
#[derive(Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    client: RestClient,
    method: Method,
    path: String,
    /// Known from the start if the path was made of it, and else read from the path of a write.
    target: Option<RequestTarget>,
    /// Already encoded.
    query: String,
    headers: HeaderMap,
    payload: Payload,
    timeout: Duration,
    is_watch: bool,
    /// True if only the metadata of the answer is read.
    is_metadata_only: bool,
    /// The first problem with a part of the request.
    problem: Option<(RequestOutcome, Cause)>,
}

impl Request {
    pub(super) fn new(client: RestClient, method: Method, path: String) -> Self {
        let timeout = client.options().timeout;
        Self {
            client,
            method,
            path,
            target: None,
            query: String::new(),
            headers: HeaderMap::from_iter([(ACCEPT, JSON)]),
            payload: Payload::Empty,
            timeout,
            is_watch: false,
            is_metadata_only: false,
            problem: None,
        }
    }

    /// Says what the path is about.
    pub(crate) fn about(mut self, target: RequestTarget) -> Self {
        self.target = Some(target);
        self
    }

    /// Adds a parameter to the query.
    pub fn param(self, name: &str, value: &str) -> Self {
        self.params([(name, value)])
    }

    /// Adds parameters to the query.
    pub fn params<N: AsRef<str>, V: AsRef<str>>(
        mut self,
        params: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let query = std::mem::take(&mut self.query);
        let mut pairs = form_urlencoded::Serializer::for_suffix(query, 0);
        self.query = pairs.extend_pairs(params).finish();
        self
    }

    /// Adds what the options of a write say.
    pub(crate) fn write_options(mut self, options: &WriteOptions) -> Self {
        self.is_metadata_only = options.is_metadata_only;
        if self.is_metadata_only && !self.client.shared.transport.takes_docs() {
            let form = match self.client.options().encoding {
                Encoding::Json => PARTIAL_OR_WHOLE,
                Encoding::Protobuf => PROTOBUF_PARTIAL_OR_WHOLE,
            };
            self.headers.insert(ACCEPT, form);
        }
        self.params(options.params())
    }

    /// Sets a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) {
            (Ok(name), Ok(value)) => drop(self.headers.insert(name, value)),
            // The value is not repeated: it may be a credential.
            _ => self.fail(Cause::Malformed(format!("header {name:?}"))),
        }
        self
    }

    /// Says what sort of answer is wanted.
    pub fn accept(self, content_type: &str) -> Self {
        self.header(ACCEPT.as_str(), content_type)
    }

    /// Carries bytes of a content type.
    pub fn body(mut self, content_type: &str, bytes: impl Into<Bytes>) -> Self {
        self.payload = Payload::Bytes(bytes.into());
        self.header(CONTENT_TYPE.as_str(), content_type)
    }

    /// Carries a document.
    pub fn doc(self, doc: &Doc) -> Self {
        self.typed_doc(JSON, doc)
    }

    /// Carries a document of another content type that is JSON inside, as patches are.
    pub(crate) fn typed_doc(mut self, content_type: HeaderValue, doc: &Doc) -> Self {
        self.payload = Payload::Doc(doc.clone());
        self.headers.insert(CONTENT_TYPE, content_type);
        self
    }

    /// Carries a value as JSON.
    pub fn json<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        match Doc::encode(value) {
            Ok(doc) => self.doc(&doc),
            Err(error) => {
                self.fail(Cause::Encode(error.into()));
                self
            }
        }
    }

    /// Waits this long for the answer.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Marks this as a watch: on a connection apart, not counted against the rate limit, and
    /// without a limit on how long the answer goes on.
    pub fn watching(mut self) -> Self {
        self.is_watch = true;
        self
    }

    /// Sends it, and once more where that is safe and the server asks for it.
    ///
    /// # Errors
    /// When there is no answer, or one that is not a success.
    pub async fn send(self) -> Result<RestResponse, Error> {
        let span = tracing::debug_span!(
            "request",
            verb = %self.method,
            path = %self.path,
            code = tracing::field::Empty,
        );
        self.send_within(&span).instrument(span.clone()).await
    }

    /// Sends it and reads the answer as bytes, whatever they are.
    ///
    /// # Errors
    /// When there is no complete answer within the limits.
    pub async fn bytes(self) -> Result<Bytes, Error> {
        self.send().await?.bytes().await
    }

    /// Sends it and reads the answer as a document.
    ///
    /// # Errors
    /// When there is no complete answer, or it is not JSON.
    pub async fn into_doc(self) -> Result<Doc, Error> {
        self.send().await?.doc().await
    }

    /// Sends it and decodes the answer.
    ///
    /// # Errors
    /// When there is no complete answer, or it is not of this type.
    pub async fn decode<T: DeserializeOwned>(self) -> Result<T, Error> {
        self.send().await?.decode().await
    }

    fn fail(&mut self, cause: Cause) {
        self.problem.get_or_insert((RequestOutcome::NotSent, cause));
    }

    async fn send_within(mut self, span: &tracing::Span) -> Result<RestResponse, Error> {
        let name = format!("{} {}", self.method, self.path);
        if let Some((outcome, cause)) = self.problem.take() {
            return Err(Error::new(outcome, name, cause));
        }
        let user_agent = HeaderValue::from_str(&self.client.options().user_agent);
        if let Ok(user_agent) = user_agent {
            self.headers.entry(USER_AGENT).or_insert(user_agent);
        }
        let query = if self.query.is_empty() { "" } else { "?" };
        let uri = format!("{}{query}{}", self.path, self.query);
        let uri: http::Uri = uri.parse().map_err(|error: http::uri::InvalidUri| {
            Error::new(
                RequestOutcome::NotSent,
                &name,
                Cause::Malformed(error.to_string()),
            )
        })?;
        self.encode();
        self.observe_size();
        let start = Instant::now();
        let answer = self.attempts(&name, &uri, span).await;
        let metrics = &self.client.options().metrics;
        metrics.request_duration(&self.method, self.host(), start.elapsed());
        answer
    }

    /// Writes the document that it carries, once, however often it is sent. A server in this
    /// process takes it as it is.
    fn encode(&mut self) {
        let Payload::Doc(doc) = &self.payload else {
            return;
        };
        if self.client.shared.transport.takes_docs() {
            return;
        }
        let body = match self.is_protobuf_wanted().then(|| encoding::protobuf(doc)) {
            Some(Some(body)) => {
                self.headers.insert(CONTENT_TYPE, PROTOBUF);
                body
            }
            _ => encoding::json(doc, &self.method),
        };
        self.payload = Payload::Bytes(body);
    }

    /// Patches are JSON whatever they patch.
    fn is_protobuf_wanted(&self) -> bool {
        self.client.options().encoding == Encoding::Protobuf
            && matches!(self.method, Method::POST | Method::PUT)
            && self.headers.get(CONTENT_TYPE) == Some(&JSON)
    }

    async fn attempts(
        &self,
        name: &str,
        uri: &http::Uri,
        span: &tracing::Span,
    ) -> Result<RestResponse, Error> {
        let mut reason = "client-side throttling, not priority and fairness".to_owned();
        let mut previous = None;
        for attempt in 1.. {
            self.throttle(&reason).await;
            let (error, retry_after) = match self.attempt(name, uri).await {
                Ok(answer) => {
                    self.count(answer.status().as_str(), attempt, span);
                    return Ok(answer);
                }
                Err(failed) => failed,
            };
            let code = error.status().map(|status| status.code.to_string());
            self.count(code.as_deref().unwrap_or("<error>"), attempt, span);
            let wait = retry::wait_before_retry(&self.method, &error, retry_after);
            let Some(wait) = wait.filter(|_| attempt <= self.client.options().retries_limit) else {
                return Err(error.after(previous));
            };
            tracing::debug!(delay = ?wait, attempt, %error, "Got a Retry-After response");
            sleep(wait).await;
            reason = retry::reason(attempt, wait, &error);
            previous = Some(error.cause().to_string());
        }
        unreachable!("the loop ends with an answer or with the limit of retries")
    }

    /// Sends the request once. A failure comes with the wait that the server asks for.
    async fn attempt(
        &self,
        name: &str,
        uri: &http::Uri,
    ) -> Result<RestResponse, (Error, Option<Duration>)> {
        let mut request = http::Request::new(self.payload.clone());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = self.headers.clone();
        *request.extensions_mut() = self.extensions();
        let sent = timeout(self.timeout, self.client.shared.transport.send(request)).await;
        let response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(source)) => return Err((Error::transport(name, source), None)),
            Err(_) => {
                let cause = Cause::Timeout(self.timeout);
                return Err((Error::new(RequestOutcome::Unknown, name, cause), None));
            }
        };
        if response.status().is_success() {
            return Ok(self.answer(name, response));
        }
        let wait = answer::retry_after(response.headers());
        let status = self.answer(name, response).into_status().await;
        Err((Error::status_answer(name, status), wait))
    }

    /// The extensions of the request, for layers of the transport.
    fn extensions(&self) -> http::Extensions {
        let of_client = self.client.extensions.as_deref();
        let mut extensions = of_client.cloned().unwrap_or_default();
        if self.is_watch {
            extensions.insert(Watching);
        }
        if self.is_metadata_only {
            extensions.insert(MetadataOnly);
        }
        if !self.method.is_safe() {
            let target = self.target.clone();
            let target = target.or_else(|| RequestTarget::parse(&self.path));
            target.map(|target| extensions.insert(target));
        }
        extensions
    }

    fn answer(&self, name: &str, response: http::Response<Content>) -> RestResponse {
        let name = name.to_owned();
        RestResponse::new(
            self.client.clone(),
            name,
            self.method.clone(),
            self.timeout,
            response,
        )
        .metadata_only(self.is_metadata_only)
    }

    async fn throttle(&self, reason: &str) {
        let Some(throttle) = self
            .client
            .shared
            .throttle
            .as_ref()
            .filter(|_| !self.is_watch)
        else {
            return;
        };
        let delay = throttle.wait().await;
        throttle.report(delay, reason, self.method.as_str(), &self.path);
        self.client
            .options()
            .metrics
            .throttled(&self.method, self.host(), delay);
    }

    fn count(&self, code: &str, attempt: u32, span: &tracing::Span) {
        span.record("code", code);
        let metrics = &self.client.options().metrics;
        metrics.request(code, &self.method, self.host());
        if attempt > 1 {
            metrics.retry(code, &self.method, self.host());
        }
    }

    fn observe_size(&self) {
        // A document that does not leave the process has no size.
        if let Payload::Bytes(bytes) = &self.payload {
            let metrics = &self.client.options().metrics;
            metrics.request_size(&self.method, self.host(), bytes.len());
        }
    }

    fn host(&self) -> &str {
        &self.client.options().host
    }
}

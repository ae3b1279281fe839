//! From a request to its answer: authentication, authorization, flow control, routing.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header, request};
use http_body::Body as HttpBody;
use tokio::time::Instant;
use tower::Service;
use windlass_access::{Attributes, User, check, effective_user};
use windlass_core::Doc;
use windlass_rules::status::Status;

use crate::body::{self, Arriving, Body};
use crate::extension::RequestNotes;
use crate::metrics::Labels;
use crate::peer::Peer;
use crate::query::Query;
use crate::request::{Target, Verb, bearer, impersonation};
use crate::rest::{self, Call, Given};
use crate::server::{Boxed, Server};
use crate::work::{self, APART_BODY_BYTES, APART_YAML_BYTES, WorkPool};
use crate::{audit, discovery, health, issuer, negotiate, respond};

/// How long a request may take, watches not counted.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns true if a body is YAML, or may be.
fn is_yaml(headers: &HeaderMap) -> bool {
    let content = headers.get(header::CONTENT_TYPE);
    let content = content.and_then(|value| value.to_str().ok());
    content.is_some_and(|content| content.contains("yaml"))
}

/// The server as one user sees it, without a socket in between.
#[derive(Clone, Debug)]
pub struct InProcess {
    server: Server,
    user: User,
}

impl Server {
    /// The server as a user sees it who needs no credentials, because the process vouches for
    /// them.
    #[must_use]
    pub fn as_user(&self, user: User) -> InProcess {
        InProcess {
            server: self.clone(),
            user,
        }
    }

    /// Stores an object as it is, without a question, as data that another server has accepted:
    /// from a backup, or of an older version with other rules.
    ///
    /// # Errors
    /// When there is no such kind, or the store does not take it.
    pub async fn import(&self, object: &Doc) -> Result<(), Status> {
        rest::import(self, object).await
    }

    /// Answers a request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: fmt::Display,
    {
        let Ok(response) = answer(self.clone(), request.map(body::arriving)).await;
        response
    }

    pub(crate) async fn handle_request(&self, request: Request<Arriving>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let id = parts.headers.get("audit-id").cloned();
        let id = id.or_else(|| HeaderValue::from_str(self.0.env.uid().as_str()).ok());
        let audit = self.0.audit.begin(&mut parts, id.as_ref());
        let before = self.0.env.elapsed();
        let accepted = negotiate::plain_if_any(&parts.headers);
        let mut labels = Labels::default();
        let answer = CatchPanic(Box::pin(self.answer(parts, body, &mut labels))).await;
        let mut response = answer
            .unwrap_or_else(|| {
                tracing::error!("a request handler panicked");
                audit.panicked();
                Err(Status::internal("the request handler failed"))
            })
            .unwrap_or_else(|status| respond::status(&status));
        let took = self.0.env.elapsed().saturating_sub(before);
        let code = response.status().as_u16();
        if labels.is_sized() {
            response.extensions_mut().insert(labels.clone());
        }
        self.0.metrics.answered(labels, code, took);
        audit.completed(&mut response);
        let mut response = respond::refusal_in(response, accepted);
        let headers = response.headers_mut();
        if let Some(id) = id {
            headers.insert("audit-id", id);
        }
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-cache, private"));
        response
    }

    async fn answer(
        &self,
        mut parts: request::Parts,
        body: Arriving,
        labels: &mut Labels,
    ) -> Result<Response<Body>, Status> {
        let query = Query::parse(parts.uri.query().unwrap_or_default())?;
        let target = Target::read(&parts.method, parts.uri.path(), &query)?;
        let is_dry_run = query.get("dryRun") == "All";
        *labels = Labels::of(&target, self.knows(&target), is_dry_run);
        let user = match parts.extensions.get::<User>() {
            Some(user) => user.clone(),
            None => {
                let bearer = bearer(&parts.headers);
                self.0.authenticator.user(bearer, &self.0.storage)?
            }
        };
        if let Some(Peer(peer)) = parts.extensions.get::<Peer>() {
            peer.authenticated(&user);
        }
        audit::received(&parts, &user);
        let wanted = Attributes::from(&target).selecting(query.get("fieldSelector"));
        let user = {
            let headers = impersonation(&parts.headers);
            effective_user(user, &headers, &wanted, &self.0.storage)?
        };
        audit::acts_as(&parts, &user);
        let allowed = check(&user, &wanted, &self.0.storage);
        audit::decided(&parts, &user, allowed.is_ok());
        allowed?;
        // A long-running request has limits of its own.
        let asked = match target.is_long_running() {
            true => None,
            false => query.timeout()?,
        };
        let timeout = asked.map_or(REQUEST_TIMEOUT, |asked| asked.min(REQUEST_TIMEOUT));
        let deadline = Instant::now() + timeout;
        let pool = parts.extensions.remove::<WorkPool>();
        let work = async {
            // A body that does not arrive takes no seat in flight.
            let body = self.0.bodies.read(&parts.method, body, &user).await?;
            audit::read_body(&parts, &target, &body.bytes);
            let (flow, storage) = (&self.0.flow, &self.0.storage);
            let request = flow.classify(&user, &target, &query, storage);
            let pool = pool.filter(|_| self.takes_time(&parts.headers, &target, &body.bytes));
            let pool = pool.map(|pool| (pool, user.name.clone()));
            let (server, bytes) = (self.clone(), body.bytes);
            let routing: Boxed<_> = Box::pin(async move {
                server
                    .route(parts, query, target, user, bytes, deadline)
                    .await
            });
            let answer = async {
                match pool {
                    Some((pool, user)) => pool.run(&user, deadline, routing).await,
                    None => routing.await,
                }
            };
            flow.run(request, answer).await
        };
        work::within(deadline, work).await
    }

    /// Returns true if a request may need more of a processor than others should wait for.
    fn takes_time(&self, headers: &HeaderMap, target: &Target, body: &Bytes) -> bool {
        let Target::Resource(path) = target else {
            return false;
        };
        let table = self.0.registry.table();
        let found = table.find(&path.group, &path.version, &path.resource);
        let limit = match is_yaml(headers) {
            true => APART_YAML_BYTES,
            false => APART_BODY_BYTES,
        };
        body.len() > limit
            || matches!(path.verb, Some(Verb::Create | Verb::Update | Verb::Patch))
                && found.is_some_and(|resource| resource.has_rules())
    }

    /// Returns true if what a request names is served.
    fn knows(&self, target: &Target) -> bool {
        let Target::Resource(path) = target else {
            return true;
        };
        let table = self.0.registry.table();
        table
            .find(&path.group, &path.version, &path.resource)
            .is_some_and(|resource| {
                path.subresource.is_empty() || resource.subresource(&path.subresource).is_some()
            })
    }

    async fn route(
        &self,
        mut parts: request::Parts,
        query: Query,
        target: Target,
        user: User,
        body: Bytes,
        deadline: Instant,
    ) -> Result<Response<Body>, Status> {
        match target {
            Target::Resource(path) => {
                let table = self.0.registry.table();
                let found = table.find(&path.group, &path.version, &path.resource);
                let Some(resource) = found.cloned() else {
                    // A group that is served says so in words that clients parse.
                    return match table.group(&path.group) {
                        Some(group) if !group.is_custom() => Err(Status::no_such_path()),
                        Some(_) | None => Ok(respond::no_such_page()),
                    };
                };
                let call = Call {
                    server: self.clone(),
                    resource,
                    path,
                    query,
                    headers: parts.headers,
                    user,
                    body,
                    given: parts.extensions.remove::<Given>().map(|given| given.0),
                    notes: Arc::new(RequestNotes::new(deadline)),
                    audit: parts.extensions.remove().unwrap_or_default(),
                };
                let (deprecation, notes) = (call.resource.deprecation(), call.notes.clone());
                let audit = call.audit.clone();
                let answer = rest::handle(call).await;
                audit.annotate(notes.take_annotations());
                let Some(warning) = deprecation else {
                    return answer;
                };
                let mut response = answer.unwrap_or_else(|status| respond::status(&status));
                respond::warn(&mut response, &[warning]);
                Ok(response)
            }
            Target::Path { path, .. } => self.page(&parts.method, &path, &query, &parts.headers),
        }
    }

    /// Everything that is not a resource.
    fn page(
        &self,
        method: &Method,
        path: &str,
        query: &Query,
        headers: &http::HeaderMap,
    ) -> Result<Response<Body>, Status> {
        if path.contains("//") {
            return Ok(respond::no_such_page());
        }
        // Upstream answers them whatever the method is.
        if let Some(page) = health::check(self, path, query) {
            return Ok(page);
        }
        let page = health::page(self, path)
            .or_else(|| issuer::page(self, path, headers))
            .or_else(|| self.0.pages.page(path, query))
            .or_else(|| {
                let table = self.0.registry.table();
                let now = self.0.env.now();
                self.0.openapi.page(&table, path, query, headers, now)
            })
            .map_or_else(
                || {
                    let is_pretty = respond::is_pretty(query, headers);
                    discovery::page(&self.0.registry.table(), path, headers, is_pretty)
                },
                |page| Ok(Some(page)),
            )?;
        match page {
            None => Ok(respond::no_such_page()),
            Some(page) if matches!(*method, Method::GET | Method::HEAD) => Ok(page),
            Some(_) => Err(Status::method_unknown()),
        }
    }
}

/// The future of an answer.
type Answer = Boxed<Result<Response<Body>, Infallible>>;

fn answer(server: Server, request: Request<Arriving>) -> Answer {
    Box::pin(async move { Ok(server.handle_request(request).await) })
}

impl<B> Service<Request<B>> for Server
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answer {
        answer(self.clone(), request.map(body::arriving))
    }
}

impl<B> Service<Request<B>> for InProcess
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Answer {
        request.extensions_mut().insert(self.user.clone());
        self.server.call(request)
    }
}

/// A future whose panic is a value: one bad request must not take a connection down.
struct CatchPanic<F>(Pin<Box<F>>);

impl<F: Future> Future for CatchPanic<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.0.as_mut();
        match std::panic::catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    }
}

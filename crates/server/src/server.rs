//! The server: what happens to a request between its arrival and its answer.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header, request};
use http_body::Body as HttpBody;
use tokio::time::Instant;
use tower::Service;
use windlass_atlas::apply::Creations;
use windlass_core::{Doc, Env, Time};
use windlass_schema::actors::RunningControllers;
use windlass_store::{Durability, EncryptionKeys, OpenError, Store, StoreOptions};

use crate::admission::Admission;
use crate::allocate::Allocator;
use crate::audit::{self, Audit, AuditOptions};
use crate::body::{self, Arriving, Body, BodyIntake};
use crate::credentials;
use crate::flow::Flow;
use crate::listen::Peer;
use crate::metrics::{Labels, Metrics};
use crate::openapi::OpenApi;
use crate::pages::Pages;
use crate::parsers::Parsers;
use crate::query::Query;
use crate::registry::Registry;
use crate::request::{Target, Verb, bearer, impersonation};
use crate::rest::{self, Call, Given, WatchSlots};
use crate::status::Status;
use crate::storage::Storage;
use crate::work::{self, APART_BODY_BYTES, WorkPool};
use crate::{bootstrap, crd, discovery, health, private_file, respond};
use windlass_access::token::Signer;
use windlass_access::{self as auth, Attributes, Authenticator, User};

/// How long a request may take, watches not counted.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How often expired objects and old history are cleared away.
const SWEEP_PERIOD: Duration = Duration::from_secs(5);

/// How a server is opened.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where objects, keys and certificates live; in memory if absent.
    pub data: Option<PathBuf>,
    /// What a write waits for.
    pub durability: Durability,
    /// The token of the administrator; that of the data directory, or a fresh one, if absent.
    pub admin_token: Option<String>,
    /// Events that are kept per resource for watches and past lists, if not as many as usual.
    pub history_limit: Option<usize>,
    /// Bytes of objects and history that the store may hold, if not as many as usual (8 GiB).
    /// Beyond, objects can only be deleted.
    pub quota_bytes: Option<u64>,
    /// Keys that Secrets are encrypted with on the disk; they are stored in plain text if absent.
    pub encryption: Option<EncryptionKeys>,
    /// The rules of admission that lean on controllers; none unless asked for.
    pub admission: Admission,
    /// The audit log; none unless asked for.
    pub audit: Option<AuditOptions>,
    /// The controllers that run beside the server, if that is known.
    pub controllers: RunningControllers,
    /// Time, randomness and ids.
    pub env: Env,
}

/// Files with keys beside the store.
const KEY_FILES: &[&str] = &["ca.key", "sa.key", "admin.token"];

/// A server could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The objects could not be opened.
    #[error("cannot open the store")]
    Store(#[from] OpenError),
    /// The key for service account tokens could not be had.
    #[error("cannot sign service account tokens")]
    Signer(#[from] windlass_access::token::SignerError),
    /// The token of the administrator could not be read or kept.
    #[error("cannot keep the token of the administrator")]
    Token(#[source] std::io::Error),
    /// The audit log could not be opened.
    #[error("cannot open the audit log {path}")]
    Audit {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The objects that exist from the start could not be made.
    #[error("cannot make the first objects")]
    Bootstrap(#[source] Status),
}

/// The API server. Clones are handles of the same server.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

/// What all requests share.
pub(crate) struct Inner {
    /// The kinds.
    pub(crate) registry: Registry,
    /// What is served of the definitions of custom resources.
    pub(crate) definitions: crd::Definitions,
    /// What the kinds look like.
    openapi: OpenApi,
    /// The objects.
    pub(crate) storage: Storage,
    /// Parsers of request bodies.
    pub(crate) parsers: Parsers,
    /// What new objects of each sort set.
    pub(crate) creations: Creations,
    /// Who has which address and port.
    pub(crate) allocator: Allocator,
    /// The rules of admission that lean on controllers.
    pub(crate) admission: Admission,
    /// The controllers that run beside the server, if that is known.
    pub(crate) controllers: RunningControllers,
    /// Who is who.
    pub(crate) authenticator: Authenticator,
    /// What the administrator shows.
    admin_token: String,
    /// Time, randomness and ids.
    pub(crate) env: Env,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// When the server was opened.
    pub(crate) started: Time,
    /// The audit log.
    pub(crate) audit: Audit,
    /// Bodies of requests.
    pub(crate) bodies: BodyIntake,
    /// Open watches.
    pub(crate) watches: Arc<WatchSlots>,
    /// The requests that run and that wait.
    pub(crate) flow: Flow,
    /// What the rest of the process shows.
    pages: Pages,
}

/// The server as one user sees it, without a socket in between.
#[derive(Clone, Debug)]
pub struct InProcess {
    server: Server,
    user: User,
}

/// What a server proves identities with.
struct Keys {
    signer: Signer,
    /// True if the key of the signer was not there.
    is_signer_made: bool,
    admin_token: String,
}

impl Keys {
    /// Those of the data directory, made if they are not there.
    fn of(options: &ServerOptions) -> Result<Self, ServerError> {
        let env = &options.env;
        let (signer, is_signer_made) = match &options.data {
            Some(dir) => credentials::signer(dir, env)?,
            None => (Signer::in_memory(env)?, false),
        };
        let admin_token = match (&options.admin_token, &options.data) {
            (Some(token), _) => token.clone(),
            (None, Some(dir)) => credentials::admin_token(dir, env).map_err(ServerError::Token)?,
            (None, None) => credentials::fresh_token(env),
        };
        Ok(Self {
            signer,
            is_signer_made,
            admin_token,
        })
    }
}

impl ServerOptions {
    /// How the store is opened.
    fn store(&self) -> StoreOptions {
        let env = self.env.clone();
        let store = match &self.data {
            Some(dir) => StoreOptions::directory(env, dir),
            None => StoreOptions::memory(env),
        };
        StoreOptions {
            durability: self.durability,
            history_limit: self.history_limit.unwrap_or(store.history_limit),
            quota_bytes: self.quota_bytes.unwrap_or(store.quota_bytes),
            encryption: self.encryption.clone(),
            companions: KEY_FILES,
            ..store
        }
    }

    /// Makes sure that the data directory holds a cluster or can hold a new one, before keys are
    /// put into it. [`Server::open`] does so itself.
    ///
    /// # Errors
    /// When the directory is in use or cannot be used, or a file of its store is missing.
    pub fn prepare(&self) -> Result<(), ServerError> {
        Ok(self.store().prepare()?)
    }

    fn open_audit(&self) -> Result<Audit, ServerError> {
        let failed = |source| ServerError::Audit {
            path: self
                .audit
                .clone()
                .map(|audit| audit.path)
                .unwrap_or_default(),
            source,
        };
        Audit::open(self.audit.as_ref(), &self.env).map_err(failed)
    }

    /// A server in memory.
    #[must_use]
    pub fn memory(env: Env) -> Self {
        Self {
            data: None,
            durability: Durability::Full,
            admin_token: None,
            history_limit: None,
            quota_bytes: None,
            encryption: None,
            admission: Admission::default(),
            audit: None,
            controllers: RunningControllers::default(),
            env,
        }
    }

    /// A server in a data directory.
    #[must_use]
    pub fn directory(env: Env, data: impl Into<PathBuf>) -> Self {
        Self {
            data: Some(data.into()),
            ..Self::memory(env)
        }
    }
}

impl Server {
    /// Opens a server and makes sure that the objects every cluster has exist.
    ///
    /// # Errors
    /// When the data directory cannot be used, or what is in it not read.
    pub async fn open(options: ServerOptions) -> Result<Self, ServerError> {
        Self::opening(options).await
    }

    fn opening(options: ServerOptions) -> Boxed<Result<Self, ServerError>> {
        Box::pin(Self::open_all(options))
    }

    async fn open_all(options: ServerOptions) -> Result<Self, ServerError> {
        // Keys without objects are those of a cluster whose objects are missing.
        options.prepare()?;
        // Afterwards the new store is there as well.
        let is_known = options.data.as_deref().is_some_and(private_file::has_store);
        // Keys are made, and waited for by the disk, while the store is read.
        let (store, keys) = std::thread::scope(|scope| {
            let keys = scope.spawn(|| Keys::of(&options));
            let store = Store::open(options.store());
            (store, keys.join())
        });
        let no_keys = |_| ServerError::Token(std::io::Error::other("making keys panicked"));
        let Keys {
            signer,
            is_signer_made,
            admin_token,
        } = keys.map_err(no_keys)??;
        if let Some(dir) = options
            .data
            .as_deref()
            .filter(|_| is_known && is_signer_made)
        {
            credentials::warn_of_new_signer(dir);
        }
        let audit = options.open_audit()?;
        let (store, env) = (store?, options.env);
        let server = Self(Arc::new(Inner {
            registry: Registry::built_in(),
            definitions: crd::Definitions::default(),
            openapi: OpenApi::default(),
            storage: Storage::new(store),
            parsers: Parsers::default(),
            allocator: Allocator::default(),
            metrics: Metrics::default(),
            started: env.now(),
            creations: Creations::default(),
            admission: options.admission,
            controllers: options.controllers,
            authenticator: Authenticator::new(&admin_token, signer),
            admin_token,
            env,
            audit,
            flow: Flow::default(),
            bodies: BodyIntake::default(),
            watches: Arc::default(),
            pages: Pages::default(),
        }));
        server.0.storage.log_trouble();
        let made = bootstrap::run(&server).await;
        server.start_anyway(made)?;
        let loaded = crd::load(&server).await;
        server.start_anyway(loaded)?;
        Ok(server)
    }

    /// A store that takes no objects can be read, and deleted from, all the same.
    fn start_anyway(&self, made: Result<(), Status>) -> Result<(), ServerError> {
        match made {
            Err(error) if self.0.storage.trouble().is_some() => {
                tracing::warn!(%error, "what every cluster has is not complete");
                Ok(())
            }
            made => made.map_err(ServerError::Bootstrap),
        }
    }

    /// The token with which the administrator is known. Whoever has it may do everything.
    #[must_use]
    pub fn admin_token(&self) -> &str {
        &self.0.admin_token
    }

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

    /// Adds a page of text that is not a resource. Who may see it is for RBAC to say, as for any
    /// path. It is made from the parameters of each request.
    pub fn add_page(
        &self,
        path: &str,
        page: impl Fn(&[(String, String)]) -> String + Send + Sync + 'static,
    ) {
        self.0.pages.add(path, Arc::new(page));
    }

    /// Clears away expired objects and old history, and makes again what no cluster is without,
    /// until the server is closed.
    pub async fn maintain(&self) {
        let mut ticks = tokio::time::interval(SWEEP_PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.sweep().await;
        }
    }

    fn sweep(&self) -> Boxed<()> {
        let server = self.clone();
        Box::pin(async move {
            server.0.storage.sweep().await;
            server.0.storage.log_trouble();
            // A server whose disk fails still reads.
            if let Err(error) = bootstrap::restore(&server).await {
                tracing::warn!(%error, "what every cluster has is not complete");
            }
        })
    }

    /// Ends all watches and makes everything durable. Blocks until that is done.
    pub fn close(&self) {
        self.0.storage.close();
        self.0.audit.flush();
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
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
        self.0.metrics.answered(labels, code, took);
        audit.completed(&mut response);
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
        if let Some(peer) = parts.extensions.get::<Arc<Peer>>() {
            peer.authenticated(&user);
        }
        audit::received(&parts, &user);
        let wanted = Attributes::from(&target).selecting(query.get("fieldSelector"));
        let user = {
            let headers = impersonation(&parts.headers);
            auth::effective_user(user, &headers, &wanted, &self.0.storage)?
        };
        audit::acts_as(&parts, &user);
        let allowed = auth::check(&user, &wanted, &self.0.storage);
        audit::decided(&parts, &user, allowed.is_ok());
        allowed?;
        let timeout = query
            .timeout()?
            .map_or(REQUEST_TIMEOUT, |asked| asked.min(REQUEST_TIMEOUT));
        let deadline = Instant::now() + timeout;
        let pool = parts.extensions.remove::<WorkPool>();
        let work = async {
            // A body that does not arrive takes no seat in flight.
            let body = self.0.bodies.read(&parts.method, body, &user).await?;
            let (flow, storage) = (&self.0.flow, &self.0.storage);
            let request = flow.classify(&user, &target, &query, storage);
            let pool = pool.filter(|_| self.takes_time(&target, &body.bytes));
            let pool = pool.map(|pool| (pool, user.name.clone()));
            let (server, bytes) = (self.clone(), body.bytes);
            let routing: Boxed<_> =
                Box::pin(async move { server.route(parts, query, target, user, bytes).await });
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
    fn takes_time(&self, target: &Target, body: &Bytes) -> bool {
        let Target::Resource(path) = target else {
            return false;
        };
        let table = self.0.registry.table();
        let found = table.find(&path.group, &path.version, &path.resource);
        body.len() > APART_BODY_BYTES
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

    /// How many requests are in flight that only read, and that may write.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        self.0.flow.in_flight()
    }

    async fn route(
        &self,
        mut parts: request::Parts,
        query: Query,
        target: Target,
        user: User,
        body: Bytes,
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
                };
                let deprecation = call.resource.deprecation();
                let answer = rest::handle(call).await;
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
        let page = health::page(self, path, query)
            .or_else(|| self.0.pages.page(path, query))
            .or_else(|| {
                let table = self.0.registry.table();
                self.0.openapi.page(&table, path, query, headers)
            })
            .map_or_else(
                || discovery::page(&self.0.registry.table(), path, headers),
                |page| Ok(Some(page)),
            )?;
        match page {
            None => Ok(respond::no_such_page()),
            Some(page) if matches!(*method, Method::GET | Method::HEAD) => Ok(page),
            Some(_) => Err(Status::method_unknown()),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("storage", &self.0.storage)
            .finish_non_exhaustive()
    }
}

/// A future behind a pointer. Whatever a user of this crate awaits becomes one in a function that is
/// neither asynchronous nor generic: so the server is compiled here, once, and not in every crate
/// that runs it, with that one's settings.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

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

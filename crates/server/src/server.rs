//! The server: what all requests share.
//!
//! `open.rs` opens it, `dispatch.rs` answers requests with it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use windlass_access::Authenticator;
use windlass_atlas::apply::Creations;
use windlass_core::{Doc, Env, Time};
use windlass_faults::FaultPlan;
use windlass_schema::actors::RunningControllers;

use crate::admission::Admission;
use crate::allocate::Allocator;
use crate::audit::Audit;
use crate::body::BodyIntake;
use crate::callout::{Callouts, ServiceResolver};
use crate::definitions::Definitions;
use crate::extension::Extensions;
use crate::flow::Flow;
use crate::metrics::Metrics;
use crate::openapi::OpenApi;
use crate::pages::Pages;
use crate::parsers::Parsers;
use crate::registry::Registry;
use crate::storage::Storage;
use crate::watch::WatchSlots;

/// The API server. Clones are handles of the same server.
#[derive(Clone)]
pub struct Server(pub(crate) Arc<Inner>);

/// What all requests share.
pub(crate) struct Inner {
    /// The kinds.
    pub(crate) registry: Registry,
    /// What is served of the definitions of custom resources.
    pub(crate) definitions: Definitions,
    /// What the kinds look like.
    pub(crate) openapi: OpenApi,
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
    /// Calls to webhooks.
    pub(crate) callouts: Callouts,
    /// Admission that users extend: webhooks and policies.
    pub(crate) extensions: Extensions,
    /// The controllers that run beside the server, if that is known.
    pub(crate) controllers: RunningControllers,
    /// Who is who.
    pub(crate) authenticator: Authenticator,
    /// What the administrator shows.
    pub(crate) admin_token: String,
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
    pub(crate) pages: Pages,
    /// Does what a write leaves to do.
    pub(crate) follow_up: fn(Server, FollowUp) -> Boxed<()>,
    /// Faults between sockets and the server.
    pub(crate) faults: Option<FaultPlan>,
}

/// The work that a write leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowUp {
    /// The registry is brought in line with the definitions before the request is answered.
    Definition,
    /// The same, after an object less that a deleted definition may wait for.
    Removal,
    /// Flow schemas are told of their priority levels; nobody waits for it.
    FlowControl,
}

impl Server {
    /// The token with which the administrator is known. Whoever has it may do everything.
    #[must_use]
    pub fn admin_token(&self) -> &str {
        &self.0.admin_token
    }

    /// A token of a service account with these claims, which is good as long as a Secret holds it.
    /// For the controller that fills such Secrets.
    #[must_use]
    pub fn sign_token(&self, claims: &Doc) -> Option<String> {
        self.0.authenticator.signer().sign_payload(claims)
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

    /// Sets who finds the addresses of Services that webhooks are behind. Without one, the stored
    /// endpoints of a Service are called.
    pub fn set_service_resolver(&self, resolver: Arc<dyn ServiceResolver>) {
        self.0.callouts.set_resolver(resolver);
    }

    /// Ends all watches and makes everything durable. Blocks until that is done.
    pub fn close(&self) {
        self.0.storage.close();
        self.0.audit.flush();
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// Does what a write left to do.
    pub(crate) async fn follow_up(&self, work: FollowUp) {
        (self.0.follow_up)(self.clone(), work).await;
    }

    /// How many requests are in flight that only read, and that may write.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        self.0.flow.in_flight()
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

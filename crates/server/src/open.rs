//! Opening a server, and keeping it in order.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use windlass_access::admission::Admission;
use windlass_access::token::{Signer, SignerError, TokenOptions};
use windlass_access::{AuthenticationOptions, Authenticator};
use windlass_atlas::apply::Creations;
use windlass_core::Env;
use windlass_faults::FaultPlan;
use windlass_rules::status::Status;
use windlass_schema::actors::RunningControllers;
use windlass_store::{Durability, EncryptionKeys, OpenError, Store, StoreOptions};

use crate::allocate::{Allocator, ServiceNetwork};
use crate::audit::{Audit, AuditOptions};
use crate::body::BodyIntake;
use crate::callout::Callouts;
use crate::definitions::Definitions;
use crate::extension::Extensions;
use crate::flow::Flow;
use crate::metrics::Metrics;
use crate::openapi::OpenApi;
use crate::pages::Pages;
use crate::parsers::Parsers;
use crate::registry::Registry;
use crate::server::{Boxed, Inner, Server};
use crate::storage::Storage;
use crate::{bootstrap, crd, credentials, follow_up, private_file};

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
    /// Static tokens, and the answer to requests without credentials.
    pub authentication: AuthenticationOptions,
    /// The network that services get their addresses from.
    pub service_network: ServiceNetwork,
    /// The audit log; none unless asked for.
    pub audit: Option<AuditOptions>,
    /// Keys, issuers and audiences of service account tokens.
    pub tokens: TokenOptions,
    /// Faults that are injected between sockets and the server; none unless asked for.
    pub faults: Option<FaultPlan>,
    /// True to serve `metrics.k8s.io` for pretend nodes and their pods: off by default, because
    /// clusters get it with metrics-server.
    pub resource_metrics: bool,
    /// The controllers that run beside the server, if that is known.
    pub controllers: RunningControllers,
    /// Time, randomness and ids.
    pub env: Env,
}

/// Files with keys beside the store.
const KEY_FILES: &[&str] = &["ca.key", "sa.key", "admin.token", "front-proxy-ca.key"];

/// A server could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The objects could not be opened.
    #[error("cannot open the store")]
    Store(#[from] OpenError),
    /// The key for service account tokens could not be had.
    #[error("cannot sign service account tokens")]
    Signer(#[from] SignerError),
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
        let tokens = &options.tokens;
        let (signer, is_signer_made) = match (&tokens.signing_key, &options.data) {
            (Some(key), _) => (Signer::from_pem(key, env)?, false),
            (None, Some(dir)) => credentials::signer(dir, env)?,
            (None, None) => (Signer::in_memory(env)?, false),
        };
        let signer = signer.with(tokens)?;
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
            authentication: AuthenticationOptions::default(),
            service_network: ServiceNetwork::default(),
            audit: None,
            tokens: TokenOptions::default(),
            faults: None,
            resource_metrics: false,
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
            registry: Registry::built_in(options.resource_metrics),
            definitions: Definitions::default(),
            openapi: OpenApi::default(),
            storage: Storage::new(store),
            parsers: Parsers::default(),
            allocator: Allocator::new(options.service_network),
            metrics: Metrics::default(),
            started: env.now(),
            creations: Creations::default(),
            admission: options.admission,
            callouts: Callouts::default(),
            extensions: Extensions::default(),
            controllers: options.controllers,
            authenticator: Authenticator::new(&admin_token, signer).with(options.authentication),
            admin_token,
            env,
            audit,
            flow: Flow::default(),
            bodies: BodyIntake::default(),
            watches: Arc::default(),
            pages: Pages::default(),
            follow_up: follow_up::run,
            faults: options.faults,
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
}

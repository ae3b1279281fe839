//! The builder of a manager.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use windlass_cache::InformerFactory;
use windlass_client::{Config, ConfigError, RateLimit, RestClient, RestOptions, Transport};
use windlass_core::{Env, Gvr, Prune};

use super::{Added, Inner, Manager};
use crate::{
    ElectionOptions, ElectionOptionsError, EventRecorder, GuardLayer, LeaderElector, Metrics,
    controller::Supplies, events::EventBroadcaster, metrics::QueueCollector, shutdown::Shutdown,
    writes::NotingLayer,
};

/// The time that a manager waits for everything to end.
pub const GRACE_PERIOD: Duration = Duration::from_secs(30);

/// The resync period: handlers see all objects again, lengthened at random by up to as much.
pub const RESYNC_PERIOD: Duration = Duration::from_secs(12 * 60 * 60);

/// Requests per second of the client, and how many at once, as in kube-controller-manager.
const RATE_LIMIT: RateLimit = RateLimit {
    qps: 20.0,
    burst: 30,
};

/// The time beyond the lease duration that a leader may go without renewing before `/healthz`
/// says so.
const ELECTION_TOLERANCE: Duration = Duration::from_secs(20);

/// Sets up a [`Manager`].
#[must_use]
pub struct ManagerBuilder {
    name: String,
    connection: Option<(Transport, RestOptions)>,
    env: Env,
    namespace: Option<String>,
    resync: Duration,
    prune: Vec<(Gvr, Prune)>,
    election: Option<ElectionOptions>,
    shutdown: Option<Shutdown>,
    settings: Settings,
}

/// Settings that only the run needs.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) grace: Grace,
    pub(super) elector: Option<LeaderElector>,
    pub(super) health_address: Option<SocketAddr>,
    pub(super) metrics_address: Option<SocketAddr>,
    /// `None` for [`ALWAYS_ALLOWED_PATHS`](super::ALWAYS_ALLOWED_PATHS).
    pub(super) always_allowed: Option<Vec<String>>,
}

/// The time to wait for everything to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grace {
    Within(Duration),
    Forever,
}

impl Default for Grace {
    fn default() -> Self {
        Self::Within(GRACE_PERIOD)
    }
}

/// A manager could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Neither a configuration nor a transport was given.
    #[error("a manager needs a way to a server: give it a configuration or a transport")]
    NoConnection,
    /// The options of the election contradict each other.
    #[error(transparent)]
    Election(#[from] ElectionOptionsError),
    /// The configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A flag or environment variable cannot be used.
    #[error("{0}")]
    Flag(String),
    /// The operating system does not let us listen to signals.
    #[error("cannot listen to signals: {0}")]
    Signals(#[source] std::io::Error),
}

impl ManagerBuilder {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            connection: None,
            env: Env::real(),
            namespace: None,
            resync: Duration::ZERO,
            prune: Vec::new(),
            election: None,
            shutdown: None,
            settings: Settings::default(),
        }
    }

    /// Works with the server that a configuration names. A rate limit that it does not set is 20
    /// requests per second and 30 at once.
    ///
    /// # Errors
    /// When credentials or certificates cannot be read.
    pub async fn config(mut self, config: &Config) -> Result<Self, BuildError> {
        let transport = config.transport().await?;
        let mut options = config.rest_options();
        options.rate_limit.get_or_insert(RATE_LIMIT);
        self.connection = Some((transport, options));
        Ok(self)
    }

    /// Works with whatever answers on a transport, such as a server in this process.
    pub fn transport(mut self, transport: Transport, options: RestOptions) -> Self {
        self.connection = Some((transport, options));
        self
    }

    /// Sets the source of time, randomness and ids.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Caches hold the objects of one namespace only. Those of kinds without namespaces hold all.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the resync period, after which handlers see all objects again; never by default.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = period;
        self
    }

    /// Caches the objects of a resource without some of their fields. By default only
    /// `metadata.managedFields` is left out.
    pub fn prune(mut self, resource: Gvr, prune: Prune) -> Self {
        self.prune.push((resource, prune));
        self
    }

    /// Works only while this process holds a Lease.
    pub fn election(mut self, options: ElectionOptions) -> Self {
        self.election = Some(options);
        self
    }

    /// Sets the time to wait for everything to end; `None` for as long as it takes. The default is
    /// [`GRACE_PERIOD`], and zero does not wait.
    pub fn grace_period(mut self, period: Option<Duration>) -> Self {
        self.settings.grace = period.map_or(Grace::Forever, Grace::Within);
        self
    }

    /// Serves `/healthz`, `/livez` and `/readyz` here. Off by default.
    pub fn health_address(mut self, address: SocketAddr) -> Self {
        self.settings.health_address = Some(address);
        self
    }

    /// Serves `/metrics` and `/debug/windlass/` here. Off by default. Who asks has to have the
    /// right to `get` the path, unless it is [always allowed](Self::always_allow_paths).
    pub fn metrics_address(mut self, address: SocketAddr) -> Self {
        self.settings.metrics_address = Some(address);
        self
    }

    /// The paths that everybody may read, in place of
    /// [`ALWAYS_ALLOWED_PATHS`](crate::ALWAYS_ALLOWED_PATHS). One that ends with `*` stands for all
    /// that begin like it. For any other path a TokenReview and a SubjectAccessReview decide, which
    /// the account of this process needs the right to create.
    pub fn always_allow_paths<P: Into<String>>(
        mut self,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        let paths = paths.into_iter().map(Into::into).collect();
        self.settings.always_allowed = Some(paths);
        self
    }

    /// The signal that ends the whole, such as [`Shutdown::on_signals`].
    pub fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = Some(shutdown);
        self
    }

    /// The manager. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When there is no way to a server, or the options of the election contradict each other.
    pub fn build(mut self) -> Result<Manager, BuildError> {
        let (transport, options) = self.connection.take().ok_or(BuildError::NoConnection)?;
        let noted = transport.clone().layer(&NotingLayer);
        let metrics = Metrics::default();
        let cache_metrics = windlass_cache::Metrics::new();
        let broadcaster = EventBroadcaster::with_metrics(self.env.clone(), metrics.events());
        let free_client = RestClient::new(noted.clone(), options.clone());
        broadcaster.start_sink(free_client.clone());
        let elector = self.elector(&transport, &options, &metrics, &broadcaster)?;
        let client = match &elector {
            None => free_client.clone(),
            Some(elector) => {
                RestClient::new(noted.layer(&GuardLayer::new(elector.guard())), options)
            }
        };
        let mut added = Added::default();
        added.live.extend(
            elector
                .as_ref()
                .map(|elector| elector.health(ELECTION_TOLERANCE)),
        );
        self.settings.elector = elector;
        let shutdown = self.shutdown.take().unwrap_or_default().child();
        let inner = Inner {
            factory: self.factory(&client, &cache_metrics),
            cache_metrics,
            name: self.name,
            client,
            free_client,
            broadcaster,
            env: self.env,
            metrics,
            queues: Arc::new(QueueCollector::default()),
            settings: Mutex::new(self.settings),
            tasks_shutdown: Shutdown::new(),
            leader_shutdown: Shutdown::new(),
            shutdown,
            added: Mutex::new(added),
        };
        Ok(Manager {
            inner: Arc::new(inner),
        })
    }

    fn factory(&self, client: &RestClient, metrics: &windlass_cache::Metrics) -> InformerFactory {
        let factory = InformerFactory::on(client.clone());
        let prune = self.prune.iter().cloned();
        let mut factory = prune
            .fold(factory, |factory, (resource, prune)| {
                factory.prune_for(resource, prune)
            })
            .sources()
            .env(self.env.clone())
            .metrics(metrics.clone(), &self.name);
        if !self.resync.is_zero() {
            factory = factory.resync(self.env.jitter(self.resync, 1.0));
        }
        match &self.namespace {
            Some(namespace) => factory.namespace(namespace).build(),
            None => factory.build(),
        }
    }

    fn elector(
        &mut self,
        transport: &Transport,
        options: &RestOptions,
        metrics: &Metrics,
        broadcaster: &EventBroadcaster,
    ) -> Result<Option<LeaderElector>, BuildError> {
        let Some(election) = self.election.take() else {
            return Ok(None);
        };
        // A client of its own: neither a busy controller nor a slow answer may cost the Lease.
        let options = RestOptions {
            user_agent: format!("{} leader-election", options.user_agent),
            timeout: (election.renew_deadline / 2).max(Duration::from_secs(1)),
            rate_limit: None,
            retries_limit: 0,
            ..options.clone()
        };
        let client = RestClient::new(transport.clone(), options);
        let recorder: EventRecorder = broadcaster.recorder(&self.name);
        let elector = LeaderElector::new(client, self.env.clone(), election)?;
        Ok(Some(elector.recorder(recorder).metrics(metrics.election())))
    }
}

impl Inner {
    /// The parts that a controller is given.
    pub(super) fn supplies(&self, component: &str, needs_leader: bool) -> Supplies {
        let (client, shutdown) = match needs_leader {
            true => (&self.client, &self.leader_shutdown),
            false => (&self.free_client, &self.tasks_shutdown),
        };
        Supplies {
            client: client.clone(),
            factory: self.factory.clone(),
            recorder: self.broadcaster.recorder(component),
            env: self.env.clone(),
            metrics: self.metrics.clone(),
            shutdown: shutdown.clone(),
        }
    }
}

impl fmt::Debug for ManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerBuilder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

//! How a cluster is started.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::OnceCell, time::Instant};
use windlass_client::{Config, DiscoveryClient, RestClient, RestOptions, Transport};
use windlass_controllers::catalog::{self, Settings};
use windlass_controllers::service_account;
use windlass_core::Env;
use windlass_server::{Admission, Server, ServerOptions, User};

use super::{Cluster, Inner, Place};
use crate::TokioClock;

/// Works on the cluster of the kubeconfig instead of an embedded one.
const USE_EXISTING_CLUSTER: &str = "USE_EXISTING_CLUSTER";

/// After so long a clock that runs has moved.
const CLOCK_TICK: Duration = Duration::from_millis(1);

/// How long a condition is waited for unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a [`Cluster`] otherwise than usual.
#[derive(Debug)]
#[must_use]
pub struct ClusterBuilder {
    seed: u64,
    env: Option<Env>,
    data: Option<PathBuf>,
    history_limit: Option<usize>,
    patience: Duration,
    existing: Option<Config>,
    controllers: Vec<String>,
    settings: Settings,
}

impl Default for ClusterBuilder {
    fn default() -> Self {
        Self {
            seed: 1,
            env: None,
            data: None,
            history_limit: None,
            patience: PATIENCE,
            existing: None,
            controllers: Vec::new(),
            settings: settings(),
        }
    }
}

impl ClusterBuilder {
    /// Another course of all that is random.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Time, randomness and ids from elsewhere.
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// Keeps the objects in a directory instead of in memory.
    pub fn directory(mut self, data: impl Into<PathBuf>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// How many events per resource a watch can go back.
    pub fn history_limit(mut self, events: usize) -> Self {
        self.history_limit = Some(events);
        self
    }

    /// How long a condition is waited for.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Runs built-in controllers beside the server, by upstream's names; `*` is all of them, with
    /// the scheduler and nodes on which no container runs. A cluster that exists has its own.
    pub fn controllers<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.controllers.extend(names.into_iter().map(Into::into));
        self
    }

    /// Changes how the built-in controllers work.
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Works on a cluster that exists, whatever the environment says.
    pub fn existing(mut self, config: Config) -> Self {
        self.existing = Some(config);
        self
    }

    /// Starts the cluster.
    ///
    /// # Panics
    /// When the server cannot be opened, or the existing cluster cannot be reached.
    pub async fn start(self) -> Cluster {
        let patience = self.patience;
        let chosen = catalog::select_embedded(&self.controllers);
        let chosen = chosen.unwrap_or_else(|error| panic!("{error}"));
        let admission = Admission {
            // Pods get a service account where somebody makes one for each namespace.
            service_accounts: chosen.iter().any(|it| it.name == service_account::NAME),
            storage_protection: catalog::protects_storage(&chosen),
            ..Admission::default()
        };
        let settings = self.settings.clone();
        let (place, env, transport, options) = match self.existing_config().await {
            Some(config) => {
                let_time_pass();
                let transport = config.transport().await;
                let transport = transport.expect("the kubeconfig can be used");
                let mut options = config.rest_options();
                options.rate_limit = None;
                (Place::Existing, Env::real(), transport, options)
            }
            None => {
                self.embedded(admission, catalog::has_pretend_nodes(&chosen))
                    .await
            }
        };
        let client = RestClient::new(transport.clone(), options);
        let cluster = Cluster(Arc::new(Inner {
            place,
            env,
            discovery: DiscoveryClient::new(client.clone()),
            client,
            transport,
            patience,
            runs: Mutex::new(Vec::new()),
            looked_at: Mutex::new(BTreeSet::new()),
        }));
        if cluster.server().is_some() && !chosen.is_empty() {
            cluster.run_with("windlass", |manager| {
                for entry in chosen {
                    entry.add_to(manager, &settings);
                }
            });
        }
        cluster
    }

    async fn existing_config(&self) -> Option<Config> {
        if let Some(config) = &self.existing {
            return Some(config.clone());
        }
        let is_wanted = std::env::var(USE_EXISTING_CLUSTER).is_ok_and(|value| value == "true");
        if !is_wanted {
            return None;
        }
        Some(Config::load().await.expect("the kubeconfig can be read"))
    }

    async fn embedded(
        self,
        admission: Admission,
        resource_metrics: bool,
    ) -> (Place, Env, Transport, RestOptions) {
        let seed = self.seed;
        let env = self.env.unwrap_or_else(|| TokioClock::new().env(seed));
        let mut options = match self.data {
            Some(data) => ServerOptions::directory(env.clone(), data),
            None => ServerOptions::memory(env.clone()),
        };
        options.history_limit = self.history_limit;
        options.admission = admission;
        options.resource_metrics = resource_metrics;
        let server = Server::open(options).await.expect("the server opens");
        let transport = Transport::new(server.doc_service(User::admin()));
        let rest = RestOptions {
            rate_limit: None,
            ..RestOptions::default()
        };
        let served = OnceCell::new();
        (Place::Embedded { server, served }, env, transport, rest)
    }
}

/// Resumes the clock of a test that is paused: others than this process live in real time.
fn let_time_pass() {
    let real = Env::real();
    let (before, start) = (Instant::now(), real.elapsed());
    while real.elapsed().saturating_sub(start) < CLOCK_TICK {
        std::hint::spin_loop();
    }
    if Instant::now() == before {
        tokio::time::resume();
    }
}

/// There is one API server, which need not wait until others have heard of a deletion.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.namespace.grace = Duration::ZERO;
    settings
}

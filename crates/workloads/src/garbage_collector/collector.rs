//! What the workers and the watches of the garbage collector share, and its life.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt as _;
use parking_lot::{Mutex, RwLock};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::timeout,
};
use windlass_client::{DynamicApi, DynamicClient, Error, RateLimit, RestClient};
use windlass_core::{Doc, Env, GroupResource, Gvr, Str};
use windlass_queue::WorkQueue;
use windlass_runtime::{EventRecorder, EventType, Manager, Recent, Reference, Shutdown};

use super::{
    NAME, Options,
    graph::{Effects, Graph},
    identity::{Identity, Owner},
    metrics::Metrics,
    monitors::Monitor,
    resources::{Mapping, Served},
    settle::Listings,
};

/// How long the start waits for the watches of all kinds. One that cannot be watched does not keep
/// the others from being collected.
const INITIAL_SYNC_TIMEOUT: Duration = Duration::from_secs(30);

/// The garbage collector sends twice as many requests as other controllers may.
const QPS_FACTOR: f64 = 2.0;

/// How many owners that do not exist are remembered, as upstream does.
const ABSENT_LIMIT: usize = 500;

/// The garbage collector.
pub(super) struct Collector {
    pub(super) client: RestClient,
    pub(super) env: Env,
    pub(super) ignored: BTreeSet<GroupResource>,
    recorder: EventRecorder,
    pub(super) graph: Mutex<Graph>,
    /// Owners that are known not to exist, so that each is looked for once and not for each of its
    /// dependents. A UID never comes back, so that nothing in here can become wrong.
    pub(super) absent: Mutex<Recent<Identity>>,
    /// UIDs of nodes to look at.
    pub(super) to_delete: WorkQueue<Str>,
    /// UIDs of nodes whose dependents are to forget them.
    pub(super) to_orphan: WorkQueue<Str>,
    pub(super) served: RwLock<Arc<Served>>,
    pub(super) monitors: Mutex<BTreeMap<Gvr, Monitor>>,
    /// Whether discovery has succeeded once.
    pub(super) is_discovered: watch::Sender<bool>,
    /// Rung when a custom resource definition has changed.
    pub(super) definitions_changed: Notify,
    pub(super) listings: Listings,
    pub(super) metrics: Metrics,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The kind is not served, or not yet. Nothing is known about its objects.
    #[error("no matches for kind {kind:?} in version {api_version:?}")]
    Unmapped { kind: Str, api_version: Str },
    /// An object outside of namespaces refers to an owner inside of one. No retry will help.
    #[error("cluster-scoped objects cannot refer to namespaced owners")]
    NamespacedOwner,
    /// There are dependents that the graph does not have yet.
    #[error("the watches have not shown all dependents of {0} yet")]
    Unsettled(Identity),
    /// Some dependents could not be changed.
    #[error("failed to orphan dependents of owner {owner}, got errors: {errors}")]
    Orphan { owner: Identity, errors: String },
    /// A request failed.
    #[error(transparent)]
    Request(#[from] Error),
    /// The attempt panicked.
    #[error("panicked: {0}")]
    Panic(String),
}

impl Collector {
    pub(super) fn new(manager: &Manager, options: &Options) -> Arc<Self> {
        let client = manager.client();
        let rate_limit = client.options().rate_limit;
        let rate_limit = rate_limit.map(|limit| RateLimit {
            qps: limit.qps * QPS_FACTOR,
            ..limit
        });
        let queue = |name: &str| WorkQueue::builder().name(name).build();
        Arc::new(Self {
            client: client.with_rate_limit(rate_limit),
            env: manager.env().clone(),
            ignored: options.ignored.clone(),
            recorder: manager.recorder(NAME),
            graph: Mutex::default(),
            absent: Mutex::new(Recent::new(ABSENT_LIMIT)),
            to_delete: queue("garbage_collector_attempt_to_delete"),
            to_orphan: queue("garbage_collector_attempt_to_orphan"),
            served: RwLock::default(),
            monitors: Mutex::default(),
            is_discovered: watch::Sender::new(false),
            definitions_changed: Notify::new(),
            listings: Listings::default(),
            metrics: Metrics::default(),
        })
    }

    /// Watches and works until the signal to stop. Attempts in progress are finished.
    pub(super) async fn run(self: Arc<Self>, workers: usize, shutdown: &Shutdown) {
        let mut tasks = JoinSet::new();
        tasks.spawn({
            let (this, shutdown) = (self.clone(), shutdown.clone());
            async move { this.follow_discovery(&shutdown).await }
        });
        tokio::select! {
            biased;
            () = shutdown.requested() => {}
            synced = timeout(INITIAL_SYNC_TIMEOUT, self.wait_for_monitors()) => {
                if synced.is_err() {
                    tracing::info!("not all resource monitors could be synced, proceeding anyways");
                }
            }
        }
        for _ in 0..workers {
            let (this, stop) = (self.clone(), shutdown.clone());
            tasks.spawn(async move { this.delete_worker(&stop).await });
            let (this, stop) = (self.clone(), shutdown.clone());
            tasks.spawn(async move { this.orphan_worker(&stop).await });
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(controller = NAME, %error, "a task did not end well");
            }
        }
        self.to_delete.shut_down();
        self.to_orphan.shut_down();
        self.stop_monitors().await;
    }

    /// Changes the graph, and does what it asks for.
    pub(super) fn change(&self, change: impl FnOnce(&mut Graph)) {
        let effects = {
            let mut graph = self.graph.lock();
            change(&mut graph);
            graph.take_effects()
        };
        self.carry_out(effects);
    }

    fn carry_out(&self, effects: Effects) {
        if !effects.absent.is_empty() {
            // First of all: whoever is checked next finds it here.
            let mut absent = self.absent.lock();
            effects.absent.iter().for_each(|it| absent.add(it));
        }
        for uid in effects.check {
            self.to_delete.add(uid);
        }
        for uid in effects.check_later {
            self.to_delete.add_rate_limited(uid);
        }
        for uid in effects.orphan {
            self.to_orphan.add(uid);
        }
        for (dependent, owner) in effects.misplaced {
            self.report_misplaced(&dependent, &owner);
        }
    }

    fn report_misplaced(&self, dependent: &Identity, owner: &Owner) {
        let reference = Reference {
            api_version: dependent.api_version.to_string(),
            kind: dependent.kind.to_string(),
            namespace: dependent.namespace.to_string(),
            name: dependent.name.to_string(),
            uid: dependent.uid.to_string(),
            ..Reference::default()
        };
        let namespace = &dependent.namespace;
        let owner = owner.identity(namespace);
        let message = format!("ownerRef {owner} does not exist in namespace \"{namespace}\"");
        self.recorder.event_on(
            reference,
            EventType::Warning,
            "OwnerRefInvalidNamespace",
            &message,
        );
    }

    /// Where objects of a kind are.
    pub(super) fn mapping(&self, kind: &Str, api_version: &Str) -> Result<Mapping, Failure> {
        let served = self.served.read().clone();
        let mapping = served.mapping(kind, api_version).cloned();
        mapping.ok_or_else(|| Failure::Unmapped {
            kind: kind.clone(),
            api_version: api_version.clone(),
        })
    }

    /// The verbs for one object.
    pub(super) fn api(&self, object: &Identity) -> Result<DynamicApi, Failure> {
        let mapping = self.mapping(&object.kind, &object.api_version)?;
        let api = DynamicClient::new(self.client.clone()).resource(mapping.gvr);
        match (mapping.is_namespaced, object.is_namespaced()) {
            (true, true) => Ok(api.namespaced(&*object.namespace)),
            (true, false) => Err(Failure::NamespacedOwner),
            (false, _) => Ok(api),
        }
    }

    /// The metadata of an object as the server has it now; `None` if the server says that there is
    /// no such object, or another of the same name.
    pub(super) async fn live(&self, object: &Identity) -> Result<Option<Doc>, Failure> {
        match self.api(object)?.get_metadata(&object.name).await {
            Ok(live) if *live.meta().uid_str() == *object.uid => Ok(Some(live)),
            Ok(_) => Ok(None),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the server says that an object is missing. A path that it does not serve, as after the
/// end of a custom resource definition, says nothing about the objects.
pub(super) fn is_missing(error: &Error) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    error.is_not_found() && details.is_some_and(|details| !details.name.is_empty())
}

/// Takes keys from a queue until the signal to stop.
pub(super) async fn next<'q>(
    queue: &'q WorkQueue<Str>,
    shutdown: &Shutdown,
) -> Option<windlass_queue::Item<'q, Str>> {
    tokio::select! {
        biased;
        () = shutdown.requested() => None,
        item = queue.get() => item,
    }
}

/// Runs an attempt, and takes a panic for its failure.
pub(super) async fn contained<T>(
    attempt: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    match AssertUnwindSafe(attempt).catch_unwind().await {
        Ok(outcome) => outcome,
        Err(panic) => Err(Failure::Panic(message_of(&*panic))),
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

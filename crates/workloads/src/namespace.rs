//! The namespace controller: what is in a namespace goes with it.
//!
//! A namespace that is deleted stays, in the phase `Terminating`, until this controller has
//! removed all that is in it and then its own finalizer. Pods go first: while one is left, what it
//! may need (its secrets, its network policies) stays. What keeps the rest from going is told in
//! five conditions.

mod conditions;
mod content;
mod finalize;
mod remove;

use std::time::Duration;

use windlass_client::{DynamicApi, DynamicClient, RateLimit, RestClient};
use windlass_core::{Env, GroupVersion, Key};
use windlass_queue::{ItemExponential, MaxOf, TokenBucket};
use windlass_runtime::{
    Action, Change, Context, Controller, Manager, ResourceKind, Result, Trigger,
};

/// The name of the controller.
pub const NAME: &str = "namespace-controller";

/// Retries of one namespace: from 5 ms to a minute.
const RETRY_MIN: Duration = Duration::from_millis(5);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Retries of all namespaces together, per second and at once.
const RETRIES_QPS: f64 = 10.0;
const RETRIES_BURST: u32 = 100;

/// This controller may send so many times the requests of others: it lists and deletes every kind.
const QPS_FACTOR: f64 = 20.0;
const BURST_FACTOR: u32 = 100;

/// Options of the namespace controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many namespaces are worked on at the same time.
    pub workers: usize,
    /// How long after its deletion the content of a namespace is removed. Until then every API
    /// server of a cluster knows that nothing may be created in it. One that is alone needs no
    /// time for that.
    pub grace: Duration,
    /// How often a namespace is looked at that waits for others.
    pub sync_period: Duration,
}

impl Default for Options {
    /// Upstream's: 10 workers, 5 seconds, 5 minutes.
    fn default() -> Self {
        Self {
            workers: 10,
            grace: Duration::from_secs(5),
            sync_period: Duration::from_secs(5 * 60),
        }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let limit = manager.client().options().rate_limit;
    let limit = limit.map(|limit| RateLimit {
        qps: limit.qps * QPS_FACTOR,
        burst: limit.burst * BURST_FACTOR,
    });
    let (client, sync_period) = (manager.client().with_rate_limit(limit), options.sync_period);
    let reconcile = move |key: Key, cx: Context| {
        let remover = Remover {
            client: cx.scoped(&client),
            env: cx.env().clone(),
            sync_period,
        };
        async move { remover.reconcile(&key, &cx).await }
    };
    let limiter = MaxOf(
        ItemExponential::new(RETRY_MIN, RETRY_MAX),
        TokenBucket::new(RETRIES_QPS, RETRIES_BURST),
    );
    let grace = options.grace;
    let controller = Controller::of_kind(kind(), reconcile)
        // Only deletions matter, and only after a while.
        .filter(|_| false)
        .reacts_to_kind(kind(), move |change| deletion(change, grace))
        .named(NAME)
        .queue_named("namespace")
        .workers(options.workers)
        .rate_limiter(limiter);
    manager.add(controller);
}

fn kind() -> ResourceKind {
    ResourceKind::cluster(GroupVersion::constant("", "v1"), "Namespace", "namespaces")
}

fn deletion(change: &Change<'_>, grace: Duration) -> Vec<Trigger> {
    let deleting = change.new.filter(|new| new.meta().is_deleting());
    deleting
        .map(|namespace| Trigger::after(namespace.key(), grace))
        .into_iter()
        .collect()
}

/// Removes one namespace.
struct Remover {
    /// The client of the reconcile, with the rate limit of this controller.
    client: RestClient,
    env: Env,
    sync_period: Duration,
}

impl Remover {
    async fn reconcile(&self, key: &Key, cx: &Context) -> Result<Action> {
        if cx.lister_of(&kind())?.get(key).is_none() {
            return Ok(Action::done());
        }
        self.remove(key.name()).await
    }

    fn namespaces(&self) -> DynamicApi {
        DynamicClient::new(self.client.clone()).resource(kind().gvr().clone())
    }
}

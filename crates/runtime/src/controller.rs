//! `Controller`: watches objects, queues keys, and reconciles them.

mod bind;
mod doubt;
mod limiter;
mod reconcile;
mod run;
mod worker;

use std::{fmt, sync::Arc, time::Duration};

use windlass_cache::{InformerSpec, Obj};
use windlass_client::Typed;
use windlass_core::Key;
use windlass_queue::{RateLimiter, controller_limiter};

use crate::{
    ResourceKind,
    change::Change,
    journal::JOURNAL_KEYS_LIMIT,
    source::{Filter, Mapper, Source, Trigger},
};
pub(crate) use bind::Supplies;
use reconcile::ReconcileFn;
pub use reconcile::{KeyReconciler, Reconciler};
pub use run::StartError;
pub(crate) use run::{BoundController, synced};

/// The time that a controller waits for its caches before it fails to start.
pub const CACHE_SYNC_TIMEOUT: Duration = Duration::from_secs(120);

/// A controller: which objects it watches, and what it does about them.
///
/// ```no_run
/// # use windlass_runtime::{Action, Context, Controller, Result};
/// # use windlass_cache::Obj;
/// # use k8s_openapi::api::{apps::v1::{Deployment, ReplicaSet}};
/// async fn reconcile(deployment: Obj<Deployment>, cx: Context) -> Result<Action> {
///     cx.patch_status(&deployment, serde_json::json!({ "replicas": 3 })).await?;
///     Ok(Action::done())
/// }
///
/// let controller = Controller::of::<Deployment>(reconcile).owns::<ReplicaSet>().workers(5);
/// ```
///
/// What would be wrong to say cannot be said. A controller has one kind of its own, which comes
/// first and brings its name and its watch:
///
/// ```compile_fail
/// # use windlass_runtime::Controller;
/// # use k8s_openapi::api::apps::v1::ReplicaSet;
/// let controller = Controller::owns::<ReplicaSet>();
/// ```
/// ```compile_fail
/// # use windlass_runtime::{Action, Context, Controller};
/// # use windlass_core::Key;
/// # use k8s_openapi::api::{apps::v1::{Deployment, ReplicaSet}};
/// # async fn reconcile(_: Key, _: Context) -> windlass_runtime::Result<Action> { Ok(Action::done()) }
/// let controller = Controller::of_keys::<Deployment>(reconcile).of_keys::<ReplicaSet>(reconcile);
/// ```
///
/// And it runs once: the manager that runs it takes it.
///
/// ```compile_fail,E0382
/// # use windlass_runtime::{Controller, Manager};
/// fn run_twice(manager: &Manager, controller: Controller) {
///     manager.add(controller);
///     manager.add(controller);
/// }
/// ```
#[must_use = "a controller does nothing until a manager runs it"]
pub struct Controller {
    name: String,
    queue_name: Option<String>,
    component: Option<String>,
    primary: ResourceKind,
    reconcile: ReconcileFn,
    sources: Vec<Source>,
    options: ControllerOptions,
    limiter: Box<dyn RateLimiter<Key>>,
}

/// The numbers of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControllerOptions {
    pub(crate) workers: usize,
    pub(crate) retries_limit: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) sync_timeout: Duration,
    pub(crate) needs_leader: bool,
    pub(crate) is_freshness_checked: bool,
    pub(crate) journal_keys: usize,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            workers: 1,
            retries_limit: None,
            timeout: None,
            sync_timeout: CACHE_SYNC_TIMEOUT,
            needs_leader: true,
            is_freshness_checked: true,
            journal_keys: JOURNAL_KEYS_LIMIT,
        }
    }
}

impl Controller {
    /// A controller of a kind, whose reconcile function gets the object. An object that is gone is
    /// not reconciled: its finalizer, if it needs one, is where a controller hears of that.
    pub fn of<K: Typed>(reconcile: impl Reconciler<K>) -> Self {
        Self::new(
            ResourceKind::of::<K>(),
            reconcile::by_object(ResourceKind::of::<K>(), reconcile),
        )
    }

    /// A controller of a kind, whose reconcile function gets the key and reads the cache. It is
    /// called for objects that are gone, too.
    pub fn of_keys<K: Typed>(reconcile: impl KeyReconciler) -> Self {
        Self::of_kind(ResourceKind::of::<K>(), reconcile)
    }

    /// A controller of any kind, whose reconcile function gets the key.
    pub fn of_kind(kind: ResourceKind, reconcile: impl KeyReconciler) -> Self {
        Self::new(kind, reconcile::by_key(reconcile))
    }

    fn new(primary: ResourceKind, reconcile: ReconcileFn) -> Self {
        Self {
            name: primary.gvk().kind().to_lowercase(),
            queue_name: None,
            component: None,
            sources: vec![Source::new(primary.clone(), Some(Mapper::Itself))],
            primary,
            reconcile,
            options: ControllerOptions::default(),
            limiter: Box::new(controller_limiter()),
        }
    }

    /// Names the controller, in place of its kind. Names are unique in a process.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Names the queue in its metrics, in place of the name of the controller.
    pub fn queue_named(mut self, name: impl Into<String>) -> Self {
        self.queue_name = Some(name.into());
        self
    }

    /// Names the component that tells of events, in place of the name of the controller.
    pub fn component(mut self, component: impl Into<String>) -> Self {
        self.component = Some(component.into());
        self
    }

    /// Watches a kind whose objects are managed by those of the controller: a change of one
    /// reconciles its owner, and on a change of owner both.
    pub fn owns<K: Typed>(self) -> Self {
        self.owns_kind(ResourceKind::of::<K>())
    }

    /// As [`owns`](Self::owns), for any kind.
    pub fn owns_kind(mut self, kind: ResourceKind) -> Self {
        let mapper = Mapper::Owner(self.primary.clone());
        self.sources.push(Source::new(kind, Some(mapper)));
        self
    }

    /// Watches a kind whose objects concern others: the function names the keys to reconcile. On
    /// an update it is asked about the old and the new object.
    pub fn watches<K: Typed>(
        self,
        keys: impl Fn(&Obj<K>) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.watches_kind(ResourceKind::of::<K>(), move |object| keys(&object.cast()))
    }

    /// As [`watches`](Self::watches), for any kind.
    pub fn watches_kind(
        mut self,
        kind: ResourceKind,
        keys: impl Fn(&Obj) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        self.sources
            .push(Source::new(kind, Some(Mapper::Keys(Arc::new(keys)))));
        self
    }

    /// Watches a kind whose changes concern others: the function sees each change with the states
    /// before and after it, and names the keys to reconcile. It runs before they are queued, so
    /// that what it notes down is there when they are reconciled.
    pub fn reacts_to<K: Typed>(
        self,
        react: impl Fn(&Change<'_>) -> Vec<Trigger> + Send + Sync + 'static,
    ) -> Self {
        self.reacts_to_kind(ResourceKind::of::<K>(), react)
    }

    /// As [`reacts_to`](Self::reacts_to), for any kind.
    pub fn reacts_to_kind(
        mut self,
        kind: ResourceKind,
        react: impl Fn(&Change<'_>) -> Vec<Trigger> + Send + Sync + 'static,
    ) -> Self {
        self.sources
            .push(Source::new(kind, Some(Mapper::Change(Arc::new(react)))));
        self
    }

    /// Keeps a cache of a kind without reacting to its changes.
    pub fn reads<K: Typed>(self) -> Self {
        self.reads_kind(ResourceKind::of::<K>())
    }

    /// As [`reads`](Self::reads), for any kind.
    pub fn reads_kind(mut self, kind: ResourceKind) -> Self {
        self.sources.push(Source::new(kind, None));
        self
    }

    /// Reacts only to changes that pass. This is about the kind that was named last, by `of`,
    /// `owns` or `watches`; several filters must all pass. The cache is not filtered.
    pub fn filter(mut self, passes: impl Fn(&Change<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.last_source().filters.push(Arc::new(passes) as Filter);
        self
    }

    /// Watches only a part of the kind that was named last: a namespace, or by selector.
    pub fn only(mut self, select: impl FnOnce(InformerSpec) -> InformerSpec) -> Self {
        let source = self.last_source();
        source.spec = Some(select(InformerSpec::new(source.kind.gvr().clone())));
        self
    }

    fn last_source(&mut self) -> &mut Source {
        self.sources
            .last_mut()
            .expect("invariant: the primary kind is always a source")
    }

    /// Sets the number of keys that are reconciled at the same time. The default is one.
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers.max(1);
        self
    }

    /// Chooses the delays of retries.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<Key> + 'static) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Gives a key up after so many retries: it is dropped, reported and counted, and comes back
    /// with the next change. The default is to retry for ever.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.options.retries_limit = Some(retries);
        self
    }

    /// Takes a reconcile that lasts longer for failed. The default is no limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets the time to wait for the caches before the start fails.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.options.sync_timeout = timeout;
        self
    }

    /// Runs whether or not this process leads. Its writes are not guarded.
    pub fn without_election(mut self) -> Self {
        self.options.needs_leader = false;
        self
    }

    /// Reconciles keys whose own writes are not in the caches yet. A controller that creates
    /// objects under generated names will create too many.
    pub fn without_freshness(mut self) -> Self {
        self.options.is_freshness_checked = false;
        self
    }

    /// Sets the number of keys in the journal, in place of [`JOURNAL_KEYS_LIMIT`]; zero turns it
    /// off, and nobody can ask why a key was reconciled.
    pub fn journal_keys(mut self, limit: usize) -> Self {
        self.options.journal_keys = limit;
        self
    }

    /// The name, under which metrics, logs and the journal speak of this controller.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn event_component(&self) -> &str {
        self.component.as_deref().unwrap_or(&self.name)
    }

    pub(crate) fn needs_leader(&self) -> bool {
        self.options.needs_leader
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.name)
            .field("primary", &self.primary)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

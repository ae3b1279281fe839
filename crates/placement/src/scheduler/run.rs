//! The scheduling loop.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, task::JoinSet, time::Instant};
use windlass_cache::{Lister, Registration};
use windlass_client::{DynamicApi, DynamicClient};
use windlass_core::{Doc, Env, Gvr, Key, Selector};
use windlass_runtime::{EventRecorder, Manager, Result, Shutdown};

use super::{
    NAME, Options,
    hints::Hints,
    metrics::Metrics,
    plugin::{ClusterEvent, Plugin, Waker},
    pod_terms::Namespaces,
    queue::Popped,
    reasons::{Filter, PLUGINS_LIMIT},
    state::State,
};

pub(super) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(super) const NODES: Gvr = Gvr::constant("", "v1", "nodes");
const BUDGETS: Gvr = Gvr::constant("policy", "v1", "poddisruptionbudgets");
const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");

/// Bindings and reports that are under way at once. Beyond that pods wait in the queue.
const WRITES_LIMIT: usize = 512;

/// Attempts after which others get their turn.
const ATTEMPTS_PER_TURN: usize = 32;

/// How long bindings that are under way may take after the signal to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The scheduler. The loop, the handlers and the bindings share it.
pub(super) struct Scheduler {
    pub(super) state: Mutex<State>,
    /// Given when there may be something to try.
    pub(super) news: Notify,
    pub(super) plugins: Arc<[Arc<dyn Plugin>]>,
    pub(super) name: String,
    pub(super) pods: DynamicApi,
    pub(super) lister: Lister,
    pub(super) namespaces: NamespaceLabels,
    /// The PodDisruptionBudgets.
    pub(super) budgets: Lister,
    pub(super) recorder: EventRecorder,
    pub(super) env: Env,
    pub(super) metrics: Metrics,
}

/// The labels of namespaces, from the cache.
pub(super) struct NamespaceLabels(Lister);

impl Namespaces for NamespaceLabels {
    fn matches(&self, namespace: &str, selector: &Selector) -> bool {
        let found = self.0.get(&Key::cluster(namespace));
        found.is_some_and(|namespace| selector.matches(&namespace.labels()))
    }
}

/// The writes that are under way.
pub(super) type Writes = JoinSet<()>;

impl Scheduler {
    pub(super) fn new(manager: &Manager, options: &Options) -> Arc<Self> {
        if options.plugins.len() > PLUGINS_LIMIT {
            tracing::error!(
                limit = PLUGINS_LIMIT,
                "too many plug-ins, only the first are used"
            );
        }
        let plugins = options.plugins.iter().take(PLUGINS_LIMIT).cloned();
        let plugins: Arc<[Arc<dyn Plugin>]> = plugins.collect();
        let factory = manager.factory();
        let name = options.scheduler_name.clone();
        let hints = Hints::new(plugins.clone());
        Arc::new(Self {
            state: Mutex::new(State::new(hints, name.clone(), Instant::now())),
            news: Notify::new(),
            plugins,
            pods: DynamicClient::new(manager.client().clone()).resource(PODS),
            lister: factory.dynamic(PODS).lister(),
            namespaces: NamespaceLabels(factory.dynamic(NAMESPACES).lister()),
            budgets: factory.dynamic(BUDGETS).lister(),
            recorder: manager.recorder(&name),
            name,
            env: manager.env().clone(),
            metrics: Metrics::default(),
        })
    }

    pub(super) fn add_to(self: Arc<Self>, manager: &Manager) {
        let registrations = self.listen(manager.factory());
        let metrics = self.metrics.clone();
        manager.add_metrics(move |registry| metrics.register(registry));
        for plugin in self.plugins.iter() {
            let scheduler = self.clone();
            plugin.attach(Waker::new(move |event| scheduler.wake(&event)));
        }
        manager.add_task(NAME, move |shutdown| async move {
            self.run(registrations, &shutdown).await;
            Result::Ok(())
        });
    }

    /// Something has happened that a plug-in knows of.
    fn wake(&self, event: &ClusterEvent) {
        let is_woken = self.state.lock().queue.wake(event, Instant::now());
        if is_woken {
            self.news.notify_one();
        }
    }

    async fn run(self: Arc<Self>, registrations: Vec<Registration>, shutdown: &Shutdown) {
        tokio::select! {
            biased;
            () = shutdown.requested() => return,
            () = self.wait_for_sync(&registrations) => {}
        }
        let mut writes = Writes::new();
        while !shutdown.is_requested() {
            self.turn(&mut writes).await;
            tokio::select! {
                biased;
                () = shutdown.requested() => break,
                () = self.rest(&mut writes) => {}
            }
        }
        let drained = async { while writes.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
            tracing::warn!("bindings were under way when the scheduler stopped");
        }
    }

    /// Waits until everything is known that was there at the start. A scheduler that knew only some
    /// of the pods would give away what others have.
    async fn wait_for_sync(&self, registrations: &[Registration]) {
        for registration in registrations {
            registration.wait_for_sync().await;
        }
        for plugin in self.plugins.iter() {
            plugin.wait_for_sync().await;
        }
    }

    /// Tries some pods, if there are any and not too many writes under way.
    async fn turn(self: &Arc<Self>, writes: &mut Writes) {
        for _ in 0..ATTEMPTS_PER_TURN {
            if writes.len() >= WRITES_LIMIT {
                break;
            }
            let popped = self.state.lock().queue.pop(Instant::now());
            match popped {
                None => break,
                Some(popped) => self.attempt(popped, writes).await,
            }
        }
        while writes.try_join_next().is_some() {}
        self.measure();
    }

    /// Waits until there may be something to do.
    async fn rest(&self, writes: &mut Writes) {
        if writes.len() >= WRITES_LIMIT {
            writes.join_next().await;
            return;
        }
        let (depths, wake) = {
            let state = self.state.lock();
            (state.queue.depths(), state.queue.next_wake())
        };
        if depths.active > 0 {
            return tokio::task::yield_now().await;
        }
        let until = async {
            match wake {
                None => std::future::pending().await,
                Some(wake) => tokio::time::sleep_until(wake).await,
            }
        };
        tokio::select! {
            biased;
            () = self.news.notified() => {}
            Some(_) = writes.join_next() => {}
            () = until => {}
        }
    }

    fn measure(&self) {
        let state = self.state.lock();
        let (pods, assumed) = state.pods();
        self.metrics
            .depths(state.queue.depths(), state.queue.events());
        self.metrics.cache(state.nodes(), pods, assumed);
        for filter in Filter::ALL {
            self.metrics
                .unschedulable(filter.name(), state.queue.blamed(filter));
        }
    }

    /// The state of a pod now; `None` if it is gone, or another of the same name.
    pub(super) fn current(&self, popped: &Popped) -> Option<Doc> {
        let meta = popped.pod.meta();
        let found = self.lister.get(&meta.key())?;
        (found.meta().uid_str() == meta.uid_str()).then(|| found.doc().clone())
    }
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

//! `Manager`: everything that runs in a controller process, started and stopped in order.
//!
//! Start: the servers for health and metrics; the caches, until they are complete; the tasks that
//! need no leader; then, once this process leads, the controllers. Stop: tasks, controllers,
//! caches, servers, each asked and then waited for, all within one grace period; the Lease is
//! given back only after the controllers have ended, and the event recorder comes last.

mod access;
mod builder;
mod endpoints;
mod group;
mod run;
mod server;

use std::{
    fmt,
    hash::Hash,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use windlass_cache::InformerFactory;
use windlass_client::{Clientset, DynamicClient, RestClient};
use windlass_core::{Env, Key};
use windlass_queue::WorkQueue;

use crate::{
    Controller, EventRecorder, Result,
    controller::BoundController,
    events::EventBroadcaster,
    health::Check,
    metrics::{Metrics, QueueCollector},
    shutdown::Shutdown,
};
pub use access::ALWAYS_ALLOWED_PATHS;
use builder::Settings;
pub use builder::{BuildError, GRACE_PERIOD, ManagerBuilder, RESYNC_PERIOD};
use group::{Task, TaskFn};
pub use run::{RunError, TaskFailure};

/// Runs controllers and other tasks over one client and one set of caches.
///
/// ```no_run
/// # use windlass_runtime::{Action, Context, Controller, Manager, Result};
/// # use windlass_cache::Obj;
/// # use k8s_openapi::api::core::v1::Pod;
/// # async fn reconcile(pod: Obj<Pod>, cx: Context) -> Result<Action> { Ok(Action::done()) }
/// # async fn example() -> Result<()> {
/// let manager = Manager::from_flags("pod-watcher").await?;
/// manager.add(Controller::of::<Pod>(reconcile));
/// manager.run().await?;
/// # Ok(())
/// # }
/// ```
pub struct Manager {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    name: String,
    /// Behind the guard, if there is an election. Its writes are noted.
    client: RestClient,
    /// Not guarded: for controllers that need no leader, for the Lease and for events.
    free_client: RestClient,
    factory: InformerFactory,
    broadcaster: EventBroadcaster,
    env: Env,
    metrics: Metrics,
    cache_metrics: windlass_cache::Metrics,
    queues: Arc<QueueCollector>,
    settings: Mutex<Settings>,
    /// The signal that ends the whole.
    shutdown: Shutdown,
    /// The signals to the two groups, which are stopped one after the other.
    tasks_shutdown: Shutdown,
    leader_shutdown: Shutdown,
    added: Mutex<Added>,
}

/// Adds metrics to a registry.
type Register = Box<dyn Fn(&mut Registry) + Send + Sync>;

/// The controllers and tasks that were added before the start.
#[derive(Default)]
struct Added {
    tasks: Vec<Task>,
    controllers: Vec<BoundController>,
    live: Vec<Check>,
    ready: Vec<Check>,
    metrics: Vec<Register>,
    /// The first thing that was wrong with what was added.
    problem: Option<String>,
    is_started: bool,
}

impl Manager {
    /// Sets up a manager. The name is that of the program, for the Lease, events and requests.
    pub fn builder(name: impl Into<String>) -> ManagerBuilder {
        ManagerBuilder::new(name.into())
    }

    /// The client. Writes pass only while this process leads, if there is an election.
    #[must_use]
    pub fn client(&self) -> &RestClient {
        &self.inner.client
    }

    /// Typed verbs.
    #[must_use]
    pub fn clientset(&self) -> Clientset {
        Clientset::new(self.client().clone())
    }

    /// Verbs of any kind.
    #[must_use]
    pub fn dynamic(&self) -> DynamicClient {
        DynamicClient::new(self.client().clone())
    }

    /// The caches. What is asked for before the run starts with it.
    #[must_use]
    pub fn factory(&self) -> &InformerFactory {
        &self.inner.factory
    }

    /// A recorder in the name of a component.
    #[must_use]
    pub fn recorder(&self, component: &str) -> EventRecorder {
        self.inner.broadcaster.recorder(component)
    }

    /// Time, randomness and ids.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.inner.env
    }

    /// The signal that ends the whole.
    #[must_use]
    pub fn shutdown(&self) -> &Shutdown {
        &self.inner.shutdown
    }

    /// Adds a controller. What is wrong with it comes out of [`run`](Self::run).
    pub fn add(&self, controller: Controller) {
        let mut added = self.inner.added.lock();
        let name = controller.name().to_owned();
        if !self.may_add(&mut added, &name) {
            return;
        }
        if added.controllers.iter().any(|other| other.name() == name) {
            added
                .problem
                .get_or_insert(format!("controller with name {name} already exists"));
            return;
        }
        let needs_leader = controller.needs_leader();
        let supplies = (self.inner).supplies(controller.event_component(), needs_leader);
        match controller.bind(supplies) {
            Ok(bound) => {
                self.add_queue(bound.queue());
                added
                    .tasks
                    .push(controller_task(bound.clone(), needs_leader));
                added.controllers.push(bound);
            }
            Err(error) => drop(
                added
                    .problem
                    .get_or_insert(format!("controller {name}: {error}")),
            ),
        }
    }

    /// Adds a task that runs while this process leads. It gets the signal to stop. A task that
    /// fails ends the whole.
    pub fn add_task<F, Fut>(&self, name: impl Into<String>, task: F)
    where
        F: FnOnce(Shutdown) -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_any(
            name.into(),
            true,
            Box::new(move |shutdown| Box::pin(task(shutdown))),
        );
    }

    /// Adds a task that runs whether or not this process leads.
    pub fn add_task_without_election<F, Fut>(&self, name: impl Into<String>, task: F)
    where
        F: FnOnce(Shutdown) -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_any(
            name.into(),
            false,
            Box::new(move |shutdown| Box::pin(task(shutdown))),
        );
    }

    fn add_any(&self, name: String, needs_leader: bool, run: TaskFn) {
        let mut added = self.inner.added.lock();
        if self.may_add(&mut added, &name) {
            added.tasks.push(Task {
                name,
                needs_leader,
                run,
            });
        }
    }

    fn may_add(&self, added: &mut Added, name: &str) -> bool {
        if added.is_started {
            tracing::error!(name, "not added: the manager has been started");
        }
        !added.is_started
    }

    /// Adds metrics of a controller's own to what the manager tells.
    pub fn add_metrics(&self, register: impl Fn(&mut Registry) + Send + Sync + 'static) {
        self.inner.added.lock().metrics.push(Box::new(register));
    }

    /// Adds a check to `/healthz` and `/livez`.
    pub fn add_live_check(&self, check: Check) {
        self.inner.added.lock().live.push(check);
    }

    /// Adds a check to `/readyz`.
    pub fn add_ready_check(&self, check: Check) {
        self.inner.added.lock().ready.push(check);
    }

    /// Makes a queue part of `/metrics`, under its name. Controllers need not ask for theirs.
    pub fn add_queue<K>(&self, queue: &WorkQueue<K>)
    where
        K: Clone + Eq + Hash + Send + 'static,
    {
        let look = queue.clone();
        let name = queue.name().unwrap_or("");
        self.inner.queues.add(name, move || look.snapshot());
    }

    /// A handle for looking at the manager while it runs.
    #[must_use]
    pub fn handle(&self) -> ManagerHandle {
        ManagerHandle {
            inner: Arc::downgrade(&self.inner),
        }
    }
}

/// Looks at a manager while it runs. It does not keep it.
#[derive(Clone)]
pub struct ManagerHandle {
    inner: Weak<Inner>,
}

impl ManagerHandle {
    /// The text of `/metrics`; empty after the end.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        self.inner
            .upgrade()
            .map_or_else(String::new, |inner| inner.metrics_text())
    }

    /// The story of a key, for each controller that knows it.
    #[must_use]
    pub fn why(&self, key: &Key) -> String {
        self.inner
            .upgrade()
            .map_or_else(String::new, |inner| inner.why(key, None))
    }
}

fn controller_task(controller: BoundController, needs_leader: bool) -> Task {
    let name = controller.name().to_owned();
    let run: TaskFn =
        Box::new(move |shutdown| Box::pin(async move { Ok(controller.run(&shutdown).await?) }));
    Task {
        name,
        needs_leader,
        run,
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("name", &self.inner.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ManagerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ManagerHandle(..)")
    }
}

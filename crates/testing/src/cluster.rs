//! A cluster for one test.

mod builder;
mod objects;
mod report;
mod running;
mod served;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use windlass_client::{
    Clientset, DiscoveryClient, DynamicApi, DynamicClient, RestClient, RestOptions, Transport,
};
use windlass_core::{Env, Gvr, Key};
use windlass_runtime::{Controller, Manager, ManagerBuilder};
use windlass_server::Server;

pub use builder::ClusterBuilder;
pub use running::Running;

use served::Served;

/// How often a condition is looked at.
const POLL_PERIOD: Duration = Duration::from_millis(10);

/// A cluster for one test: an API server in this process, without a port and without a download.
///
/// The server is the real one, in memory. Under a paused clock time passes only while everybody
/// waits, so that a minute takes no time and a test repeats exactly. With
/// `USE_EXISTING_CLUSTER=true` in the environment the same test works on the cluster of the
/// kubeconfig, whose clock nobody pauses.
///
/// What a test needs and does not get ends the test: the methods panic, and say what they saw.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Event};
/// use windlass_cache::Obj;
/// use windlass_core::doc;
/// use windlass_runtime::{Action, Context, Controller, EventType, Result};
/// use windlass_testing::Cluster;
///
/// async fn reconcile(map: Obj<ConfigMap>, cx: Context) -> Result<Action> {
///     cx.event(&map, EventType::Normal, "Seen", "a map was seen");
///     Ok(Action::done())
/// }
/// # let rt = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
/// # rt.unwrap().block_on(async {
/// let cluster = Cluster::start().await;
/// cluster.run(Controller::of::<ConfigMap>(reconcile));
/// cluster.create_doc(&doc!({
///     "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "default" },
/// })).await;
/// cluster.until(async |c| c.list::<Event>("default").await.len() == 1).await;
/// # });
/// ```
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    place: Place,
    env: Env,
    client: RestClient,
    discovery: DiscoveryClient,
    transport: Transport,
    patience: Duration,
    runs: Mutex<Vec<Running>>,
    /// What the condition that is being waited for has looked at.
    looked_at: Mutex<BTreeSet<(Gvr, Key)>>,
}

/// Where the objects are.
enum Place {
    Embedded {
        server: Server,
        served: OnceCell<Served>,
    },
    Existing,
}

impl Cluster {
    /// Starts a cluster with nothing in it but what every cluster has from the start.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Starts a cluster otherwise than usual.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// A client with all rights.
    #[must_use]
    pub fn client(&self) -> &RestClient {
        &self.0.client
    }

    /// Typed verbs with all rights.
    #[must_use]
    pub fn clientset(&self) -> Clientset {
        Clientset::new(self.client().clone())
    }

    /// The verbs of one resource, with all rights.
    #[must_use]
    pub fn resource(&self, resource: Gvr) -> DynamicApi {
        DynamicClient::new(self.client().clone()).resource(resource)
    }

    /// The way to the server, with all rights: to put faults or a recorder in between.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.0.transport.clone()
    }

    /// Time, randomness and ids, as the server has them.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.0.env
    }

    /// The server; none on an existing cluster.
    #[must_use]
    pub fn server(&self) -> Option<&Server> {
        match &self.0.place {
            Place::Embedded { server, .. } => Some(server),
            Place::Existing => None,
        }
    }

    /// Begins a manager on this cluster, which is not limited in its requests.
    pub fn manager(&self, name: &str) -> ManagerBuilder {
        self.manager_on(name, self.transport())
    }

    /// Begins a manager whose requests go through some transport, such as one with faults.
    pub fn manager_on(&self, name: &str, transport: Transport) -> ManagerBuilder {
        let options = RestOptions {
            user_agent: name.to_owned(),
            rate_limit: None,
            ..RestOptions::default()
        };
        Manager::builder(name)
            .transport(transport, options)
            .env(self.env().clone())
    }

    /// Runs a controller until the end of the cluster.
    #[expect(
        clippy::must_use_candidate,
        reason = "it runs whether or not it is held"
    )]
    pub fn run(&self, controller: Controller) -> Running {
        let name = controller.name().to_owned();
        self.run_with(&name, |manager| manager.add(controller))
    }

    /// Runs all that is added to a manager until the end of the cluster.
    ///
    /// # Panics
    /// When the manager cannot be built.
    pub fn run_with(&self, name: &str, add: impl FnOnce(&Manager)) -> Running {
        let manager = self.manager(name).build().expect("a manager is built");
        add(&manager);
        self.run_manager(manager)
    }

    /// Runs a manager until the end of the cluster.
    #[expect(
        clippy::must_use_candidate,
        reason = "it runs whether or not it is held"
    )]
    pub fn run_manager(&self, manager: Manager) -> Running {
        let running = Running::start(manager);
        self.0.runs.lock().push(running.clone());
        running
    }

    /// Lets time pass. Whatever is due meanwhile happens.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until a condition holds, for as long as the patience of this cluster.
    ///
    /// # Panics
    /// When it does not come to hold; the text shows the objects that it looked at, their events,
    /// and what the controllers did about them.
    pub async fn until(&self, condition: impl AsyncFn(&Self) -> bool) {
        self.until_within(self.0.patience, condition).await;
    }

    /// Waits until a condition holds, for at most some time.
    ///
    /// # Panics
    /// When it does not come to hold.
    pub async fn until_within(&self, patience: Duration, condition: impl AsyncFn(&Self) -> bool) {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            self.0.looked_at.lock().clear();
            if condition(self).await {
                return;
            }
            self.check_runs();
            if tokio::time::Instant::now() >= deadline {
                let report = self.report().await;
                panic!("the condition did not hold within {patience:?}\n{report}");
            }
            tokio::time::sleep(POLL_PERIOD).await;
        }
    }

    /// A manager that failed will not make any condition hold.
    fn check_runs(&self) {
        let failure = self.0.runs.lock().iter().find_map(Running::failure);
        if let Some(failure) = failure {
            panic!("a manager has ended: {failure}");
        }
    }

    fn note(&self, resource: &Gvr, key: &Key) {
        let mut looked_at = self.0.looked_at.lock();
        looked_at.insert((resource.clone(), key.clone()));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for run in self.runs.lock().drain(..) {
            run.abort();
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("server", &self.server())
            .finish_non_exhaustive()
    }
}

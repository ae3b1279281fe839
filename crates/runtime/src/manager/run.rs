//! The run of a manager: start in order, wait, stop in order.

use std::{collections::BTreeSet, fmt, net::SocketAddr, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    Inner, Manager,
    access::{ALWAYS_ALLOWED_PATHS, Access},
    builder::{Grace, Settings},
    group::{Group, OwnedTask, Task},
    server::Servers,
};
use crate::{
    Check, LeaderElector,
    controller::{CACHE_SYNC_TIMEOUT, synced},
    health::CheckFailed,
};

/// The least time that caches and servers have to end.
const LEAST_GRACE: Duration = Duration::from_secs(1);

/// A task that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFailure {
    /// The name of the task or controller.
    pub task: String,
    /// The text of the error.
    pub error: String,
}

impl fmt::Display for TaskFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.task, self.error)
    }
}

/// The reason why a manager ended otherwise than by the signal to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Something that was added cannot run.
    #[error("{0}")]
    Added(String),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The caches were not complete in time.
    #[error("failed to wait for caches to sync: {0}")]
    Sync(String),
    /// Tasks have failed.
    #[error("{}", joined(.0))]
    Failed(Vec<TaskFailure>),
    /// The Lease could not be renewed. The process must end: another may lead by now.
    #[error("leader election lost")]
    LeadershipLost,
    /// Not everything ended in time.
    #[error("failed waiting for all runnables to end within grace period of {period:?}: {}{}",
        .running.iter().cloned().collect::<Vec<_>>().join(", "), also(.failures))]
    Grace {
        /// The grace period.
        period: Duration,
        /// The tasks that were still running.
        running: BTreeSet<String>,
        /// The failures before that.
        failures: Vec<TaskFailure>,
    },
}

fn joined(failures: &[TaskFailure]) -> String {
    failures
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

fn also(failures: &[TaskFailure]) -> String {
    if failures.is_empty() {
        String::new()
    } else {
        format!("; {}", joined(failures))
    }
}

/// The result of the controllers, and of whatever else needs a leader.
enum Led {
    /// They were asked to stop, or never started.
    Stopped {
        failures: Vec<TaskFailure>,
        late: BTreeSet<String>,
    },
    Lost,
}

/// The tasks that run.
struct Running {
    servers: Servers,
    tasks: Group,
    led: OwnedTask<Led>,
}

/// Ends at once what a manager has started, when its run is over or dropped: whoever drops the run
/// means a crash.
struct EndOnDrop(Arc<Inner>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let inner = &self.0;
        for shutdown in [
            &inner.shutdown,
            &inner.tasks_shutdown,
            &inner.leader_shutdown,
        ] {
            shutdown.trigger();
        }
        inner.factory.abort();
        inner.broadcaster.abort();
    }
}

impl Manager {
    /// Runs everything until the signal to stop, or until something fails. Dropping the future ends
    /// everything between two steps, as a crash does.
    ///
    /// # Errors
    /// When something fails, or does not end in time. Leadership that is lost is a failure.
    pub async fn run(self) -> Result<(), RunError> {
        self.inner.running().await
    }
}

impl Inner {
    /// Not asynchronous itself, so that what runs a manager is compiled here and not in every
    /// program that has one.
    fn running(self: Arc<Self>) -> BoxFuture<'static, Result<(), RunError>> {
        Box::pin(self.run())
    }

    async fn run(self: Arc<Self>) -> Result<(), RunError> {
        let settings = std::mem::take(&mut *self.settings.lock());
        let tasks = self.take_tasks()?;
        let _end = EndOnDrop(self.clone());
        let Settings {
            grace,
            elector,
            health_address,
            metrics_address,
            always_allowed,
        } = settings;
        let access = self.access(always_allowed);
        let servers = Servers::start(&self, access, health_address, metrics_address).await?;
        self.factory.start();
        let synced = tokio::select! {
            biased;
            () = self.shutdown.requested() => Ok(false),
            synced = self.wait_for_caches() => synced.map(|()| true),
        };
        let is_synced = match synced {
            Ok(is_synced) => is_synced,
            Err(error) => {
                self.stop_rest(servers, deadline(grace)).await;
                return Err(error);
            }
        };
        if !is_synced {
            self.stop_rest(servers, deadline(grace)).await;
            return Ok(());
        }
        let running = self.start(tasks, elector, servers, grace);
        self.supervise(running, grace).await
    }

    /// Decides who may read the pages, by asking the server without leading.
    fn access(&self, always_allowed: Option<Vec<String>>) -> Access {
        let open = always_allowed.unwrap_or_else(|| {
            ALWAYS_ALLOWED_PATHS
                .map(str::to_owned)
                .into_iter()
                .collect()
        });
        Access::new(self.free_client.clone(), open)
    }

    fn take_tasks(&self) -> Result<Vec<Task>, RunError> {
        let mut added = self.added.lock();
        added.is_started = true;
        match added.problem.take() {
            Some(problem) => Err(RunError::Added(problem)),
            None => Ok(std::mem::take(&mut added.tasks)),
        }
    }

    /// Waits until all caches are complete. What the server refuses now it may grant later.
    async fn wait_for_caches(&self) -> Result<(), RunError> {
        let mut refusal = None;
        let all_synced = async {
            for (spec, informer) in self.factory.informers() {
                synced(&informer, &mut refusal).await;
                tracing::info!(resource = %spec.resource.group_resource(), "cache is complete");
            }
        };
        let in_time = timeout(CACHE_SYNC_TIMEOUT, all_synced).await;
        let text = |_| match refusal {
            Some(error) => error.to_string(),
            None => self.unsynced().join(", "),
        };
        in_time.map_err(|late| RunError::Sync(text(late)))
    }

    pub(super) fn unsynced(&self) -> Vec<String> {
        let informers = self.factory.informers().into_iter();
        let behind = informers.filter(|(_, informer)| !informer.has_synced());
        behind
            .map(|(spec, _)| spec.resource.group_resource().to_string())
            .collect()
    }

    /// The check that all caches are complete.
    pub(super) fn caches_check(self: &Arc<Self>) -> Check {
        let inner = Arc::downgrade(self);
        Check::new("informer-sync", move || {
            let behind = inner
                .upgrade()
                .map_or_else(Vec::new, |inner| inner.unsynced());
            if behind.is_empty() {
                return Ok(());
            }
            Err(CheckFailed::new(format!(
                "not synced: {}",
                behind.join(", ")
            )))
        })
    }

    fn start(
        self: &Arc<Self>,
        tasks: Vec<Task>,
        elector: Option<LeaderElector>,
        servers: Servers,
        grace: Grace,
    ) -> Running {
        let (led, free): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|task| task.needs_leader);
        let tasks = Group::start(free, self.tasks_shutdown.clone());
        let led = OwnedTask::spawn(self.clone().lead(led, elector, grace));
        Running {
            servers,
            tasks,
            led,
        }
    }

    /// Runs what needs a leader, once this process leads.
    async fn lead(
        self: Arc<Self>,
        tasks: Vec<Task>,
        elector: Option<LeaderElector>,
        grace: Grace,
    ) -> Led {
        let work = || self.run_led(tasks, grace);
        let Some(elector) = elector else {
            return work().await;
        };
        match elector.run(&self.leader_shutdown, work).await {
            Ok(Some(led)) => led,
            Ok(None) => Led::Stopped {
                failures: Vec::new(),
                late: BTreeSet::new(),
            },
            Err(_) => Led::Lost,
        }
    }

    async fn run_led(&self, tasks: Vec<Task>, grace: Grace) -> Led {
        let mut group = Group::start(tasks, self.leader_shutdown.clone());
        let mut failures = Vec::new();
        tokio::select! {
            biased;
            () = self.leader_shutdown.requested() => {}
            failure = group.failed() => {
                failures.push(failure);
                // The tasks that need no leader are asked first, as always.
                self.shutdown.trigger();
                self.leader_shutdown.requested().await;
            }
        }
        let late = group.stop(deadline(grace), &mut failures).await;
        Led::Stopped { failures, late }
    }

    async fn supervise(
        self: Arc<Self>,
        mut running: Running,
        mut grace: Grace,
    ) -> Result<(), RunError> {
        let (mut failures, mut led) = (Vec::new(), None);
        tokio::select! {
            biased;
            () = self.shutdown.requested() => {}
            failure = running.tasks.failed() => failures.push(failure),
            ended = &mut running.led => led = Some(ended),
        }
        if matches!(led, Some(Ok(Led::Lost))) {
            // Another may lead by now: nothing here may take its time.
            grace = Grace::Within(Duration::ZERO);
        }
        self.shutdown.trigger();
        let until = deadline(grace);
        let mut late = running.tasks.stop(until, &mut failures).await;
        self.leader_shutdown.trigger();
        let led = match led {
            Some(led) => led,
            None => running.led.await,
        };
        let is_lost = match led {
            Ok(Led::Stopped {
                failures: more,
                late: also,
            }) => {
                failures.extend(more);
                late.extend(also);
                false
            }
            Ok(Led::Lost) => true,
            Err(error) => {
                failures.push(TaskFailure {
                    task: "leader".to_owned(),
                    error: error.to_string(),
                });
                false
            }
        };
        self.stop_rest(running.servers, until).await;
        verdict(is_lost, failures, late, grace)
    }

    /// Stops what controllers stand on.
    async fn stop_rest(&self, servers: Servers, until: Option<Instant>) {
        let rest = async {
            self.factory.shutdown().await;
            servers.stop().await;
            self.broadcaster.shut_down().await;
        };
        match until {
            None => rest.await,
            // The caches and servers wait for nobody else, and end in a moment if they end at all.
            Some(until) => drop(timeout_at(until.max(Instant::now() + LEAST_GRACE), rest).await),
        }
    }
}

fn deadline(grace: Grace) -> Option<Instant> {
    match grace {
        Grace::Within(period) => Instant::now().checked_add(period),
        Grace::Forever => None,
    }
}

fn verdict(
    is_lost: bool,
    failures: Vec<TaskFailure>,
    running: BTreeSet<String>,
    grace: Grace,
) -> Result<(), RunError> {
    match grace {
        _ if is_lost => Err(RunError::LeadershipLost),
        Grace::Within(period) if !running.is_empty() && !period.is_zero() => Err(RunError::Grace {
            period,
            running,
            failures,
        }),
        _ if !failures.is_empty() => Err(RunError::Failed(failures)),
        _ => Ok(()),
    }
}

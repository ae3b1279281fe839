//! Tasks that are started and stopped together.

use std::{
    collections::BTreeSet,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    task::{Id, JoinError, JoinHandle, JoinSet},
    time::{Instant, timeout_at},
};

use super::run::TaskFailure;
use crate::{Error, Result, shutdown::Shutdown};

pub(super) type TaskFn =
    Box<dyn FnOnce(Shutdown) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send>;

/// A task that has not started.
pub(super) struct Task {
    pub(super) name: String,
    pub(super) needs_leader: bool,
    pub(super) run: TaskFn,
}

/// A task that runs. Dropping it ends the task.
pub(super) struct OwnedTask<T>(JoinHandle<T>);

impl<T: Send + 'static> OwnedTask<T> {
    pub(super) fn spawn(task: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }
}

impl<T> Future for OwnedTask<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for OwnedTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tasks that run. Dropping it ends them.
pub(super) struct Group {
    tasks: JoinSet<Result<()>>,
    names: Vec<(Id, String)>,
    shutdown: Shutdown,
}

impl Group {
    pub(super) fn start(tasks: Vec<Task>, shutdown: Shutdown) -> Self {
        let (mut running, mut names) = (JoinSet::new(), Vec::new());
        for task in tasks {
            let handle = running.spawn((task.run)(shutdown.clone()));
            names.push((handle.id(), task.name));
        }
        Self {
            tasks: running,
            names,
            shutdown,
        }
    }

    /// Waits for the first task that fails; for ever if none does.
    pub(super) async fn failed(&mut self) -> TaskFailure {
        loop {
            match self.next().await {
                Some(Err(failure)) => return failure,
                Some(Ok(())) => {}
                None => return std::future::pending().await,
            }
        }
    }

    /// Asks the tasks to stop and waits for them, until the deadline if there is one. Those that
    /// have not ended by then are dropped; their names are returned.
    pub(super) async fn stop(
        &mut self,
        deadline: Option<Instant>,
        failures: &mut Vec<TaskFailure>,
    ) -> BTreeSet<String> {
        self.shutdown.trigger();
        let drained = async {
            while let Some(ended) = self.next().await {
                failures.extend(ended.err());
            }
        };
        let is_late = match deadline {
            None => {
                drained.await;
                false
            }
            Some(deadline) => timeout_at(deadline, drained).await.is_err(),
        };
        let late = self.names.drain(..).map(|(_, name)| name);
        let late = if is_late {
            late.collect()
        } else {
            BTreeSet::new()
        };
        self.tasks.shutdown().await;
        late
    }

    async fn next(&mut self) -> Option<Result<(), TaskFailure>> {
        let (id, result) = match self.tasks.join_next_with_id().await? {
            Ok((id, result)) => (id, result),
            Err(error) => (error.id(), Err(Error::msg(error))),
        };
        let at = self.names.iter().position(|(of, _)| *of == id);
        let name = at.map_or_else(String::new, |at| self.names.swap_remove(at).1);
        Some(result.map_err(|error| TaskFailure {
            task: name,
            error: error.to_string(),
        }))
    }
}

//! A manager that runs beside a test.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use windlass_core::Key;
use windlass_runtime::{Manager, ManagerHandle, RunError, Shutdown};

/// A manager that runs beside a test. Dropping this does not stop it; the end of the cluster does.
#[derive(Clone)]
pub struct Running {
    handle: ManagerHandle,
    shutdown: Shutdown,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
    outcome: Arc<Mutex<Option<Result<(), RunError>>>>,
}

impl Running {
    pub(super) fn start(manager: Manager) -> Self {
        let outcome = Arc::new(Mutex::new(None));
        let (handle, shutdown) = (manager.handle(), manager.shutdown().clone());
        let ended = Arc::clone(&outcome);
        let task = tokio::spawn(async move {
            let result = manager.run().await;
            *ended.lock() = Some(result);
        });
        Self {
            handle,
            shutdown,
            task: Arc::new(Mutex::new(Some(task))),
            outcome,
        }
    }

    /// Asks the manager to stop and waits until it has.
    ///
    /// # Panics
    /// When it ended in an error.
    pub async fn stop(&self) {
        self.shutdown.trigger();
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.await.expect("the manager does not panic");
        }
        if let Some(failure) = self.failure() {
            panic!("the manager did not stop in order: {failure}");
        }
    }

    /// Ends the manager and its controllers between two of their steps, as a crash does: nothing is
    /// finished, and the Lease is not given back.
    pub fn abort(&self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }

    /// The metrics of the manager.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.handle.metrics_text()
    }

    /// Why a key was reconciled.
    #[must_use]
    pub fn why(&self, key: &Key) -> String {
        self.handle.why(key)
    }

    /// Why the manager ended, if it failed.
    pub(super) fn failure(&self) -> Option<String> {
        match &*self.outcome.lock() {
            Some(Err(error)) => Some(error.to_string()),
            Some(Ok(())) | None => None,
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("outcome", &*self.outcome.lock())
            .finish_non_exhaustive()
    }
}

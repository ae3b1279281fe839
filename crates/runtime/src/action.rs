//! The result of a successful reconcile.

use std::time::Duration;

/// The next step for a key after a successful reconcile. Its failures are forgotten either way.
///
/// ```
/// # use std::time::Duration;
/// # use windlass_runtime::{Action, Result};
/// fn outcome(is_ready: bool) -> Result<Action> {
///     match is_ready {
///         true => Ok(Action::done()),
///         // Nothing will tell when it is ready, so this looks again.
///         false => Ok(Action::requeue_after(Duration::from_secs(10))),
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "an action is what a reconcile returns"]
pub struct Action {
    requeue_after: Option<Duration>,
    priority: Option<i32>,
}

impl Action {
    /// Nothing more to do until something changes.
    pub fn done() -> Self {
        Self::default()
    }

    /// Looks at the key again after this time, if nothing changes before.
    pub fn requeue_after(delay: Duration) -> Self {
        Self {
            requeue_after: Some(delay),
            priority: None,
        }
    }

    /// Queues the key with another priority than the one it came with.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    pub(crate) fn delay(&self) -> Option<Duration> {
        self.requeue_after
    }

    pub(crate) fn chosen_priority(&self) -> Option<i32> {
        self.priority
    }
}

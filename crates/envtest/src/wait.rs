//! Waiting for real processes, which run on the real clock.

use std::time::{Duration, Instant};

/// How long to rest between two looks at a condition. Short against a start of seconds, long
/// enough not to take a core from the servers that are starting.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A moment by which something has to have happened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    start: Instant,
    limit: Duration,
}

impl Deadline {
    #[expect(
        clippy::disallowed_methods,
        reason = "other processes have no clock but the real one"
    )]
    pub(crate) fn after(limit: Duration) -> Self {
        Self {
            start: Instant::now(),
            limit,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Rests for a moment, or returns `false` when the deadline has passed.
    #[expect(
        clippy::disallowed_methods,
        reason = "a caller looks at its condition in between"
    )]
    pub(crate) fn rest(&self) -> bool {
        if self.elapsed() >= self.limit {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
        true
    }
}

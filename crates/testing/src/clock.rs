//! Time from tokio.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use windlass_core::{Clock, Env, MicroTime, Time};

/// 2026-01-01T00:00:00Z in seconds since the start of 1970.
const START_UNIX: i64 = 1_767_225_600;

/// A clock that follows tokio's, paused or not. The time of day starts at a fixed moment, or off
/// it by some time, for machines whose clocks disagree.
#[derive(Debug)]
pub struct TokioClock {
    start: Instant,
    wall_start: MicroTime,
}

impl TokioClock {
    /// A clock that starts now, at 2026-01-01T00:00:00Z.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            wall_start: Time::from_unix(START_UNIX).into(),
        }
    }

    /// A clock whose time of day is ahead by some time.
    #[must_use]
    pub fn ahead(by: Duration) -> Self {
        let clock = Self::new();
        Self {
            wall_start: clock.wall_start + by,
            ..clock
        }
    }

    /// A clock whose time of day is behind by some time.
    #[must_use]
    pub fn behind(by: Duration) -> Self {
        let clock = Self::new();
        Self {
            wall_start: clock.wall_start - by,
            ..clock
        }
    }

    /// An environment with this clock and randomness that repeats for the same seed.
    #[must_use]
    pub fn env(self, seed: u64) -> Env {
        Env::seeded_with(seed, Arc::new(self))
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn wall(&self) -> MicroTime {
        self.wall_start + self.elapsed()
    }
}

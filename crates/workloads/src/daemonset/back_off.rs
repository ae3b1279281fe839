//! The back-off of the deletion of pods that have failed.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_core::{Doc, Uid};

/// The back-off after the first deletion of a failed pod on a node. Each further one doubles it.
pub const BACK_OFF_MIN: Duration = Duration::from_secs(1);
/// The longest back-off.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(15 * 60);

/// The entries above which those that have expired are removed.
const ENTRIES_BEFORE_CLEANING: usize = 1024;

/// Deletions of failed pods, by DaemonSet, its observed generation, and node.
#[derive(Debug, Default)]
pub(super) struct FailedPods {
    /// Bounded by the failed pods of twice the longest back-off.
    entries: Mutex<HashMap<Failure, Entry>>,
}

/// A place where pods fail.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Failure {
    set: Uid,
    generation: i64,
    node: String,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    delay: Duration,
    since: Instant,
}

impl Entry {
    fn is_expired(&self) -> bool {
        self.since.elapsed() > 2 * BACK_OFF_MAX
    }
}

impl Failure {
    pub(super) fn of(set: &Doc, node: &str) -> Self {
        Self {
            set: set.meta().uid(),
            generation: set.at("/status/observedGeneration").as_i64().unwrap_or(0),
            node: node.to_owned(),
        }
    }
}

impl FailedPods {
    /// Counts a deletion, or returns the back-off that it has to wait for.
    pub(super) fn try_next(&self, failure: Failure) -> Result<(), Duration> {
        let mut entries = self.entries.lock();
        if entries.len() >= ENTRIES_BEFORE_CLEANING {
            entries.retain(|_, entry| !entry.is_expired());
        }
        let known = entries.get(&failure).filter(|it| !it.is_expired());
        let delay = match known {
            Some(entry) if entry.since.elapsed() < entry.delay => return Err(entry.delay),
            Some(entry) => (2 * entry.delay).min(BACK_OFF_MAX),
            None => BACK_OFF_MIN,
        };
        let since = Instant::now();
        entries.insert(failure, Entry { delay, since });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_delay_doubles_up_to_a_limit_and_is_forgotten() {
        let (failed, set) = (FailedPods::default(), doc!({ "metadata": { "uid": "u" } }));
        let next = || failed.try_next(Failure::of(&set, "n"));
        assert_eq!(next(), Ok(()));
        let mut delay = BACK_OFF_MIN;
        for _ in 0..12 {
            assert_eq!(next(), Err(delay));
            tokio::time::advance(delay).await;
            assert_eq!(next(), Ok(()));
            delay = (2 * delay).min(BACK_OFF_MAX);
        }
        assert_eq!(delay, BACK_OFF_MAX);
        assert_eq!(failed.try_next(Failure::of(&set, "other")), Ok(()));
        tokio::time::advance(2 * BACK_OFF_MAX + BACK_OFF_MIN).await;
        assert_eq!(next(), Ok(()));
        assert_eq!(next(), Err(BACK_OFF_MIN));
    }
}

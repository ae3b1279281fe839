//! Rate limiters: the delay of a failed key before it is tried again.

mod bucket;
mod combine;
mod item;

use std::{hash::Hash, time::Duration};

use tokio::time::Instant;

pub use bucket::TokenBucket;
pub use combine::{MaxOf, MaxWait};
pub use item::{ItemExponential, ItemFastSlow};

/// Chooses the delay of a retry.
///
/// A queue calls its limiter inside its own critical section: an implementation is quick and never
/// calls the queue.
///
/// ```
/// # use std::time::Duration;
/// # use windlass_queue::{ItemExponential, MaxOf, TokenBucket, WorkQueue};
/// // Each key waits 100 ms, 200 ms and so on up to a minute; all together retry 5 times a second.
/// let limiter = MaxOf(
///     ItemExponential::new(Duration::from_millis(100), Duration::from_secs(60)),
///     TokenBucket::new(5.0, 20),
/// );
/// let queue: WorkQueue<String> = WorkQueue::rate_limited(limiter);
/// ```
pub trait RateLimiter<K>: Send {
    /// Records a failure of `key` at `now`, and says how long its retry waits.
    fn when(&mut self, key: &K, now: Instant) -> Duration;

    /// Forgets the failures of `key`.
    fn forget(&mut self, key: &K);

    /// The number of failures of `key` since it was last forgotten.
    fn num_requeues(&self, key: &K) -> u32;
}

impl<K> RateLimiter<K> for Box<dyn RateLimiter<K>> {
    fn when(&mut self, key: &K, now: Instant) -> Duration {
        (**self).when(key, now)
    }

    fn forget(&mut self, key: &K) {
        (**self).forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        (**self).num_requeues(key)
    }
}

/// First delay of [`controller_limiter`].
const CONTROLLER_DELAY_BASE: Duration = Duration::from_millis(5);
/// Longest delay of [`controller_limiter`], reached at the 19th failure in a row.
const CONTROLLER_DELAY_MAX: Duration = Duration::from_secs(1000);
/// Retries per second of all keys together in [`controller_limiter`].
const CONTROLLER_QPS: f64 = 10.0;
/// Retries that [`controller_limiter`] lets through at once.
const CONTROLLER_BURST: u32 = 100;

/// The default of upstream's controllers (`DefaultTypedControllerRateLimiter`): each key backs off
/// from 5 ms to 1000 s, and all keys together retry 10 times per second after a burst of 100.
#[must_use]
pub fn controller_limiter<K: Clone + Eq + Hash + Send>() -> MaxOf<ItemExponential<K>, TokenBucket> {
    MaxOf(
        ItemExponential::new(CONTROLLER_DELAY_BASE, CONTROLLER_DELAY_MAX),
        TokenBucket::new(CONTROLLER_QPS, CONTROLLER_BURST),
    )
}

#[cfg(test)]
mod tests;

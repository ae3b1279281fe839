//! Delays by the failures of each key.

use std::{hash::Hash, time::Duration};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::time::Instant;

use super::RateLimiter;

/// Doubles the delay of a key with each of its failures, from a base to a maximum.
#[derive(Debug)]
pub struct ItemExponential<K> {
    failures: Failures<K>,
    delay_base: Duration,
    delay_max: Duration,
}

/// A short delay for the first failures of a key, a long one for all that follow.
#[derive(Debug)]
pub struct ItemFastSlow<K> {
    failures: Failures<K>,
    delay_fast: Duration,
    delay_slow: Duration,
    fast_max: u32,
}

/// Failures per key.
///
/// A caller that never forgets a key would let this grow for ever. So a key whose last failure is
/// longer ago than `ttl`, and which therefore is not being retried any more, starts anew, and such
/// keys are swept out whenever the map has doubled.
#[derive(Debug)]
struct Failures<K> {
    counts: HashMap<K, Failure, RandomState>,
    ttl: Duration,
    /// Size of the map at which it is swept next.
    sweep_at: usize,
}

#[derive(Debug)]
struct Failure {
    count: u32,
    last: Instant,
}

/// A map smaller than this is not worth sweeping.
const SWEEP_AT_MIN: usize = 1024;

/// A failure counts for this many times the longest delay of its limiter.
const DELAYS_REMEMBERED: u32 = 2;

impl<K: Clone + Eq + Hash> ItemExponential<K> {
    /// Delays of `delay_base`, twice, four times, ... that, and at most `delay_max`.
    #[must_use]
    pub fn new(delay_base: Duration, delay_max: Duration) -> Self {
        Self {
            failures: Failures::new(delay_max),
            delay_base,
            delay_max,
        }
    }

    /// Number of keys whose failures are remembered.
    #[must_use]
    pub fn tracked(&self) -> usize {
        self.failures.counts.len()
    }
}

impl<K: Clone + Eq + Hash> ItemFastSlow<K> {
    /// Delays of `delay_fast` for the first `fast_max` failures, then of `delay_slow`.
    #[must_use]
    pub fn new(delay_fast: Duration, delay_slow: Duration, fast_max: u32) -> Self {
        let failures = Failures::new(delay_fast.max(delay_slow));
        Self {
            failures,
            delay_fast,
            delay_slow,
            fast_max,
        }
    }
}

impl<K: Clone + Eq + Hash + Send> RateLimiter<K> for ItemExponential<K> {
    fn when(&mut self, key: &K, now: Instant) -> Duration {
        let doublings = self.failures.record(key, now) - 1;
        let factor = 1_u128.checked_shl(doublings).unwrap_or(u128::MAX);
        let delay_ns = self.delay_base.as_nanos().saturating_mul(factor);
        if delay_ns >= self.delay_max.as_nanos() {
            return self.delay_max;
        }
        u64::try_from(delay_ns).map_or(self.delay_max, Duration::from_nanos)
    }

    fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.failures.count(key)
    }
}

impl<K: Clone + Eq + Hash + Send> RateLimiter<K> for ItemFastSlow<K> {
    fn when(&mut self, key: &K, now: Instant) -> Duration {
        let failures = self.failures.record(key, now);
        if failures <= self.fast_max {
            self.delay_fast
        } else {
            self.delay_slow
        }
    }

    fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.failures.count(key)
    }
}

impl<K: Clone + Eq + Hash> Failures<K> {
    fn new(delay_max: Duration) -> Self {
        Self {
            counts: HashMap::default(),
            ttl: delay_max.saturating_mul(DELAYS_REMEMBERED),
            sweep_at: SWEEP_AT_MIN,
        }
    }

    /// Counts a failure and returns how many there are now.
    fn record(&mut self, key: &K, now: Instant) -> u32 {
        self.sweep(now);
        let Some(failure) = self.counts.get_mut(key) else {
            self.counts.insert(
                key.clone(),
                Failure {
                    count: 1,
                    last: now,
                },
            );
            return 1;
        };
        let is_forgotten = now.saturating_duration_since(failure.last) > self.ttl;
        failure.count = if is_forgotten {
            1
        } else {
            failure.count.saturating_add(1)
        };
        failure.last = now;
        failure.count
    }

    fn sweep(&mut self, now: Instant) {
        if self.counts.len() < self.sweep_at {
            return;
        }
        let ttl = self.ttl;
        self.counts
            .retain(|_, failure| now.saturating_duration_since(failure.last) <= ttl);
        self.sweep_at = (self.counts.len() * 2).max(SWEEP_AT_MIN);
    }

    fn forget(&mut self, key: &K) {
        if !self.counts.is_empty() {
            self.counts.remove(key);
        }
    }

    fn count(&self, key: &K) -> u32 {
        self.counts.get(key).map_or(0, |failure| failure.count)
    }
}

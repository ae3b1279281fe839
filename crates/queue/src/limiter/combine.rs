//! Limiters made of limiters.

use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;

/// The longer delay of two limiters, both of which are charged. Nests for more than two.
#[derive(Debug)]
pub struct MaxOf<A, B>(
    /// One limiter.
    pub A,
    /// The other one.
    pub B,
);

impl<K, A: RateLimiter<K>, B: RateLimiter<K>> RateLimiter<K> for MaxOf<A, B> {
    fn when(&mut self, key: &K, now: Instant) -> Duration {
        self.0.when(key, now).max(self.1.when(key, now))
    }

    fn forget(&mut self, key: &K) {
        self.0.forget(key);
        self.1.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.0.num_requeues(key).max(self.1.num_requeues(key))
    }
}

/// A limiter whose delays are cut to a maximum.
#[derive(Debug)]
pub struct MaxWait<L> {
    limiter: L,
    wait_max: Duration,
}

impl<L> MaxWait<L> {
    /// Cuts the delays of `limiter` to `wait_max`.
    pub fn new(limiter: L, wait_max: Duration) -> Self {
        Self { limiter, wait_max }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for MaxWait<L> {
    fn when(&mut self, key: &K, now: Instant) -> Duration {
        self.limiter.when(key, now).min(self.wait_max)
    }

    fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.limiter.num_requeues(key)
    }
}

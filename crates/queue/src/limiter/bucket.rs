//! One rate for all keys together.

use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;

/// Lets `burst` retries through at once and `qps` per second after that, whatever their keys.
///
/// A retry that finds no token reserves a future one, so that a crowd of failures is spread out
/// instead of retrying together.
#[derive(Debug)]
pub struct TokenBucket {
    qps: f64,
    burst: f64,
    /// Tokens at `refilled_at`; negative when future tokens are reserved.
    tokens: f64,
    refilled_at: Option<Instant>,
}

impl TokenBucket {
    /// A full bucket. A rate that is not positive never refills.
    #[must_use]
    pub fn new(qps: f64, burst: u32) -> Self {
        let qps = if qps > 0.0 { qps } else { 0.0 };
        Self {
            qps,
            burst: f64::from(burst),
            tokens: f64::from(burst),
            refilled_at: None,
        }
    }

    /// Takes a token and says how long to wait until it exists.
    pub fn reserve(&mut self, now: Instant) -> Duration {
        if let Some(last) = self.refilled_at {
            let elapsed = now.saturating_duration_since(last).as_secs_f64();
            self.tokens = (self.tokens + elapsed * self.qps).min(self.burst);
        }
        self.refilled_at = self.refilled_at.max(Some(now));
        self.tokens -= 1.0;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-self.tokens / self.qps).unwrap_or(Duration::MAX)
    }
}

impl<K> RateLimiter<K> for TokenBucket {
    fn when(&mut self, _key: &K, now: Instant) -> Duration {
        self.reserve(now)
    }

    fn forget(&mut self, _key: &K) {}

    fn num_requeues(&self, _key: &K) -> u32 {
        0
    }
}

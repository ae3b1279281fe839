//! A limiter that remembers its last verdict, for the journal.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_core::Key;
use windlass_queue::RateLimiter;

/// The last delay that was chosen, and for whom.
pub(super) type Verdict = Arc<Mutex<Option<(Key, Duration)>>>;

pub(super) struct Noted {
    limiter: Box<dyn RateLimiter<Key>>,
    verdict: Verdict,
}

impl Noted {
    pub(super) fn new(limiter: Box<dyn RateLimiter<Key>>) -> (Self, Verdict) {
        let verdict = Verdict::default();
        (
            Self {
                limiter,
                verdict: verdict.clone(),
            },
            verdict,
        )
    }
}

impl RateLimiter<Key> for Noted {
    fn when(&mut self, key: &Key, now: Instant) -> Duration {
        let delay = self.limiter.when(key, now);
        *self.verdict.lock() = Some((key.clone(), delay));
        delay
    }

    fn forget(&mut self, key: &Key) {
        self.limiter.forget(key);
    }

    fn num_requeues(&self, key: &Key) -> u32 {
        self.limiter.num_requeues(key)
    }
}

//! Options of a queue.

use std::{fmt, hash::Hash, sync::Arc};

use foldhash::fast::RandomState;
use tokio::{sync::Notify, time::Instant};

use super::{Inner, Shared, WorkQueue};
use crate::{
    inbox::Inbox,
    limiter::{RateLimiter, controller_limiter},
    metrics::Metrics,
    parking::Parking,
    state::State,
    sync::{AtomicUsize, Mutex},
};

/// Builds a [`WorkQueue`].
#[must_use]
pub struct Builder<K> {
    name: Option<String>,
    limiter: Box<dyn RateLimiter<K>>,
}

impl<K: Clone + Eq + Hash + Send + 'static> Builder<K> {
    pub(super) fn new() -> Self {
        Self {
            name: None,
            limiter: Box::new(controller_limiter()),
        }
    }

    /// Names the queue, which turns its metrics on. Counting reads the clock at each step, so a
    /// queue without a name is faster.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Replaces the default limiter, [`controller_limiter`].
    pub fn limiter(mut self, limiter: impl RateLimiter<K> + 'static) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Makes the queue.
    #[must_use]
    pub fn build(self) -> WorkQueue<K> {
        let metrics = self.name.is_some().then(|| Box::new(Metrics::new()));
        let shared = Shared {
            hasher: RandomState::default(),
            epoch: Instant::now(),
            is_timed: self.name.is_some(),
            name: self.name,
            last_thread: AtomicUsize::new(0),
            steps: AtomicUsize::new(0),
            fed_at: AtomicUsize::new(0),
            inbox: Inbox::new(),
            inner: Mutex::new(Inner {
                state: State::new(metrics),
                batch: Vec::new(),
                is_awaited: false,
                parking: Parking::default(),
                limiter: self.limiter,
            }),
            drained: Notify::new(),
        };
        WorkQueue {
            shared: Arc::new(shared),
        }
    }
}

impl<K> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

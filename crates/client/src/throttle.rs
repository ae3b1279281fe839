//! Fewer requests than the caller would like.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// Waits up to this long are not worth a word.
const LONG_WAIT: Duration = Duration::from_millis(50);

/// Longer waits are logged at info level, once in an interval.
const VERY_LONG_WAIT: Duration = Duration::from_secs(1);
const VERY_LONG_WAIT_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The rate limit of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Requests per second in the long run.
    pub qps: f64,
    /// Requests at once.
    pub burst: u32,
}

impl RateLimit {
    /// The default of a manager of controllers.
    pub const MANAGER: Self = Self {
        qps: 20.0,
        burst: 30,
    };
}

/// A token bucket. It starts full.
#[derive(Debug)]
pub(crate) struct Throttle {
    limit: RateLimit,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Below zero while requests wait for tokens they have reserved.
    tokens: f64,
    filled: Instant,
    /// The time of the last log line about a very long wait.
    logged: Option<Instant>,
}

/// Gives a reserved token back if the request is given up while it waits.
struct Reserved<'a>(Option<&'a Throttle>);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(throttle) = self.0 {
            throttle.state.lock().tokens += 1.0;
        }
    }
}

impl Throttle {
    pub(crate) fn new(limit: RateLimit) -> Self {
        let state = State {
            tokens: f64::from(limit.burst),
            filled: Instant::now(),
            logged: None,
        };
        Self {
            limit,
            state: Mutex::new(state),
        }
    }

    /// Waits for a token; how long that took.
    pub(crate) async fn wait(&self) -> Duration {
        let delay = self.reserve();
        if delay.is_zero() {
            return delay;
        }
        let mut reserved = Reserved(Some(self));
        let start = Instant::now();
        sleep(delay).await;
        reserved.0 = None;
        start.elapsed()
    }

    fn reserve(&self) -> Duration {
        let RateLimit { qps, burst } = self.limit;
        let mut state = self.state.lock();
        let now = Instant::now();
        let fresh = (now - state.filled).as_secs_f64() * qps;
        state.tokens = (state.tokens + fresh).min(f64::from(burst)) - 1.0;
        state.filled = now;
        let missing = (-state.tokens).max(0.0);
        Duration::try_from_secs_f64(missing / qps).unwrap_or(Duration::MAX)
    }

    /// Says that a request had to wait, in the words of client-go.
    pub(crate) fn report(&self, delay: Duration, reason: &str, verb: &str, url: &str) {
        const MESSAGE: &str = "Waited before sending request";
        if delay <= LONG_WAIT {
            return;
        }
        tracing::debug!(?delay, reason, verb, URL = url, "{MESSAGE}");
        if delay > VERY_LONG_WAIT && self.may_log() {
            tracing::info!(?delay, reason, verb, URL = url, "{MESSAGE}");
        }
    }

    fn may_log(&self) -> bool {
        let now = Instant::now();
        let mut state = self.state.lock();
        let is_due = state
            .logged
            .is_none_or(|at| now - at >= VERY_LONG_WAIT_LOG_INTERVAL);
        if is_due {
            state.logged = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_at_once_and_the_rest_at_the_rate() {
        let throttle = Throttle::new(RateLimit {
            qps: 10.0,
            burst: 3,
        });
        let mut waits = Vec::new();
        for _ in 0..5 {
            waits.push(throttle.wait().await.as_millis());
        }
        assert_eq!(waits, [0, 0, 0, 100, 100]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_given_up_while_it_waits_costs_nothing() {
        let throttle = Throttle::new(RateLimit { qps: 1.0, burst: 1 });
        throttle.wait().await;
        tokio::time::timeout(Duration::from_millis(1), throttle.wait())
            .await
            .unwrap_err();
        let start = Instant::now();
        throttle.wait().await;
        assert_eq!(start.elapsed().as_millis(), 999);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_fills_no_more_than_the_burst() {
        let throttle = Throttle::new(RateLimit {
            qps: 100.0,
            burst: 2,
        });
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(throttle.wait().await, Duration::ZERO);
        assert_eq!(throttle.wait().await, Duration::ZERO);
        assert!(throttle.wait().await > Duration::ZERO);
    }
}

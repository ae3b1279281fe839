//! The back-off of a reflector.

use std::time::Duration;

use tokio::time::Instant;
use windlass_core::Env;

/// Upstream's constants, see `NewReflectorWithOptions` in client-go's tools/cache/reflector.go.
const INITIAL: Duration = Duration::from_millis(800);
const MAX: Duration = Duration::from_secs(30);
const FACTOR: u32 = 2;
const JITTER: f64 = 1.0;
const RESET_AFTER: Duration = Duration::from_secs(120);

/// Growing delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffPolicy {
    /// The first delay.
    pub initial: Duration,
    /// The longest delay.
    pub max: Duration,
    /// By what each delay exceeds the one before.
    pub factor: u32,
    /// The random share, of the delay itself, that is added to it. Zero adds nothing.
    pub jitter: f64,
    /// After this long without a failure the delays start anew.
    pub reset_after: Duration,
}

impl Default for BackoffPolicy {
    fn default() -> Self {
        let (initial, max, factor) = (INITIAL, MAX, FACTOR);
        Self {
            initial,
            max,
            factor,
            jitter: JITTER,
            reset_after: RESET_AFTER,
        }
    }
}

/// The delays of one reflector. All its failures share them.
#[derive(Debug)]
pub(crate) struct Backoff {
    policy: BackoffPolicy,
    next: Duration,
    last_failure: Option<Instant>,
}

impl Backoff {
    pub(crate) fn new(policy: BackoffPolicy) -> Self {
        Self {
            policy,
            next: policy.initial,
            last_failure: None,
        }
    }

    /// The delay after a failure at this moment.
    ///
    /// The delays start anew after a time without failures. Upstream measures that time from when
    /// the series began, so that even a server that never answers is asked as often as at first
    /// every two minutes.
    pub(crate) fn delay(&mut self, now: Instant, env: &Env) -> Duration {
        let is_healthy = |last: Instant| now.duration_since(last) > self.policy.reset_after;
        if self.last_failure.is_none_or(is_healthy) {
            self.next = self.policy.initial;
        }
        let delay = self.next;
        self.next = delay
            .saturating_mul(self.policy.factor)
            .min(self.policy.max);
        let delay = if self.policy.jitter > 0.0 {
            env.jitter(delay, self.policy.jitter)
        } else {
            delay
        };
        self.last_failure = Some(now + delay);
        delay
    }
}

/// For how long a row of internal errors of the server is answered by watching again at once.
#[derive(Debug)]
pub(crate) struct RetryWindow {
    window: Duration,
    /// The first and the last error of the row.
    row: Option<(Instant, Instant)>,
}

/// After this long without an internal error a new row begins.
const ROW_ENDS_AFTER: Duration = Duration::from_secs(60);

impl RetryWindow {
    pub(crate) fn new(window: Duration) -> Self {
        Self { window, row: None }
    }

    /// Notes an internal error; says whether to try again at once.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        if self.window.is_zero() {
            return false;
        }
        let row = self
            .row
            .take()
            .filter(|(_, last)| now.duration_since(*last) < ROW_ENDS_AFTER);
        let first = row.map_or(now, |(first, _)| first);
        let is_inside = now.duration_since(first) <= self.window;
        self.row = is_inside.then_some((first, now));
        is_inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn policy() -> BackoffPolicy {
        let (initial, max) = (seconds(1), seconds(10));
        BackoffPolicy {
            initial,
            max,
            jitter: 0.0,
            ..BackoffPolicy::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn delays_double_up_to_the_cap_and_start_anew_after_a_healthy_time() {
        let (env, mut backoff) = (Env::seeded(1), Backoff::new(policy()));
        let mut now = Instant::now();
        for expected in [1, 2, 4, 8, 10, 10, 10] {
            let delay = backoff.delay(now, &env);
            assert_eq!(delay, seconds(expected));
            now += delay;
        }
        assert_eq!(backoff.delay(now + seconds(121), &env), seconds(1));
    }

    #[tokio::test(start_paused = true)]
    async fn uninterrupted_failure_never_starts_anew() {
        let (env, mut backoff) = (Env::seeded(1), Backoff::new(policy()));
        let mut now = Instant::now();
        for _ in 0..100 {
            now += backoff.delay(now, &env);
        }
        assert_eq!(backoff.delay(now, &env), seconds(10));
    }

    #[tokio::test(start_paused = true)]
    async fn jitter_at_most_doubles_a_delay() {
        let (env, mut backoff) = (Env::seeded(1), Backoff::new(BackoffPolicy::default()));
        let delay = backoff.delay(Instant::now(), &env);
        assert!((INITIAL..2 * INITIAL).contains(&delay), "{delay:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn internal_errors_are_retried_inside_the_window_only() {
        let start = Instant::now();
        assert!(!RetryWindow::new(Duration::ZERO).allows(start));

        let mut window = RetryWindow::new(seconds(1));
        assert!(window.allows(start));
        assert!(window.allows(start + seconds(1)));
        assert!(!window.allows(start + seconds(2)));
        // The row is over; the next error begins another.
        assert!(window.allows(start + seconds(3)));
        // So does an error after a minute of quiet.
        assert!(window.allows(start + seconds(63)));
        assert!(window.allows(start + seconds(64)));
        assert!(!window.allows(start + seconds(65)));
    }
}

//! Resync: periodic updates of all objects to handlers.

use std::time::Duration;

/// The shortest period a handler may ask for.
pub const RESYNC_MIN: Duration = Duration::from_secs(1);

/// The periods of an informer, by upstream's arithmetic: the informer looks whether anyone is due
/// once per `check`, which is the shortest period that was asked for before it started. An
/// informer made with period zero never resyncs.
#[derive(Debug)]
pub(crate) struct ResyncPeriods {
    default: Duration,
    check: Duration,
}

impl ResyncPeriods {
    pub(crate) fn new(default: Duration) -> Self {
        Self {
            default,
            check: default,
        }
    }

    pub(crate) fn check(&self) -> Duration {
        self.check
    }

    /// Registers the resync period that a handler asks for, `None` for the default. Returns the
    /// effective period.
    pub(crate) fn request(&mut self, wish: Option<Duration>, is_started: bool) -> Duration {
        let mut period = wish.unwrap_or(self.default);
        if !period.is_zero() && period < RESYNC_MIN {
            tracing::warn!(?period, min = ?RESYNC_MIN, "resync period raised");
            period = RESYNC_MIN;
        }
        if !period.is_zero() && period < self.check {
            if is_started {
                tracing::warn!(?period, check = ?self.check, "the informer runs: resync period raised");
                period = self.check;
            } else {
                self.check = period;
            }
        }
        period
    }

    /// The effective resync period of a handler that asks for `period`; zero for never.
    pub(crate) fn effective(&self, period: Duration) -> Duration {
        if period.is_zero() || self.check.is_zero() {
            Duration::ZERO
        } else {
            period.max(self.check)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_shortest_period_before_the_start_becomes_the_check_period() {
        let mut periods = ResyncPeriods::new(seconds(12 * 3600));
        let mut taken = Vec::new();
        for (wish, check) in [(0, 12 * 3600), (60, 60), (55, 55), (5, 5)] {
            taken.push(periods.request(Some(seconds(wish)), false));
            assert_eq!(periods.check(), seconds(check));
        }
        let effective: Vec<_> = taken
            .iter()
            .map(|period| periods.effective(*period))
            .collect();
        assert_eq!(
            effective,
            [seconds(0), seconds(60), seconds(55), seconds(5)]
        );
    }

    #[test]
    fn a_shorter_period_after_the_start_is_raised_to_the_check_period() {
        let mut periods = ResyncPeriods::new(seconds(30));
        assert_eq!(periods.request(Some(seconds(5)), true), seconds(30));
        assert_eq!(periods.check(), seconds(30));
    }

    #[test]
    fn periods_below_a_second_are_raised() {
        let mut periods = ResyncPeriods::new(seconds(30));
        assert_eq!(
            periods.request(Some(Duration::from_millis(1)), false),
            RESYNC_MIN
        );
    }

    #[test]
    fn an_informer_without_a_period_never_resyncs() {
        let mut periods = ResyncPeriods::new(Duration::ZERO);
        let period = periods.request(Some(seconds(5)), false);
        assert_eq!(periods.effective(period), Duration::ZERO);
    }
}

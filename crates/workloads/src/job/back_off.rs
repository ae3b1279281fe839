//! Back-off of pod creation: how long a Job waits after a failure before it tries again.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use windlass_core::{Key, MicroTime, Time};

use super::pods::JobPod;

/// The back-off after the first failure. Each further one doubles it.
pub const BACK_OFF_MIN: Duration = Duration::from_secs(10);
/// The longest back-off.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(10 * 60);

/// The failures of a Job since its last success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BackOff {
    failures: usize,
    last: Option<Time>,
}

impl BackOff {
    /// The failures of one index: those before its newest failed pod, and that one.
    pub(super) fn of_index(last: &JobPod) -> Self {
        let (counted, ignored) = last.index_failures();
        Self {
            failures: counted + ignored + 1,
            last: Some(last.finished_at()),
        }
    }

    /// The record with pods that ended since. Only failures after the last success count.
    fn with(self, succeeded: &[&JobPod], failed: &[&JobPod]) -> Self {
        let success = succeeded.iter().map(|pod| pod.finished_at()).max();
        let failures = failed.iter().map(|pod| pod.finished_at());
        let since: Vec<Time> = failures
            .filter(|at| success.is_none_or(|success| *at > success))
            .collect();
        match (success, since.iter().max()) {
            (None, None) => self,
            (None, Some(last)) => Self {
                failures: self.failures + since.len(),
                last: Some(*last),
            },
            (Some(_), last) => Self {
                failures: since.len(),
                last: last.copied(),
            },
        }
    }

    /// The wait before the next pod; zero for none.
    pub(super) fn remaining(self, now: MicroTime) -> Duration {
        let (Some(last), Some(doublings)) = (self.last, self.failures.checked_sub(1)) else {
            return Duration::ZERO;
        };
        let factor = u32::try_from(doublings).unwrap_or(u32::MAX).min(16);
        let delay = BACK_OFF_MIN.saturating_mul(1 << factor).min(BACK_OFF_MAX);
        (MicroTime::from(last) + delay).since(now)
    }
}

/// The records of all Jobs, in memory only: a process that starts anew does not wait. Written by
/// syncs; bounded by the Jobs that have not finished.
#[derive(Debug, Default)]
pub(super) struct BackOffStore(Mutex<HashMap<Key, BackOff>>);

impl BackOffStore {
    /// The record of a Job with pods that ended since. It is not stored yet: what is not written to
    /// the status would be counted again.
    pub(super) fn next(&self, key: &Key, succeeded: &[&JobPod], failed: &[&JobPod]) -> BackOff {
        let known = self.0.lock().get(key).copied().unwrap_or_default();
        known.with(succeeded, failed)
    }

    pub(super) fn store(&self, key: &Key, record: BackOff) {
        let mut records = self.0.lock();
        if record == BackOff::default() {
            records.remove(key);
        } else {
            records.insert(key.clone(), record);
        }
    }

    pub(super) fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use windlass_cache::Obj;
    use windlass_core::doc;

    use super::*;

    fn pod(ended: i64) -> JobPod {
        let ended = Time::from_unix(ended).to_string();
        let state = doc!({ "terminated": { "finishedAt": ended } });
        JobPod::new(
            Obj::new(doc!({
                "metadata": { "name": "p", "uid": "u" },
                "status": { "containerStatuses": [{ "name": "c", "state": state }] }
            }))
            .unwrap(),
        )
    }

    fn waits(record: BackOff, at: i64) -> u64 {
        let now = MicroTime::from(Time::from_unix(at));
        record.remaining(now).as_secs()
    }

    #[test]
    fn delays_double_from_ten_seconds_to_ten_minutes() {
        let mut record = BackOff::default();
        assert_eq!(waits(record, 100), 0);
        let pod = pod(100);
        for delay in [10, 20, 40, 80, 160, 320, 600, 600] {
            record = record.with(&[], &[&pod]);
            assert_eq!(waits(record, 100), delay);
            assert_eq!(waits(record, 103), delay - 3);
            assert_eq!(waits(record, 2000), 0);
        }
    }

    #[test]
    fn a_success_starts_the_count_anew() {
        let (early, late) = (pod(100), pod(200));
        let failed = BackOff::default().with(&[], &[&early, &early]);
        assert_eq!(failed.failures, 2);
        assert_eq!(failed.with(&[&late], &[]), BackOff::default());
        assert_eq!(failed.with(&[&late], &[&early]), BackOff::default());
        let after = failed.with(&[&early], &[&early, &late]);
        assert_eq!(
            (after.failures, after.last),
            (1, Some(Time::from_unix(200)))
        );
    }
}

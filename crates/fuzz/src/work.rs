//! Work limits: the CPU time of one input against a bound that is linear in its length.
//!
//! The bound is counted in units of a task that this machine and this build have just done, so
//! that a slow machine or an unoptimized build does not fail.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use windlass_core::Doc;

/// Bytes of the document whose parsing is the unit.
const UNIT_BYTES: usize = 1 << 10;
/// Times that the unit is measured. The median counts.
const UNIT_SAMPLES: usize = 9;

/// The CPU time that parsing [`UNIT_BYTES`] bytes of JSON takes here.
static UNIT: LazyLock<Duration> = LazyLock::new(|| {
    let item = r#"{"name":"a","value":[1,2.5,true,null]},"#;
    let text = format!("[{}0]", item.repeat(UNIT_BYTES / item.len()));
    let mut samples: Vec<Duration> = (0..UNIT_SAMPLES)
        .map(|_| {
            let before = cpu();
            assert!(Doc::parse(text.as_bytes()).is_ok());
            cpu().saturating_sub(before)
        })
        .collect();
    samples.sort_unstable();
    samples[UNIT_SAMPLES / 2].max(Duration::from_micros(2))
});

/// The largest share of its limit that an input has used, in thousandths.
static PEAK_PERMILLE: AtomicU64 = AtomicU64::new(0);

/// A bound of CPU time, in units of parsing one KiB of JSON.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Units for an input of no bytes.
    pub base: u32,
    /// Units for each KiB of the input that was begun.
    pub per_kib: u32,
}

/// For functions of bytes.
pub const PURE: Limit = Limit {
    base: 4_000,
    per_kib: 1_000,
};

/// For inputs that become requests to a server.
pub const SERVED: Limit = Limit {
    base: 50_000,
    per_kib: 5_000,
};

/// The CPU time that this thread has used.
#[must_use]
pub fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

/// Runs a task for an input of so many bytes.
///
/// # Panics
/// When this thread uses more CPU time than the limit allows.
pub fn bounded<T>(limit: Limit, bytes: usize, task: impl FnOnce() -> T) -> T {
    let unit = *UNIT;
    let before = cpu();
    let result = task();
    let used = cpu().saturating_sub(before);
    let kib = u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX);
    let units = limit.base.saturating_add(limit.per_kib.saturating_mul(kib));
    let allowed = unit.saturating_mul(units);
    let share = used.as_nanos() * 1_000 / allowed.as_nanos().max(1);
    let share = u64::try_from(share).unwrap_or(u64::MAX);
    PEAK_PERMILLE.fetch_max(share, Ordering::Relaxed);
    assert!(
        used <= allowed,
        "{bytes} bytes took {used:?} of CPU time, more than {allowed:?} ({units} units of {unit:?})"
    );
    result
}

/// The largest share of its limit that an input of this process has used, in thousandths.
#[must_use]
pub fn peak_permille() -> u64 {
    PEAK_PERMILLE.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_above_the_limit_panics_and_work_below_it_does_not() {
        let limit = Limit {
            base: 20,
            per_kib: 0,
        };
        let unit = *UNIT;
        let spin = |units: u32| {
            let before = cpu();
            while cpu().saturating_sub(before) < unit.saturating_mul(units) {}
        };
        bounded(limit, 0, || spin(1));
        let outcome = std::panic::catch_unwind(|| bounded(limit, 0, || spin(40)));
        assert!(outcome.is_err());
    }
}

//! What a process has used so far: memory and CPU time, as the kernel accounts for them.

use std::time::Duration;

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};

/// The resident memory of this process, in bytes.
pub fn rss_bytes() -> anyhow::Result<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").context("reading /proc/self/statm")?;
    let pages = text
        .split_ascii_whitespace()
        .nth(1)
        .context("/proc/self/statm has no second field")?;
    let pages: usize = pages.parse().context("/proc/self/statm")?;
    Ok(pages * rustix::param::page_size())
}

/// Makes the kernel forget the peak of resident memory so far.
pub fn forget_peak() -> anyhow::Result<()> {
    std::fs::write("/proc/self/clear_refs", "5").context("writing /proc/self/clear_refs")
}

/// The most resident memory that this process has had, or since the peak was forgotten, in bytes.
pub fn peak_rss_bytes() -> anyhow::Result<usize> {
    let text = std::fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.trim().strip_suffix(" kB"));
    let kilobytes: usize = peak
        .context("/proc/self/status has no VmHWM")?
        .parse()
        .context("VmHWM")?;
    Ok(kilobytes * 1024)
}

/// The user and system time that this process has used.
#[must_use]
pub fn cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// The time on the wall, from an arbitrary start.
#[must_use]
pub fn wall() -> Duration {
    read(ClockId::Monotonic)
}

/// The CPU time of one call in nanoseconds: the best of several batches, because whatever
/// disturbs a batch can only make it longer.
pub fn ns_per_call(calls: u32, mut call: impl FnMut()) -> f64 {
    const BATCHES: u32 = 9;
    let batch = |call: &mut dyn FnMut()| {
        let before = cpu();
        (0..calls).for_each(|_| call());
        (cpu() - before).as_secs_f64() * 1e9 / f64::from(calls)
    };
    (0..BATCHES)
        .map(|_| batch(&mut call))
        .fold(f64::INFINITY, f64::min)
}

fn read(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::try_from(now).expect("invariant: these clocks start at zero")
}

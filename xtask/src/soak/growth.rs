//! The growth of figures over time, and how much of it is tolerated.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use anyhow::ensure;

use super::Sample;

/// How much a figure may grow: by a share of what it was, and by this much in any case. Up to the
/// limit of a cache that forgets its oldest entries it may grow freely.
pub(super) struct Tolerance {
    pub(super) name: &'static str,
    share: f64,
    pub(super) absolute: f64,
    limit: f64,
}

/// Everything that has a tolerance of its own.
pub(super) const TOLERANCES: [Tolerance; 7] = [
    // The watch histories of the rarer kinds fill up for five minutes.
    tolerance("memory_mb", 0.10, 8.0),
    tolerance("descriptors", 0.0, 8.0),
    tolerance("threads", 0.0, 4.0),
    tolerance("tasks", 0.10, 32.0),
    tolerance("objects", 0.25, 100.0),
    // The table file grows in steps and does not shrink while the server runs.
    tolerance("store_mb", 0.25, 16.0),
    // Each of fewer than 20 controllers remembers 1,024 keys.
    Tolerance {
        limit: 20.0 * 1024.0,
        ..tolerance("entries_journal", 0.25, 256.0)
    },
];

/// Caches count entries: `entries_NAME`.
const OF_CACHE: Tolerance = tolerance("entries", 0.25, 256.0);

const fn tolerance(name: &'static str, share: f64, absolute: f64) -> Tolerance {
    Tolerance {
        name,
        share,
        absolute,
        limit: 0.0,
    }
}

/// The growth of one figure.
#[derive(Debug)]
pub(super) struct Growth {
    pub(super) name: String,
    /// The median of the first third, and of the last.
    pub(super) first: f64,
    pub(super) last: f64,
    allowed: f64,
}

impl Growth {
    /// Returns true if the figure grew by no more than it may.
    pub(super) fn is_tolerated(&self) -> bool {
        self.last - self.first <= self.allowed
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_tolerated() { "" } else { "  GREW" };
        write!(
            f,
            "{:<40} {:>12.1} -> {:>12.1}  (may grow by {:.1}){verdict}",
            self.name, self.first, self.last, self.allowed
        )
    }
}

/// The growth of every figure that has a tolerance, from the end of the warm-up on.
pub(super) fn after(samples: &[Sample], warm_up: Duration) -> anyhow::Result<Vec<Growth>> {
    let counted: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.at >= warm_up)
        .collect();
    ensure!(
        counted.len() >= 6,
        "{} samples after the warm-up are too few to compare",
        counted.len()
    );
    let third = counted.len() / 3;
    let (first, last) = (&counted[..third], &counted[counted.len() - third..]);
    let names: BTreeSet<&String> = counted
        .iter()
        .flat_map(|sample| sample.numbers.keys())
        .collect();
    let growth = |name: &String| {
        let tolerance = TOLERANCES.iter().find(|tolerance| tolerance.name == name);
        let is_cache = name.starts_with("entries_");
        let tolerance = tolerance.or(is_cache.then_some(&OF_CACHE))?;
        let (first, last) = (median(first, name), median(last, name));
        Some(Growth {
            name: name.clone(),
            first,
            last,
            allowed: (first * tolerance.share)
                .max(tolerance.absolute)
                .max(tolerance.limit - first),
        })
    };
    Ok(names.into_iter().filter_map(growth).collect())
}

/// The middle value of a figure; where it is missing it counts as zero.
fn median(samples: &[&Sample], name: &str) -> f64 {
    let mut values: Vec<f64> = samples
        .iter()
        .map(|sample| sample.numbers.get(name).copied().unwrap_or(0.0))
        .collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(name: &str, value: impl Fn(u64) -> f64) -> Vec<Sample> {
        let sample = |second| Sample {
            at: Duration::from_secs(second),
            numbers: [(name.to_owned(), value(second))].into(),
        };
        (0..300).step_by(5).map(sample).collect()
    }

    fn is_tolerated(name: &str, value: impl Fn(u64) -> f64) -> bool {
        let growths = after(&samples(name, value), Duration::from_secs(120)).unwrap();
        growths.len() == 1 && growths[0].is_tolerated()
    }

    #[test]
    fn growth_in_the_warm_up_is_not_counted() {
        assert!(is_tolerated("memory_mb", |second| second.min(120) as f64));
    }

    #[test]
    fn steady_growth_is_found_and_a_single_peak_is_not_taken_for_it() {
        assert!(!is_tolerated("memory_mb", |second| 100.0 + second as f64));
        let peak = |second| if second == 290 { 9_000.0 } else { 100.0 };
        assert!(is_tolerated("memory_mb", peak));
    }

    #[test]
    fn every_cache_has_a_tolerance() {
        let grows = |second| second as f64 * 10.0;
        assert!(!is_tolerated("entries_store_leases", grows));
    }

    #[test]
    fn a_cache_may_fill_up_to_its_limit() {
        assert!(is_tolerated("entries_journal", |second| second as f64));
        let grows = |second| second as f64 * 100.0;
        assert!(!is_tolerated("entries_journal", grows));
    }

    #[test]
    fn too_few_samples_prove_nothing() {
        let samples = samples("memory_mb", |_| 1.0);
        assert!(after(&samples, Duration::from_secs(280)).is_err());
    }
}

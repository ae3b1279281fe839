//! Time, randomness and ids.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use windlass_core::{Env, ManualClock, names};

/// Returns true if a text has the form of a random UUID: version 4, variant 8 to b.
fn is_uuid(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let lens: Vec<_> = parts.iter().map(|part| part.len()).collect();
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    lens == [8, 4, 4, 4, 12]
        && text.chars().all(|c| c == '-' || is_hex(c))
        && parts[2].starts_with('4')
        && parts[3].starts_with(['8', '9', 'a', 'b'])
}

#[test]
fn same_seed_gives_the_same_run() {
    let run = |seed| {
        let env = Env::seeded(seed);
        (
            env.uid(),
            env.name_suffix(),
            env.random_u64(),
            env.jitter(Duration::from_secs(1), 0.5),
        )
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn seed_zero_gives_the_published_numbers() {
    let env = Env::seeded(0);
    let first = [
        0xe220_a839_7b1d_cdaf,
        0x6e78_9e6a_a1b9_65f4,
        0x06c4_5d18_8009_454f,
    ];
    assert_eq!(
        [env.random_u64(), env.random_u64(), env.random_u64()],
        first
    );
}

#[test]
fn clones_share_randomness() {
    let env = Env::seeded(7);
    let (twin, alone) = (env.clone(), Env::seeded(7));
    assert_eq!([env.uid(), twin.uid()], [alone.uid(), alone.uid()]);
}

#[test]
fn seeded_clock_moves_only_when_told() {
    let clock = Arc::new(ManualClock::new());
    let env = Env::seeded_with(1, clock.clone());
    assert_eq!(env.now().to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(env.elapsed(), Duration::ZERO);
    clock.advance(Duration::from_micros(61_000_001));
    assert_eq!(env.now().to_string(), "2026-01-01T00:01:01Z");
    assert_eq!(env.now_micro().to_string(), "2026-01-01T00:01:01.000001Z");
    assert_eq!(env.elapsed(), Duration::from_micros(61_000_001));
    clock.advance(Duration::MAX);
    assert_eq!(env.elapsed(), Duration::MAX);
    assert_eq!(env.now().to_string(), "9999-12-31T23:59:59Z");
}

#[test]
fn uids_are_random_uuids_and_differ() {
    for env in [Env::seeded(3), Env::real()] {
        let uids: BTreeSet<_> = (0..1_000).map(|_| env.uid().to_string()).collect();
        assert_eq!(uids.len(), 1_000);
        assert!(uids.iter().all(|uid| is_uuid(uid)));
    }
}

#[test]
fn real_clocks_tell_the_time() {
    let env = Env::real();
    let passed = env.elapsed();
    assert!(env.elapsed() >= passed);
    assert!(env.now().to_string().as_str() > "2025");
}

#[test]
fn suffixes_use_every_character_of_the_alphabet() {
    let env = Env::seeded(5);
    let suffixes: Vec<_> = (0..500).map(|_| env.name_suffix()).collect();
    assert!(
        suffixes
            .iter()
            .all(|suffix| suffix.len() == names::SUFFIX_LEN)
    );
    let used: BTreeSet<char> = suffixes.concat().chars().collect();
    let used: String = used.into_iter().collect();
    assert_eq!(used, "2456789bcdfghjklmnpqrstvwxz");
}

#[test]
fn jitter_survives_odd_factors() {
    let (env, second) = (Env::seeded(1), Duration::from_secs(1));
    for factor in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
        let jittered = env.jitter(second, factor);
        assert!(second <= jittered && jittered <= second * 2, "{factor}");
    }
    assert_eq!(env.jitter(second, f64::INFINITY), Duration::MAX);
    assert_eq!(env.jitter(Duration::ZERO, 1.0), Duration::ZERO);
}

/// The same cases in every run.
fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig {
        rng_seed,
        failure_persistence: None,
        ..ProptestConfig::with_cases(512)
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_number_is_below_its_bound(seed: u64, bound in 1..u64::MAX) {
        prop_assert!(Env::seeded(seed).random_below(bound) < bound);
        prop_assert_eq!(Env::seeded(seed).random_below(0), 0);
        prop_assert_eq!(Env::seeded(seed).random_below(1), 0);
    }

    #[test]
    fn jitter_adds_at_most_the_factor(seed: u64, millis in 0..1_000_000_u64, factor in 0.01..4.0) {
        let duration = Duration::from_millis(millis);
        let jittered = Env::seeded(seed).jitter(duration, factor);
        prop_assert!(jittered >= duration);
        prop_assert!(jittered <= duration + duration.mul_f64(factor) + Duration::from_nanos(1));
    }
}

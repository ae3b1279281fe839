//! Delays of each limiter, on instants chosen by the test.

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The delays of `calls` failures of `key` in a row.
fn delays(
    limiter: &mut impl RateLimiter<&'static str>,
    key: &'static str,
    calls: usize,
) -> Vec<Duration> {
    let now = Instant::now();
    (0..calls).map(|_| limiter.when(&key, now)).collect()
}

#[test]
fn exponential_delay_doubles_per_key_until_forgotten() {
    let mut limiter = ItemExponential::new(MS, SECOND);
    assert_eq!(
        delays(&mut limiter, "one", 5),
        [1, 2, 4, 8, 16].map(|n| n * MS)
    );
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(delays(&mut limiter, "two", 2), [MS, 2 * MS]);
    assert_eq!(limiter.num_requeues(&"two"), 2);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    assert_eq!(delays(&mut limiter, "one", 1), [MS]);
}

#[test]
fn exponential_delay_stays_at_its_maximum_for_ever() {
    let mut limiter = ItemExponential::new(MS, 1000 * SECOND);
    let delays = delays(&mut limiter, "one", 2000);
    assert_eq!(delays[19], 524_288 * MS);
    assert!(delays[20..].iter().all(|&delay| delay == 1000 * SECOND));
}

#[test]
fn controller_back_off_reaches_its_maximum_at_the_nineteenth_failure() {
    let mut limiter = ItemExponential::new(CONTROLLER_DELAY_BASE, CONTROLLER_DELAY_MAX);
    let delays = delays(&mut limiter, "one", 19);
    assert_eq!(delays[..3], [5 * MS, 10 * MS, 20 * MS]);
    assert!(delays[17] < CONTROLLER_DELAY_MAX);
    assert_eq!(delays[18], CONTROLLER_DELAY_MAX);
}

#[test]
fn zero_base_never_delays() {
    let mut limiter = ItemExponential::new(Duration::ZERO, SECOND);
    assert!(
        delays(&mut limiter, "one", 300)
            .iter()
            .all(Duration::is_zero)
    );
}

#[test]
fn fast_delay_turns_slow_after_its_share() {
    let mut limiter = ItemFastSlow::new(5 * MS, 10 * SECOND, 3);
    let expected = [5 * MS, 5 * MS, 5 * MS, 10 * SECOND, 10 * SECOND];
    assert_eq!(delays(&mut limiter, "one", 5), expected);
    assert_eq!(delays(&mut limiter, "two", 1), [5 * MS]);
    limiter.forget(&"one");
    assert_eq!(delays(&mut limiter, "one", 1), [5 * MS]);
}

#[test]
fn max_of_takes_the_longer_delay_and_charges_both() {
    let mut limiter = MaxOf(
        ItemFastSlow::new(5 * MS, 3 * SECOND, 3),
        ItemExponential::new(MS, SECOND),
    );
    let expected = [5 * MS, 5 * MS, 5 * MS, 3 * SECOND, 3 * SECOND];
    assert_eq!(delays(&mut limiter, "one", 5), expected);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(limiter.1.num_requeues(&"one"), 5);
    limiter.forget(&"one");
    assert_eq!(limiter.0.num_requeues(&"one"), 0);
    assert_eq!(limiter.1.num_requeues(&"one"), 0);
    assert_eq!(delays(&mut limiter, "one", 1), [5 * MS]);
}

#[test]
fn max_wait_cuts_longer_delays() {
    let mut limiter = MaxWait::new(ItemExponential::new(300 * MS, 10 * SECOND), SECOND);
    assert_eq!(
        delays(&mut limiter, "one", 4),
        [300 * MS, 600 * MS, SECOND, SECOND]
    );
    assert_eq!(limiter.num_requeues(&"one"), 4);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
}

#[test]
fn bucket_spreads_what_exceeds_its_burst() {
    let mut limiter = TokenBucket::new(10.0, 2);
    let expected = [Duration::ZERO, Duration::ZERO, 100 * MS, 200 * MS];
    assert_eq!(delays(&mut limiter, "one", 4), expected);
    assert_eq!(RateLimiter::<&str>::num_requeues(&limiter, &"one"), 0);
}

#[test]
fn bucket_refills_up_to_its_burst() {
    let mut bucket = TokenBucket::new(10.0, 2);
    let start = Instant::now();
    for _ in 0..3 {
        bucket.reserve(start);
    }
    let later = start + 100 * SECOND;
    let delays: Vec<_> = (0..3).map(|_| bucket.reserve(later)).collect();
    assert_eq!(delays, [Duration::ZERO, Duration::ZERO, 100 * MS]);
}

#[test]
fn bucket_without_a_rate_never_refills() {
    for qps in [0.0, -1.0, f64::NAN] {
        let mut bucket = TokenBucket::new(qps, 1);
        let start = Instant::now();
        assert_eq!(bucket.reserve(start), Duration::ZERO);
        assert_eq!(bucket.reserve(start + SECOND), Duration::MAX);
    }
}

#[test]
fn controller_limiter_is_the_longer_of_back_off_and_bucket() {
    let mut limiter = controller_limiter();
    let now = Instant::now();
    let first: Vec<_> = (0..100).map(|key| limiter.when(&key, now)).collect();
    assert!(first.iter().all(|&delay| delay == 5 * MS));
    assert_eq!(limiter.when(&100, now), 100 * MS);
}

#[test]
fn failures_of_a_key_that_is_not_retried_any_more_expire() {
    let mut limiter = ItemExponential::new(MS, SECOND);
    let start = Instant::now();
    limiter.when(&0, start);
    assert_eq!(limiter.when(&0, start + 2 * SECOND), 2 * MS);
    assert_eq!(limiter.when(&0, start + 5 * SECOND), MS);
    for key in 1..100_000 {
        limiter.when(&key, start + key * SECOND / 1000);
    }
    assert!(
        limiter.tracked() < 10_000,
        "{} keys are remembered",
        limiter.tracked()
    );
}

proptest! {
    #[test]
    fn bucket_never_grants_more_than_its_rate(
        steps in prop::collection::vec(0_u32..500, 1..100),
        qps in 1_u32..100,
        burst in 1_u32..20,
    ) {
        let mut bucket = TokenBucket::new(f64::from(qps), burst);
        let start = Instant::now();
        let mut now = start;
        let mut grants = Vec::new();
        for step in steps {
            now += step * MS;
            grants.push((now + bucket.reserve(now)).duration_since(start).as_secs_f64());
        }
        grants.sort_by(f64::total_cmp);
        for (first, &from) in grants.iter().enumerate() {
            for (last, &to) in grants.iter().enumerate().skip(first) {
                let allowed = (to - from) * f64::from(qps) + f64::from(burst);
                prop_assert!((last - first + 1) as f64 <= allowed + 1e-6);
            }
        }
    }

    #[test]
    fn exponential_delay_equals_its_formula(failures in 1_u32..200, base_ms in 0_u32..100) {
        let mut limiter = ItemExponential::new(base_ms * MS, 1000 * SECOND);
        let last = delays(&mut limiter, "x", failures as usize)[failures as usize - 1];
        let exact = f64::from(base_ms) * 1e6 * 2_f64.powi(failures as i32 - 1);
        prop_assert_eq!(last, Duration::from_nanos(exact.min(1e12) as u64));
    }
}

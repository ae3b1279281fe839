use std::time::Duration;

use tokio::time::advance;

use super::*;
use windlass_core::Uid;

fn key() -> Key {
    Key::new("default", "web")
}

#[tokio::test(start_paused = true)]
async fn deletions_are_awaited_after_creations_were_seen() {
    let expectations = Expectations::new();
    expectations.expect_creations(&key(), 2);
    assert!(!expectations.is_satisfied(&key()));
    expectations.creation_observed(&key());
    expectations.creation_observed(&key());
    assert!(expectations.is_satisfied(&key()));

    expectations.expect_deletions(&key(), 3);
    for _ in 0..3 {
        assert!(!expectations.is_satisfied(&key()));
        expectations.deletion_observed(&key());
    }
    assert!(expectations.is_satisfied(&key()));
}

#[tokio::test(start_paused = true)]
async fn an_expectation_that_is_not_met_expires_and_stays() {
    let expectations = Expectations::new();
    expectations.expect_creations(&key(), 1);
    advance(EXPECTATIONS_TIMEOUT).await;
    assert!(!expectations.is_satisfied(&key()));
    advance(Duration::from_millis(1)).await;
    assert!(expectations.is_satisfied(&key()));
    assert_eq!(expectations.pending(&key()), Some((1, 0)));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_key_is_satisfied_and_cannot_be_adjusted() {
    let expectations = Expectations::new();
    expectations.raise(&key(), 3, 3);
    expectations.lower(&key(), 1, 0);
    expectations.deletion_observed(&key());
    assert!(expectations.is_satisfied(&key()));
    assert_eq!(expectations.pending(&key()), None);
}

#[tokio::test(start_paused = true)]
async fn failed_creations_do_not_block_the_next_sync() {
    let expectations = Expectations::new();
    expectations.expect_creations(&key(), 10);
    expectations.lower(&key(), 10, 0);
    assert!(expectations.is_satisfied(&key()));
    expectations.raise(&key(), 1, 0);
    assert!(!expectations.is_satisfied(&key()));
}

#[tokio::test(start_paused = true)]
async fn a_child_counts_once_and_a_stranger_not_at_all() {
    for replicas in [0_usize, 1, 2, 5] {
        let expectations = UidExpectations::new();
        let children: Vec<Uid> = (0..replicas).map(|n| format!("uid-{n}").into()).collect();
        expectations.expect_deletions(&key(), children.clone());
        expectations.deletion_observed(&key(), &"stranger".into());
        assert_eq!(expectations.pending_deletions(&key()), replicas);
        for (at, child) in children.iter().enumerate() {
            expectations.deletion_observed(&key(), child);
            expectations.deletion_observed(&key(), child);
            assert_eq!(expectations.pending_deletions(&key()), replicas - at - 1);
        }
        assert!(expectations.is_satisfied(&key()));
    }
}

#[tokio::test(start_paused = true)]
async fn forgetting_a_key_drops_its_children() {
    let expectations = UidExpectations::new();
    expectations.expect_deletions(&key(), ["a".into(), "b".into()]);
    expectations.forget(&key());
    assert_eq!(expectations.pending_deletions(&key()), 0);
    assert!(expectations.is_satisfied(&key()));
    expectations.deletion_observed(&key(), &"a".into());
    assert_eq!(expectations.pending(&key()), None);
}

/// More is seen than was expected, by many at once: nothing is lost and nothing gets stuck.
#[test]
fn what_many_observe_at_once_is_counted_once_each() {
    let expectations = Expectations::new();
    expectations.set(&key(), 10, 30);
    std::thread::scope(|scope| {
        for _ in 0..11 {
            scope.spawn(|| expectations.creation_observed(&key()));
        }
    });
    assert_eq!(expectations.pending(&key()), Some((-1, 30)));
    assert!(!expectations.is_satisfied(&key()), "deletions are awaited");
    std::thread::scope(|scope| {
        for _ in 0..31 {
            scope.spawn(|| expectations.deletion_observed(&key()));
        }
    });
    assert_eq!(expectations.pending(&key()), Some((-1, -1)));
    assert!(expectations.is_satisfied(&key()));
}

#[tokio::test(start_paused = true)]
async fn children_that_are_expected_later_take_the_place_of_the_others() {
    let expectations = UidExpectations::new();
    expectations.expect_deletions(&key(), ["a".into(), "b".into()]);
    expectations.expect_deletions(&key(), ["c".into()]);
    expectations.deletion_observed(&key(), &"a".into());
    assert_eq!(expectations.pending_deletions(&key()), 1);
    assert!(!expectations.is_satisfied(&key()));
    expectations.deletion_observed(&key(), &"c".into());
    assert!(expectations.is_satisfied(&key()));
}

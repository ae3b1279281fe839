//! Expectations: what a controller has asked for and not seen yet.
//!
//! A controller that has just created three pods must not create three more because its cache
//! does not show the first ones. It writes down what it expects before it sends the requests, and
//! does nothing for that key until the informer has shown as much, or five minutes have passed.
//!
//! None of the controllers here needs them: [`Freshness`](windlass_runtime::Freshness) gives the
//! stronger promise. They are for controllers that learn of their children by other means than
//! their own writes, or whose deletions are answered without a revision. Kinds must not share one
//! instance: their keys would clash.

mod uid;

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_core::Key;

pub use uid::UidExpectations;

/// After what time an expectation that was not met counts for nothing.
pub const EXPECTATIONS_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Counts of creations and deletions that a controller expects to see, per key.
///
/// ```
/// # use windlass_core::Key;
/// # use windlass_workloads::Expectations;
/// let (expectations, key) = (Expectations::new(), Key::new("default", "web"));
/// // The reconcile, before it creates two pods, of which one request fails.
/// expectations.expect_creations(&key, 2);
/// expectations.lower(&key, 1, 0);
/// assert!(!expectations.is_satisfied(&key));
/// // The handler of pods.
/// expectations.creation_observed(&key);
/// assert!(expectations.is_satisfied(&key));
/// ```
#[derive(Debug, Default)]
pub struct Expectations {
    /// One entry for each key that has acted and is not deleted.
    entries: Mutex<HashMap<Key, Entry>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    creations: i64,
    deletions: i64,
    set_at: Instant,
}

impl Entry {
    fn is_fulfilled(&self) -> bool {
        self.creations <= 0 && self.deletions <= 0
    }

    fn is_expired(&self) -> bool {
        self.set_at.elapsed() > EXPECTATIONS_TIMEOUT
    }
}

impl Expectations {
    /// Nothing is expected.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Expects this many creations and nothing else.
    pub fn expect_creations(&self, key: &Key, count: usize) {
        self.set(key, count, 0);
    }

    /// Expects this many deletions and nothing else.
    pub fn expect_deletions(&self, key: &Key, count: usize) {
        self.set(key, 0, count);
    }

    /// Expects this many of each, in place of all that was expected before.
    pub fn set(&self, key: &Key, creations: usize, deletions: usize) {
        let entry = Entry {
            creations: signed(creations),
            deletions: signed(deletions),
            set_at: Instant::now(),
        };
        self.entries.lock().insert(key.clone(), entry);
    }

    /// Expects more, if anything was expected before.
    pub fn raise(&self, key: &Key, creations: usize, deletions: usize) {
        self.adjust(key, signed(creations), signed(deletions));
    }

    /// Expects less, as when a request has failed. A count may fall below zero: an event can come
    /// before the answer that it belongs to.
    pub fn lower(&self, key: &Key, creations: usize, deletions: usize) {
        self.adjust(key, -signed(creations), -signed(deletions));
    }

    /// A child was created.
    pub fn creation_observed(&self, key: &Key) {
        self.adjust(key, -1, 0);
    }

    /// A child was deleted.
    pub fn deletion_observed(&self, key: &Key) {
        self.adjust(key, 0, -1);
    }

    /// Whether the controller may act on the key: all was seen, or too much time has passed, or
    /// nothing was ever expected.
    #[must_use]
    pub fn is_satisfied(&self, key: &Key) -> bool {
        self.entry(key)
            .is_none_or(|entry| entry.is_fulfilled() || entry.is_expired())
    }

    /// What is still expected: creations and deletions.
    #[must_use]
    pub fn pending(&self, key: &Key) -> Option<(i64, i64)> {
        self.entry(key)
            .map(|entry| (entry.creations, entry.deletions))
    }

    /// Forgets a key, when its object is deleted.
    pub fn forget(&self, key: &Key) {
        self.entries.lock().remove(key);
    }

    fn entry(&self, key: &Key) -> Option<Entry> {
        self.entries.lock().get(key).copied()
    }

    fn adjust(&self, key: &Key, creations: i64, deletions: i64) {
        if let Some(entry) = self.entries.lock().get_mut(key) {
            entry.creations = entry.creations.saturating_add(creations);
            entry.deletions = entry.deletions.saturating_add(deletions);
        }
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;

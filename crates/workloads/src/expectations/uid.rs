//! Expectations that know which children are to be deleted.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use windlass_core::{Key, Uid};

use super::Expectations;

/// [`Expectations`] that remember the UIDs of the children to be deleted, so that the update that
/// marks a child for deletion and the deletion itself count once, and a child that somebody else
/// deletes not at all.
///
/// Children are known by UID, not by name: a replacement of the same name cannot stand in for the
/// one that was to go.
#[derive(Debug, Default)]
pub struct UidExpectations {
    counts: Expectations,
    /// The children whose deletion is still to be seen. Bounded by what was asked to be deleted.
    children: Mutex<HashMap<Key, HashSet<Uid>>>,
}

impl UidExpectations {
    /// Nothing is expected.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Expects this many creations and nothing else.
    pub fn expect_creations(&self, key: &Key, count: usize) {
        self.counts.expect_creations(key, count);
    }

    /// Expects these children to be deleted, and nothing else.
    pub fn expect_deletions(&self, key: &Key, children: impl IntoIterator<Item = Uid>) {
        let children: HashSet<Uid> = children.into_iter().collect();
        // Held to the end, so that no deletion is observed between the two.
        let mut known = self.children.lock();
        self.counts.expect_deletions(key, children.len());
        let before = known.insert(key.clone(), children);
        if before.is_some_and(|before| !before.is_empty()) {
            tracing::error!(%key, "deletions are expected before those expected earlier were seen");
        }
    }

    /// A child was created.
    pub fn creation_observed(&self, key: &Key) {
        self.counts.creation_observed(key);
    }

    /// Creations that were expected do not come, because their requests failed or were not sent.
    pub fn creations_failed(&self, key: &Key, count: usize) {
        self.counts.lower(key, count, 0);
    }

    /// A child is marked for deletion, or gone, or could not be deleted. Only the first word on a
    /// child that was expected counts.
    pub fn deletion_observed(&self, key: &Key, child: &Uid) {
        let mut known = self.children.lock();
        if known
            .get_mut(key)
            .is_some_and(|children| children.remove(child))
        {
            self.counts.deletion_observed(key);
        }
    }

    /// The children whose deletion is still to be seen.
    #[must_use]
    pub fn pending_deletions(&self, key: &Key) -> usize {
        self.children.lock().get(key).map_or(0, HashSet::len)
    }

    /// Whether the controller may act on the key.
    #[must_use]
    pub fn is_satisfied(&self, key: &Key) -> bool {
        self.counts.is_satisfied(key)
    }

    /// What is still expected: creations and deletions.
    #[must_use]
    pub fn pending(&self, key: &Key) -> Option<(i64, i64)> {
        self.counts.pending(key)
    }

    /// Forgets a key, when its object is deleted.
    pub fn forget(&self, key: &Key) {
        self.children.lock().remove(key);
        self.counts.forget(key);
    }
}

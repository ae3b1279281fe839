//! The sync state of work that began with the first list.

use std::{fmt, hash::Hash};

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use parking_lot::Mutex;

/// Passes "synced" on through workers that take keys from a queue.
///
/// A handler calls [`start`](Self::start) with each initial object, a worker
/// [`finish`](Self::finish) when it is done with the key. Code on top of those workers then knows
/// when they have processed every object of the first list.
pub struct SyncTracker<T> {
    is_upstream_synced: Box<dyn Fn() -> bool + Send + Sync>,
    /// Keys that were started and not finished. Bounded by the objects of the first list.
    waiting: Mutex<HashSet<T, RandomState>>,
}

impl<T: Eq + Hash> SyncTracker<T> {
    /// A tracker of work that comes from something that syncs, such as
    /// [`Registration::has_synced`](crate::Registration::has_synced).
    pub fn new(is_upstream_synced: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            is_upstream_synced: Box::new(is_upstream_synced),
            waiting: Mutex::default(),
        }
    }

    /// Work on a key is to be done.
    pub fn start(&self, key: T) {
        self.waiting.lock().insert(key);
    }

    /// Work on a key is done; nothing if none was to be.
    pub fn finish(&self, key: &T) {
        self.waiting.lock().remove(key);
    }

    /// Returns true if everything has arrived and is processed.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        // In this order: once upstream has synced, no key of the first list is started any more.
        (self.is_upstream_synced)() && self.waiting.lock().is_empty()
    }
}

impl<T> fmt::Debug for SyncTracker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncTracker")
            .field("waiting", &self.waiting.lock().len())
            .finish_non_exhaustive()
    }
}

//! A consistent view of one resource.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::history::History;
use crate::map::{Map, Range};
use crate::{Entry, Event};

/// All objects of one resource at one revision. A clone is two counter increments; later writes
/// do not change it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: u64,
    map: Map,
}

impl Snapshot {
    pub(crate) fn new(revision: u64, map: Map) -> Self {
        Self { revision, map }
    }

    /// The revision of the store at which this was the state.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.len() == 0
    }

    /// The object of this key (`namespace/name` or `name`).
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.map.get(key)
    }

    /// All objects in the order of their keys.
    #[must_use]
    pub fn iter(&self) -> Entries<'_> {
        self.from("")
    }

    /// The objects whose keys are not below `start`, in order. A page that ended with a key is
    /// continued at that key with a zero byte behind it.
    #[must_use]
    pub fn from(&self, start: &str) -> Entries<'_> {
        Entries {
            range: self.map.range(start, String::new()),
        }
    }

    /// The objects of one namespace whose keys are not below `start` (empty: all), in order.
    #[must_use]
    pub fn namespace(&self, namespace: &str, start: &str) -> Entries<'_> {
        Entries {
            range: self.map.range(start, format!("{namespace}/")),
        }
    }

    /// Returns true if both snapshots share their objects: nothing was written in between. A false
    /// answer is possible for equal states; it costs a comparison, no more.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.map.is_same(&other.map)
    }

    /// The objects of this snapshot that another one of the same resource does not have in the
    /// same state. Costs what differs, rounded up to chunks, and the number of chunks.
    #[must_use]
    pub fn not_in(&self, other: &Self) -> Vec<Arc<Entry>> {
        self.map.not_in(&other.map)
    }

    /// The state before these events, which lead in order from there to here.
    pub(crate) fn before(self, events: &[Arc<Event>], revision: u64) -> Self {
        let mut map = self.map;
        for event in events.iter().rev() {
            match &event.previous {
                Some(previous) => map.insert(previous.clone()),
                None => map.remove(event.key().as_str()),
            };
        }
        Self { revision, map }
    }
}

impl<'a> IntoIterator for &'a Snapshot {
    type Item = &'a Arc<Entry>;
    type IntoIter = Entries<'a>;

    fn into_iter(self) -> Entries<'a> {
        self.iter()
    }
}

/// Objects of a [`Snapshot`] in the order of their keys.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    range: Range<'a>,
}

impl Entries<'_> {
    /// How many objects are left, at the cost of a look-up.
    #[must_use]
    pub fn count_left(&self) -> usize {
        self.range.count_left()
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a Arc<Entry>;

    fn next(&mut self) -> Option<&'a Arc<Entry>> {
        self.range.next()
    }
}

/// Past snapshots of one resource that lists still read page by page.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The one that is kept for the longest time first.
    snapshots: VecDeque<KeptSnapshot>,
}

/// A snapshot that is kept.
#[derive(Debug)]
struct KeptSnapshot {
    /// The time since when it is kept.
    since: Duration,
    /// Bytes of all events of the resource up to the revision of the snapshot. What came since is
    /// no less than what the snapshot alone still holds.
    bytes_at: u64,
    snapshot: Snapshot,
}

impl Kept {
    pub(crate) fn len(&self) -> usize {
        self.snapshots.len()
    }

    pub(crate) fn get(&self, revision: u64) -> Option<&Snapshot> {
        let kept = self.snapshots.iter().map(|kept| &kept.snapshot);
        kept.rev().find(|snapshot| snapshot.revision == revision)
    }

    /// Keeps a snapshot, unless it is kept already, and returns what had to go.
    pub(crate) fn keep(
        &mut self,
        snapshot: Snapshot,
        now: Duration,
        limit: usize,
        history: &History,
    ) -> Vec<Snapshot> {
        if self.get(snapshot.revision).is_some() {
            return Vec::new();
        }
        self.snapshots.push_back(KeptSnapshot {
            since: now,
            bytes_at: history.pushed_bytes_at(snapshot.revision),
            snapshot,
        });
        let excess = self.snapshots.len().saturating_sub(limit);
        let gone = self.snapshots.drain(..excess);
        gone.map(|kept| kept.snapshot).collect()
    }

    /// Drops what is kept since before `time` and returns it.
    pub(crate) fn trim(&mut self, time: Duration) -> Vec<Snapshot> {
        let stale = self.snapshots.iter().take_while(|kept| kept.since < time);
        let stale = stale.count();
        let gone = self.snapshots.drain(..stale);
        gone.map(|kept| kept.snapshot).collect()
    }

    /// Drops the snapshots since which more was replaced than a history may hold, and returns
    /// them.
    pub(crate) fn trim_bytes(&mut self, history: &History) -> Vec<Snapshot> {
        let limit = history.bytes_limit();
        let is_heavy = |kept: &KeptSnapshot| history.pushed_bytes() - kept.bytes_at > limit;
        let mut gone = Vec::new();
        // In the usual case there is none, and this runs at every write.
        while let Some(index) = self.snapshots.iter().position(is_heavy) {
            gone.extend(self.snapshots.remove(index).map(|kept| kept.snapshot));
        }
        gone
    }
}

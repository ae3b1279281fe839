//! A consistent view of one resource.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

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
    /// Least recently used first, with the time of last use.
    snapshots: VecDeque<(Duration, Snapshot)>,
}

impl Kept {
    pub(crate) fn len(&self) -> usize {
        self.snapshots.len()
    }

    pub(crate) fn get(&self, revision: u64) -> Option<&Snapshot> {
        let kept = self.snapshots.iter().map(|(_, snapshot)| snapshot);
        kept.rev().find(|snapshot| snapshot.revision == revision)
    }

    /// Keeps a snapshot, or keeps it longer, and returns what had to go.
    pub(crate) fn keep(
        &mut self,
        snapshot: Snapshot,
        now: Duration,
        limit: usize,
    ) -> Vec<Snapshot> {
        self.snapshots
            .retain(|(_, kept)| kept.revision != snapshot.revision);
        self.snapshots.push_back((now, snapshot));
        let excess = self.snapshots.len().saturating_sub(limit);
        self.snapshots
            .drain(..excess)
            .map(|(_, snapshot)| snapshot)
            .collect()
    }

    /// Drops what was not used since `time` and returns it.
    pub(crate) fn trim(&mut self, time: Duration) -> Vec<Snapshot> {
        let stale = self
            .snapshots
            .iter()
            .take_while(|(used, _)| *used < time)
            .count();
        self.snapshots
            .drain(..stale)
            .map(|(_, snapshot)| snapshot)
            .collect()
    }
}

//! Deltas gathered by object.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use windlass_core::{Key, Revision};

use super::{Delta, DeltaQueue, Deltas, Listing, population::Population};
use crate::{
    indexer::Snapshot,
    object::{Deleted, Obj},
};

/// One entry per object, in the order in which objects were first queued.
///
/// A key is in `queue` exactly once if it is in `items`, and otherwise not at all. The hash seed is
/// not observable: order comes from `queue` and from the lists given.
#[derive(Debug, Default)]
pub struct ByKey {
    items: HashMap<Key, Deltas, RandomState>,
    queue: VecDeque<Key>,
    population: Population,
}

impl ByKey {
    fn enqueue(&mut self, delta: Delta) {
        let key = delta.key();
        let deltas = self.items.entry_ref(&key).or_default();
        if deltas.is_empty() {
            self.queue.push_back(key);
        }
        deltas.push(delta);
        collapse_deletions(deltas);
    }

    /// Queues a tombstone for everything that a list does not contain.
    fn bury(&mut self, listed: &HashSet<Key, RandomState>, known: &Snapshot) {
        let is_missing = |key: &&Key| !listed.contains(*key);
        // What is queued is newer than what is stored.
        let newest = |key: &Key| self.items[key].last().map(|delta| delta.object().clone());
        let queued: Vec<Obj> = self
            .queue
            .iter()
            .filter(is_missing)
            .filter_map(newest)
            .collect();
        for object in queued {
            self.enqueue_deletion(Deleted::Tombstone(object));
        }
        for object in known.iter() {
            let key = object.key();
            if !listed.contains(&key) && !self.items.contains_key(&key) {
                self.enqueue_deletion(Deleted::Tombstone(object));
            }
        }
    }

    fn enqueue_deletion(&mut self, deleted: Deleted) {
        self.enqueue(Delta::Deleted(deleted));
    }

    /// The keys with deltas, in the order in which they are handed out.
    pub fn order(&self) -> impl Iterator<Item = &Key> {
        self.queue.iter()
    }

    /// The deltas that wait for one key.
    #[must_use]
    pub fn deltas(&self, key: &Key) -> &[Delta] {
        self.items.get(key).map_or(&[], Vec::as_slice)
    }
}

/// Two deletions in a row are one. The one that says more stays: the final state rather than a
/// tombstone, else the older.
fn collapse_deletions(deltas: &mut Deltas) {
    if let [.., Delta::Deleted(older), Delta::Deleted(_)] = &deltas[..] {
        let dropped = if older.is_tombstone() {
            deltas.len() - 2
        } else {
            deltas.len() - 1
        };
        deltas.remove(dropped);
    }
}

impl DeltaQueue for ByKey {
    type Handout = (Deltas, bool);

    fn push(&mut self, delta: Delta) {
        self.population.touched();
        self.enqueue(delta);
    }

    /// Ignored if nobody has ever heard of the object: then there is nothing to delete.
    fn delete(&mut self, deleted: Deleted, known: &Snapshot) {
        self.population.touched();
        let object = deleted.object();
        let is_known = known.find(object.namespace(), object.name()).is_some();
        if is_known || self.items.contains_key(&object.key()) {
            self.enqueue_deletion(deleted);
        }
    }

    fn replace(&mut self, listing: Listing, known: &Snapshot) {
        let keys = listing.objects.iter().map(Obj::key).chain(listing.kept);
        let listed: HashSet<Key, RandomState> = keys.collect();
        listing
            .objects
            .into_iter()
            .for_each(|object| self.enqueue(Delta::Replaced(object)));
        self.bury(&listed, known);
        self.population.listed(self.queue.len());
    }

    /// Objects with something queued are left out: a stale repetition must not follow news.
    fn resync(&mut self, known: &Snapshot) {
        for object in known.iter() {
            if !self.items.contains_key(&object.key()) {
                self.enqueue(Delta::Sync(object));
            }
        }
    }

    /// Changes nothing: this queue has no order of revisions.
    fn bookmark(&mut self, _revision: Revision) {}

    /// The deltas of the next object, and whether they belong to the first list.
    fn pop(&mut self) -> Option<(Deltas, bool)> {
        let key = self.queue.pop_front()?;
        let deltas = self
            .items
            .remove(&key)
            .expect("invariant: a queued key has deltas");
        Some((deltas, !self.population.has_synced()))
    }

    fn finished(&mut self) {
        self.population.applied();
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn has_synced(&self) -> bool {
        self.population.has_synced()
    }
}

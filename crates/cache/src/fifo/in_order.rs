//! Deltas in the order of the watch.

use std::collections::VecDeque;

use windlass_core::Revision;

use super::{Delta, DeltaQueue, Listing, population::Population};
use crate::{indexer::Snapshot, object::Deleted};

/// The largest number of deltas in one batch.
pub const BATCH_LIMIT: usize = 1000;

/// All deltas in order, never merged.
#[derive(Debug, Default)]
pub struct InOrder {
    entries: VecDeque<Entry>,
    population: Population,
}

/// The unit that the consumer applies in one step.
#[derive(Debug, PartialEq, Eq)]
pub enum Batch {
    /// Changes of the watch, oldest first.
    Deltas(Vec<Delta>),
    /// A complete list; everything else is gone.
    ReplacedAll(Listing),
    /// Repeat what is stored.
    SyncAll,
    /// The watch has reached this revision without a change.
    Bookmark(Revision),
}

#[derive(Debug)]
enum Entry {
    Delta(Delta),
    /// Handed out alone.
    Alone(Batch),
}

impl InOrder {
    fn enqueue(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    fn next_delta(&mut self) -> Option<Delta> {
        match self
            .entries
            .pop_front_if(|entry| matches!(entry, Entry::Delta(_)))?
        {
            Entry::Delta(delta) => Some(delta),
            Entry::Alone(_) => None,
        }
    }
}

impl DeltaQueue for InOrder {
    type Handout = Batch;

    fn push(&mut self, delta: Delta) {
        self.population.touched();
        self.enqueue(Entry::Delta(delta));
    }

    /// Nothing is suppressed here: whether the store holds the object is known only when all that
    /// is queued before has been applied.
    fn delete(&mut self, deleted: Deleted, _known: &Snapshot) {
        self.push(Delta::Deleted(deleted));
    }

    fn replace(&mut self, listing: Listing, _known: &Snapshot) {
        self.enqueue(Entry::Alone(Batch::ReplacedAll(listing)));
        self.population.listed(self.entries.len());
    }

    fn resync(&mut self, _known: &Snapshot) {
        self.enqueue(Entry::Alone(Batch::SyncAll));
    }

    fn bookmark(&mut self, revision: Revision) {
        self.enqueue(Entry::Alone(Batch::Bookmark(revision)));
    }

    fn pop(&mut self) -> Option<Batch> {
        let first = match self.entries.pop_front()? {
            Entry::Alone(batch) => return Some(batch),
            Entry::Delta(delta) => delta,
        };
        let more = std::iter::from_fn(|| self.next_delta()).take(BATCH_LIMIT - 1);
        Some(Batch::Deltas(std::iter::once(first).chain(more).collect()))
    }

    fn finished(&mut self) {
        self.population.applied();
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn has_synced(&self) -> bool {
        self.population.has_synced()
    }
}

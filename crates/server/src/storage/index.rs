//! Indexes of stored objects, brought up to date by whoever asks.

use parking_lot::RwLock;
use windlass_access::{GrantTable, PodTable};
use windlass_core::Doc;
use windlass_store::Snapshot;

/// A table that is made of objects.
pub(super) trait Indexed: Default {
    /// Takes an object in.
    fn add(&mut self, object: &Doc);

    /// Takes an object out, as it was when it was taken in.
    fn remove(&mut self, object: &Doc);
}

impl Indexed for GrantTable {
    fn add(&mut self, object: &Doc) {
        Self::add(self, object);
    }

    fn remove(&mut self, object: &Doc) {
        Self::remove(self, object);
    }
}

impl Indexed for PodTable {
    fn add(&mut self, object: &Doc) {
        Self::add(self, object);
    }

    fn remove(&mut self, object: &Doc) {
        Self::remove(self, object);
    }
}

/// A table of the objects of `N` resources. It is empty until somebody asks.
#[derive(Debug, Default)]
pub(super) struct Index<T, const N: usize>(RwLock<State<T, N>>);

#[derive(Debug)]
struct State<T, const N: usize> {
    /// The objects that are in the table.
    seen: Option<[Snapshot; N]>,
    table: T,
}

impl<T: Default, const N: usize> Default for State<T, N> {
    fn default() -> Self {
        Self {
            seen: None,
            table: T::default(),
        }
    }
}

impl<T: Indexed, const N: usize> Index<T, N> {
    /// Reads the table of a state of the objects, or of a newer one.
    pub(super) fn read<R>(&self, now: [Snapshot; N], read: impl FnOnce(&T) -> R) -> R {
        {
            let state = self.0.read();
            if state.is_at(&now) {
                return read(&state.table);
            }
        }
        let mut state = self.0.write();
        state.advance(now);
        read(&state.table)
    }
}

impl<T: Indexed, const N: usize> State<T, N> {
    fn is_at(&self, now: &[Snapshot; N]) -> bool {
        let is_same = |seen: &[Snapshot; N]| {
            let mut pairs = seen.iter().zip(now);
            pairs.all(|(seen, now)| seen.is_same(now))
        };
        self.seen.as_ref().is_some_and(is_same)
    }

    /// Takes over what changed. A state that is newer already stays.
    fn advance(&mut self, now: [Snapshot; N]) {
        let Some(seen) = self.seen.take() else {
            for entry in now.iter().flatten() {
                self.table.add(entry.doc());
            }
            self.seen = Some(now);
            return;
        };
        let mut newest = Vec::with_capacity(seen.len());
        for (seen, now) in seen.into_iter().zip(now) {
            if seen.revision() >= now.revision() {
                newest.push(seen);
                continue;
            }
            for gone in seen.not_in(&now) {
                self.table.remove(gone.doc());
            }
            for come in now.not_in(&seen) {
                self.table.add(come.doc());
            }
            newest.push(now);
        }
        self.seen = newest.try_into().ok();
    }
}

#[cfg(test)]
mod tests;

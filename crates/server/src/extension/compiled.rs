//! Configurations of extensions, compiled and kept in line with the store.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use windlass_store::{Resource as Shelf, Snapshot};

use crate::storage::Storage;

/// A value that is made of all objects of `N` resources, made anew when one of them changes.
pub(crate) struct Compiled<T, const N: usize> {
    resources: [Shelf; N],
    /// `None` in place of the value if nothing is configured.
    compile: fn(&[Snapshot; N]) -> Option<T>,
    state: RwLock<Option<State<T, N>>>,
}

struct State<T, const N: usize> {
    seen: [Snapshot; N],
    value: Option<Arc<T>>,
}

impl<T, const N: usize> Compiled<T, N> {
    pub(crate) fn new(resources: [Shelf; N], compile: fn(&[Snapshot; N]) -> Option<T>) -> Self {
        Self {
            resources,
            compile,
            state: RwLock::new(None),
        }
    }

    /// The value for the objects as they are now; `None` if nothing is configured.
    pub(crate) fn current(&self, storage: &Storage) -> Option<Arc<T>> {
        let now = self.resources.each_ref().map(|it| storage.snapshot(it));
        if let Some(state) = &*self.state.read()
            && state.is_at(&now)
        {
            return state.value.clone();
        }
        let value = (self.compile)(&now).map(Arc::new);
        let mut state = self.state.write();
        // Somebody else may have compiled a newer state meanwhile.
        let is_newer = |known: &State<T, N>| {
            let mut pairs = known.seen.iter().zip(&now);
            pairs.all(|(known, now)| known.revision() <= now.revision())
        };
        if state.as_ref().is_none_or(is_newer) {
            let value = value.clone();
            *state = Some(State { seen: now, value });
        }
        value
    }
}

impl<T, const N: usize> State<T, N> {
    fn is_at(&self, now: &[Snapshot; N]) -> bool {
        let mut pairs = self.seen.iter().zip(now);
        pairs.all(|(seen, now)| seen.is_same(now))
    }
}

impl<T, const N: usize> fmt::Debug for Compiled<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").finish_non_exhaustive()
    }
}

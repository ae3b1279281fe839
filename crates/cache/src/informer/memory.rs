//! The memory of a cache.

use windlass_core::{Footprint, interner_usage};

use super::{Shared, SharedInformer};

/// By what share a cache must have grown before its memory is added up again.
const LOOK_AGAIN_GROWTH: usize = 10;

/// The memory of one informer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MemoryReport {
    /// The number of objects.
    pub objects: usize,
    /// The bytes of their documents, each shared part counted once.
    pub document_bytes: usize,
    /// The bytes of the store and its indices around them.
    pub store_bytes: usize,
    /// The bytes of all documents of the process, which informers share.
    pub interner_bytes: usize,
}

impl MemoryReport {
    /// All bytes of this informer.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.document_bytes + self.store_bytes
    }

    /// The share of all documents of the process that this informer holds, alone or with others.
    #[must_use]
    pub fn interner_share(&self) -> f64 {
        if self.interner_bytes == 0 {
            return 0.0;
        }
        self.document_bytes as f64 / self.interner_bytes as f64
    }
}

impl<K: 'static> SharedInformer<K> {
    /// Adds up the memory of this informer. That takes a visit to every part of every object:
    /// some milliseconds per thousand objects.
    #[must_use]
    pub fn memory(&self) -> MemoryReport {
        self.shared.memory()
    }
}

impl Shared {
    pub(super) fn memory(&self) -> MemoryReport {
        let snapshot = self.store.snapshot();
        let mut footprint = Footprint::default();
        snapshot.iter().for_each(|object| {
            footprint.add(object.doc());
        });
        MemoryReport {
            objects: snapshot.len(),
            document_bytes: footprint.bytes(),
            store_bytes: snapshot.store_bytes(),
            interner_bytes: interner_usage().bytes(),
        }
    }
}

/// Notices when a cache exceeds its budget.
#[derive(Debug, Default)]
pub(super) struct BudgetWatch {
    /// The number of objects when the memory was last added up.
    looked_at: usize,
    /// The number of bytes in the last warning.
    warned_of: usize,
}

impl BudgetWatch {
    /// Adds up the memory if the cache has grown since the last time, and warns once per doubling.
    pub(super) fn look(&mut self, informer: &Shared) {
        let Some(budget) = informer.memory_budget else {
            return;
        };
        let objects = informer.store.snapshot().len();
        if objects <= self.looked_at + self.looked_at / LOOK_AGAIN_GROWTH {
            return;
        }
        self.looked_at = objects;
        let bytes = informer.memory().bytes();
        if bytes > budget && bytes >= 2 * self.warned_of {
            self.warned_of = bytes;
            tracing::warn!(
                resource = %informer.name, objects, bytes, budget,
                "cache exceeds its budget: narrow it by namespace or selector, prune fields, or cache metadata only"
            );
        }
    }
}

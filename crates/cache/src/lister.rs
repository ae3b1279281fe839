//! Reading a cache.

use std::{fmt, marker::PhantomData, sync::Arc};

use windlass_core::{Doc, Key, Selector};

use crate::{
    indexer::{Indexer, Snapshot, UnknownIndex},
    object::Obj,
};

/// Reads the objects of an informer. Every call sees one consistent state, and none of them waits.
///
/// Several calls may see several states; take a [`snapshot`](Self::snapshot) to read more than
/// once from the same.
pub struct Lister<K = Doc> {
    store: Arc<Indexer>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Lister<K> {
    pub(crate) fn new(store: Arc<Indexer>) -> Self {
        Self {
            store,
            kind: PhantomData,
        }
    }

    /// The object of a key.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Obj<K>> {
        self.snapshot().get(key)
    }

    /// The objects that match a selector, in the order of their keys.
    #[must_use]
    pub fn list(&self, selector: &Selector) -> Vec<Obj<K>> {
        self.snapshot().list("", selector)
    }

    /// The objects of a namespace that match a selector; an empty namespace stands for all.
    #[must_use]
    pub fn list_in(&self, namespace: &str, selector: &Selector) -> Vec<Obj<K>> {
        self.snapshot().list(namespace, selector)
    }

    /// The objects under a value of an index, in the order of their keys.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<Obj<K>>, UnknownIndex> {
        self.snapshot().by_index(name, value)
    }

    /// The keys of the objects under a value of an index, in order.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<Key>, UnknownIndex> {
        self.snapshot().index_keys(name, value)
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.snapshot().len()
    }

    /// Returns true if there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cache as it is at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K> {
        self.store.snapshot().cast()
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self::new(self.store.clone())
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lister").field(&self.store).finish()
    }
}

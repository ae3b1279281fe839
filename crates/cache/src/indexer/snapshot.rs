//! One version of a store, for reading.

use std::{fmt, marker::PhantomData, sync::Arc};

use windlass_core::{Doc, Key, Revision, Selector, Str};

use super::{Version, functions::NAMESPACE_INDEX};
use crate::{object::Obj, tree::Element};

/// All objects of a store at one moment, with their indices. It is immutable and cheap to clone.
pub struct Snapshot<K = Doc> {
    version: Arc<Version>,
    kind: PhantomData<fn() -> K>,
}

/// There is no index of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("index with name {name} does not exist")]
pub struct UnknownIndex {
    /// The name that was asked for.
    pub name: String,
}

impl<K> Snapshot<K> {
    pub(crate) fn new(version: Arc<Version>) -> Self {
        Self {
            version,
            kind: PhantomData,
        }
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.version.objects.len()
    }

    /// Returns true if there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The revision that these objects are the state of, once a list has arrived.
    #[must_use]
    pub fn revision(&self) -> Option<&Revision> {
        self.version.revision.as_ref()
    }

    /// The object of a key.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Obj<K>> {
        self.find(key.namespace().unwrap_or(""), key.name())
            .map(Obj::cast)
    }

    /// The object of a name; an empty namespace stands for a cluster-scoped object.
    #[must_use]
    pub fn get_named(&self, namespace: &str, name: &str) -> Option<Obj<K>> {
        self.find(namespace, name).map(Obj::cast)
    }

    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<&Obj> {
        self.version
            .objects
            .get(|found| found.order_to(namespace, name))
    }

    /// All objects, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = Obj<K>> {
        self.version.objects.iter().map(Obj::cast)
    }

    /// Some objects after the one given, in the order of their keys; from the first for `None`.
    pub(crate) fn page_after(&self, object: Option<&Obj>, count: usize) -> Vec<Obj> {
        let objects = &self.version.objects;
        let Some(object) = object else {
            return objects.iter().take(count).cloned().collect();
        };
        let from = objects.iter_from(|found| found.order(object));
        from.filter(|found| found.order(object).is_gt())
            .take(count)
            .cloned()
            .collect()
    }

    /// The objects of a namespace, in the order of their names.
    pub fn namespaced(&self, namespace: &str) -> impl Iterator<Item = Obj<K>> {
        self.in_namespace(namespace).map(Obj::cast)
    }

    fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Obj> {
        self.version
            .objects
            .iter_from(|found| found.order_to_namespace(namespace))
            .take_while(move |found| found.namespace() == namespace)
    }

    /// The objects that match a selector, of one namespace or, if that is empty, of all.
    #[must_use]
    pub fn list(&self, namespace: &str, selector: &Selector) -> Vec<Obj<K>> {
        if selector.is_nothing() {
            return Vec::new();
        }
        let matches = |found: &&Obj| selector.is_everything() || selector.matches(&found.labels());
        if namespace.is_empty() {
            self.version
                .objects
                .iter()
                .filter(matches)
                .map(Obj::cast)
                .collect()
        } else {
            self.in_namespace(namespace)
                .filter(matches)
                .map(Obj::cast)
                .collect()
        }
    }

    /// The objects under a value of an index, in the order of their keys.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<Obj<K>>, UnknownIndex> {
        if name == NAMESPACE_INDEX {
            return Ok(self.namespaced(value).collect());
        }
        let found = self
            .index(name)?
            .postings
            .iter_from(|posting| posting.value.as_str().cmp(value));
        let matching = found.take_while(|posting| posting.value == *value);
        Ok(matching.map(|posting| posting.object.cast()).collect())
    }

    /// The keys of the objects under a value of an index, in order.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<Key>, UnknownIndex> {
        Ok(self.by_index(name, value)?.iter().map(Obj::key).collect())
    }

    /// All values of an index, in order. Empty if there is no such index.
    #[must_use]
    pub fn index_values(&self, name: &str) -> Vec<Str> {
        let mut values: Vec<Str> = match self.index(name) {
            Ok(index) => index
                .postings
                .iter()
                .map(|posting| posting.value.clone())
                .collect(),
            Err(_) if name == NAMESPACE_INDEX => self
                .version
                .objects
                .iter()
                .map(|object| object.namespace().into())
                .collect(),
            Err(_) => Vec::new(),
        };
        values.dedup();
        values
    }

    /// The bytes of the records, the tree and the indices, without the documents.
    pub(crate) fn store_bytes(&self) -> usize {
        let indices = self
            .version
            .indices
            .iter()
            .map(|index| index.postings.bytes());
        self.len() * Obj::<Doc>::RECORD_BYTES
            + self.version.objects.bytes()
            + indices.sum::<usize>()
    }

    /// The same objects under another type.
    #[must_use]
    pub fn cast<T>(&self) -> Snapshot<T> {
        Snapshot::new(self.version.clone())
    }

    fn index(&self, name: &str) -> Result<&super::Index, UnknownIndex> {
        self.version.index(name).ok_or_else(|| UnknownIndex {
            name: name.to_owned(),
        })
    }
}

impl<K> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        self.cast()
    }
}

impl<K> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("objects", &self.len())
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

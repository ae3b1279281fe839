//! The indexed store of an informer.

pub mod functions;
mod snapshot;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::{Mutex, RwLock};
use std::cmp::Ordering;
use windlass_core::{Key, Revision, Str};

use crate::{
    object::Obj,
    tree::{Element, Tree},
};
use functions::{IndexFn, NAMESPACE_INDEX};
pub use snapshot::{Snapshot, UnknownIndex};

/// A store of objects with indices.
///
/// All objects and all indices of one moment are one immutable version. A writer builds the next
/// version beside it, sharing all that does not change, and publishes it whole; a reader takes the
/// current version, which is one reference count, and may keep it as long as it likes. So readers
/// wait neither for each other nor for a batch, and every read of several objects is consistent.
///
/// Objects are sorted by key, and an index is a sorted set of pairs of value and object. A value
/// without objects therefore takes no memory, and lists come in the order of an API server's.
#[derive(Default)]
pub struct Indexer {
    /// The current version. Locked only for as long as it takes to copy or swap the pointer.
    current: RwLock<Arc<Version>>,
    /// Held by the one writer that builds the next version. Taken before `current`.
    writer: Mutex<()>,
    /// The number of panics of index functions. Written by writers, read by metrics.
    unindexed: AtomicU64,
}

/// Everything readers see at one moment.
#[derive(Clone, Default)]
pub(crate) struct Version {
    pub(crate) objects: Tree<Obj>,
    pub(crate) indices: Vec<Index>,
    pub(crate) revision: Option<Revision>,
}

/// One index: a sorted set of pairs.
#[derive(Clone)]
pub(crate) struct Index {
    pub(crate) name: Str,
    values: IndexFn,
    pub(crate) postings: Tree<Posting>,
}

/// An object under one of its values.
#[derive(Clone)]
pub(crate) struct Posting {
    pub(crate) value: Str,
    pub(crate) object: Obj,
}

/// Some of the names are taken by indices that exist; none was added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("indexer conflict: {names:?}")]
pub struct IndexConflict {
    /// The names that are taken.
    pub names: Vec<String>,
}

/// Changes that become visible together, see [`Indexer::write`].
pub struct Transaction<'a> {
    next: Version,
    unindexed: &'a AtomicU64,
}

/// The changes of a [`Transaction::replace`], in the order of keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replacement {
    /// Objects that were not there before.
    pub added: Vec<Obj>,
    /// Objects that differ from before: the old state and the new one.
    pub updated: Vec<(Obj, Obj)>,
    /// Objects that are no longer there.
    pub removed: Vec<Obj>,
}

impl Indexer {
    /// An empty store without indices.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The current version. It does not change any more.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.current.read().clone())
    }

    /// Runs changes and publishes them at once. If the closure panics, nothing has happened.
    pub fn write<R>(&self, change: impl FnOnce(&mut Transaction<'_>) -> R) -> R {
        let _only_writer = self.writer.lock();
        let next = Version::clone(&self.current.read());
        let mut transaction = Transaction {
            next,
            unindexed: &self.unindexed,
        };
        let result = change(&mut transaction);
        let next = Arc::new(transaction.next);
        // The version before is dropped after the lock is free: it may be the last reference.
        let _before = std::mem::replace(&mut *self.current.write(), next);
        result
    }

    /// Adds or updates one object, and moves the revision to that of the object.
    pub fn put(&self, object: &Obj) -> Option<Obj> {
        self.write(|transaction| {
            let before = transaction.put(object);
            transaction.advance(object.revision());
            before
        })
    }

    /// Removes one object. The revision stays: a key does not say when it was deleted.
    pub fn remove(&self, key: &Key) -> Option<Obj> {
        self.write(|transaction| transaction.remove(key.namespace().unwrap_or(""), key.name()))
    }

    /// Adds an index; the objects that are present are indexed at once.
    ///
    /// # Errors
    /// When there is an index of that name.
    pub fn add_index(
        &self,
        name: &str,
        values: impl Fn(&Obj) -> Vec<Str> + Send + Sync + 'static,
    ) -> Result<(), IndexConflict> {
        self.add_indices([(name, Arc::new(values) as IndexFn)])
    }

    /// Adds several indices, or none.
    ///
    /// # Errors
    /// When one of the names is taken.
    pub fn add_indices<'a>(
        &self,
        indices: impl IntoIterator<Item = (&'a str, IndexFn)>,
    ) -> Result<(), IndexConflict> {
        let indices: Vec<_> = indices.into_iter().collect();
        self.write(|transaction| {
            let taken =
                |name: &str| name == NAMESPACE_INDEX || transaction.next.index(name).is_some();
            let conflicts = indices.iter().filter(|(name, _)| taken(name));
            let names: Vec<_> = conflicts.map(|(name, _)| (*name).to_owned()).collect();
            if !names.is_empty() {
                return Err(IndexConflict { names });
            }
            for (name, values) in indices {
                transaction.add_index(name, values);
            }
            Ok(())
        })
    }

    /// The number of panics of index functions. The object of a panic is in no index of that name.
    #[must_use]
    pub fn unindexed(&self) -> u64 {
        self.unindexed.load(Relaxed)
    }
}

impl Transaction<'_> {
    /// Adds or updates an object; returns the one that it replaced.
    pub fn put(&mut self, object: &Obj) -> Option<Obj> {
        let before = self.next.objects.insert(object.clone());
        self.reindex(before.as_ref(), Some(object));
        before
    }

    /// Removes an object.
    pub fn remove(&mut self, namespace: &str, name: &str) -> Option<Obj> {
        let removed = self
            .next
            .objects
            .remove(|found| found.order_to(namespace, name))?;
        self.reindex(Some(&removed), None);
        Some(removed)
    }

    /// The object of this name, with the changes made so far.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<&Obj> {
        self.next
            .objects
            .get(|found| found.order_to(namespace, name))
    }

    /// Makes these the only objects, and says what that changed. Where a key comes twice the last
    /// one counts. An object that is equal to the stored one leaves it in place, so that a list
    /// without changes costs no memory.
    pub fn replace(&mut self, objects: Vec<Obj>) -> Replacement {
        let objects = sorted(objects);
        if self.next.objects.len() == 0 {
            self.fill(&objects);
            return Replacement {
                added: objects,
                ..Replacement::default()
            };
        }
        let fresh = Tree::from_sorted(&objects);
        let mut changes = Replacement {
            removed: self
                .next
                .objects
                .iter()
                .filter(|old| !contains(&fresh, old))
                .cloned()
                .collect(),
            ..Replacement::default()
        };
        for gone in &changes.removed {
            self.remove(gone.namespace(), gone.name());
        }
        for object in objects {
            match self.next.objects.get(|found| found.order(&object)) {
                Some(same) if *same == object => {}
                Some(old) => {
                    let old = old.clone();
                    self.put(&object);
                    changes.updated.push((old, object));
                }
                None => {
                    self.put(&object);
                    changes.added.push(object);
                }
            }
        }
        changes
    }

    /// Moves the revision forward. It never goes back: `None` and older revisions change nothing.
    pub fn advance(&mut self, revision: Option<Revision>) {
        if revision > self.next.revision {
            self.next.revision = revision;
        }
    }

    /// Sets the revision, also backwards. Only a list may do that, when the server itself has
    /// gone back: restored from a backup, it counts from there.
    pub(crate) fn reset_revision(&mut self, revision: Option<Revision>) {
        if revision.is_some() {
            self.next.revision = revision;
        }
    }

    /// Makes these sorted objects the content of an empty store.
    fn fill(&mut self, objects: &[Obj]) {
        self.next.objects = Tree::from_sorted(objects);
        for index in &mut self.next.indices {
            index.postings = index.fill(&self.next.objects, self.unindexed);
        }
    }

    fn add_index(&mut self, name: &str, values: IndexFn) {
        let mut index = Index {
            name: name.into(),
            values,
            postings: Tree::default(),
        };
        index.postings = index.fill(&self.next.objects, self.unindexed);
        self.next.indices.push(index);
    }

    /// Moves an object, which stays under its key, from its old values to its new ones.
    fn reindex(&mut self, old: Option<&Obj>, new: Option<&Obj>) {
        let Some(object) = new.or(old) else { return };
        for index in &mut self.next.indices {
            let values = |object: Option<&Obj>| {
                object.map_or_else(Vec::new, |object| index.values(object, self.unindexed))
            };
            let (before, after) = (values(old), values(new));
            for value in before.iter().filter(|value| !after.contains(value)) {
                index
                    .postings
                    .remove(|posting| posting.order_to(value, object));
            }
            for value in after {
                index.postings.insert(Posting {
                    value,
                    object: object.clone(),
                });
            }
        }
    }
}

impl Index {
    /// The values of an object. A function that panics gives none, and is counted.
    fn values(&self, object: &Obj, unindexed: &AtomicU64) -> Vec<Str> {
        catch_unwind(AssertUnwindSafe(|| (self.values)(object))).unwrap_or_else(|_| {
            unindexed.fetch_add(1, Relaxed);
            Vec::new()
        })
    }

    fn fill(&self, objects: &Tree<Obj>, unindexed: &AtomicU64) -> Tree<Posting> {
        let of = |object: &Obj| {
            let values = self.values(object, unindexed).into_iter();
            let object = object.clone();
            values.map(move |value| Posting {
                value,
                object: object.clone(),
            })
        };
        let mut postings: Vec<Posting> = objects.iter().flat_map(of).collect();
        postings.sort_unstable_by(Element::order);
        postings.dedup_by(|a, b| a.order(b) == Ordering::Equal);
        Tree::from_sorted(&postings)
    }
}

impl Posting {
    fn order_to(&self, value: &Str, object: &Obj) -> Ordering {
        if self.value == *value {
            self.object.order(object)
        } else {
            self.value.cmp(value)
        }
    }
}

impl Element for Posting {
    fn order(&self, other: &Self) -> Ordering {
        self.order_to(&other.value, &other.object)
    }
}

impl Version {
    pub(crate) fn index(&self, name: &str) -> Option<&Index> {
        self.indices.iter().find(|index| index.name == name)
    }
}

/// The objects in the order of their keys; of two with one key the later.
fn sorted(mut objects: Vec<Obj>) -> Vec<Obj> {
    if !objects.is_sorted_by(|a, b| a.order(b) == Ordering::Less) {
        objects.reverse();
        objects.sort_by(Element::order);
        objects.dedup_by(|a, b| a.order(b) == Ordering::Equal);
    }
    objects
}

fn contains(objects: &Tree<Obj>, object: &Obj) -> bool {
    objects.get(|found| found.order(object)).is_some()
}

impl fmt::Debug for Indexer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("objects", &self.next.objects.len())
            .field("revision", &self.next.revision)
            .finish_non_exhaustive()
    }
}

//! The store, asked by group, resource and name.

mod queue;
mod settle;

use std::ops::Deref;
use std::sync::Arc;

use windlass_core::{Doc, Key};
use windlass_store::{Resource as Shelf, Snapshot, Store, WriteError};

use crate::auth::{GrantIndex, PodIndex};
use crate::status::Status;
use queue::WriteQueue;
pub(crate) use settle::{Decided, Unsettled};

/// The store with the look-ups that authentication, authorization and admission need.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    store: Store,
    grants: Arc<GrantIndex>,
    queue: Arc<WriteQueue>,
    pods: Arc<PodIndex>,
}

impl Storage {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            grants: Arc::default(),
            queue: Arc::default(),
            pods: Arc::default(),
        }
    }

    /// The role bindings by subject.
    pub(crate) fn grants(&self) -> &GrantIndex {
        &self.grants
    }

    /// The pods by node.
    pub(crate) fn pods(&self) -> &PodIndex {
        &self.pods
    }

    /// One object in its stored form; the namespace is empty for cluster scope.
    pub(crate) fn find(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Doc> {
        if name.is_empty() || name.contains('/') || namespace.contains('/') {
            return None;
        }
        let entry = self
            .store
            .get(&Shelf::new(group, resource), &key(namespace, name))?;
        Some(entry.doc().clone())
    }

    /// All objects of a resource as they are now.
    pub(crate) fn snapshot_of(&self, group: &str, resource: &str) -> Snapshot {
        self.store.snapshot(&Shelf::new(group, resource))
    }
}

impl Deref for Storage {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// The key of an object; the namespace is empty for cluster scope.
pub(crate) fn key(namespace: &str, name: &str) -> Key {
    if namespace.is_empty() {
        Key::cluster(name)
    } else {
        Key::new(namespace, name)
    }
}

/// The answer to a write that was not made; `conflict` says how one is answered that always came
/// second.
pub(crate) fn unsettled(error: WriteError<Unsettled>, conflict: impl FnOnce() -> Status) -> Status {
    crate::rest::write_failed(error.map_refusal(|refusal| match refusal {
        Unsettled::Status(status) => status,
        Unsettled::Conflict => conflict(),
    }))
}

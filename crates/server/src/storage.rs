//! The store, asked by group, resource and name.

mod index;
mod queue;
mod settle;

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use windlass_core::{Doc, Key};
use windlass_store::{Resource as Shelf, Snapshot, Store, WriteError};

use index::Index;
use queue::WriteQueue;
pub(crate) use settle::{Decided, Unsettled};
use windlass_access::{Grant, GrantTable, Objects, PodTable, ROLES_GROUP, User};
use windlass_rules::reader::Reader;
use windlass_rules::status::Status;

/// The store with the look-ups that authentication, authorization and admission need.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    store: Store,
    grants: Arc<Index<GrantTable, 2>>,
    queue: Arc<WriteQueue>,
    pods: Arc<Index<PodTable, 1>>,
    /// The trouble that was logged last.
    logged: Arc<Mutex<Option<String>>>,
}

impl Storage {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            grants: Arc::default(),
            queue: Arc::default(),
            pods: Arc::default(),
            logged: Arc::default(),
        }
    }

    /// The reason why the store takes no objects, if it takes none.
    pub(crate) fn trouble(&self) -> Option<String> {
        if let Err(error) = self.store.health() {
            return Some(format!(
                "the store is read-only until it is restarted: {error}"
            ));
        }
        if let Err(error) = self.store.space() {
            return Some(format!(
                "objects can only be deleted until there is space on the disk: {error}"
            ));
        }
        let stats = self.store.stats();
        let (used, quota) = (stats.used_bytes, stats.quota_bytes);
        let is_over = used > 0 && used >= quota;
        is_over.then(|| {
            format!(
                "objects can only be deleted until the store holds less than its quota of {quota} \
                 bytes, or has a larger one (--quota-backend-bytes)"
            )
        })
    }

    /// Logs trouble once when it begins, and once when it is over.
    pub(crate) fn log_trouble(&self) {
        let now = self.trouble();
        let mut logged = self.logged.lock();
        match (&*logged, &now) {
            (None, Some(trouble)) => tracing::error!("{trouble}"),
            (Some(_), None) => tracing::info!("the store takes objects again"),
            // The same trouble in other words, or none.
            _ => {}
        }
        *logged = now;
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

impl Reader for Storage {
    fn find(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Doc> {
        Self::find(self, group, resource, namespace, name)
    }
}

impl Objects for Storage {
    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Doc> {
        let all = self.snapshot_of(group, resource);
        match namespace {
            "" => all.iter().map(|entry| entry.doc().clone()).collect(),
            namespace => all
                .namespace(namespace, "")
                .map(|entry| entry.doc().clone())
                .collect(),
        }
    }

    fn grants(&self, user: &User, namespace: &str) -> Vec<Grant> {
        let now = ["clusterrolebindings", "rolebindings"]
            .map(|resource| self.snapshot_of(ROLES_GROUP, resource));
        self.grants.read(now, |grants| grants.find(user, namespace))
    }

    fn pods_on(&self, node: &str, namespace: &str) -> Vec<Doc> {
        let now = [self.snapshot_of("", "pods")];
        self.pods.read(now, |pods| pods.on(node, namespace))
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
    write_failed(error.map_refusal(|refusal| match refusal {
        Unsettled::Status(status) => status,
        Unsettled::Conflict => conflict(),
    }))
}

/// What a failed write means to the client.
pub(crate) fn write_failed(error: WriteError<Status>) -> Status {
    match error {
        WriteError::Refused(status) => status,
        WriteError::ReadOnly(error) => {
            Status::unavailable(format!("storage is read-only: {error}"))
        }
        // Nothing was written. Upstream's text and code; its store says it the same way.
        WriteError::Quota { .. } => Status::plain("etcdserver: mvcc: database space exceeded"),
        WriteError::Full(error) => Status::unavailable(format!(
            "no space is left on the disk of the store; free some or delete objects: {error}"
        )),
        WriteError::Closed => Status::unavailable("the server is shutting down"),
        // The client must not take this for a refusal: the write may be there after a restart.
        WriteError::Unknown(error) => Status::timeout(&format!("the write may be lost: {error}")),
        _ => Status::internal("the write failed"),
    }
}

//! Values that are computed from a cache.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use parking_lot::Mutex;

use crate::{
    handler::Handler,
    lister::Lister,
    object::{Deleted, Obj},
};
use windlass_core::Selector;

/// A value that is computed when it is read for the first time after something has changed.
pub struct Lazy<T, E> {
    compute: Box<dyn Fn() -> Result<T, E> + Send + Sync>,
    /// The number of changes. Written by `notify`, read by `get`.
    changes: AtomicU64,
    /// The last value, and how many changes it has seen. Locked while a value is computed, so that
    /// several readers compute it once.
    last: Mutex<Option<(u64, Arc<T>)>>,
}

impl<T, E> Lazy<T, E> {
    /// A value that has not been computed.
    pub fn new(compute: impl Fn() -> Result<T, E> + Send + Sync + 'static) -> Self {
        Self {
            compute: Box::new(compute),
            changes: AtomicU64::new(0),
            last: Mutex::new(None),
        }
    }

    /// Something has changed: the value is computed anew when it is read next.
    pub fn notify(&self) {
        self.changes.fetch_add(1, SeqCst);
    }

    /// The value.
    ///
    /// # Errors
    /// When it cannot be computed. The next read tries again.
    pub fn get(&self) -> Result<Arc<T>, E> {
        let mut last = self.last.lock();
        // Read before computing: a change that comes meanwhile leads to another computation.
        let changes = self.changes.load(SeqCst);
        match &*last {
            Some((seen, value)) if *seen == changes => Ok(value.clone()),
            _ => {
                let value = Arc::new((self.compute)()?);
                *last = Some((changes, value.clone()));
                Ok(value)
            }
        }
    }
}

impl<T, E> fmt::Debug for Lazy<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy")
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}

/// Calls a function with all objects after every change, for programs that have no use for single
/// changes, such as one that writes a configuration file.
pub struct Undelta<K> {
    lister: Lister<K>,
    push: Box<dyn Fn(Vec<Obj<K>>) + Send + Sync>,
}

impl<K> Undelta<K> {
    /// A handler for the informer of this lister.
    pub fn new(lister: Lister<K>, push: impl Fn(Vec<Obj<K>>) + Send + Sync + 'static) -> Self {
        Self {
            lister,
            push: Box::new(push),
        }
    }

    fn push(&self) {
        (self.push)(self.lister.list(&Selector::everything()));
    }
}

impl<K: 'static> Handler<K> for Undelta<K> {
    async fn on_add(&self, _object: Obj<K>, _is_initial: bool) {
        self.push();
    }

    async fn on_update(&self, _old: Obj<K>, _new: Obj<K>) {
        self.push();
    }

    async fn on_delete(&self, _deleted: Deleted<K>) {
        self.push();
    }
}

impl<K> fmt::Debug for Undelta<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Undelta").field(&self.lister).finish()
    }
}

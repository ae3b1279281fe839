//! A store whose objects expire.

use std::{collections::BTreeMap, fmt, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_core::Key;

use crate::object::Obj;

/// A store whose objects expire some time after they were put in.
///
/// There is no task behind it: an expired object is dropped at the next look-up.
pub struct TtlStore {
    ttl: Duration,
    /// Returns true for objects that never expire.
    keep: Box<dyn Fn(&Obj) -> bool + Send + Sync>,
    /// The objects and the times at which they were put in. Bounded by the callers.
    objects: Mutex<BTreeMap<Key, (Instant, Obj)>>,
}

impl TtlStore {
    /// A store that keeps objects for this long; zero for ever.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self::keeping(ttl, |_| false)
    }

    /// A store that keeps some objects for ever.
    #[must_use]
    pub fn keeping(ttl: Duration, keep: impl Fn(&Obj) -> bool + Send + Sync + 'static) -> Self {
        Self {
            ttl,
            keep: Box::new(keep),
            objects: Mutex::default(),
        }
    }

    /// Puts an object in; its time starts anew.
    pub fn put(&self, object: Obj) {
        self.objects
            .lock()
            .insert(object.key(), (Instant::now(), object));
    }

    /// The object of a key, unless it is too old.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Obj> {
        let mut objects = self.objects.lock();
        let (since, object) = objects.get(key)?;
        if self.is_expired(*since, object) {
            objects.remove(key);
            return None;
        }
        Some(object.clone())
    }

    /// All objects that are not too old, in the order of their keys.
    #[must_use]
    pub fn list(&self) -> Vec<Obj> {
        let mut objects = self.objects.lock();
        objects.retain(|_, (since, object)| !self.is_expired(*since, object));
        objects.values().map(|(_, object)| object.clone()).collect()
    }

    /// Removes an object.
    pub fn remove(&self, key: &Key) -> Option<Obj> {
        self.objects.lock().remove(key).map(|(_, object)| object)
    }

    /// The number of objects in memory, expired ones included.
    #[must_use]
    pub fn held(&self) -> usize {
        self.objects.lock().len()
    }

    fn is_expired(&self, since: Instant, object: &Obj) -> bool {
        !self.ttl.is_zero() && since.elapsed() > self.ttl && !(self.keep)(object)
    }
}

impl fmt::Debug for TtlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TtlStore")
            .field("ttl", &self.ttl)
            .field("held", &self.held())
            .finish_non_exhaustive()
    }
}

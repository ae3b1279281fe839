//! The writers of one object that lost against another one, in the order in which they did.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use windlass_core::Key;
use windlass_store::Resource;

type ObjectId = (Resource, Key);
type ObjectQueue = Arc<tokio::sync::Mutex<()>>;

/// One queue for each object that has waiting writers. Bounded by the requests in flight.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    queues: Mutex<HashMap<ObjectId, ObjectQueue>>,
}

/// The head of the queue of an object. The next writer moves up when it is dropped.
pub(super) struct QueueGuard {
    queue: Arc<WriteQueue>,
    id: ObjectId,
    /// `None` while it waits and while it is dropped.
    guard: Option<OwnedMutexGuard<()>>,
}

impl WriteQueue {
    /// Returns true if an object has waiting writers.
    pub(super) fn has_waiters(&self, resource: &Resource, key: &Key) -> bool {
        let queues = self.queues.lock();
        !queues.is_empty() && queues.contains_key(&(resource.clone(), key.clone()))
    }

    /// Waits at the end of the queue of an object.
    pub(super) async fn enter(self: &Arc<Self>, resource: &Resource, key: &Key) -> QueueGuard {
        let id = (resource.clone(), key.clone());
        let queue = self.queues.lock().entry(id.clone()).or_default().clone();
        // Made first, so that a writer that goes away while it waits leaves no empty queue behind.
        let mut head = QueueGuard {
            queue: self.clone(),
            id,
            guard: None,
        };
        head.guard = Some(queue.lock_owned().await);
        head
    }
}

impl Drop for QueueGuard {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut queues = self.queue.queues.lock();
        // One reference is that of the map; others are only made with the map locked.
        let is_last = |queue: &ObjectQueue| Arc::strong_count(queue) == 1;
        if queues.get(&self.id).is_some_and(is_last) {
            queues.remove(&self.id);
        }
    }
}

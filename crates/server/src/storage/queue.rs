//! The writers of one object that lost against another one, in the order in which they did.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use windlass_core::Key;
use windlass_store::Resource as Shelf;

type Id = (Shelf, Key);
type Line = Arc<tokio::sync::Mutex<()>>;

/// One line of writers for each object that has any. Bounded by the requests in flight.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    lines: Mutex<HashMap<Id, Line>>,
}

/// The first place in the line of an object. The next one moves up when it is dropped.
pub(super) struct WriteTurn {
    queue: Arc<WriteQueue>,
    id: Id,
    /// `None` only while it is dropped.
    guard: Option<OwnedMutexGuard<()>>,
}

impl WriteQueue {
    /// Returns true if somebody stands in the line of an object.
    pub(super) fn has_line(&self, shelf: &Shelf, key: &Key) -> bool {
        let lines = self.lines.lock();
        !lines.is_empty() && lines.contains_key(&(shelf.clone(), key.clone()))
    }

    /// Waits in the line of an object.
    pub(super) async fn turn(self: &Arc<Self>, shelf: &Shelf, key: &Key) -> WriteTurn {
        let id = (shelf.clone(), key.clone());
        let line = self.lines.lock().entry(id.clone()).or_default().clone();
        // Whoever goes away while waiting must not leave an empty line behind.
        let mut turn = WriteTurn {
            queue: self.clone(),
            id,
            guard: None,
        };
        turn.guard = Some(line.lock_owned().await);
        turn
    }
}

impl Drop for WriteTurn {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut lines = self.queue.lines.lock();
        // One reference is that of the map; lines are only joined with the map locked.
        if lines
            .get(&self.id)
            .is_some_and(|line| Arc::strong_count(line) == 1)
        {
            lines.remove(&self.id);
        }
    }
}

//! The queue between a reflector and the store: what has changed, in the order to apply it.

mod by_key;
mod in_order;
mod population;

use std::{fmt, pin::pin, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Notify;
use windlass_core::{Doc, Key, Revision};

use crate::{
    indexer::{Indexer, Snapshot},
    object::{Deleted, Obj},
};
pub use by_key::ByKey;
pub use in_order::{BATCH_LIMIT, Batch, InOrder};

/// One change of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// The watch said that the object is new.
    Added(Obj),
    /// The watch said that the object has changed.
    Updated(Obj),
    /// The object is gone.
    Deleted(Deleted),
    /// A list contained the object.
    Replaced(Obj),
    /// A resync repeats the object as it is known.
    Sync(Obj),
}

impl Delta {
    /// The object that this is about.
    #[must_use]
    pub fn object(&self) -> &Obj {
        match self {
            Self::Added(object) | Self::Updated(object) => object,
            Self::Replaced(object) | Self::Sync(object) => object,
            Self::Deleted(deleted) => deleted.object(),
        }
    }

    /// The key of the object.
    #[must_use]
    pub fn key(&self) -> Key {
        self.object().key()
    }

    /// Returns true if the object is deleted.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted(_))
    }
}

/// The deltas of one object, oldest first; never empty.
pub type Deltas = Vec<Delta>;

/// A complete list.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The objects.
    pub objects: Vec<Obj>,
    /// Objects that exist but could not be read; the cache keeps their last state.
    pub kept: Vec<Key>,
    /// The revision that this is the state of.
    pub revision: Option<Revision>,
}

/// Changes an object before it is queued, as to drop fields nobody reads.
///
/// It runs exactly once for each object that the server sends. An error is counted and keeps the
/// object as it was known before.
pub type Transform = Arc<dyn Fn(Doc) -> Result<Doc, TransformError> + Send + Sync>;

/// A transform refused an object, or left it without a name. Nothing was queued for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transforming: {0}")]
pub struct TransformError(pub String);

/// The plain state machine inside a [`DeltaFifo`].
///
/// `known` is what the consumer's store holds at the time of the call.
pub trait DeltaQueue: Default + Send + 'static {
    /// The unit that is handed out.
    type Handout: Send;

    /// Queues an `Added` or `Updated`.
    fn push(&mut self, delta: Delta);

    /// Queues a deletion that the watch reported.
    fn delete(&mut self, deleted: Deleted, known: &Snapshot);

    /// Queues a complete list; what is known and not in it is gone.
    fn replace(&mut self, listing: Listing, known: &Snapshot);

    /// Queues a repetition of every known object that has nothing queued.
    fn resync(&mut self, known: &Snapshot);

    /// Notes that the watch has reached a revision without a change.
    fn bookmark(&mut self, revision: Revision);

    /// Takes the next hand-out.
    fn pop(&mut self) -> Option<Self::Handout>;

    /// Notes that the last hand-out has been applied.
    fn finished(&mut self);

    /// The number of queued entries.
    fn len(&self) -> usize;

    /// Returns true if nothing is queued.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the first list has been handed out and applied.
    fn has_synced(&self) -> bool;
}

/// The number of entries that may wait before a producer has to: two batches, as upstream.
pub const FIFO_LIMIT: usize = 2 * BATCH_LIMIT;

/// A queue of deltas with one producer and one consumer: a lock and a bell around one of two plain
/// state machines.
///
/// - [`InOrder`] keeps deltas in the order of the watch, and a list is one entry. The consumer
///   takes batches, so that the store goes from one state that the server had to another. Informers
///   use this.
/// - [`ByKey`] gathers the deltas of one object in one entry, so that a consumer sees the whole
///   recent history of a key at once. Objects overtake each other, and a list is applied object by
///   object. It is what client-go's informers used before 1.36, for consumers built on it.
///
/// There is no combination of options that makes no sense: a queue always knows the store behind
/// it.
///
/// ```
/// # use std::sync::Arc;
/// # use windlass_cache::{ByKey, DeltaFifo, Indexer};
/// let by_key: DeltaFifo<ByKey> = DeltaFifo::new(Arc::new(Indexer::new()), None);
/// ```
/// ```compile_fail
/// # use std::sync::Arc;
/// # use windlass_cache::{ByKey, DeltaFifo, Indexer};
/// let by_key: DeltaFifo<ByKey> = DeltaFifo::new(None::<Arc<Indexer>>, None);
/// ```
pub struct DeltaFifo<Q = InOrder> {
    state: Mutex<State<Q>>,
    /// Rung when there is something to take, and on close.
    filled: Notify,
    /// Rung when something was taken.
    drained: Notify,
    /// The objects that the consumer has applied, for deletions and resyncs.
    known: Arc<Indexer>,
    transform: Option<Transform>,
}

struct State<Q> {
    queue: Q,
    is_closed: bool,
}

/// Something handed out. Dropping it says that it was applied.
pub struct Popped<'a, Q: DeltaQueue = InOrder> {
    handout: Q::Handout,
    fifo: &'a DeltaFifo<Q>,
}

impl<Q: DeltaQueue> DeltaFifo<Q> {
    /// An empty queue in front of a store.
    #[must_use]
    pub fn new(known: Arc<Indexer>, transform: Option<Transform>) -> Self {
        let state = Mutex::new(State {
            queue: Q::default(),
            is_closed: false,
        });
        Self {
            state,
            filled: Notify::new(),
            drained: Notify::new(),
            known,
            transform,
        }
    }

    /// Queues an object that the watch called new.
    ///
    /// # Errors
    /// When the transform refuses the object.
    pub fn add(&self, object: Obj) -> Result<(), TransformError> {
        let object = self.transformed(object)?;
        self.push(|queue| queue.push(Delta::Added(object)));
        Ok(())
    }

    /// Queues an object that the watch called changed.
    ///
    /// # Errors
    /// When the transform refuses the object.
    pub fn update(&self, object: Obj) -> Result<(), TransformError> {
        let object = self.transformed(object)?;
        self.push(|queue| queue.push(Delta::Updated(object)));
        Ok(())
    }

    /// Queues the final state of an object that the watch called deleted.
    ///
    /// # Errors
    /// When the transform refuses the object. It is deleted all the same, as one whose final state
    /// is not known.
    pub fn delete(&self, object: Obj) -> Result<(), TransformError> {
        let known = self.known.snapshot();
        match self.transformed(object.clone()) {
            Ok(object) => {
                self.push(|queue| queue.delete(Deleted::Observed(object), &known));
                Ok(())
            }
            Err(error) => {
                self.push(|queue| queue.delete(Deleted::Tombstone(object), &known));
                Err(error)
            }
        }
    }

    /// Queues a complete list. An object that the transform refuses keeps its known state, and its
    /// key comes back with the error: one bad object does not stop a list.
    pub fn replace(
        &self,
        objects: Vec<Obj>,
        revision: Option<Revision>,
    ) -> Vec<(Key, TransformError)> {
        self.replace_keeping(objects, &[], revision)
    }

    /// Queues a complete list. The objects of some keys keep their last state.
    pub(crate) fn replace_keeping(
        &self,
        mut objects: Vec<Obj>,
        kept: &[Key],
        revision: Option<Revision>,
    ) -> Vec<(Key, TransformError)> {
        let mut refused = Vec::new();
        if self.transform.is_some() {
            let transformed = |object: Obj| match self.transformed(object.clone()) {
                Ok(object) => Some(object),
                Err(error) => {
                    refused.push((object.key(), error));
                    None
                }
            };
            objects = objects.into_iter().filter_map(transformed).collect();
        }
        let kept = refused
            .iter()
            .map(|(key, _)| key)
            .chain(kept)
            .cloned()
            .collect();
        let listing = Listing {
            objects,
            kept,
            revision,
        };
        self.push(|queue| queue.replace(listing, &self.known.snapshot()));
        refused
    }

    /// Queues a repetition of what is known.
    pub fn resync(&self) {
        self.push(|queue| queue.resync(&self.known.snapshot()));
    }

    /// Notes that the watch has reached a revision without a change.
    pub fn bookmark(&self, revision: Revision) {
        self.push(|queue| queue.bookmark(revision));
    }

    /// Takes the next hand-out, waiting for one; `None` once the queue is closed and empty.
    pub async fn pop(&self) -> Option<Popped<'_, Q>> {
        loop {
            let mut filled = pin!(self.filled.notified());
            // Listening starts before the look, so that a push in between is not missed.
            filled.as_mut().enable();
            let is_closed = {
                let mut state = self.state.lock();
                if let Some(handout) = state.queue.pop() {
                    drop(state);
                    self.drained.notify_waiters();
                    return Some(Popped {
                        handout,
                        fifo: self,
                    });
                }
                state.is_closed
            };
            if is_closed {
                return None;
            }
            filled.await;
        }
    }

    /// Waits until the queue has capacity. Lists and deletions do not wait: a list must be whole,
    /// and a delay of either only makes the cache older.
    pub async fn ready(&self) {
        loop {
            let mut drained = pin!(self.drained.notified());
            drained.as_mut().enable();
            if self.len() < FIFO_LIMIT {
                return;
            }
            drained.await;
        }
    }

    /// Takes no more from the producer. What is queued is still handed out.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.filled.notify_waiters();
    }

    /// The number of queued entries.
    pub fn len(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// Returns true if nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the first list has been handed out and applied.
    pub fn has_synced(&self) -> bool {
        self.state.lock().queue.has_synced()
    }

    fn transformed(&self, object: Obj) -> Result<Obj, TransformError> {
        match &self.transform {
            None => Ok(object),
            Some(transform) => {
                let doc = transform(object.doc().clone())?;
                Obj::new(doc).map_err(|error| TransformError(error.to_string()))
            }
        }
    }

    fn push(&self, change: impl FnOnce(&mut Q)) {
        {
            let mut state = self.state.lock();
            if state.is_closed {
                return;
            }
            change(&mut state.queue);
        }
        self.filled.notify_waiters();
    }
}

impl<Q: DeltaQueue> std::ops::Deref for Popped<'_, Q> {
    type Target = Q::Handout;
    fn deref(&self) -> &Q::Handout {
        &self.handout
    }
}

impl<Q: DeltaQueue> std::ops::DerefMut for Popped<'_, Q> {
    fn deref_mut(&mut self) -> &mut Q::Handout {
        &mut self.handout
    }
}

impl<Q: DeltaQueue> Drop for Popped<'_, Q> {
    fn drop(&mut self) {
        self.fifo.state.lock().queue.finished();
    }
}

impl<Q: DeltaQueue> fmt::Debug for DeltaFifo<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifo")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<Q: DeltaQueue> fmt::Debug for Popped<'_, Q>
where
    Q::Handout: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Popped").field(&self.handout).finish()
    }
}

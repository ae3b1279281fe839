//! One handler of an informer, with its buffer.

mod buffer;

use std::{
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::Poll,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::{handler::Handler, indexer::Snapshot, metrics::InformerMetrics};
use buffer::Buffer;
pub(crate) use buffer::{Note, Purpose};

/// The mailbox of one handler: the informer adds notifications, the handler's task takes them.
pub(crate) struct Listener {
    buffer: Mutex<Buffer>,
    /// Rung when a note was left, and on close.
    filled: Notify,
    /// True if the handler has handled all objects that existed when it was added.
    has_synced: watch::Sender<bool>,
    /// The number of panics of the handler.
    panics: AtomicU64,
    metrics: InformerMetrics,
}

impl Listener {
    pub(crate) fn new(limit: usize, metrics: InformerMetrics) -> Self {
        Self {
            buffer: Mutex::new(Buffer::new(limit)),
            filled: Notify::new(),
            has_synced: watch::Sender::new(false),
            panics: AtomicU64::new(0),
            metrics,
        }
    }

    /// Leaves notes.
    pub(crate) fn push(&self, notes: &[Note]) {
        self.fill(|buffer| notes.iter().for_each(|note| buffer.push(note.clone())));
    }

    /// Leaves one note for each object of a snapshot.
    pub(crate) fn sweep(&self, snapshot: Snapshot, purpose: Purpose) {
        self.fill(|buffer| buffer.sweep(snapshot, purpose));
    }

    fn fill(&self, change: impl FnOnce(&mut Buffer)) {
        let coalesced = {
            let mut buffer = self.buffer.lock();
            let before = buffer.coalesced();
            change(&mut buffer);
            buffer.coalesced() - before
        };
        self.metrics.coalesced(coalesced);
        self.filled.notify_one();
    }

    /// Ends the handler's task after the call in progress. Pending notifications are dropped.
    pub(crate) fn close(&self) {
        self.buffer.lock().close();
        self.filled.notify_one();
    }

    pub(crate) fn pending(&self) -> usize {
        self.buffer.lock().len()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.buffer.lock().is_idle()
    }

    pub(crate) fn coalesced(&self) -> u64 {
        self.buffer.lock().coalesced()
    }

    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Relaxed)
    }

    pub(crate) fn has_synced(&self) -> watch::Receiver<bool> {
        self.has_synced.subscribe()
    }

    /// The next note, if one waits. Asking says that the one before has been handled.
    pub(crate) fn try_next(&self) -> Option<Note> {
        let mut buffer = self.buffer.lock();
        let (note, has_synced) = (buffer.pop(), buffer.has_synced());
        drop(buffer);
        self.has_synced.send_if_modified(|known| {
            let is_news = has_synced && !*known;
            *known |= has_synced;
            is_news
        });
        note
    }

    /// The next note; `None` once closed.
    async fn next(&self) -> Option<Note> {
        loop {
            if let Some(note) = self.try_next() {
                return Some(note);
            }
            if self.buffer.lock().is_closed() {
                return None;
            }
            // There is one taker and a ring is kept for it, so none is missed.
            self.filled.notified().await;
        }
    }

    /// Tells a handler everything until the listener is closed.
    pub(crate) async fn deliver<K, H: Handler<K>>(self: Arc<Self>, handler: H) {
        while let Some(note) = self.next().await {
            // A handler that never waits must not keep the thread to itself.
            tokio::task::coop::consume_budget().await;
            if contained(tell(&handler, note)).await.is_err() {
                self.panics.fetch_add(1, Relaxed);
                self.metrics.panicked();
                tracing::error!("a handler panicked; the notification counts as handled");
            }
        }
    }
}

async fn tell<K, H: Handler<K>>(handler: &H, note: Note) {
    match note {
        Note::Add { object, is_initial } => handler.on_add(object.cast(), is_initial).await,
        Note::Update { old, new } => handler.on_update(old.cast(), new.cast()).await,
        Note::Delete(deleted) => handler.on_delete(deleted.cast()).await,
    }
}

/// The handler panicked.
struct Panicked;

/// Runs a future to its end, or to its panic.
async fn contained(future: impl Future<Output = ()>) -> Result<(), Panicked> {
    let mut future = pin!(future);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
            Err(_) => Poll::Ready(Err(Panicked)),
        },
    )
    .await
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("pending", &self.pending())
            .finish_non_exhaustive()
    }
}

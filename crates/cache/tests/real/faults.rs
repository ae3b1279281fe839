//! Whatever makes the watch of an informer fail.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use tokio::sync::watch;
use windlass_cache::{
    BoxFuture, BoxWatch, EventError, ListRequest, ListWatch, Page, Reason, ResourceSource,
    SourceError, Watch, WatchRequest,
};
use windlass_client::WatchEvent;

/// A source whose watches can be cut, and sent back to a state that the server has forgotten.
#[derive(Clone)]
pub(crate) struct Faulty(Arc<Inner>);

struct Inner {
    source: ResourceSource,
    cuts: watch::Sender<u64>,
    /// The next watch asks for the first of all states.
    is_stale: AtomicBool,
    lists: AtomicUsize,
    expired: AtomicUsize,
}

impl Faulty {
    pub(crate) fn new(source: ResourceSource) -> Self {
        let inner = Inner {
            source,
            cuts: watch::Sender::new(0),
            is_stale: AtomicBool::new(false),
            lists: AtomicUsize::new(0),
            expired: AtomicUsize::new(0),
        };
        Self(Arc::new(inner))
    }

    /// Cuts the connection.
    pub(crate) fn cut(&self) {
        self.0.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Cuts the connection and makes the server answer the next watch with a 410.
    pub(crate) fn expire(&self) {
        self.0.is_stale.store(true, SeqCst);
        self.cut();
    }

    /// The number of lists, of either sort, that were asked for.
    pub(crate) fn lists(&self) -> usize {
        self.0.lists.load(SeqCst)
    }

    /// The number of watches that the server ended with a 410.
    pub(crate) fn expired(&self) -> usize {
        self.0.expired.load(SeqCst)
    }
}

impl ListWatch for Faulty {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<Page, SourceError>> {
        self.0.lists.fetch_add(1, SeqCst);
        self.0.source.list(request)
    }

    fn watch(&self, mut request: WatchRequest) -> BoxFuture<'_, Result<BoxWatch, SourceError>> {
        if request.send_initial_events {
            self.0.lists.fetch_add(1, SeqCst);
        } else if self.0.is_stale.swap(false, SeqCst) {
            request.resource_version = "1".to_owned();
        }
        Box::pin(async move {
            let cuts = self.0.cuts.subscribe();
            let watch = self
                .0
                .source
                .watch(request)
                .await
                .inspect_err(|error| self.0.note(error));
            Ok(Box::new(Cuttable {
                watch: watch?,
                cuts,
                inner: self.0.clone(),
            }) as BoxWatch)
        })
    }
}

impl Inner {
    fn note(&self, error: &SourceError) {
        if error.reason == Reason::Expired {
            self.expired.fetch_add(1, SeqCst);
        }
    }
}

struct Cuttable {
    watch: BoxWatch,
    cuts: watch::Receiver<u64>,
    inner: Arc<Inner>,
}

impl Watch for Cuttable {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<WatchEvent, EventError>>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                _ = self.cuts.changed() => {
                    Some(Err(SourceError::new(Reason::Unreachable, "cut by the test").into()))
                }
                event = self.watch.next() => {
                    if let Some(Err(EventError::Ended(error))) = &event {
                        self.inner.note(error);
                    }
                    event
                }
            }
        })
    }
}

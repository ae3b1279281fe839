//! The run of an informer, from its start to its end.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::{Shared, SharedInformer, memory::BudgetWatch};
use crate::{fifo::Batch, reflector::Phase};

impl<K: 'static> SharedInformer<K> {
    /// Lists, watches, and tells the handlers, until `stop` is there. Then the watch is closed,
    /// handlers end the call they are in, and this returns when all of it has ended.
    ///
    /// An informer runs once; a second run returns at once. Dropping the future stops it too, but
    /// does not wait for the handlers.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let Some(reflector) = self.shared.reflector.lock().take() else {
            tracing::warn!(informer = %self.shared.name, "the informer has been started already");
            return;
        };
        let Ok(resync) = self.shared.fanout.start() else {
            return;
        };
        let run = Run {
            shared: self.shared.clone(),
            handlers: Vec::new(),
        };
        // The reflector and the store share a task: whatever the watch has ready is queued before
        // the store is touched, so that a burst of events becomes a batch without a switch of
        // threads for each of them.
        tokio::select! {
            biased;
            () = stop => {}
            () = Box::pin(reflector.run(std::future::pending())) => {}
            () = self.shared.process() => {}
            () = self.shared.resync(resync) => {}
        }
        run.join().await;
    }
}

impl Shared {
    /// Applies batches until the queue is closed.
    async fn process(&self) {
        let mut budget = BudgetWatch::default();
        while let Some(mut batch) = self.fifo.pop().await {
            self.apply(&mut batch);
            drop(batch);
            let is_synced = self.fifo.has_synced();
            self.has_synced.send_if_modified(|known| {
                let is_news = is_synced && !*known;
                *known |= is_synced;
                is_news
            });
            budget.look(self);
            tokio::task::coop::consume_budget().await;
        }
    }

    fn apply(&self, batch: &mut Batch) {
        let started = Instant::now();
        self.fanout.apply(batch);
        let snapshot = self.store.snapshot();
        // Whoever waits for a revision finds it in the store.
        self.revision.send_if_modified(|known| {
            let is_news = known.as_ref() != snapshot.revision();
            if is_news {
                *known = snapshot.revision().cloned();
            }
            is_news
        });
        self.metrics.processed(started.elapsed());
        self.metrics.stored(snapshot.len(), snapshot.revision());
        self.metrics.queued(self.fifo.len());
    }

    /// Repeats the store to handlers that asked for it.
    async fn resync(&self, period: Duration) {
        if period.is_zero() {
            return std::future::pending().await;
        }
        loop {
            sleep(period).await;
            if self.fanout.should_resync() {
                self.fifo.resync();
            }
        }
    }
}

/// A run, which is over when this is dropped.
struct Run {
    shared: Arc<Shared>,
    handlers: Vec<JoinHandle<()>>,
}

impl Run {
    async fn join(mut self) {
        self.stop();
        for handler in std::mem::take(&mut self.handlers) {
            if let Err(error) = handler.await {
                tracing::error!(%error, "a handler's task did not end well");
            }
        }
    }

    fn stop(&mut self) {
        self.shared.fifo.close();
        self.handlers.extend(self.shared.fanout.stop());
        self.shared
            .state
            .send_modify(|state| state.phase = Phase::Stopped);
        self.shared.is_stopped.send_replace(true);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop();
    }
}

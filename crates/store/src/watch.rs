//! Streams of events.

use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::shared::Shared;
use crate::{Event, Resource, WatchError};

/// Events that a watcher takes out of the history at a time.
const FETCH_LIMIT: usize = 64;

/// The events of one resource after a revision, in order, each once.
///
/// A watch reads the shared history by position. It has no queue that could grow: a watcher that
/// stays behind until the history has passed it gets [`WatchError::Lagged`], and others do not
/// notice.
pub struct Watch {
    shared: Arc<Shared>,
    resource: Resource,
    /// Told when there may be new events.
    wake: Arc<Notify>,
    /// The position in the history of the first event that was not taken out.
    position: u64,
    /// Everything up to here was delivered.
    delivered: u64,
    /// Taken out but not delivered, at most [`FETCH_LIMIT`].
    fetched: VecDeque<Arc<Event>>,
}

impl Watch {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        resource: &Resource,
        wake: Arc<Notify>,
        position: u64,
        from: u64,
    ) -> Self {
        Self {
            shared: shared.clone(),
            resource: resource.clone(),
            wake,
            position,
            delivered: from,
            fetched: VecDeque::new(),
        }
    }

    /// Waits for the next event. Nothing is lost when the future is dropped before it is ready.
    ///
    /// # Errors
    /// When the watch has ended; every further call says the same.
    pub async fn next(&mut self) -> Result<Arc<Event>, WatchError> {
        if let Some(event) = self.try_next()? {
            return Ok(event);
        }
        let wake = self.wake.clone();
        loop {
            let mut woken = pin!(wake.notified());
            // Listen first, look second: what is published in between wakes us.
            woken.as_mut().enable();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            woken.await;
        }
    }

    /// The next event if there is one already.
    ///
    /// # Errors
    /// When the watch has ended; every further call says the same.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, WatchError> {
        if self.fetched.is_empty() {
            self.fetch()?;
        }
        let event = self.fetched.pop_front();
        if let Some(event) = &event {
            debug_assert!(self.delivered < event.revision(), "events come in order");
            self.delivered = event.revision();
        }
        Ok(event)
    }

    /// Everything up to this revision was delivered: what a bookmark may say. It moves even when
    /// only other resources change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        let visible = self.shared.visible.read();
        let end = visible
            .shelves()
            .get(&self.resource)
            .map(|shelf| shelf.history.end());
        let is_current = self.fetched.is_empty() && end.is_none_or(|end| end == self.position);
        if is_current {
            self.delivered.max(visible.revision())
        } else {
            self.delivered
        }
    }

    /// Takes the next events out of the history.
    fn fetch(&mut self) -> Result<(), WatchError> {
        let visible = self.shared.visible.read();
        let shelf = visible.shelves().get(&self.resource);
        let shelf = shelf.expect("invariant: a shelf exists as long as the store");
        let Some(events) = shelf.history.from(self.position) else {
            return Err(WatchError::Lagged { at: self.delivered });
        };
        for event in events.take(FETCH_LIMIT) {
            self.position += 1;
            // A watch may start in the future.
            if event.revision() > self.delivered {
                self.fetched.push_back(event.clone());
            }
        }
        if self.fetched.is_empty() && visible.is_closed && self.position == shelf.history.end() {
            return Err(WatchError::Closed);
        }
        Ok(())
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("resource", &self.resource)
            .field("delivered", &self.delivered)
            .finish_non_exhaustive()
    }
}

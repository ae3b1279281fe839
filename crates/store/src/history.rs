//! The recent events of one resource, in order of revision.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Event;

/// Events whose attachments are kept: watchers that keep up are within this of the newest event.
const ATTACHED_LIMIT: usize = 256;

/// A bounded run of events without gaps. Watchers read it by position, so an event is stored once
/// however many watch, and a watcher that is too slow costs nothing: it finds its position gone.
#[derive(Debug)]
pub(crate) struct History {
    /// Oldest first, revisions strictly increasing, all above `floor`.
    events: VecDeque<Arc<Event>>,
    /// The position of the first event; positions count all events ever pushed.
    start: u64,
    /// No event of this revision or below is kept, and every event above is.
    floor: u64,
    /// Events kept at most.
    limit: usize,
}

impl History {
    /// An empty history of a resource of which nothing is known up to `floor`.
    pub(crate) fn new(floor: u64, limit: usize) -> Self {
        Self {
            events: VecDeque::new(),
            start: 0,
            floor,
            limit,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The oldest revision after which all events are known.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// The position behind the newest event.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.events.len() as u64
    }

    /// Appends an event and returns the one that had to go for it.
    pub(crate) fn push(&mut self, event: Arc<Event>) -> Option<Arc<Event>> {
        let newest = self
            .events
            .back()
            .map_or(self.floor, |event| event.revision());
        assert!(newest < event.revision(), "revisions only grow");
        self.events.push_back(event);
        if let Some(late) = self.events.len().checked_sub(ATTACHED_LIMIT + 1) {
            self.events[late].retire();
        }
        if self.events.len() > self.limit {
            self.pop()
        } else {
            None
        }
    }

    /// Drops the events up to `revision` and returns them.
    pub(crate) fn trim(&mut self, revision: u64) -> Vec<Arc<Event>> {
        let mut dropped = Vec::new();
        while self
            .events
            .front()
            .is_some_and(|event| event.revision() <= revision)
        {
            dropped.extend(self.pop());
        }
        self.floor = self.floor.max(revision);
        // A burst leaves room behind that a quiet resource would hold for ever.
        if self.events.capacity() > 4 * self.events.len().max(16) {
            self.events.shrink_to(2 * self.events.len());
        }
        dropped
    }

    /// The position of the first event above `revision`.
    pub(crate) fn position_after(&self, revision: u64) -> u64 {
        let index = self
            .events
            .partition_point(|event| event.revision() <= revision);
        self.start + index as u64
    }

    /// The events from `position` on; `None` when some of them are gone.
    pub(crate) fn from(
        &self,
        position: u64,
    ) -> Option<impl DoubleEndedIterator<Item = &Arc<Event>>> {
        let index = usize::try_from(position.checked_sub(self.start)?).ok()?;
        (index <= self.events.len()).then(|| self.events.range(index..))
    }

    fn pop(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        self.start += 1;
        self.floor = event.revision();
        Some(event)
    }
}

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
    events: VecDeque<Held>,
    /// The position of the first event; positions count all events ever pushed.
    start: u64,
    /// No event of this revision or below is kept, and every event above is.
    floor: u64,
    /// Bytes of all events ever pushed.
    pushed_bytes: u64,
    limits: HistoryLimits,
}

/// How much of the past is kept of one resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryLimits {
    /// Events at most.
    pub(crate) events: usize,
    /// Bytes at most that are held for events alone.
    pub(crate) bytes: u64,
}

/// An event, and how many bytes were pushed before it.
#[derive(Debug)]
struct Held {
    event: Arc<Event>,
    bytes_before: u64,
}

impl History {
    /// An empty history of a resource of which nothing is known up to `floor`.
    pub(crate) fn new(floor: u64, limits: HistoryLimits) -> Self {
        Self {
            events: VecDeque::new(),
            start: 0,
            floor,
            pushed_bytes: 0,
            limits,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Bytes that are held for events alone.
    pub(crate) fn bytes(&self) -> u64 {
        let first = self.events.front().map(|held| held.bytes_before);
        self.pushed_bytes - first.unwrap_or(self.pushed_bytes)
    }

    /// Bytes of all events ever pushed up to this revision, which is not older than the history.
    pub(crate) fn pushed_bytes_at(&self, revision: u64) -> u64 {
        let later = |held: &Held| held.event.revision() <= revision;
        let index = self.events.partition_point(later);
        self.events
            .get(index)
            .map_or(self.pushed_bytes, |held| held.bytes_before)
    }

    /// Bytes that may be held for events alone.
    pub(crate) fn bytes_limit(&self) -> u64 {
        self.limits.bytes
    }

    /// Bytes of all events ever pushed.
    pub(crate) fn pushed_bytes(&self) -> u64 {
        self.pushed_bytes
    }

    /// The oldest revision after which all events are known.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// The position behind the newest event.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.events.len() as u64
    }

    /// Appends an event that holds so many bytes, and returns those that had to go for it. The
    /// newest event stays, however large.
    pub(crate) fn push(&mut self, event: Arc<Event>, bytes: u64) -> Vec<Arc<Event>> {
        let newest = self
            .events
            .back()
            .map_or(self.floor, |held| held.event.revision());
        assert!(newest < event.revision(), "revisions only grow");
        self.events.push_back(Held {
            event,
            bytes_before: self.pushed_bytes,
        });
        self.pushed_bytes += bytes;
        if let Some(late) = self.events.len().checked_sub(ATTACHED_LIMIT + 1) {
            self.events[late].event.retire();
        }
        let mut dropped = Vec::new();
        while self.events.len() > self.limits.events || self.bytes() > self.limits.bytes {
            match self.drop_oldest() {
                Some(event) => dropped.push(event),
                None => break,
            }
        }
        dropped
    }

    /// Drops the oldest event, unless it is the newest as well.
    pub(crate) fn drop_oldest(&mut self) -> Option<Arc<Event>> {
        match self.events.len() {
            0 | 1 => None,
            _ => self.pop(),
        }
    }

    /// Drops the events up to `revision` and returns them.
    pub(crate) fn trim(&mut self, revision: u64) -> Vec<Arc<Event>> {
        let mut dropped = Vec::new();
        while self
            .events
            .front()
            .is_some_and(|held| held.event.revision() <= revision)
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
            .partition_point(|held| held.event.revision() <= revision);
        self.start + index as u64
    }

    /// The events from `position` on; `None` when some of them are gone.
    pub(crate) fn from(
        &self,
        position: u64,
    ) -> Option<impl DoubleEndedIterator<Item = &Arc<Event>>> {
        let index = usize::try_from(position.checked_sub(self.start)?).ok()?;
        let events = |index| self.events.range(index..).map(|held| &held.event);
        (index <= self.events.len()).then(|| events(index))
    }

    fn pop(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?.event;
        self.start += 1;
        self.floor = event.revision();
        Some(event)
    }
}

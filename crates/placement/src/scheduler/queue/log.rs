//! What has happened while pods are being tried.

use std::collections::{BTreeMap, VecDeque};

use crate::scheduler::plugin::ClusterEvent;

/// Events that are kept. A pod that is tried for longer is taken to have missed something.
pub(super) const EVENTS_LIMIT: usize = 8192;

/// The events since the oldest attempt that is still going on.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    events: VecDeque<ClusterEvent>,
    /// The position of the first event that is kept.
    start: u64,
    /// The positions at which attempts have begun, and how many did.
    attempts: BTreeMap<u64, usize>,
}

impl EventLog {
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    fn end_position(&self) -> u64 {
        self.start + self.events.len() as u64
    }

    /// Begins an attempt, at the position that is returned.
    pub(super) fn begin(&mut self) -> u64 {
        let position = self.end_position();
        *self.attempts.entry(position).or_default() += 1;
        position
    }

    /// Ends an attempt that has begun at a position.
    pub(super) fn end(&mut self, position: u64) {
        if let Some(count) = self.attempts.get_mut(&position) {
            *count -= 1;
            if *count == 0 {
                self.attempts.remove(&position);
            }
        }
        let oldest = self.attempts.keys().next().copied();
        let keep_from = oldest.unwrap_or_else(|| self.end_position());
        while self.start < keep_from && self.events.pop_front().is_some() {
            self.start += 1;
        }
    }

    /// Takes note of an event, if anybody could want to know.
    pub(super) fn push(&mut self, event: &ClusterEvent) {
        if self.attempts.is_empty() {
            return;
        }
        if self.events.len() == EVENTS_LIMIT {
            self.events.pop_front();
            self.start += 1;
        }
        self.events.push_back(event.clone());
    }

    /// The events since a position; `None` if some of them are lost.
    pub(super) fn since(&self, position: u64) -> Option<impl Iterator<Item = &ClusterEvent>> {
        let skip = usize::try_from(position.checked_sub(self.start)?).ok()?;
        Some(self.events.iter().skip(skip))
    }
}

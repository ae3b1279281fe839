//! What readers and watchers see: only what is durable.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use windlass_core::Key;

use crate::backend::{Loaded, Write};
use crate::expiry::{Lease, Leases};
use crate::history::{History, HistoryLimits};
use crate::map::Map;
use crate::snapshot::Kept;
use crate::{Entry, Event, EventKind, Resource, RevisionError, Snapshot, StoreOptions};

/// Marks per age of the history: how much longer than asked an event may stay.
const MARKS_PER_AGE: u32 = 5;

/// The visible state. It sits behind one lock, so that a revision and what it stands for are
/// always read together.
#[derive(Debug)]
pub(crate) struct Visible {
    /// The revision of the newest visible write. Written by [`Visible::publish`] alone.
    revision: u64,
    /// Nothing is known of changes up to here; resources without a shelf start from it.
    floor: u64,
    /// One per resource that was ever written or watched.
    shelves: BTreeMap<Resource, Shelf>,
    /// What has a time to live.
    pub(crate) leases: Leases,
    /// Which revision was the newest at which time, oldest first; at most a handful.
    marks: VecDeque<(Duration, u64)>,
    /// Set once, when the store closes: watches end.
    pub(crate) is_closed: bool,
    /// What is kept of each resource.
    limits: HistoryLimits,
    /// Bytes that are held for events of all resources.
    history_bytes: u64,
    /// Bytes that may be held for events of all resources.
    history_bytes_limit: u64,
}

/// One resource.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) map: Map,
    pub(crate) history: History,
    pub(crate) kept: Kept,
    /// Told whenever an event was appended to the history.
    pub(crate) wake: Arc<Notify>,
}

/// What a change made superfluous. It is dropped after the lock is released, because freeing many
/// documents takes long.
pub(crate) type Garbage = Vec<Box<dyn Any + Send>>;

impl Shelf {
    fn new(floor: u64, limits: HistoryLimits) -> Self {
        Self {
            map: Map::default(),
            history: History::new(floor, limits),
            kept: Kept::default(),
            wake: Arc::default(),
        }
    }
}

impl Visible {
    /// The state that the disk held.
    pub(crate) fn new(loaded: Loaded, options: &StoreOptions) -> Self {
        let mut visible = Self {
            revision: loaded.revision,
            floor: loaded.floor,
            shelves: BTreeMap::new(),
            leases: Leases::default(),
            marks: VecDeque::new(),
            is_closed: false,
            limits: HistoryLimits {
                events: options.history_limit,
                bytes: options.history_bytes_limit,
            },
            history_bytes: 0,
            history_bytes_limit: options.history_total_bytes_limit,
        };
        for (resource, entries) in loaded.objects {
            visible.shelf_mut(&resource).map = Map::from_sorted(entries);
        }
        for (resource, event) in loaded.events {
            let bytes = event.held_bytes();
            visible.remember(&resource, event, bytes, &mut Garbage::new());
        }
        for lease in loaded.leases {
            visible.leases.add(lease);
        }
        visible
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// Bytes that are held for events of all resources.
    pub(crate) fn history_bytes(&self) -> u64 {
        self.history_bytes
    }

    pub(crate) fn shelves(&self) -> &BTreeMap<Resource, Shelf> {
        &self.shelves
    }

    pub(crate) fn get(&self, resource: &Resource, key: &Key) -> Option<&Arc<Entry>> {
        self.shelves.get(resource)?.map.get(key.as_str())
    }

    pub(crate) fn snapshot(&self, resource: &Resource) -> Snapshot {
        let map = self.shelves.get(resource).map(|shelf| shelf.map.clone());
        Snapshot::new(self.revision, map.unwrap_or_default())
    }

    /// A state at or after `revision`, and the events that lead to it from `revision`.
    pub(crate) fn snapshot_after(
        &self,
        resource: &Resource,
        revision: u64,
    ) -> Result<(Snapshot, Vec<Arc<Event>>), RevisionError> {
        if revision > self.revision {
            return Err(RevisionError::Future {
                asked: revision,
                newest: self.revision,
            });
        }
        let shelf = self.shelves.get(resource);
        if let Some(kept) = shelf.and_then(|shelf| shelf.kept.get(revision)) {
            return Ok((kept.clone(), Vec::new()));
        }
        let oldest = shelf.map_or(self.floor, |shelf| shelf.history.floor());
        if revision < oldest {
            return Err(RevisionError::Expired {
                asked: revision,
                oldest,
            });
        }
        let events =
            shelf.and_then(|shelf| shelf.history.from(shelf.history.position_after(revision)));
        Ok((
            self.snapshot(resource),
            events.into_iter().flatten().cloned().collect(),
        ))
    }

    /// The shelf of a resource, which is made if there is none.
    pub(crate) fn shelf_mut(&mut self, resource: &Resource) -> &mut Shelf {
        if !self.shelves.contains_key(resource) {
            let shelf = Shelf::new(self.floor, self.limits);
            self.shelves.insert(resource.clone(), shelf);
        }
        self.shelves
            .get_mut(resource)
            .expect("invariant: the shelf was just made")
    }

    /// Makes one durable write visible, whose event holds so many bytes.
    pub(crate) fn publish(
        &mut self,
        write: &Write,
        bytes: u64,
        garbage: &mut Garbage,
    ) -> &Arc<Notify> {
        let Write {
            resource,
            event,
            expiry,
        } = write;
        assert!(
            self.revision < event.revision(),
            "writes are published in order"
        );
        self.revision = event.revision();
        if let Some(previous) = &event.previous {
            self.leases.end(previous.revision);
        }
        if let Some(expiry) = expiry {
            self.leases.add(Lease {
                deadline: expiry.deadline,
                revision: event.revision(),
                resource: resource.clone(),
                key: event.key().clone(),
            });
        }
        let shelf = self.shelf_mut(resource);
        let replaced = match event.kind {
            EventKind::Put => shelf.map.insert(event.entry.clone()),
            EventKind::Delete => shelf.map.remove(event.key().as_str()),
        };
        debug_assert_eq!(
            replaced.map(|entry| entry.revision),
            event.previous.as_ref().map(|entry| entry.revision),
            "a write was decided on the state that it replaces",
        );
        self.remember(resource, event.clone(), bytes, garbage);
        &self.shelf_mut(resource).wake
    }

    /// Appends an event to the history of its resource, and forgets what is too much.
    fn remember(
        &mut self,
        resource: &Resource,
        event: Arc<Event>,
        bytes: u64,
        garbage: &mut Garbage,
    ) {
        let shelf = self.shelf_mut(resource);
        let before = shelf.history.bytes();
        let gone = shelf.history.push(event, bytes);
        if !gone.is_empty() {
            garbage.push(Box::new(gone));
        }
        let after = shelf.history.bytes();
        let heavy = shelf.kept.trim_bytes(&shelf.history);
        if !heavy.is_empty() {
            garbage.push(Box::new(heavy));
        }
        self.history_bytes = self.history_bytes + after - before;
        while self.history_bytes > self.history_bytes_limit {
            let Some(gone) = self.forget_largest() else {
                return;
            };
            garbage.push(Box::new(gone));
        }
    }

    /// Drops the oldest event of the resource whose history takes most memory.
    fn forget_largest(&mut self) -> Option<Arc<Event>> {
        let histories = self.shelves.values_mut().map(|shelf| &mut shelf.history);
        let largest = histories.max_by_key(|history| history.bytes())?;
        let before = largest.bytes();
        let gone = largest.drop_oldest();
        self.history_bytes -= before - largest.bytes();
        gone
    }

    /// Forgets events and snapshots older than `age`; returns the new floor if it rose.
    pub(crate) fn compact(
        &mut self,
        now: Duration,
        age: Duration,
        garbage: &mut Garbage,
    ) -> Option<u64> {
        let floor = self.mark(now, age);
        if let Some(floor) = floor {
            self.floor = floor;
        }
        for shelf in self.shelves.values_mut() {
            garbage.push(Box::new(shelf.kept.trim(now.saturating_sub(age))));
            if let Some(floor) = floor {
                let before = shelf.history.bytes();
                garbage.push(Box::new(shelf.history.trim(floor)));
                self.history_bytes -= before - shelf.history.bytes();
            }
        }
        floor
    }

    /// Notes where the store is now, and returns where it was `age` ago if that is above the floor.
    fn mark(&mut self, now: Duration, age: Duration) -> Option<u64> {
        let is_due = |(time, _): &(Duration, u64)| *time + age / MARKS_PER_AGE <= now;
        if self.marks.back().is_none_or(is_due) {
            self.marks.push_back((now, self.revision));
        }
        let mut floor = None;
        while let Some((_, revision)) = self.marks.pop_front_if(|(time, _)| *time + age <= now) {
            floor = Some(revision);
        }
        floor.filter(|revision| *revision > self.floor)
    }
}

//! What readers and watchers see: only what is durable.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use windlass_core::Key;

use crate::backend::{Loaded, Write};
use crate::expiry::{Lease, Leases};
use crate::history::History;
use crate::map::Map;
use crate::snapshot::Kept;
use crate::{Entry, Event, EventKind, Resource, RevisionError, Snapshot};

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
    /// Events per resource at most.
    history_limit: usize,
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
    fn new(floor: u64, history_limit: usize) -> Self {
        Self {
            map: Map::default(),
            history: History::new(floor, history_limit),
            kept: Kept::default(),
            wake: Arc::default(),
        }
    }
}

impl Visible {
    /// The state that the disk held.
    pub(crate) fn new(loaded: Loaded, history_limit: usize) -> Self {
        let mut visible = Self {
            revision: loaded.revision,
            floor: loaded.floor,
            shelves: BTreeMap::new(),
            leases: Leases::default(),
            marks: VecDeque::new(),
            is_closed: false,
            history_limit,
        };
        for (resource, entries) in loaded.objects {
            visible.shelf_mut(&resource).map = Map::from_sorted(entries);
        }
        for (resource, event) in loaded.events {
            visible.shelf_mut(&resource).history.push(event);
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
            let shelf = Shelf::new(self.floor, self.history_limit);
            self.shelves.insert(resource.clone(), shelf);
        }
        self.shelves
            .get_mut(resource)
            .expect("invariant: the shelf was just made")
    }

    /// Makes one durable write visible.
    pub(crate) fn publish(&mut self, write: &Write, garbage: &mut Garbage) -> &Arc<Notify> {
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
        if let Some(gone) = shelf.history.push(event.clone()) {
            garbage.push(Box::new(gone));
        }
        &shelf.wake
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
                garbage.push(Box::new(shelf.history.trim(floor)));
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

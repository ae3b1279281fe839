//! When objects with a time to live go.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use foldhash::fast::RandomState;
use windlass_core::{Env, Key};

use crate::Resource;

/// The table of deadlines shrinks when it has room for this many times its entries, and for more
/// than this number of entries.
const SPARE_FACTOR: usize = 8;
const SPARE_ENTRIES: usize = 128;

/// The end of an object's life, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expiry {
    /// On the clock that never jumps; this decides.
    pub(crate) deadline: Duration,
    /// Microseconds since 1970; this survives a restart.
    pub(crate) wall_micros: i64,
}

/// One state of an object that is to go. A later write of the object outdates it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) deadline: Duration,
    pub(crate) revision: u64,
    pub(crate) resource: Resource,
    pub(crate) key: Key,
}

/// All leases, earliest first: at most one for each object that exists. A write that replaces or
/// deletes the object ends the lease of the state before, whose deadline may be an hour away.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    by_deadline: BTreeMap<(Duration, u64), (Resource, Key)>,
    /// The deadline of a state, by its revision.
    deadlines: HashMap<u64, Duration, RandomState>,
}

impl Leases {
    pub(crate) fn add(&mut self, lease: Lease) {
        let (deadline, revision) = (lease.deadline, lease.revision);
        self.deadlines.insert(revision, deadline);
        self.by_deadline
            .insert((deadline, revision), (lease.resource, lease.key));
    }

    /// The earliest leases that have ended at `now`.
    pub(crate) fn due(&self, now: Duration, limit: usize) -> Vec<Lease> {
        let due = self.by_deadline.range(..=(now, u64::MAX)).take(limit);
        let lease = |(&(deadline, revision), (resource, key)): (_, &(Resource, Key))| Lease {
            deadline,
            revision,
            resource: resource.clone(),
            key: key.clone(),
        };
        due.map(lease).collect()
    }

    /// Ends the lease of the state that a write of this revision made, if it has one.
    pub(crate) fn end(&mut self, revision: u64) {
        if let Some(deadline) = self.deadlines.remove(&revision) {
            self.by_deadline.remove(&(deadline, revision));
        }
        // A burst leaves room behind that would be held for ever.
        if self.deadlines.capacity() > SPARE_FACTOR * self.deadlines.len().max(SPARE_ENTRIES) {
            self.deadlines.shrink_to(2 * self.deadlines.len());
        }
    }

    /// The number of leases.
    pub(crate) fn len(&self) -> usize {
        self.by_deadline.len()
    }
}

impl Lease {
    /// The end on the clock that survives a restart.
    pub(crate) fn wall_micros(&self, env: &Env) -> i64 {
        let left = self.deadline.saturating_sub(env.elapsed());
        Expiry::after(env, left).wall_micros
    }
}

impl Expiry {
    /// The end of a life that starts now.
    pub(crate) fn after(env: &Env, ttl: Duration) -> Self {
        let micros = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
        Self {
            deadline: env.elapsed().saturating_add(ttl),
            wall_micros: env.now_micro().unix_micros().saturating_add(micros),
        }
    }

    /// The end of a life that was noted before a restart. What ended meanwhile ends now.
    pub(crate) fn at_wall(env: &Env, wall_micros: i64) -> Self {
        let left = wall_micros.saturating_sub(env.now_micro().unix_micros());
        let left = Duration::from_micros(u64::try_from(left).unwrap_or(0));
        Self {
            deadline: env.elapsed().saturating_add(left),
            wall_micros,
        }
    }
}

//! When objects with a time to live go.

use std::collections::BTreeSet;
use std::time::Duration;

use windlass_core::{Env, Key};

use crate::Resource;

/// The end of an object's life, on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expiry {
    /// On the clock that never jumps; this decides.
    pub(crate) deadline: Duration,
    /// Microseconds since 1970; this survives a restart.
    pub(crate) wall_micros: i64,
}

/// One state of an object that is to go. A later write of the object outdates it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lease {
    pub(crate) deadline: Duration,
    pub(crate) revision: u64,
    pub(crate) resource: Resource,
    pub(crate) key: Key,
}

/// All leases, earliest first. As many as there are writes with a time to live whose deadline a
/// sweep has not seen yet.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    leases: BTreeSet<Lease>,
}

impl Leases {
    pub(crate) fn add(&mut self, lease: Lease) {
        self.leases.insert(lease);
    }

    /// The earliest leases that have ended at `now`.
    pub(crate) fn due(&self, now: Duration, limit: usize) -> Vec<Lease> {
        let due = self.leases.iter().take_while(|lease| lease.deadline <= now);
        due.take(limit).cloned().collect()
    }

    pub(crate) fn remove(&mut self, lease: &Lease) {
        self.leases.remove(lease);
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

//! Where adds wait until the queue looks at them.
//!
//! The state machine is shared by all workers and touched in many places by each step, so a
//! producer that entered it for every add would pull it out of the workers' caches, and wait for
//! them. It leaves the demand here instead, behind a lock of its own that is held for a few
//! instructions. Whoever looks at the queue takes everything out first, in order, so that nobody
//! can tell the difference: an add that has returned is seen by every later call.
//!
//! The lock of the queue may be held while the one of the inbox is taken, never the other way
//! round.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::state::Demand;

/// A producer that finds this many demands waiting lets the queue look at them. Duplicates are not
/// recognized before, so this bounds what a busy producer can pile up while all workers are away.
const DEMANDS_MAX: usize = 128;

/// Demands on their way to the queue. It has its cache lines for itself.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Inbox<K> {
    /// Whether there are demands, so that a look at an empty inbox costs no lock. Changed under
    /// the lock only.
    is_filled: AtomicBool,
    contents: Mutex<Contents<K>>,
}

#[derive(Debug)]
struct Contents<K> {
    demands: Vec<Demand<K>>,
    is_closed: bool,
    /// Whether a worker is parked that a producer may have to wake.
    is_awaited: bool,
}

impl<K> Inbox<K> {
    pub(crate) fn new() -> Self {
        Self {
            is_filled: AtomicBool::new(false),
            contents: Mutex::new(Contents {
                demands: Vec::new(),
                is_closed: false,
                is_awaited: false,
            }),
        }
    }

    /// Leaves a demand. Returns whether the queue has to look at it now; otherwise the next one
    /// who looks at the queue will see it.
    pub(crate) fn put(&self, demand: Demand<K>) -> bool {
        let mut contents = self.contents.lock();
        if contents.is_closed {
            drop(contents);
            return false;
        }
        contents.demands.push(demand);
        if contents.demands.len() == 1 {
            self.is_filled.store(true, Ordering::Release);
        }
        contents.is_awaited || contents.demands.len() >= DEMANDS_MAX
    }

    /// Moves all demands into an empty vector.
    pub(crate) fn take(&self, into: &mut Vec<Demand<K>>) {
        if self.is_filled.load(Ordering::Acquire) {
            self.swap(&mut self.contents.lock(), into);
        }
    }

    /// Says whether a worker is parked that a producer may have to wake, and takes the demands
    /// that were left by producers who did not know.
    pub(crate) fn set_awaited(&self, is_awaited: bool, into: &mut Vec<Demand<K>>) {
        let mut contents = self.contents.lock();
        contents.is_awaited = is_awaited;
        self.swap(&mut contents, into);
    }

    /// Refuses demands from now on, and takes the last ones.
    pub(crate) fn close(&self, into: &mut Vec<Demand<K>>) {
        let mut contents = self.contents.lock();
        contents.is_closed = true;
        self.swap(&mut contents, into);
    }

    fn swap(&self, contents: &mut Contents<K>, into: &mut Vec<Demand<K>>) {
        debug_assert!(into.is_empty());
        if !contents.demands.is_empty() {
            std::mem::swap(&mut contents.demands, into);
            self.is_filled.store(false, Ordering::Release);
        }
    }
}

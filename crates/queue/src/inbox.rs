//! Adds that wait until the queue is looked at.
//!
//! The state machine is shared by all workers and touched in many places by each step, so a
//! producer on another thread that entered it for every add would pull it out of the workers'
//! caches, and wait for them. It leaves its add here instead, behind a lock of its own that is
//! held for a few instructions. Whoever looks at the queue reads all adds first, in order, so
//! that nobody can tell the difference: an add that has returned is seen by every later call.
//!
//! The lock of the queue may be held while the one of the inbox is taken, never the other way
//! round.

use crate::{
    state::Demand,
    sync::{AtomicBool, Mutex, Ordering},
};

/// Whoever leaves an add and finds this many waiting looks at the queue. Duplicates are not
/// recognized before, so this bounds what a busy producer can pile up while all workers are away.
const ADDS_MAX: usize = 128;

/// The state of an add that was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// The next one who looks at the queue will see it.
    Kept,
    /// It is there, and somebody has to look at the queue now.
    Urgent,
    /// The inbox is closed; the add is lost.
    Closed,
}

/// Adds on their way to the queue. It has its cache lines for itself.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Inbox<K> {
    /// Whether there are adds, so that a look at an empty inbox costs no lock. Changed under
    /// the lock only.
    is_filled: AtomicBool,
    contents: Mutex<Contents<K>>,
}

#[derive(Debug)]
struct Contents<K> {
    adds: Vec<Demand<K>>,
    is_closed: bool,
    /// Whether a worker is parked that a producer may have to wake.
    is_awaited: bool,
}

impl<K> Inbox<K> {
    pub(crate) fn new() -> Self {
        Self {
            is_filled: AtomicBool::new(false),
            contents: Mutex::new(Contents {
                adds: Vec::new(),
                is_closed: false,
                is_awaited: false,
            }),
        }
    }

    /// Leaves an add.
    pub(crate) fn put(&self, demand: Demand<K>) -> Put {
        let mut contents = self.contents.lock();
        if contents.is_closed {
            drop(contents);
            return Put::Closed;
        }
        contents.adds.push(demand);
        if contents.adds.len() == 1 {
            self.is_filled.store(true, Ordering::Release);
        }
        if contents.is_awaited || contents.adds.len() >= ADDS_MAX {
            Put::Urgent
        } else {
            Put::Kept
        }
    }

    /// Returns true if there are adds.
    pub(crate) fn is_filled(&self) -> bool {
        self.is_filled.load(Ordering::Acquire)
    }

    /// Moves all adds into an empty vector.
    pub(crate) fn take(&self, into: &mut Vec<Demand<K>>) {
        self.swap(&mut self.contents.lock(), into);
    }

    /// Says whether a worker is parked that a producer may have to wake, and takes the adds
    /// that were left by producers who did not know.
    pub(crate) fn set_awaited(&self, is_awaited: bool, into: &mut Vec<Demand<K>>) {
        let mut contents = self.contents.lock();
        contents.is_awaited = is_awaited;
        self.swap(&mut contents, into);
    }

    /// Refuses adds from now on, and takes the last ones.
    pub(crate) fn close(&self, into: &mut Vec<Demand<K>>) {
        let mut contents = self.contents.lock();
        contents.is_closed = true;
        self.swap(&mut contents, into);
    }

    fn swap(&self, contents: &mut Contents<K>, into: &mut Vec<Demand<K>>) {
        debug_assert!(into.is_empty());
        if !contents.adds.is_empty() {
            std::mem::swap(&mut contents.adds, into);
            self.is_filled.store(false, Ordering::Release);
        }
    }
}

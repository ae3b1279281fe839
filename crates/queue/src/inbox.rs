//! The inbox: commands wait in it until a worker looks at the queue.
//!
//! The state machine is shared by all workers and touched in many places by each step, so a
//! producer on another thread that entered it for every add would pull it out of the workers'
//! caches, and wait for them. It leaves a command here instead, behind a lock of its own that is
//! held for a few instructions. Whoever looks at the queue reads all commands first, in order, so
//! that nobody can tell the difference: an add that has returned is seen by every later call.
//!
//! The lock of the queue may be held while the one of the inbox is taken, never the other way
//! round.

use crate::{
    slots::SlotId,
    state::Demand,
    sync::{AtomicBool, Mutex, Ordering},
};

/// Whoever leaves a command and finds this many waiting looks at the queue. Duplicates are not
/// recognized before, so this bounds what a busy producer can pile up while all workers are away.
const COMMANDS_MAX: usize = 128;

/// A command to the queue whose sender does not wait for its effect.
#[derive(Debug)]
pub(crate) enum Command<K> {
    /// To queue a key.
    Add(Demand<K>),
    /// To end a hand-out, at a time that only a queue that counts needs.
    Done { id: SlotId, at: u64 },
}

/// The result of handing in a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// The next one who looks at the queue will see it.
    /// It is the first if the one before was seen already.
    Kept { is_first: bool },
    /// It is there, and somebody has to look at the queue now.
    Urgent,
    /// The inbox is closed; the command is lost.
    Closed,
}

/// Commands on their way to the queue. It has its cache lines for itself.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Inbox<K> {
    /// True if there are commands, so that a look at an empty inbox costs no lock. Changed under
    /// the lock only.
    is_filled: AtomicBool,
    contents: Mutex<Contents<K>>,
}

#[derive(Debug)]
struct Contents<K> {
    commands: Vec<Command<K>>,
    is_closed: bool,
    /// True if a worker is parked that a producer may have to wake.
    is_awaited: bool,
}

impl<K> Inbox<K> {
    pub(crate) fn new() -> Self {
        Self {
            is_filled: AtomicBool::new(false),
            contents: Mutex::new(Contents {
                commands: Vec::new(),
                is_closed: false,
                is_awaited: false,
            }),
        }
    }

    /// Leaves a command.
    pub(crate) fn put(&self, command: Command<K>) -> Put {
        let mut contents = self.contents.lock();
        if contents.is_closed {
            drop(contents);
            return Put::Closed;
        }
        contents.commands.push(command);
        if contents.commands.len() == 1 {
            self.is_filled.store(true, Ordering::Release);
        }
        if contents.is_awaited || contents.commands.len() >= COMMANDS_MAX {
            Put::Urgent
        } else {
            Put::Kept {
                is_first: contents.commands.len() == 1,
            }
        }
    }

    /// Returns true if there are commands.
    pub(crate) fn is_filled(&self) -> bool {
        self.is_filled.load(Ordering::Acquire)
    }

    /// Moves all commands into an empty vector.
    pub(crate) fn take(&self, into: &mut Vec<Command<K>>) {
        self.swap(&mut self.contents.lock(), into);
    }

    /// Says whether a worker is parked that a producer may have to wake, and takes the commands
    /// that were left by producers who did not know.
    pub(crate) fn set_awaited(&self, is_awaited: bool, into: &mut Vec<Command<K>>) {
        let mut contents = self.contents.lock();
        contents.is_awaited = is_awaited;
        self.swap(&mut contents, into);
    }

    /// Refuses commands from now on, and takes the last ones.
    pub(crate) fn close(&self, into: &mut Vec<Command<K>>) {
        let mut contents = self.contents.lock();
        contents.is_closed = true;
        self.swap(&mut contents, into);
    }

    fn swap(&self, contents: &mut Contents<K>, into: &mut Vec<Command<K>>) {
        debug_assert!(into.is_empty());
        if !contents.commands.is_empty() {
            std::mem::swap(&mut contents.commands, into);
            self.is_filled.store(false, Ordering::Release);
        }
    }
}

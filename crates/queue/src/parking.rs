//! The idle workers, and the one rule that says when to wake one.
//!
//! The rule: *whenever there is something for an idle worker to do, one is on its way*. "Something"
//! is a ready key, or a timer that nobody sleeps for. Each critical section of the queue ends with
//! [`Parking::next_to_wake`], so that the rule holds whenever the lock is free; a woken worker ends
//! with it too, which passes the wake on while there is more to do.

use std::{collections::VecDeque, task::Waker};

/// At most this many workers are on their way at once. Waking one worker per key would cost a
/// producer more than the add itself; those that arrive wake the next ones. It is two because a
/// runtime may hold a single woken task back until the task that woke it yields.
const ON_THEIR_WAY_MAX: usize = 2;

/// The place of a parked worker; never used twice.
pub(crate) type Ticket = u64;

/// The parked workers of one queue.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    /// Parked workers in order of arrival; bounded by the number of workers.
    parked: VecDeque<(Ticket, Waker)>,
    next_ticket: Ticket,
    /// Workers that were woken and have not looked at the queue since.
    on_their_way: usize,
    /// The worker that sleeps for a timer, and the time it will wake at.
    leader: Option<(Ticket, u64)>,
}

impl Parking {
    /// Parks a worker that found nothing to do. If nobody sleeps for the earliest timer yet, the
    /// worker has to, and the time is returned.
    pub(crate) fn park(&mut self, waker: &Waker, next_due: Option<u64>) -> (Ticket, Option<u64>) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.parked.push_back((ticket, waker.clone()));
        let lead = next_due.filter(|&due| self.lacks_leader(due));
        if let Some(due) = lead {
            self.leader = Some((ticket, due));
        }
        (ticket, lead)
    }

    /// Takes a worker out of the parking, whether it was woken, came by itself, or gave up. A
    /// waker that was not used is returned, to be dropped outside of the lock: dropping it may run
    /// code of the executor.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        if self.leader.is_some_and(|(leader, _)| leader == ticket) {
            self.leader = None;
        }
        let Some(at) = self.parked.iter().position(|&(parked, _)| parked == ticket) else {
            self.on_their_way -= 1;
            return None;
        };
        self.parked.remove(at).map(|(_, waker)| waker)
    }

    /// The worker to wake after a change of the queue, if any.
    pub(crate) fn next_to_wake(&mut self, ready: usize, next_due: Option<u64>) -> Option<Waker> {
        if self.parked.is_empty() {
            return None;
        }
        let wanted = ready.min(ON_THEIR_WAY_MAX);
        let lacks_leader = next_due.is_some_and(|due| self.lacks_leader(due));
        if self.on_their_way >= wanted.max(usize::from(lacks_leader)) {
            return None;
        }
        // The last one to park is the likeliest to be warm in a cache, and the least likely to be
        // the leader, which better sleeps on.
        let (_, waker) = self.parked.pop_back()?;
        self.on_their_way += 1;
        Some(waker)
    }

    /// Returns true if a key that becomes ready would wake somebody.
    pub(crate) fn is_any_to_wake(&self) -> bool {
        !self.parked.is_empty() && self.on_their_way < ON_THEIR_WAY_MAX
    }

    /// Wakes everybody, for a shutdown.
    pub(crate) fn wake_all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        self.on_their_way += self.parked.len();
        std::mem::take(&mut self.parked)
            .into_iter()
            .map(|(_, waker)| waker)
    }

    fn lacks_leader(&self, due: u64) -> bool {
        self.leader.is_none_or(|(_, earliest)| due < earliest)
    }
}

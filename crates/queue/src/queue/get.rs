//! Waiting for a key, and holding one.

use std::{
    fmt,
    future::poll_fn,
    hash::Hash,
    ops::Deref,
    pin::pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{task::coop, time::sleep_until};

use super::{Shared, WorkQueue};
use crate::{
    parking::Ticket,
    slots::SlotId,
    state::{Handout, Intake},
};

/// The most yields of a worker, in one wait, to another thread that serves the queue. Two threads
/// that take turns at every key spend more time on waiting for each other than on the keys; one of
/// them does better to run something else. It does not give way to a thread that takes its time
/// with a key, nor for ever.
const YIELDS_MAX: u32 = 64;

/// A key that is with a worker. While it lives nobody else gets the key; dropping it says that
/// the work is done.
#[must_use = "dropping the item ends the work on its key"]
pub struct Item<'q, K: Clone + Eq> {
    hold: Hold<'q, K>,
    key: K,
    priority: i32,
}

/// The right to a key. Dropping it gives the key back.
struct Hold<'q, K: Clone + Eq> {
    shared: &'q Shared<K>,
    /// `None` once the key was given back.
    id: Option<SlotId>,
}

/// A worker in front of the queue, perhaps parked. Dropping it gives the place up, so that a `get`
/// can be abandoned at any time without losing a wake-up.
struct Seat<'q, K: Clone + Eq> {
    shared: &'q Shared<K>,
    /// The hand-out that the worker is done with.
    ended: Option<SlotId>,
    ticket: Option<Ticket>,
    /// The number of yields to another thread.
    yields: u32,
}

/// The result of a look at the queue.
enum Turn<K> {
    Work(Handout<K>),
    /// The queue is shut down and empty.
    Closed,
    /// Nothing to do, and nobody sleeps for the timer that fires then.
    SleepUntil(u64),
}

impl<K: Clone + Eq + Hash + Send + 'static> WorkQueue<K> {
    /// Waits for a key. `None` means that the queue is shut down and that every ready key was
    /// handed out. Dropping the future is safe: no key is lost.
    pub async fn get(&self) -> Option<Item<'_, K>> {
        let mut seat = Seat::new(&*self.shared, None);
        match poll_fn(|cx| seat.poll(cx)).await {
            Turn::Work(handout) => Some(Item::new(seat.shared, handout)),
            Turn::Closed => None,
            Turn::SleepUntil(due) => seat.sleep(due).await,
        }
    }
}

impl<'q, K: Clone + Eq> Seat<'q, K> {
    fn new(shared: &'q Shared<K>, ended: Option<SlotId>) -> Self {
        Self {
            shared,
            ended,
            ticket: None,
            yields: 0,
        }
    }

    /// Sleeps for a timer, until there is a key for this worker or another sleeps in its place.
    async fn sleep(mut self, mut due: u64) -> Option<Item<'q, K>> {
        let shared = self.shared;
        loop {
            let mut sleep = pin!(sleep_until(shared.epoch + Duration::from_nanos(due)));
            let turn = poll_fn(|cx| match self.poll(cx) {
                Poll::Ready(Turn::SleepUntil(again)) if again == due => {
                    ready!(sleep.as_mut().poll(cx));
                    self.poll(cx)
                }
                other => other,
            })
            .await;
            match turn {
                Turn::Work(handout) => return Some(Item::new(shared, handout)),
                Turn::Closed => return None,
                Turn::SleepUntil(then) => due = then,
            }
        }
    }

    /// Takes a key if there is one, and parks otherwise.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Turn<K>> {
        // A queue that never runs dry must not keep its worker on the thread for ever.
        let Poll::Ready(budget) = coop::poll_proceed(cx) else {
            self.end();
            return Poll::Pending;
        };
        if self.yields < YIELDS_MAX && self.shared.is_served_by_another_thread() {
            return self.give_way(cx);
        }
        let timed = self.shared.is_timed.then(|| self.shared.now());
        let (left, ended) = (self.ticket.take(), self.ended.take());
        // What comes out of the lock is written where it stays: on this path a move would be felt.
        let (mut handout, mut garbage) = (None, (None, None));
        let stay = self.shared.step(|inner| {
            garbage.0 = ended.and_then(|id| inner.state.done(id, timed.unwrap_or(0)));
            garbage.1 = left.and_then(|ticket| inner.parking.leave(ticket));
            inner.fire_due(|| timed.unwrap_or_else(|| self.shared.now()));
            handout = inner.state.take(timed.unwrap_or(0));
            if handout.is_some() || inner.state.intake() != Intake::Open {
                return None;
            }
            Some(inner.parking.park(cx.waker(), inner.state.next_due()))
        });
        if let Some(handout) = handout {
            budget.made_progress();
            return Poll::Ready(Turn::Work(handout));
        }
        let Some((ticket, lead)) = stay else {
            if ended.is_some() {
                self.shared.notify_if_drained();
            }
            return Poll::Ready(Turn::Closed);
        };
        self.ticket = Some(ticket);
        lead.map_or(Poll::Pending, |due| Poll::Ready(Turn::SleepUntil(due)))
    }
}

impl<K: Clone + Eq> Seat<'_, K> {
    /// Lets other tasks of this thread run, such as those that bring keys.
    fn give_way(&mut self, cx: &Context<'_>) -> Poll<Turn<K>> {
        self.yields += 1;
        if let Some(id) = self.ended.take() {
            self.shared.done_later(id);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Ends the hand-out that the worker is done with, if it did not yet.
    fn end(&mut self) {
        if let Some(id) = self.ended.take() {
            self.shared.done(id);
        }
    }
}

impl<K: Clone + Eq> Hold<'_, K> {
    fn into_id(mut self) -> Option<SlotId> {
        self.id.take()
    }
}

impl<K: Clone + Eq> Drop for Seat<'_, K> {
    fn drop(&mut self) {
        self.end();
        if let Some(ticket) = self.ticket {
            let _waker = self.shared.step(|inner| inner.parking.leave(ticket));
        }
    }
}

impl<K: Clone + Eq> Item<'_, K> {
    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The priority the key was queued with; a retry usually keeps it.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Ends the work on the key, like dropping the item.
    pub fn done(self) {}
}

impl<'q, K: Clone + Eq> Item<'q, K> {
    fn new(shared: &'q Shared<K>, handout: Handout<K>) -> Self {
        let Handout { id, key, priority } = handout;
        let id = Some(id);
        Self {
            hold: Hold { shared, id },
            key,
            priority,
        }
    }

    /// Ends the work on the key, and waits for the next one like [`WorkQueue::get`]. It is the
    /// same as the two calls, at the price of one.
    pub async fn next(self) -> Option<Item<'q, K>> {
        let Self { hold, key, .. } = self;
        drop(key);
        let mut seat = Seat::new(hold.shared, hold.into_id());
        // The same as in `get`: a function of its own would be a future to move around.
        match poll_fn(|cx| seat.poll(cx)).await {
            Turn::Work(handout) => Some(Self::new(seat.shared, handout)),
            Turn::Closed => None,
            Turn::SleepUntil(due) => seat.sleep(due).await,
        }
    }
}

impl<K: Clone + Eq> Deref for Item<'_, K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Clone + Eq> Drop for Hold<'_, K> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.shared.done(id);
        }
    }
}

impl<K: Clone + Eq + fmt::Debug> fmt::Debug for Item<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

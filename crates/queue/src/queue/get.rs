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
    state::{Handout, Intake, SlotId},
};

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
    /// The key that the worker is done with.
    hold: Option<Hold<'q, K>>,
    ticket: Option<Ticket>,
}

/// What a look at the queue has come to.
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
        Seat::new(&self.shared, None).take().await
    }
}

impl<'q, K: Clone + Eq> Seat<'q, K> {
    fn new(shared: &'q Shared<K>, hold: Option<Hold<'q, K>>) -> Self {
        Self {
            shared,
            hold,
            ticket: None,
        }
    }

    async fn take(mut self) -> Option<Item<'q, K>> {
        let shared = self.shared;
        let mut turn = poll_fn(|cx| self.poll(cx)).await;
        loop {
            let due = match turn {
                Turn::Work(Handout { id, key, priority }) => {
                    let hold = Hold {
                        shared,
                        id: Some(id),
                    };
                    return Some(Item {
                        hold,
                        key,
                        priority,
                    });
                }
                Turn::Closed => return None,
                Turn::SleepUntil(due) => due,
            };
            let mut sleep = pin!(sleep_until(shared.epoch + Duration::from_nanos(due)));
            turn = poll_fn(|cx| match self.poll(cx) {
                Poll::Ready(Turn::SleepUntil(again)) if again == due => {
                    ready!(sleep.as_mut().poll(cx));
                    self.poll(cx)
                }
                other => other,
            })
            .await;
        }
    }

    /// Takes a key if there is one, and parks otherwise.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Turn<K>> {
        // A queue that never runs dry must not keep its worker on the thread for ever.
        let Poll::Ready(budget) = coop::poll_proceed(cx) else {
            self.hold = None;
            return Poll::Pending;
        };
        let timed = self.shared.is_timed.then(|| self.shared.now());
        let left = self.ticket.take();
        let ended = self.hold.take().and_then(|mut hold| hold.id.take());
        let (turn, ticket, _garbage) = self.shared.step(|inner| {
            let key = ended.and_then(|id| inner.state.done(id, timed.unwrap_or(0)));
            let waker = left.and_then(|ticket| inner.parking.leave(ticket));
            let garbage = (key, waker);
            inner.fire_due(|| timed.unwrap_or_else(|| self.shared.now()));
            if let Some(handout) = inner.state.take(timed.unwrap_or(0)) {
                return (Poll::Ready(Turn::Work(handout)), None, garbage);
            }
            if inner.state.intake() != Intake::Open {
                return (Poll::Ready(Turn::Closed), None, garbage);
            }
            let (ticket, lead) = inner.parking.park(cx.waker(), inner.state.next_due());
            let turn = lead.map_or(Poll::Pending, |due| Poll::Ready(Turn::SleepUntil(due)));
            (turn, Some(ticket), garbage)
        });
        self.ticket = ticket;
        match turn {
            Poll::Ready(Turn::Work(_)) => budget.made_progress(),
            Poll::Ready(Turn::Closed) if ended.is_some() => self.shared.notify_if_drained(),
            _ => {}
        }
        turn
    }
}

impl<K: Clone + Eq> Drop for Seat<'_, K> {
    fn drop(&mut self) {
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
    /// Ends the work on the key, and waits for the next one like [`WorkQueue::get`]. It is the
    /// same as the two calls, at the price of one.
    pub async fn next(self) -> Option<Item<'q, K>> {
        let Self { hold, key, .. } = self;
        drop(key);
        Seat::new(hold.shared, Some(hold)).take().await
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
        let Some(id) = self.id else { return };
        let now = self.shared.now_if_timed();
        let (_key, is_drained) = self.shared.step(|inner| {
            let key = inner.state.done(id, now);
            (key, inner.state.is_drained())
        });
        if is_drained {
            self.shared.drained.notify_waiters();
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

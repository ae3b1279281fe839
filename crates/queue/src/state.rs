//! The queue as a plain state machine: no lock, no clock, no waker.
//!
//! A key is idle, queued, running, or running and dirty; beside that it may have one timer. Every
//! method is one step of the machine; `now` and all other instants are nanoseconds since the queue
//! was made. [`Parking`](crate::parking) and [`WorkQueue`](crate::WorkQueue) put the steps behind a
//! lock and wake workers.

mod ready;

use std::{collections::BTreeSet, time::Duration};

use crate::metrics::{Metrics, Snapshot};
use crate::slots::{NIL, Phase, SlotId, Slots, Timer};
use ready::Ready;

/// A demand to queue a key.
#[derive(Debug)]
pub(crate) struct Demand<K> {
    /// Folded hash of the key.
    pub(crate) hash: u32,
    /// The key. It is taken if the queue did not know it, and otherwise left for the caller to
    /// drop outside of the lock.
    pub(crate) key: Option<K>,
    pub(crate) priority: i32,
    /// When it was made; used only by a queue that counts.
    pub(crate) at: u64,
}

/// A key on its way to a worker.
#[derive(Debug)]
pub(crate) struct Handout<K> {
    pub(crate) id: SlotId,
    pub(crate) key: K,
    pub(crate) priority: i32,
}

/// The intake of the queue: open, or closed with those who wait for its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intake {
    /// Adds are accepted.
    Open,
    /// Adds are ignored; a drain waits for the remaining keys.
    Draining,
    /// Adds are ignored; nobody waits.
    Closed,
}

/// All keys and what is to be done with them.
#[derive(Debug)]
pub(crate) struct State<K> {
    slots: Slots<K>,
    ready: Ready,
    /// Pending timers by due time, then by order of request.
    timers: BTreeSet<(u64, u64, SlotId)>,
    timer_seq: u64,
    /// Number of keys with a worker.
    running: usize,
    intake: Intake,
    /// Present for a named queue only: without it no step needs a clock.
    pub(crate) metrics: Option<Box<Metrics>>,
}

impl<K: Clone + Eq> State<K> {
    pub(crate) fn new(metrics: Option<Box<Metrics>>) -> Self {
        Self {
            slots: Slots::new(),
            ready: Ready::new(),
            timers: BTreeSet::new(),
            timer_seq: 0,
            running: 0,
            intake: Intake::Open,
            metrics,
        }
    }

    /// Number of ready keys; running and delayed ones do not count.
    pub(crate) fn len(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn intake(&self) -> Intake {
        self.intake
    }

    /// When the earliest timer fires.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.timers.first().map(|&(due, _, _)| due)
    }

    /// Returns true if any key is delayed.
    pub(crate) fn has_timers(&self) -> bool {
        !self.timers.is_empty()
    }

    /// Returns true if the queue is shut down and every key in it was worked off.
    pub(crate) fn is_drained(&self) -> bool {
        self.intake != Intake::Open && self.running == 0 && self.ready.len() == 0
    }

    /// Queues a key now, or after the current hand-out of it.
    pub(crate) fn add(&mut self, demand: &mut Demand<K>) {
        if self.intake != Intake::Open {
            return;
        }
        let id = self.slots.find_or_insert(demand.hash, &mut demand.key);
        self.mark_dirty(id, demand.priority, demand.at);
    }

    /// Queues a key at `due`. Of several demands for one key the earliest wins.
    pub(crate) fn add_at(&mut self, demand: &mut Demand<K>, due: u64, timer: Timer) {
        if self.intake != Intake::Open {
            return;
        }
        let id = self.slots.find_or_insert(demand.hash, &mut demand.key);
        let slot = &mut self.slots[id];
        let is_new = slot.timer == Timer::Off;
        slot.timer = slot.timer.and(timer);
        let times = self.slots.times_mut(id);
        let floor = if is_new {
            demand.priority
        } else {
            times.timer_priority
        };
        times.timer_priority = floor.max(demand.priority);
        if !is_new {
            if times.due <= due {
                return;
            }
            self.timers.remove(&(times.due, times.timer_seq, id));
        }
        times.due = due;
        times.timer_seq = self.timer_seq;
        self.timers.insert((due, self.timer_seq, id));
        self.timer_seq += 1;
    }

    /// Returns true if a retry of the key is waiting for its time.
    pub(crate) fn has_retry(&self, hash: u32, key: &K) -> bool {
        let id = self.slots.find(hash, key);
        id.is_some_and(|id| self.slots[id].timer.is_retry())
    }

    /// Drops the pending retry of a key; a delay that a caller asked for stays. Returns the key if
    /// nothing else is known of it.
    pub(crate) fn cancel_retry(&mut self, hash: u32, key: &K) -> Option<K> {
        let id = self.slots.find(hash, key)?;
        match self.slots[id].timer {
            Timer::Off | Timer::After => None,
            Timer::AfterAndRetry => {
                self.slots[id].timer = Timer::After;
                None
            }
            Timer::Retry => self.stop_timer(id),
        }
    }

    /// Drops the timer of a key. Returns whether there was one, and the key if nothing else is
    /// known of it.
    pub(crate) fn cancel(&mut self, hash: u32, key: &K) -> (bool, Option<K>) {
        match self.slots.find(hash, key) {
            Some(id) if self.slots[id].timer != Timer::Off => (true, self.stop_timer(id)),
            _ => (false, None),
        }
    }

    fn stop_timer(&mut self, id: SlotId) -> Option<K> {
        let times = self.slots.times(id);
        self.timers.remove(&(times.due, times.timer_seq, id));
        let slot = &mut self.slots[id];
        slot.timer = Timer::Off;
        if slot.phase == Phase::Idle {
            self.slots.free(id)
        } else {
            None
        }
    }

    /// Queues every key whose time has come, in order of their times.
    pub(crate) fn fire_due(&mut self, now: u64) {
        while let Some(&(due, _, id)) = self.timers.first()
            && due <= now
        {
            self.timers.pop_first();
            self.slots[id].timer = Timer::Off;
            let priority = self.slots.times(id).timer_priority;
            self.mark_dirty(id, priority, due);
        }
    }

    /// Hands out the next ready key.
    pub(crate) fn take(&mut self, now: u64) -> Option<Handout<K>> {
        let id = self.ready.pop(&mut self.slots)?;
        self.running += 1;
        let slot = &mut self.slots[id];
        debug_assert_eq!(slot.phase, Phase::Queued);
        slot.phase = Phase::Running;
        let handout = Handout {
            id,
            key: slot
                .key
                .clone()
                .expect("invariant: a queued slot has its key"),
            priority: slot.priority,
        };
        if let Some(metrics) = &mut self.metrics {
            let times = self.slots.times_mut(id);
            times.started_at = now;
            metrics.handed_out(now.saturating_sub(times.added_at));
            metrics.running.push(&mut self.slots, id);
        }
        Some(handout)
    }

    /// Ends a hand-out. The key is queued again if it was added meanwhile; otherwise, unless a
    /// timer still needs it, it is forgotten and returned.
    pub(crate) fn done(&mut self, id: SlotId, now: u64) -> Option<K> {
        if let Some(metrics) = &mut self.metrics {
            metrics.running.remove(&mut self.slots, id);
            metrics.finished(now.saturating_sub(self.slots.times(id).started_at));
        }
        self.running -= 1;
        let slot = &mut self.slots[id];
        debug_assert!(matches!(slot.phase, Phase::Running | Phase::RunningDirty));
        if slot.phase == Phase::RunningDirty {
            slot.phase = Phase::Queued;
            self.ready.push(&mut self.slots, id);
            return None;
        }
        slot.phase = Phase::Idle;
        if slot.timer == Timer::Off {
            self.slots.free(id)
        } else {
            None
        }
    }

    /// Stops the intake and drops every timer: what was only delayed would never become ready.
    pub(crate) fn close(&mut self, intake: Intake) {
        self.intake = intake;
        for (_, _, id) in std::mem::take(&mut self.timers) {
            self.slots[id].timer = Timer::Off;
            if self.slots[id].phase == Phase::Idle {
                self.slots.free(id);
            }
        }
    }

    /// The metrics at `now`.
    pub(crate) fn snapshot(&self, now: u64) -> Snapshot {
        let Some(metrics) = &self.metrics else {
            return Snapshot::default();
        };
        let next = |&id: &SlotId| Some(self.slots[id].next).filter(|&id| id != NIL);
        let running = std::iter::successors(metrics.running.front(), next);
        let ages = running.map(|id| now.saturating_sub(self.slots.times(id).started_at));
        let (unfinished_ns, longest_ns) =
            ages.fold((0, 0), |(sum, longest), age| (sum + age, age.max(longest)));
        Snapshot {
            depth: metrics.depth,
            depth_by_priority: self.ready.depths(),
            running: self.running,
            adds: metrics.adds,
            retries: metrics.retries,
            queue_duration: metrics.queue_duration,
            work_duration: metrics.work_duration,
            unfinished_work: Duration::from_nanos(unfinished_ns),
            longest_running: Duration::from_nanos(longest_ns),
        }
    }

    fn mark_dirty(&mut self, id: SlotId, priority: i32, now: u64) {
        let slot = &mut self.slots[id];
        match slot.phase {
            Phase::Idle => {
                slot.phase = Phase::Queued;
                slot.priority = priority;
                self.ready.push(&mut self.slots, id);
            }
            Phase::Running => {
                slot.phase = Phase::RunningDirty;
                slot.priority = priority;
            }
            Phase::RunningDirty => return slot.priority = slot.priority.max(priority),
            Phase::Queued => return self.raise(id, priority),
        }
        if let Some(metrics) = &mut self.metrics {
            self.slots.times_mut(id).added_at = now;
            metrics.accepted();
        }
    }

    /// Moves a queued key to the tail of a higher priority; a lower one changes nothing.
    fn raise(&mut self, id: SlotId, priority: i32) {
        if priority > self.slots[id].priority {
            self.ready.remove(&mut self.slots, id);
            self.slots[id].priority = priority;
            self.ready.push(&mut self.slots, id);
        }
    }
}

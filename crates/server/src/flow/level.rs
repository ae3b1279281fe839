//! A priority level: seats, and a fair queue of the requests that wait for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Duration;

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::queue::{FairQueues, Position, deal};
use super::stats::Rejection;

/// The longest wait for a seat, upstream's: a quarter of the time that a request may take.
pub(super) const WAIT_LIMIT: Duration = Duration::from_secs(15);
/// Requests that wait in one level, however its queues are configured.
pub(super) const WAITING_LIMIT: usize = 6_400;

/// One priority level.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) name: String,
    pub(super) uid: HeaderValue,
    pub(super) kind: LevelKind,
    exchange: Arc<SeatExchange>,
    state: Mutex<LevelState>,
}

/// The sorts of priority levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelKind {
    /// Requests run at once.
    Exempt,
    /// Requests need a seat, and wait for one if there are queues.
    Limited(Option<Queuing>),
}

/// The queues of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queuing {
    pub(super) queues: usize,
    pub(super) hand: usize,
    pub(super) length: usize,
}

/// The seats of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SeatLimits {
    /// Its own.
    pub(super) nominal: usize,
    /// Those of them that others may use while they are idle.
    pub(super) lendable: usize,
    /// The most that it may borrow.
    pub(super) borrowing: usize,
}

#[derive(Debug)]
struct LevelState {
    limits: SeatLimits,
    executing: usize,
    queues: FairQueues<oneshot::Sender<()>>,
}

/// Seats that levels lend each other.
///
/// A level takes its own seats back without asking: then the sum is below zero, nobody borrows any
/// more, and the total is above the limit until what was borrowed ends.
#[derive(Debug, Default)]
pub(super) struct SeatExchange {
    /// Idle seats that may be lent, less those that are borrowed.
    spare: AtomicIsize,
}

/// Seats that a request holds until this is dropped.
#[derive(Debug)]
pub(super) struct LevelSeat {
    level: Arc<Level>,
    width: usize,
    /// The queue that the request waited in, and the time at which it was served.
    queued: Option<(usize, Instant)>,
}

/// A request that waits.
struct Ticket {
    level: Arc<Level>,
    width: usize,
    position: Position,
    woken: oneshot::Receiver<()>,
    is_over: bool,
}

impl SeatLimits {
    /// The part of a level with so many seats in use in the exchange.
    fn spare(&self, executing: usize) -> isize {
        let signed = |count: usize| isize::try_from(count).unwrap_or(isize::MAX);
        match self.nominal.checked_sub(executing) {
            Some(idle) => signed(idle.min(self.lendable)),
            None => -signed(executing - self.nominal),
        }
    }
}

impl Level {
    pub(super) fn new(
        name: &str,
        uid: HeaderValue,
        kind: LevelKind,
        exchange: &Arc<SeatExchange>,
    ) -> Arc<Self> {
        let queues = match kind {
            LevelKind::Limited(Some(queuing)) => queuing.queues,
            _ => 0,
        };
        Arc::new(Self {
            name: name.to_owned(),
            uid,
            kind,
            exchange: Arc::clone(exchange),
            state: Mutex::new(LevelState {
                limits: SeatLimits::default(),
                executing: 0,
                queues: FairQueues::new(queues),
            }),
        })
    }

    /// Sets the seats.
    pub(super) fn set_limits(&self, limits: SeatLimits) {
        let mut state = self.state.lock();
        let (before, executing) = (state.limits.spare(state.executing), state.executing);
        state.limits = limits;
        let change = limits.spare(executing) - before;
        self.exchange.spare.fetch_add(change, Ordering::Relaxed);
        self.dispatch(&mut state);
    }

    /// Ends lending and borrowing: the level is no longer configured, and its requests run out.
    pub(super) fn retire(&self) {
        let nominal = self.state.lock().limits.nominal;
        self.set_limits(SeatLimits {
            nominal,
            ..SeatLimits::default()
        });
    }

    /// The seats of the level.
    pub(super) fn limits(&self) -> SeatLimits {
        self.state.lock().limits
    }

    /// Takes seats, or waits for them in a queue of the flow whose hash this is.
    pub(super) async fn enter(
        self: &Arc<Self>,
        width: usize,
        hash: impl FnOnce() -> u64,
    ) -> Result<LevelSeat, Rejection> {
        let LevelKind::Limited(queuing) = self.kind else {
            return Ok(self.seat(width, None));
        };
        let mut ticket = {
            let mut state = self.state.lock();
            if state.queues.is_empty() && self.take(&mut state, width) {
                return Ok(self.seat(width, None));
            }
            let queuing = queuing.ok_or(Rejection::ConcurrencyLimit)?;
            self.wait_in(&mut state, &queuing, width, hash())?
        };
        // The ticket gives up its position, or its seats, when it is dropped.
        match timeout(WAIT_LIMIT, &mut ticket.woken).await {
            Ok(Ok(())) => Ok(ticket.redeem()),
            Ok(Err(_)) | Err(_) => Err(Rejection::TimeOut),
        }
    }

    fn wait_in(
        self: &Arc<Self>,
        state: &mut LevelState,
        queuing: &Queuing,
        width: usize,
        hash: u64,
    ) -> Result<Ticket, Rejection> {
        if state.queues.len() >= WAITING_LIMIT {
            return Err(Rejection::QueueFull);
        }
        let hand = deal(hash, queuing.queues, queuing.hand);
        let (wake, woken) = oneshot::channel();
        let position = state
            .queues
            .push(&hand, queuing.length, width, wake)
            .ok_or(Rejection::QueueFull)?;
        self.dispatch(state);
        Ok(Ticket {
            level: Arc::clone(self),
            width,
            position,
            woken,
            is_over: false,
        })
    }

    fn seat(self: &Arc<Self>, width: usize, queue: Option<usize>) -> LevelSeat {
        LevelSeat {
            level: Arc::clone(self),
            width,
            queued: queue.map(|queue| (queue, Instant::now())),
        }
    }

    /// Takes seats of this level, or borrows them; false if there are none.
    fn take(&self, state: &mut LevelState, width: usize) -> bool {
        let (limits, executing) = (state.limits, state.executing);
        let wanted = executing + width;
        let change = limits.spare(wanted) - limits.spare(executing);
        if wanted > limits.nominal {
            let spare = self.exchange.spare.load(Ordering::Relaxed);
            if wanted - limits.nominal > limits.borrowing || spare + change < 0 {
                return false;
            }
        }
        state.executing = wanted;
        if change != 0 {
            self.exchange.spare.fetch_add(change, Ordering::Relaxed);
        }
        true
    }

    fn give_back(&self, state: &mut LevelState, width: usize) {
        let before = state.limits.spare(state.executing);
        state.executing -= width;
        let change = state.limits.spare(state.executing) - before;
        if change != 0 {
            self.exchange.spare.fetch_add(change, Ordering::Relaxed);
        }
    }

    /// Serves waiting requests as long as there are seats for the next one.
    fn dispatch(&self, state: &mut LevelState) {
        while let Some((queue, width)) = state.queues.head()
            && self.take(state, width)
        {
            let is_taken = state
                .queues
                .pop(queue)
                .is_some_and(|wake| wake.send(()).is_ok());
            if !is_taken {
                self.give_back(state, width);
            }
        }
    }
}

impl Ticket {
    /// The seats of a request that was served.
    fn redeem(mut self) -> LevelSeat {
        self.is_over = true;
        self.level.seat(self.width, Some(self.position.queue))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.level.state.lock();
        if state.queues.remove(self.position).is_none() {
            // It was served, and nobody is there to know.
            self.level.give_back(&mut state, self.width);
        }
        self.level.dispatch(&mut state);
    }
}

impl Drop for LevelSeat {
    fn drop(&mut self) {
        if self.level.kind == LevelKind::Exempt {
            return;
        }
        let mut state = self.level.state.lock();
        self.level.give_back(&mut state, self.width);
        if let Some((queue, since)) = self.queued {
            let nanos = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            state.queues.settle(queue, self.width, nanos);
        }
        self.level.dispatch(&mut state);
    }
}

//! The state machine behind a lock, with workers that sleep.

mod builder;
mod get;

use std::{
    fmt,
    hash::{BuildHasher, Hash},
    sync::Arc,
    time::Duration,
};

use foldhash::fast::RandomState;
use tokio::{sync::Notify, time::Instant};

use crate::{
    inbox::{Command, Inbox, Put},
    limiter::RateLimiter,
    metrics::Snapshot,
    parking::Parking,
    slots::{SlotId, Timer, fold},
    state::{Demand, Intake, State},
    sync::{AtomicUsize, Mutex, MutexGuard, Ordering, spin_loop, thread_mark},
};
pub use builder::Builder;
pub use get::Item;

/// The priority of an add that names none.
pub const PRIORITY_NORMAL: i32 = 0;

/// The priority of background work: objects of the first list, and updates that changed nothing.
pub const PRIORITY_LOW: i32 = -100;

/// The time to look for another thread at the queue, in pauses of the processor; together
/// less than a microsecond. A model checker needs no time to pass.
const SPINS: usize = if cfg!(shuttle) { 1 } else { 64 };

/// The number of looks of a producer at a queue that is being worked off before it goes on.
const BACK_OFF_ROUNDS: usize = if cfg!(shuttle) { 1 } else { 16 };

/// So many steps while a producer looks mean that some thread does nothing but take keys.
const BUSY_STEPS: usize = 8;

/// A thread that has added none of this many steps brings no keys.
const FED_STEPS: usize = 4096;

/// A queue of keys. Clones share one queue.
///
/// Keys are cloned when they are handed out, so a key is best something that is cheap to clone.
///
/// A worker takes a key, works, and says how it went:
///
/// ```
/// # use windlass_queue::WorkQueue;
/// # async fn sync(_key: &str) -> Result<(), ()> { Ok(()) }
/// async fn work(queue: WorkQueue<String>) {
///     let mut next = queue.get().await;
///     while let Some(item) = next {
///         match sync(&item).await {
///             Ok(()) => queue.forget(&item),
///             Err(()) if queue.num_requeues(&item) < 5 => queue.add_rate_limited(item.key().clone()),
///             // Five retries are enough.
///             Err(()) => queue.forget(&item),
///         }
///         // Gives this key back and waits for another.
///         next = item.next().await;
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = WorkQueue::new();
/// let worker = tokio::spawn(work(queue.clone()));
/// queue.add("default/web".to_owned());
/// queue.shut_down_with_drain().await;
/// worker.await.unwrap();
/// # }
/// ```
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

/// Options of an add: delay, rate limit, priority.
///
/// ```
/// # use std::time::Duration;
/// # use windlass_queue::{AddOptions, PRIORITY_LOW, WorkQueue};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = WorkQueue::new();
/// queue.add_with("resync", AddOptions { priority: PRIORITY_LOW, ..AddOptions::default() });
/// queue.add("change");
/// assert_eq!(*queue.get().await.unwrap(), "change");
/// assert_eq!(*queue.get().await.unwrap(), "resync");
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Higher priorities are handed out first. Adding a queued key with a higher priority raises
    /// it to the tail of that priority; a lower one changes nothing.
    pub priority: i32,
    /// Not before this much time has passed.
    pub after: Option<Duration>,
    /// Not before the delay that the rate limiter chooses, which counts this as a failure. With
    /// `after` too, the shorter delay counts.
    pub rate_limited: bool,
}

/// The state that all clones of a queue share.
struct Shared<K> {
    name: Option<String>,
    hasher: RandomState,
    /// The origin of the state machine's time.
    epoch: Instant,
    /// True if each step is timed, for the metrics.
    is_timed: bool,
    /// The thread that has looked at `inner` last, and so has it in its cache. It may add directly;
    /// others leave their adds in the inbox.
    last_thread: AtomicUsize,
    /// The number of looks at `inner`, by which others see that somebody serves the queue.
    steps: AtomicUsize,
    /// Commands that `inner` has not seen yet.
    inbox: Inbox<K>,
    inner: Mutex<Inner<K>>,
    /// Notified when the queue has drained, and when a drain is to be given up.
    drained: Notify,
    /// The value of `steps` when the thread that serves the queue last added a key.
    fed_at: AtomicUsize,
}

/// Everything behind the lock. Each method of the queue is one critical section, which begins with
/// what is in the inbox and ends with a look at who is to be woken; the waking itself happens
/// outside. The one exception is a plain add of another thread, which only goes to the inbox.
struct Inner<K> {
    state: State<K>,
    /// The commands taken out of the inbox; empty between the steps.
    batch: Vec<Command<K>>,
    /// The value that the inbox was last told about parked workers.
    is_awaited: bool,
    parking: Parking,
    limiter: Box<dyn RateLimiter<K>>,
}

impl<K: Clone + Eq + Hash + Send + 'static> WorkQueue<K> {
    /// A queue with upstream's default limiter for controllers.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A queue with the given limiter.
    #[must_use]
    pub fn rate_limited(limiter: impl RateLimiter<K> + 'static) -> Self {
        Self::builder().limiter(limiter).build()
    }

    /// A queue with other options.
    pub fn builder() -> Builder<K> {
        Builder::new()
    }

    /// Queues a key. If it is queued already this changes nothing; if a worker holds it, it is
    /// queued when that worker is done. Ignored after a shutdown.
    pub fn add(&self, key: K) {
        self.add_now(key, PRIORITY_NORMAL);
    }

    /// Queues a key once `delay` has passed. A key has one timer: of several delays the one that
    /// ends first counts. Adding the key in another way does not stop the timer.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_with(
            key,
            AddOptions {
                after: Some(delay),
                ..AddOptions::default()
            },
        );
    }

    /// Queues a key that has failed, after the delay that the rate limiter chooses.
    ///
    /// If a retry of the key is pending already, that one stands and the failure is not counted:
    /// this attempt was made out of turn, because of an event, and says nothing about the
    /// back-off. In client-go each such attempt doubles the delay, so that a busy object which
    /// fails is soon left alone for a quarter of an hour.
    pub fn add_rate_limited(&self, key: K) {
        self.add_with(
            key,
            AddOptions {
                rate_limited: true,
                ..AddOptions::default()
            },
        );
    }

    /// Queues a key with a priority, a delay, or both.
    pub fn add_with(&self, key: K, options: AddOptions) {
        if options.after.is_none() && !options.rate_limited {
            return self.add_now(key, options.priority);
        }
        let now = Instant::now();
        let now_ns = self.shared.since_epoch(now);
        let mut demand = self.demand(key, options.priority, now_ns);
        self.shared.step(|inner| {
            inner.fire_due(|| now_ns);
            if inner.state.intake() == Intake::Open
                && let Some((delay, timer)) = inner.delay(&demand, options, now)
            {
                inner.add_delayed(&mut demand, delay, timer);
            }
        });
    }

    /// Drops the timer of a key: a pending retry or delay. A key that is queued stays so. To put
    /// a delay off, cancel it and add a new one. Returns whether there was a timer.
    pub fn cancel_delayed(&self, key: &K) -> bool {
        let hash = self.hash(key);
        let (was_delayed, _key) = self.shared.step(|inner| {
            inner.fire_due(|| self.shared.now());
            inner.state.cancel(hash, key)
        });
        was_delayed
    }

    /// Forgets the failures of a key, and drops its pending retry, which has become pointless. A
    /// worker calls this when it succeeded, or to give up.
    pub fn forget(&self, key: &K) {
        let hash = self.hash(key);
        let _key = self.shared.step(|inner| {
            inner.fire_due(|| self.shared.now());
            inner.limiter.forget(key);
            inner.state.cancel_retry(hash, key)
        });
    }

    /// The number of failures of a key since it was last forgotten.
    #[must_use]
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.shared.inner.lock().limiter.num_requeues(key)
    }

    /// Number of keys that are ready to be handed out. Keys that are delayed or with a worker do
    /// not count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.step(|inner| {
            inner.fire_due(|| self.shared.now());
            inner.state.len()
        })
    }

    /// Returns true if no key is ready to be handed out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of the queue, for its metrics.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.shared.name.as_deref()
    }

    /// The metrics of the queue. Only a queue with a name counts; the numbers of another are zero.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let now = self.shared.now();
        self.shared.step(|inner| {
            inner.fire_due(|| now);
            inner.state.snapshot(now)
        })
    }

    /// Ends the intake: adds are ignored and delayed keys dropped. Workers still get every key
    /// that was ready, and then `None`.
    pub fn shut_down(&self) {
        self.close(Intake::Closed);
    }

    /// Like [`shut_down`](Self::shut_down), and waits until every key was worked off: none is
    /// ready and none is with a worker. Another call to `shut_down` ends the wait; so does
    /// dropping this future, which is how to give it a deadline.
    pub async fn shut_down_with_drain(&self) {
        self.close(Intake::Draining);
        loop {
            let drained = self.shared.drained.notified();
            {
                let inner = self.shared.inner.lock();
                if inner.state.is_drained() || inner.state.intake() == Intake::Closed {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Returns true if the intake has ended.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.shared.inner.lock().state.intake() != Intake::Open
    }

    fn add_now(&self, key: K, priority: i32) {
        let mut demand = self.demand(key, priority, self.shared.now_if_timed());
        let shared = &*self.shared;
        if shared.last_thread.load(Ordering::Relaxed) == thread_mark()
            && let Some(inner) = shared.inner.try_lock()
        {
            return shared.step_in(inner, |inner| {
                let step = shared.steps.load(Ordering::Relaxed);
                shared.fed_at.store(step, Ordering::Relaxed);
                inner.state.add(&mut demand);
            });
        }
        match shared.inbox.put(Command::Add(demand)) {
            Put::Kept { is_first: true } => shared.back_off(),
            Put::Kept { is_first: false } | Put::Closed => {}
            Put::Urgent => shared.step(|_| {}),
        }
    }

    fn close(&self, intake: Intake) {
        let woken = {
            let mut inner = self.shared.inner.lock();
            self.shared.inbox.close(&mut inner.batch);
            inner.read_batch();
            inner.state.close(intake);
            inner.parking.wake_all()
        };
        woken.for_each(std::task::Waker::wake);
        self.shared.drained.notify_waiters();
    }

    fn demand(&self, key: K, priority: i32, at: u64) -> Demand<K> {
        Demand {
            hash: self.hash(&key),
            key: Some(key),
            priority,
            at,
        }
    }

    fn hash(&self, key: &K) -> u32 {
        fold(self.shared.hasher.hash_one(key))
    }
}

impl<K: Clone + Eq> Shared<K> {
    /// Runs one step of the queue, and wakes who has something to do afterwards.
    #[inline]
    fn step<R>(&self, step: impl FnOnce(&mut Inner<K>) -> R) -> R {
        let inner = self.inner.lock();
        let thread = thread_mark();
        if self.last_thread.load(Ordering::Relaxed) != thread {
            self.last_thread.store(thread, Ordering::Relaxed);
        }
        self.step_in(inner, step)
    }

    #[inline]
    fn step_in<R>(
        &self,
        mut inner: MutexGuard<'_, Inner<K>>,
        step: impl FnOnce(&mut Inner<K>) -> R,
    ) -> R {
        if self.inbox.is_filled() {
            self.inbox.take(&mut inner.batch);
            inner.read_batch();
        }
        let result = step(&mut inner);
        // A plain store is enough: nobody else is here.
        let steps = self.steps.load(Ordering::Relaxed).wrapping_add(1);
        self.steps.store(steps, Ordering::Relaxed);
        let first = inner.next_to_wake();
        let second = inner.tell(&self.inbox);
        drop(inner);
        first
            .into_iter()
            .chain(second)
            .for_each(std::task::Waker::wake);
        result
    }

    /// Returns true if another thread is at the queue again and again at this moment.
    fn is_served_by_another_thread(&self) -> bool {
        if self.last_thread.load(Ordering::Relaxed) == thread_mark() {
            return false;
        }
        let before = self.steps.load(Ordering::Relaxed);
        (0..SPINS).for_each(|_| spin_loop());
        self.steps.load(Ordering::Relaxed) != before
    }

    /// Gives the thread that serves the queue time, as long as it brings keys and takes them itself.
    /// Two threads that write to the queue in turns spend more time on passing memory between them
    /// than on the keys, so the one that has just been overtaken does better to wait a little. It
    /// does not wait for a thread that takes its time with a key, nor for one that only takes what
    /// others bring, nor for long.
    fn back_off(&self) {
        let mut before = self.steps.load(Ordering::Relaxed);
        let since_fed = before.wrapping_sub(self.fed_at.load(Ordering::Relaxed));
        if since_fed > FED_STEPS {
            return;
        }
        for _ in 0..BACK_OFF_ROUNDS {
            (0..SPINS).for_each(|_| spin_loop());
            let now = self.steps.load(Ordering::Relaxed);
            if now.wrapping_sub(before) < BUSY_STEPS {
                return;
            }
            before = now;
        }
    }

    /// Ends a hand-out.
    fn done(&self, id: SlotId) {
        let now = self.now_if_timed();
        let (_key, is_drained) = self.step(|inner| {
            let key = inner.state.done(id, now);
            (key, inner.state.is_drained())
        });
        if is_drained {
            self.drained.notify_waiters();
        }
    }

    /// Ends a hand-out with the next look at the queue, of whoever it is.
    fn done_later(&self, id: SlotId) {
        let at = self.now_if_timed();
        match self.inbox.put(Command::Done { id, at }) {
            Put::Kept { .. } => {}
            Put::Urgent => self.step(|_| {}),
            // Somebody may wait for the queue to drain.
            Put::Closed => self.done(id),
        }
    }

    /// Tells a drain that it may have come to its end.
    fn notify_if_drained(&self) {
        if self.inner.lock().state.is_drained() {
            self.drained.notify_waiters();
        }
    }

    fn since_epoch(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.epoch))
    }

    fn now(&self) -> u64 {
        self.since_epoch(Instant::now())
    }

    /// The time if the queue counts; nothing else needs it in most steps.
    fn now_if_timed(&self) -> u64 {
        if self.is_timed { self.now() } else { 0 }
    }
}

impl<K: Clone + Eq> Inner<K> {
    fn next_to_wake(&mut self) -> Option<std::task::Waker> {
        self.parking
            .next_to_wake(self.state.len(), self.state.next_due())
    }

    /// Does what the commands of the inbox ask for.
    fn read_batch(&mut self) {
        for command in self.batch.drain(..) {
            match command {
                Command::Add(mut demand) => self.state.add(&mut demand),
                Command::Done { id, at } => drop(self.state.done(id, at)),
            }
        }
    }

    /// Lets the inbox know whether somebody is parked. An add may have slipped in before it knew,
    /// and then somebody has to be woken for it.
    fn tell(&mut self, inbox: &Inbox<K>) -> Option<std::task::Waker> {
        let is_awaited = self.parking.is_any_to_wake();
        if is_awaited == self.is_awaited {
            return None;
        }
        self.is_awaited = is_awaited;
        inbox.set_awaited(is_awaited, &mut self.batch);
        if self.batch.is_empty() {
            return None;
        }
        self.read_batch();
        self.next_to_wake()
    }

    /// Queues what is due. Each step that looks at timers or at the number of ready keys begins
    /// with it, so that a key whose time has come is nowhere taken for one that still waits.
    fn fire_due(&mut self, now: impl FnOnce() -> u64) {
        if self.state.has_timers() {
            self.state.fire_due(now());
        }
    }

    /// The delay of an add; `None` if a pending retry stands for it.
    fn delay(
        &mut self,
        demand: &Demand<K>,
        options: AddOptions,
        now: Instant,
    ) -> Option<(Duration, Timer)> {
        let key = demand
            .key
            .as_ref()
            .filter(|key| options.rate_limited && !self.state.has_retry(demand.hash, key));
        let retry = key.map(|key| self.limiter.when(key, now));
        match (options.after, retry) {
            (None, None) => None,
            (Some(after), None) => Some((after, Timer::After)),
            (None, Some(retry)) => Some((retry, Timer::Retry)),
            (Some(after), Some(retry)) => Some((after.min(retry), Timer::AfterAndRetry)),
        }
    }

    fn add_delayed(&mut self, demand: &mut Demand<K>, delay: Duration, timer: Timer) {
        if let Some(metrics) = &mut self.state.metrics {
            metrics.retries += 1;
        }
        if delay.is_zero() {
            self.state.add(demand);
        } else {
            let due = demand.at.saturating_add(nanos(delay));
            self.state.add_at(demand, due, timer);
        }
    }
}

/// A duration as the state machine counts it; 584 years are for ever.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl<K: Clone + Eq + Hash + Send + 'static> Default for WorkQueue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue")
            .field("name", &self.shared.name)
            .finish_non_exhaustive()
    }
}

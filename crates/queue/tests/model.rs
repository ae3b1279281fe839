//! The queue against a naive model: the same random steps, the same answers.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use proptest::prelude::*;
use tokio::time::advance;
use windlass_queue::{AddOptions, Item, ItemExponential, WorkQueue};

const MS: Duration = Duration::from_millis(1);
const DELAY_MS_MAX: u64 = 8;
const PASSED_OVER_MAX: u32 = 8;

/// One call, by the position of a key or of a held item.
#[derive(Clone, Debug)]
enum Step {
    Add { key: u8, priority: i32 },
    AddAfter { key: u8, priority: i32, ms: u64 },
    AddRateLimited { key: u8 },
    Get,
    Done { held: usize },
    Next { held: usize },
    Advance { ms: u64 },
    Forget { key: u8 },
    Cancel { key: u8 },
    ShutDown,
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0_u8..6;
    let priority = || prop_oneof![4 => Just(0), 1 => Just(-100), 1 => Just(5)];
    prop_oneof![
        6 => (key(), priority()).prop_map(|(key, priority)| Step::Add { key, priority }),
        3 => (key(), priority(), 0_u64..12)
            .prop_map(|(key, priority, ms)| Step::AddAfter { key, priority, ms }),
        3 => key().prop_map(|key| Step::AddRateLimited { key }),
        7 => Just(Step::Get),
        6 => (0_usize..4).prop_map(|held| Step::Done { held }),
        3 => (0_usize..4).prop_map(|held| Step::Next { held }),
        4 => (0_u64..6).prop_map(|ms| Step::Advance { ms }),
        2 => key().prop_map(|key| Step::Forget { key }),
        1 => key().prop_map(|key| Step::Cancel { key }),
        1 => prop_oneof![9 => Just(Step::Get), 1 => Just(Step::ShutDown)],
    ]
}

/// A pending timer of the model.
#[derive(Debug)]
struct Timer {
    due: u64,
    order: usize,
    priority: i32,
    is_after: bool,
    is_retry: bool,
}

/// The queue in plain vectors and maps, slow and obvious.
#[derive(Debug, Default)]
struct Model {
    now: u64,
    order: usize,
    /// Ready keys as (priority, order of entry, key).
    ready: Vec<(i32, usize, u8)>,
    /// Held keys, and the priority of an add meanwhile.
    held: BTreeMap<u8, Option<i32>>,
    timers: BTreeMap<u8, Timer>,
    /// Failures per key and the time of the last one.
    failures: BTreeMap<u8, (u32, u64)>,
    passed_over: u32,
    is_closed: bool,
}

impl Model {
    fn next_order(&mut self) -> usize {
        self.order += 1;
        self.order
    }

    fn add(&mut self, key: u8, priority: i32) {
        if self.is_closed {
            return;
        }
        if let Some(again) = self.held.get_mut(&key) {
            *again = Some(again.map_or(priority, |earlier| earlier.max(priority)));
            return;
        }
        let order = self.next_order();
        match self.ready.iter_mut().find(|(_, _, ready)| *ready == key) {
            None => self.ready.push((priority, order, key)),
            Some(entry) if priority > entry.0 => *entry = (priority, order, key),
            Some(_) => {}
        }
    }

    fn add_after(&mut self, key: u8, priority: i32, delay: u64, is_retry: bool) {
        if self.is_closed {
            return;
        }
        self.fire_due();
        if delay == 0 {
            return self.add(key, priority);
        }
        let (due, order) = (self.now + delay, self.next_order());
        let timer = self.timers.entry(key).or_insert(Timer {
            due,
            order,
            priority,
            is_after: false,
            is_retry: false,
        });
        timer.priority = timer.priority.max(priority);
        timer.is_after |= !is_retry;
        timer.is_retry |= is_retry;
        if due < timer.due {
            (timer.due, timer.order) = (due, order);
        }
    }

    fn add_rate_limited(&mut self, key: u8) {
        self.fire_due();
        let is_pending = self.timers.get(&key).is_some_and(|timer| timer.is_retry);
        if self.is_closed || is_pending {
            return;
        }
        let (failures, last) = self.failures.entry(key).or_default();
        *failures = if self.now - *last > 2 * DELAY_MS_MAX {
            1
        } else {
            *failures + 1
        };
        *last = self.now;
        let delay = (1 << (*failures - 1)).min(DELAY_MS_MAX);
        self.add_after(key, 0, delay, true);
    }

    fn fire_due(&mut self) {
        let due = |timer: &Timer| (timer.due, timer.order);
        while let Some((&key, timer)) = self.timers.iter().min_by_key(|(_, timer)| due(timer))
            && timer.due <= self.now
        {
            let priority = timer.priority;
            self.timers.remove(&key);
            self.add(key, priority);
        }
    }

    fn get(&mut self) -> Option<u8> {
        self.fire_due();
        let top = *self
            .ready
            .iter()
            .min_by_key(|(priority, order, _)| (-priority, *order))?;
        let oldest = *self.ready.iter().min_by_key(|(_, order, _)| *order)?;
        let mut next = top;
        if self.ready.iter().all(|(priority, ..)| *priority == top.0) {
            self.passed_over = 0;
        } else if self.passed_over == PASSED_OVER_MAX {
            self.passed_over = 0;
            next = oldest;
        } else {
            self.passed_over += 1;
        }
        self.ready.retain(|&entry| entry != next);
        self.held.insert(next.2, None);
        Some(next.2)
    }

    /// The result of a single poll of a `get`.
    fn poll_get(&mut self) -> Poll<Option<u8>> {
        match self.get() {
            None if self.is_closed => Poll::Ready(None),
            None => Poll::Pending,
            some => Poll::Ready(some),
        }
    }

    fn done(&mut self, key: u8) {
        if let Some(Some(priority)) = self.held.remove(&key) {
            let order = self.next_order();
            self.ready.push((priority, order, key));
        }
    }

    fn forget(&mut self, key: u8) {
        self.failures.remove(&key);
        if let Some(timer) = self.timers.get_mut(&key) {
            timer.is_retry = false;
            if !timer.is_after {
                self.timers.remove(&key);
            }
        }
    }

    fn len(&mut self) -> usize {
        self.fire_due();
        self.ready.len()
    }
}

/// Polls a `get` once and gives it up if nothing is ready.
fn poll_once<'q>(get: impl Future<Output = Option<Item<'q, u8>>>) -> Poll<Option<Item<'q, u8>>> {
    pin!(get).poll(&mut Context::from_waker(Waker::noop()))
}

/// Runs one step on both, and compares what can be seen.
async fn run<'q>(
    queue: &'q WorkQueue<u8>,
    model: &mut Model,
    held: &mut Vec<Item<'q, u8>>,
    step: Step,
) {
    match step {
        Step::Add { key, priority } => {
            queue.add_with(
                key,
                AddOptions {
                    priority,
                    ..AddOptions::default()
                },
            );
            model.add(key, priority);
        }
        Step::AddAfter { key, priority, ms } => {
            let after = Some(Duration::from_millis(ms));
            queue.add_with(
                key,
                AddOptions {
                    priority,
                    after,
                    rate_limited: false,
                },
            );
            model.add_after(key, priority, ms, false);
        }
        Step::AddRateLimited { key } => {
            queue.add_rate_limited(key);
            model.add_rate_limited(key);
        }
        Step::Get => {
            let expected = model.poll_get();
            let got = poll_once(queue.get());
            let key = got.map(|item| item.map(|item| (*item.key(), held.push(item)).0));
            assert_eq!(key, expected);
        }
        Step::Next { held: at } if at < held.len() => {
            let item = held.remove(at);
            model.done(*item.key());
            let expected = model.poll_get();
            let got = poll_once(item.next());
            let key = got.map(|item| item.map(|item| (*item.key(), held.push(item)).0));
            assert_eq!(key, expected);
        }
        Step::Done { held: at } if at < held.len() => {
            let item = held.remove(at);
            model.done(*item.key());
        }
        Step::Done { .. } | Step::Next { .. } => {}
        Step::Advance { ms } => {
            advance(Duration::from_millis(ms)).await;
            model.now += ms;
        }
        Step::Forget { key } => {
            queue.forget(&key);
            model.fire_due();
            model.forget(key);
        }
        Step::Cancel { key } => {
            model.fire_due();
            assert_eq!(
                queue.cancel_delayed(&key),
                model.timers.remove(&key).is_some()
            );
        }
        Step::ShutDown => {
            queue.shut_down();
            model.is_closed = true;
            model.timers.clear();
        }
    }
}

proptest! {
    #[test]
    fn queue_behaves_like_its_model(steps in prop::collection::vec((step(), any::<bool>()), 0..250)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let queue = WorkQueue::builder()
                .name("model")
                .limiter(ItemExponential::new(MS, Duration::from_millis(DELAY_MS_MAX)))
                .build();
            let (mut model, mut held) = (Model::default(), Vec::new());
            for (step, look) in steps {
                // Looking at the queue fires what is due, so half of the steps go without.
                run(&queue, &mut model, &mut held, step).await;
                for key in 0..6 {
                    let failures = model.failures.get(&key).map_or(0, |&(count, _)| count);
                    assert_eq!(queue.num_requeues(&key), failures);
                }
                if look {
                    assert_eq!(queue.len(), model.len());
                    let snapshot = queue.snapshot();
                    let dirty = model.held.values().flatten().count();
                    assert_eq!(snapshot.depth, model.ready.len() + dirty);
                    assert_eq!(snapshot.running, held.len());
                }
            }
        });
    }
}

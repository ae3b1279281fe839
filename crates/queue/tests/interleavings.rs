//! Workers that are polled in any order, late, or dropped: no key is on two of them, and none is
//! left while a worker sleeps.
//!
//! Each call of the queue is one critical section, so the possible interleavings are the orders
//! of calls and polls. The first test plays an executor that chooses a random one, and polls a
//! worker only after it was woken. The second lets real threads choose.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use proptest::prelude::*;
use tokio::time::advance;
use windlass_queue::{Item, WorkQueue};

const KEYS: u8 = 5;
const WORKERS: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Add {
        key: u8,
    },
    AddAfter {
        key: u8,
        ms: u64,
    },
    Cancel {
        key: u8,
    },
    /// The executor runs a worker, if it has been woken.
    Poll {
        worker: usize,
    },
    /// A worker finishes its key and asks for another.
    Done {
        worker: usize,
    },
    /// The same in one call.
    Next {
        worker: usize,
    },
    /// A worker gives up, and a new one takes its place.
    Replace {
        worker: usize,
    },
    Advance {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let worker = || 0..WORKERS;
    prop_oneof![
        5 => (0..KEYS).prop_map(|key| Step::Add { key }),
        3 => (0..KEYS, 1_u64..10).prop_map(|(key, ms)| Step::AddAfter { key, ms }),
        1 => (0..KEYS).prop_map(|key| Step::Cancel { key }),
        6 => worker().prop_map(|worker| Step::Poll { worker }),
        4 => worker().prop_map(|worker| Step::Done { worker }),
        4 => worker().prop_map(|worker| Step::Next { worker }),
        1 => worker().prop_map(|worker| Step::Replace { worker }),
        2 => (0_u64..5).prop_map(|ms| Step::Advance { ms }),
    ]
}

/// Remembers that a worker was woken.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

type Get<'q> = Pin<Box<dyn Future<Output = Option<Item<'q, u8>>> + 'q>>;

enum Activity<'q> {
    Waits(Get<'q>),
    Holds(Item<'q, u8>),
}

struct Worker<'q> {
    queue: &'q WorkQueue<u8>,
    woken: Arc<Flag>,
    activity: Activity<'q>,
}

impl<'q> Worker<'q> {
    /// A worker that asks for a key. An executor polls a new task once by itself.
    fn new(queue: &'q WorkQueue<u8>) -> Self {
        let activity = Activity::Waits(Box::pin(queue.get()));
        Self {
            queue,
            woken: Arc::new(Flag(AtomicBool::new(true))),
            activity,
        }
    }

    fn poll(&mut self) {
        let Activity::Waits(get) = &mut self.activity else {
            return;
        };
        if !self.woken.0.swap(false, SeqCst) {
            return;
        }
        let waker = Waker::from(Arc::clone(&self.woken));
        if let Poll::Ready(item) = get.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.activity = Activity::Holds(item.expect("the queue is open"));
        }
    }

    fn done(&mut self) {
        if matches!(self.activity, Activity::Holds(_)) {
            *self = Self::new(self.queue);
        }
    }

    fn next(&mut self) {
        let idle = Self::new(self.queue);
        match std::mem::replace(self, idle).activity {
            Activity::Holds(item) => self.activity = Activity::Waits(Box::pin(item.next())),
            waits @ Activity::Waits(_) => self.activity = waits,
        }
    }

    fn key(&self) -> Option<u8> {
        match &self.activity {
            Activity::Waits(_) => None,
            Activity::Holds(item) => Some(*item.key()),
        }
    }
}

fn assert_exclusive(workers: &[Worker<'_>]) {
    for key in 0..KEYS {
        assert!(
            workers
                .iter()
                .filter(|worker| worker.key() == Some(key))
                .count()
                <= 1
        );
    }
}

/// Runs every worker that is woken, until none is, and checks that none sleeps beside a key.
fn assert_no_lost_wake_up(queue: &WorkQueue<u8>, workers: &mut [Worker<'_>]) {
    while workers
        .iter()
        .any(|worker| worker.key().is_none() && worker.woken.0.load(SeqCst))
    {
        workers.iter_mut().for_each(Worker::poll);
    }
    let sleeps = workers.iter().any(|worker| worker.key().is_none());
    assert!(
        !sleeps || queue.is_empty(),
        "a worker sleeps while a key is ready"
    );
}

async fn run<'q>(queue: &'q WorkQueue<u8>, workers: &mut [Worker<'q>], step: Step) {
    match step {
        Step::Add { key } => queue.add(key),
        Step::AddAfter { key, ms } => queue.add_after(key, Duration::from_millis(ms)),
        Step::Cancel { key } => drop(queue.cancel_delayed(&key)),
        Step::Poll { worker } => workers[worker].poll(),
        Step::Done { worker } => workers[worker].done(),
        Step::Next { worker } => workers[worker].next(),
        Step::Replace { worker } => workers[worker] = Worker::new(queue),
        Step::Advance { ms } => advance(Duration::from_millis(ms)).await,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_order_of_polls_loses_a_wake_up_or_shares_a_key(
        rounds in prop::collection::vec(prop::collection::vec(step(), 0..25), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let queue = WorkQueue::new();
            let mut workers: Vec<_> = (0..WORKERS).map(|_| Worker::new(&queue)).collect();
            for steps in rounds {
                for step in steps {
                    run(&queue, &mut workers, step).await;
                    assert_exclusive(&workers);
                }
                assert_no_lost_wake_up(&queue, &mut workers);
                // A sleeping worker must also notice every timer by itself.
                for _ in 0..10 {
                    advance(Duration::from_millis(1)).await;
                    assert_no_lost_wake_up(&queue, &mut workers);
                }
            }
        });
    }
}

/// One key of the stress test: producers raise `wanted`, the worker that holds it copies it.
#[derive(Default)]
struct Cell {
    is_held: AtomicBool,
    wanted: AtomicU64,
    seen: AtomicU64,
}

fn work(cell: &Cell) {
    assert!(!cell.is_held.swap(true, SeqCst), "two workers hold one key");
    cell.seen.store(cell.wanted.load(SeqCst), SeqCst);
    std::hint::spin_loop();
    assert!(cell.is_held.swap(false, SeqCst));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_lose_no_key_and_share_none() {
    const ADDS: usize = 20_000;
    for keys in [1, 3, 1000] {
        let queue = WorkQueue::<usize>::new();
        let cells: Arc<Vec<Cell>> = Arc::new((0..keys).map(|_| Cell::default()).collect());
        let handed_out = Arc::new(AtomicUsize::new(0));
        let workers: Vec<_> = (0..8)
            .map(|_| {
                let (queue, cells, handed_out) =
                    (queue.clone(), Arc::clone(&cells), Arc::clone(&handed_out));
                tokio::spawn(async move {
                    let mut next = queue.get().await;
                    while let Some(item) = next {
                        work(&cells[*item.key()]);
                        let handed_out = handed_out.fetch_add(1, SeqCst);
                        next = if handed_out % 2 == 0 {
                            item.next().await
                        } else {
                            item.done();
                            queue.get().await
                        };
                    }
                })
            })
            .collect();
        let producers: Vec<_> = (0..4)
            .map(|producer| {
                let (queue, cells) = (queue.clone(), Arc::clone(&cells));
                std::thread::spawn(move || {
                    for add in 0..ADDS {
                        let key = (add * 7 + producer) % keys;
                        cells[key].wanted.fetch_add(1, SeqCst);
                        queue.add(key);
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.join().unwrap();
        }
        queue.shut_down_with_drain().await;
        for worker in workers {
            worker.await.unwrap();
        }
        for cell in cells.iter() {
            assert_eq!(cell.seen.load(SeqCst), cell.wanted.load(SeqCst));
        }
        assert!(handed_out.load(SeqCst) <= 4 * ADDS);
    }
}

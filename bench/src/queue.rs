//! How many keys the work queue can take in and hand out.
//!
//! One operation is one call of `add`, or one hand-out: a `get` whose item is ended. The
//! configurations, and the names of the figures, are those of the peers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};
use windlass_bench::{contest::Numbers, meter};
use windlass_core::Key;
use windlass_queue::{WorkQueue, controller_limiter};

/// How long the producers of each configuration add.
const RUN: Duration = Duration::from_secs(3);

/// Keys that are queued at once to see what one of them takes.
const QUEUED_KEYS: usize = 1_000_000;

/// The width of the number at the end of each key.
const KEY_DIGITS: usize = 5;

/// Who takes part.
#[derive(Clone, Copy)]
struct Load {
    producers: usize,
    workers: usize,
    keys: usize,
}

const LOADS: [Load; 3] = [
    Load {
        producers: 1,
        workers: 1,
        keys: 10_000,
    },
    Load {
        producers: 4,
        workers: 16,
        keys: 100,
    },
    Load {
        producers: 4,
        workers: 16,
        keys: 10_000,
    },
];

/// How producers and workers relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A producer adds a key again only after it was finished: each add leads to one hand-out.
    Paired,
    /// Producers add without regard for the workers, and most adds find their key in the queue.
    Flood,
}

/// Runs all configurations, one after the other.
pub(crate) fn run() -> anyhow::Result<Numbers> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()?;
    let mut numbers = Numbers::new();
    numbers.insert("bytes_per_queued_key".to_owned(), bytes_per_queued_key()?);
    for (mode, word) in [(Mode::Paired, "paired"), (Mode::Flood, "flood")] {
        for load in LOADS {
            let Load {
                producers,
                workers,
                keys,
            } = load;
            let name = format!("{word}_{producers}p_{workers}w_{keys}keys");
            let [adds, handouts] = runtime.block_on(measure(load, mode));
            numbers.insert(format!("{name}_handouts_per_s"), handouts);
            numbers.insert(format!("{name}_ops_per_s"), adds + handouts);
        }
    }
    Ok(numbers)
}

/// The memory that the queue needs for a key, beside the text of the key.
fn bytes_per_queued_key() -> anyhow::Result<f64> {
    let keys: Vec<Key> = (0..QUEUED_KEYS).map(key).collect();
    let queue = WorkQueue::rate_limited(controller_limiter());
    let before = meter::rss_bytes()?;
    for key in &keys {
        queue.add(key.clone());
    }
    anyhow::ensure!(queue.len() == QUEUED_KEYS, "not every key is queued");
    let after = meter::rss_bytes()?;
    Ok((after - before) as f64 / QUEUED_KEYS as f64)
}

fn key(index: usize) -> Key {
    Key::new(
        &format!("namespace-{}", index % 10),
        &format!("name-{index:0KEY_DIGITS$}"),
    )
}

/// What the tasks of one run share.
struct Shared {
    mode: Mode,
    queue: WorkQueue<Key>,
    keys: Vec<Key>,
    is_over: AtomicBool,
    /// Which keys have been added and not finished; used in paired runs only.
    pending: Vec<AtomicBool>,
}

/// Adds and hand-outs per second. The run ends when the workers have emptied the queue.
async fn measure(load: Load, mode: Mode) -> [f64; 2] {
    let shared = Arc::new(Shared::new(load, mode));
    let (mut producers, mut workers) = (JoinSet::new(), JoinSet::new());
    let start = meter::wall();
    for producer in 0..load.producers {
        let first = producer * load.keys / load.producers;
        producers.spawn(Arc::clone(&shared).produce(first));
    }
    for _ in 0..load.workers {
        workers.spawn(Arc::clone(&shared).work());
    }
    sleep(RUN).await;
    shared.is_over.store(true, Ordering::Relaxed);
    let adds: u64 = producers.join_all().await.into_iter().sum();
    shared.queue.shut_down();
    let handouts: u64 = workers.join_all().await.into_iter().sum();
    let seconds = (meter::wall() - start).as_secs_f64();
    [adds, handouts].map(|count| count as f64 / seconds)
}

impl Shared {
    fn new(load: Load, mode: Mode) -> Self {
        Self {
            mode,
            queue: WorkQueue::rate_limited(controller_limiter()),
            keys: (0..load.keys).map(key).collect(),
            is_over: AtomicBool::new(false),
            pending: (0..load.keys).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Adds keys in turn until the run is over, and returns how many adds that were.
    async fn produce(self: Arc<Self>, first: usize) -> u64 {
        let (mut adds, mut skipped) = (0, 0);
        for index in (0..self.keys.len()).cycle().skip(first) {
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            if self.mode == Mode::Paired && !self.claim(index) {
                skipped += 1;
                if skipped % self.keys.len() == 0 {
                    tokio::task::yield_now().await;
                }
                continue;
            }
            self.queue.add(self.keys[index].clone());
            adds += 1;
            // A task that never waits must offer its thread to the others.
            tokio::task::consume_budget().await;
        }
        adds
    }

    /// Marks a key as pending, unless it is.
    fn claim(&self, index: usize) -> bool {
        let pending = &self.pending[index];
        pending
            .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes and finishes keys until the queue is shut down and empty, and returns how many.
    async fn work(self: Arc<Self>) -> u64 {
        let mut handouts = 0;
        let mut next = self.queue.get().await;
        while let Some(item) = next {
            self.pending[number(item.key())].store(false, Ordering::Release);
            handouts += 1;
            next = item.next().await;
        }
        handouts
    }
}

/// Reads the number at the end of a key.
fn number(key: &Key) -> usize {
    let text = key.as_str().as_bytes();
    let digits = &text[text.len() - KEY_DIGITS..];
    digits
        .iter()
        .fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}

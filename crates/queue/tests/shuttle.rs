//! Threads in every order that a model checker comes up with. A worker that sleeps beside a ready
//! key, or a drain that nobody ends, is a deadlock, which it reports.
//!
//! Run with `RUSTFLAGS="--cfg shuttle" cargo test -p windlass-queue --test shuttle --release
//! --target-dir target/shuttle`; without a directory of its own it would rebuild the others'.

#![cfg(shuttle)]

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use shuttle::{check_random, future::block_on, sync::mpsc, thread};
use windlass_queue::{AddOptions, WorkQueue};

/// The number of schedules tried for each scenario: all of them together take some seconds.
const ITERATIONS: usize = 20_000;
const KEYS: usize = 2;

/// One key: producers raise `wanted`, the worker that holds it reports what it saw.
#[derive(Default)]
struct Cell {
    is_held: AtomicBool,
    wanted: AtomicUsize,
}

/// The way of a worker from one key to the next.
#[derive(Clone, Copy)]
enum Way {
    Next,
    DoneAndGet,
}

async fn work(
    queue: WorkQueue<usize>,
    cells: Arc<[Cell; KEYS]>,
    seen: mpsc::Sender<(usize, usize)>,
    way: Way,
) {
    let mut next = queue.get().await;
    while let Some(item) = next {
        let key = *item.key();
        assert!(
            !cells[key].is_held.swap(true, SeqCst),
            "two workers hold one key"
        );
        seen.send((key, cells[key].wanted.load(SeqCst))).unwrap();
        thread::yield_now();
        assert!(cells[key].is_held.swap(false, SeqCst));
        next = match way {
            Way::Next => item.next().await,
            Way::DoneAndGet => {
                item.done();
                queue.get().await
            }
        };
    }
}

/// Every add is seen by a worker before anybody shuts the queue down.
fn scenario(producers: usize, ways: &[Way]) {
    let queue = WorkQueue::new();
    let cells: Arc<[Cell; KEYS]> = Arc::default();
    let (send, seen) = mpsc::channel();
    let workers: Vec<_> = ways
        .iter()
        .map(|&way| {
            let worker = work(queue.clone(), Arc::clone(&cells), send.clone(), way);
            thread::spawn(move || block_on(worker))
        })
        .collect();
    let adders: Vec<_> = (0..producers)
        .map(|producer| {
            let (queue, cells) = (queue.clone(), Arc::clone(&cells));
            thread::spawn(move || {
                for add in 0..KEYS {
                    let key = (producer + add) % KEYS;
                    cells[key].wanted.fetch_add(1, SeqCst);
                    let priority = if add == 0 { 0 } else { -100 };
                    let options = AddOptions {
                        priority,
                        ..AddOptions::default()
                    };
                    queue.add_with(key, options);
                }
            })
        })
        .collect();
    let mut last = [0; KEYS];
    while last.iter().any(|&last| last < producers) {
        let (key, wanted) = seen.recv().unwrap();
        last[key] = wanted.max(last[key]);
    }
    for adder in adders {
        adder.join().unwrap();
    }
    queue.shut_down();
    for worker in workers {
        worker.join().unwrap();
    }
    assert!(queue.is_empty());
}

#[test]
fn every_add_reaches_a_worker_in_any_interleaving() {
    check_random(|| scenario(1, &[Way::Next]), ITERATIONS);
    check_random(|| scenario(2, &[Way::Next, Way::DoneAndGet]), ITERATIONS);
    check_random(|| scenario(2, &[Way::DoneAndGet]), ITERATIONS);
}

#[test]
fn a_drain_ends_when_the_last_key_is_done_in_any_interleaving() {
    check_random(
        || {
            let queue = WorkQueue::new();
            (0..3).for_each(|key| queue.add(key));
            let handed_out = Arc::new(AtomicUsize::new(0));
            let workers: Vec<_> = (0..2)
                .map(|_| {
                    let (queue, handed_out) = (queue.clone(), Arc::clone(&handed_out));
                    thread::spawn(move || {
                        block_on(async {
                            let mut next = queue.get().await;
                            while let Some(item) = next {
                                handed_out.fetch_add(1, SeqCst);
                                next = item.next().await;
                            }
                        });
                    })
                })
                .collect();
            block_on(queue.shut_down_with_drain());
            assert_eq!(handed_out.load(SeqCst), 3);
            for worker in workers {
                worker.join().unwrap();
            }
        },
        ITERATIONS,
    );
}

#[test]
fn a_get_that_is_given_up_passes_its_wake_up_on_in_any_interleaving() {
    check_random(
        || {
            let queue = WorkQueue::<usize>::new();
            let fickle = {
                let queue = queue.clone();
                thread::spawn(move || {
                    let mut get = Box::pin(queue.get());
                    let waker = std::task::Waker::noop();
                    let mut cx = std::task::Context::from_waker(waker);
                    std::future::Future::poll(get.as_mut(), &mut cx).is_ready()
                })
            };
            let steady = {
                let queue = queue.clone();
                thread::spawn(move || block_on(async { queue.get().await.map(|it| *it.key()) }))
            };
            queue.add(1);
            // What the fickle one took, it has given back without working on it.
            if fickle.join().unwrap() {
                queue.add(1);
            }
            assert_eq!(steady.join().unwrap(), Some(1));
        },
        ITERATIONS,
    );
}

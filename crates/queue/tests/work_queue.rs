//! The promises of the queue to producers and workers, on virtual time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    task::{JoinHandle, yield_now},
    time::{Instant, advance, timeout},
};
use windlass_queue::{Item, ItemExponential, WorkQueue};

const MS: Duration = Duration::from_millis(1);

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::rate_limited(ItemExponential::new(MS, Duration::from_secs(1)))
}

/// The key that is ready now, if any, held.
async fn ready<'q>(queue: &'q WorkQueue<&'static str>) -> Option<Item<'q, &'static str>> {
    if queue.is_empty() {
        None
    } else {
        queue.get().await
    }
}

/// Takes everything that is ready now.
async fn drain(queue: &WorkQueue<&'static str>) -> Vec<&'static str> {
    let mut keys = Vec::new();
    while let Some(item) = ready(queue).await {
        keys.push(*item.key());
    }
    keys
}

/// Lets all tasks run until each of them waits.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

async fn is_waiting<T>(task: &JoinHandle<T>) -> bool {
    settle().await;
    !task.is_finished()
}

#[tokio::test(start_paused = true)]
async fn all_items_of_all_producers_are_processed_and_workers_end() {
    let queue = WorkQueue::<(u32, u32)>::new();
    let seen = Arc::new(Mutex::new(BTreeMap::<(u32, u32), u32>::new()));
    let workers: Vec<_> = (0..10)
        .map(|_| {
            let (queue, seen) = (queue.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                while let Some(item) = queue.get().await {
                    tokio::time::sleep(3 * MS).await;
                    *seen.lock().unwrap().entry(*item.key()).or_default() += 1;
                }
            })
        })
        .collect();
    let producers: Vec<_> = (0..50)
        .map(|producer| {
            let queue = queue.clone();
            tokio::spawn(async move {
                for item in 0..50 {
                    queue.add((producer, item));
                    tokio::time::sleep(MS).await;
                }
            })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
    queue.shut_down();
    queue.add((99, 99));
    for worker in workers {
        worker.await.unwrap();
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 50 * 50);
    assert!(seen.values().all(|&times| times == 1));
    assert!(!seen.contains_key(&(99, 99)));
}

#[tokio::test(start_paused = true)]
async fn keys_are_handed_out_in_the_order_of_their_first_add() {
    let queue = queue();
    for key in ["c", "a", "c", "b", "a"] {
        queue.add(key);
    }
    assert_eq!(drain(&queue).await, ["c", "a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn key_added_while_processing_is_handed_out_once_more_after_done() {
    let queue = queue();
    queue.add("foo");
    let item = queue.get().await.unwrap();
    queue.add("foo");
    queue.add("foo");
    assert_eq!(queue.len(), 0, "a key with a worker is not ready");
    let second = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|item| *item.key()) }
    });
    assert!(is_waiting(&second).await);
    item.done();
    assert_eq!(second.await.unwrap(), Some("foo"));
    assert_eq!(queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn key_added_twice_before_get_is_handed_out_once() {
    let queue = queue();
    queue.add("foo");
    queue.add("foo");
    assert_eq!(queue.len(), 1);
    assert_eq!(drain(&queue).await, ["foo"]);
}

#[tokio::test(start_paused = true)]
async fn key_readded_by_its_own_worker_goes_to_the_tail() {
    let queue = queue();
    queue.add("a");
    let item = queue.get().await.unwrap();
    queue.add("a");
    queue.add("b");
    drop(item);
    assert_eq!(drain(&queue).await, ["b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn panicking_worker_gives_its_key_back() {
    let queue = queue();
    queue.add("foo");
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let item = queue.get().await.unwrap();
            queue.add(*item.key());
            panic!("reconcile failed");
        }
    });
    assert!(worker.await.unwrap_err().is_panic());
    assert_eq!(drain(&queue).await, ["foo"]);
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_every_running_key() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    let (foo, bar) = (queue.get().await.unwrap(), queue.get().await.unwrap());
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    assert!(is_waiting(&drain).await);
    foo.done();
    assert!(is_waiting(&drain).await);
    bar.done();
    drain.await.unwrap();
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_ready_keys_too() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    assert!(is_waiting(&drain).await);
    queue.get().await.unwrap().done();
    assert!(
        is_waiting(&drain).await,
        "no key runs at this moment, but one is ready"
    );
    queue.get().await.unwrap().done();
    drain.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn drain_hands_out_a_key_that_was_added_again_before_the_shutdown() {
    let queue = queue();
    queue.add("foo");
    let item = queue.get().await.unwrap();
    queue.add("foo");
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    settle().await;
    queue.add("late");
    item.done();
    assert!(is_waiting(&drain).await);
    assert_eq!(queue.get().await.map(|item| *item.key()), Some("foo"));
    drain.await.unwrap();
    assert!(
        queue.get().await.is_none(),
        "adds after a shutdown are ignored"
    );
}

#[tokio::test(start_paused = true)]
async fn drain_of_an_idle_queue_returns_at_once() {
    let queue = queue();
    queue.add_after("later", 10 * MS);
    queue.shut_down_with_drain().await;
    assert!(queue.is_shutting_down());
}

#[tokio::test(start_paused = true)]
async fn shut_down_does_not_wait_for_running_keys() {
    let queue = queue();
    queue.add("foo");
    let _item = queue.get().await.unwrap();
    queue.shut_down();
    assert!(queue.is_shutting_down());
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn shut_down_releases_a_drain_that_waits() {
    let queue = queue();
    queue.add("foo");
    let _item = queue.get().await.unwrap();
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    assert!(is_waiting(&drain).await);
    queue.shut_down();
    drain.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn drain_can_be_given_a_deadline() {
    let queue = queue();
    queue.add("foo");
    let item = queue.get().await.unwrap();
    assert!(
        timeout(50 * MS, queue.shut_down_with_drain())
            .await
            .is_err()
    );
    item.done();
    timeout(50 * MS, queue.shut_down_with_drain())
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn shut_down_wakes_every_waiting_worker() {
    let queue = queue();
    let ended = Arc::new(AtomicUsize::new(0));
    for _ in 0..16 {
        let (queue, ended) = (queue.clone(), Arc::clone(&ended));
        tokio::spawn(async move {
            assert!(queue.get().await.is_none());
            ended.fetch_add(1, SeqCst);
        });
    }
    settle().await;
    queue.shut_down();
    settle().await;
    assert_eq!(ended.load(SeqCst), 16);
}

#[tokio::test(start_paused = true)]
async fn queue_keeps_no_reference_to_a_finished_key() {
    let queue = WorkQueue::new();
    let key = Arc::new([0_u8; 1024]);
    queue.add(Arc::clone(&key));
    queue.add(Arc::clone(&key));
    queue.get().await.unwrap().done();
    queue.add_after(Arc::clone(&key), MS);
    assert!(queue.cancel_delayed(&key));
    queue.add_after(Arc::clone(&key), MS);
    queue.shut_down();
    assert_eq!(Arc::strong_count(&key), 1);
}

#[tokio::test(start_paused = true)]
async fn abandoned_get_loses_no_key() {
    let queue = queue();
    for _ in 0..3 {
        assert!(timeout(MS, queue.get()).await.is_err());
    }
    queue.add("foo");
    assert_eq!(drain(&queue).await, ["foo"]);
}

#[test]
fn adding_needs_no_runtime() {
    let queue = queue();
    queue.add("foo");
    queue.add_after("bar", MS);
    queue.add_rate_limited("baz");
    queue.forget(&"baz");
    assert_eq!(queue.num_requeues(&"baz"), 0);
    assert_eq!(queue.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn worker_gives_way_to_other_tasks_although_the_queue_never_runs_dry() {
    let queue = WorkQueue::new();
    queue.add(0);
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            while let Some(item) = queue.get().await {
                queue.add(*item.key() + 1);
            }
        }
    });
    settle().await;
    queue.shut_down();
    worker.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shorter_delay_stands_when_a_longer_one_follows() {
    let queue = queue();
    queue.add_after("x", 50 * MS);
    queue.add_after("x", 70 * MS);
    advance(49 * MS).await;
    assert!(queue.is_empty());
    advance(MS).await;
    assert_eq!(drain(&queue).await, ["x"]);
    advance(20 * MS).await;
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn shorter_delay_replaces_a_longer_one() {
    let queue = queue();
    queue.add_after("x", 50 * MS);
    queue.add_after("x", 30 * MS);
    advance(30 * MS).await;
    assert_eq!(drain(&queue).await, ["x"]);
    advance(20 * MS).await;
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_become_ready_each_at_its_time() {
    let queue = queue();
    queue.add_after("a", Duration::from_secs(1));
    queue.add_after("b", 50 * MS);
    advance(60 * MS).await;
    assert_eq!(drain(&queue).await, ["b"]);
    advance(Duration::from_secs(1)).await;
    assert_eq!(drain(&queue).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_are_ordered_by_readiness_then_by_request() {
    let queue = queue();
    queue.add_after("first", Duration::from_secs(1));
    queue.add_after("second", 500 * MS);
    queue.add_after("third", 300 * MS);
    queue.add_after("fourth", 300 * MS);
    advance(Duration::from_secs(2)).await;
    assert_eq!(drain(&queue).await, ["third", "fourth", "second", "first"]);
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_an_immediate_add_and_counts_as_a_retry() {
    let queue = WorkQueue::builder().name("test").build();
    queue.add_after("x", Duration::ZERO);
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.snapshot().retries, 1);
}

#[tokio::test(start_paused = true)]
async fn delayed_add_after_shutdown_is_ignored() {
    let queue = queue();
    queue.add_after("before", MS);
    queue.shut_down();
    queue.add_after("x", MS);
    queue.add_rate_limited("y");
    advance(10 * MS).await;
    assert!(queue.get().await.is_none());
    assert_eq!(queue.num_requeues(&"y"), 0);
}

#[tokio::test(start_paused = true)]
async fn immediate_add_leaves_the_delayed_one_standing() {
    let queue = queue();
    queue.add_after("x", 10 * MS);
    queue.add("x");
    assert_eq!(drain(&queue).await, ["x"]);
    advance(10 * MS).await;
    assert_eq!(drain(&queue).await, ["x"]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_delay_never_fires_and_can_be_set_anew() {
    let queue = queue();
    queue.add_after("x", 10 * MS);
    assert!(queue.cancel_delayed(&"x"));
    assert!(!queue.cancel_delayed(&"x"));
    queue.add_after("x", 30 * MS);
    advance(20 * MS).await;
    assert!(queue.is_empty());
    advance(10 * MS).await;
    assert_eq!(drain(&queue).await, ["x"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_worker_wakes_when_a_delay_ends() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("x", 50 * MS);
    assert_eq!(*queue.get().await.unwrap().key(), "x");
    assert_eq!(start.elapsed(), 50 * MS);
}

#[tokio::test(start_paused = true)]
async fn waiting_worker_learns_of_an_earlier_delay() {
    let queue = queue();
    let start = Instant::now();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let item = queue.get().await.unwrap();
                (*item.key(), start.elapsed())
            })
        })
        .collect();
    settle().await;
    for (key, delay) in [("slow", 500), ("fast", 30), ("middle", 100)] {
        queue.add_after(key, delay * MS);
        settle().await;
    }
    let mut got = Vec::new();
    for worker in workers {
        got.push(worker.await.unwrap());
    }
    got.sort_by_key(|&(_, at)| at);
    assert_eq!(
        got,
        [("fast", 30 * MS), ("middle", 100 * MS), ("slow", 500 * MS)]
    );
}

#[tokio::test(start_paused = true)]
async fn sleeping_worker_that_gives_up_leaves_its_timer_to_another() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("x", 50 * MS);
    let leader = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.is_some() }
    });
    settle().await;
    let follower = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|item| *item.key()) }
    });
    settle().await;
    leader.abort();
    assert_eq!(follower.await.unwrap(), Some("x"));
    assert_eq!(start.elapsed(), 50 * MS);
}

#[tokio::test(start_paused = true)]
async fn event_during_a_pending_retry_does_not_inflate_the_back_off() {
    let queue = queue();
    queue.add_rate_limited("x");
    advance(MS).await;
    for _ in 0..10 {
        queue.add("x");
        let item = queue.get().await.unwrap();
        queue.add_rate_limited(*item.key());
    }
    assert_eq!(
        queue.num_requeues(&"x"),
        2,
        "only the retry that was due counts"
    );
    advance(MS).await;
    assert!(queue.is_empty());
    advance(MS).await;
    assert_eq!(drain(&queue).await, ["x"]);
}

#[tokio::test(start_paused = true)]
async fn forget_drops_the_pending_retry_but_no_delay_that_was_asked_for() {
    let queue = queue();
    queue.add_rate_limited("retried");
    queue.add_rate_limited("both");
    queue.add_after("both", 10 * MS);
    queue.add_after("delayed", MS);
    for key in ["retried", "both", "delayed"] {
        queue.forget(&key);
    }
    advance(20 * MS).await;
    assert_eq!(drain(&queue).await, ["both", "delayed"]);
}

#[tokio::test(start_paused = true)]
async fn each_key_of_a_rate_limited_batch_has_its_own_delay() {
    let queue = queue();
    queue.add_rate_limited("a");
    advance(MS).await;
    assert_eq!(drain(&queue).await, ["a"]);
    queue.add_rate_limited("a");
    queue.add_rate_limited("b");
    advance(MS).await;
    assert_eq!(drain(&queue).await, ["b"]);
    advance(MS).await;
    assert_eq!(drain(&queue).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn key_is_dropped_after_five_retries() {
    let queue = queue();
    queue.add("x");
    let mut runs = 0;
    while let Ok(Some(item)) = timeout(Duration::from_secs(10), queue.get()).await {
        runs += 1;
        if queue.num_requeues(item.key()) < 5 {
            queue.add_rate_limited(*item.key());
        } else {
            queue.forget(item.key());
        }
    }
    assert_eq!(runs, 6);
    assert_eq!(queue.num_requeues(&"x"), 0);
}

//! The metrics of a named queue.

use std::time::Duration;

use tokio::time::advance;
use windlass_queue::{Snapshot, WorkQueue};

const US: Duration = Duration::from_micros(1);

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::builder().name("test").build()
}

#[tokio::test(start_paused = true)]
async fn one_item_is_counted_from_add_to_done() {
    let queue = queue();
    queue.add("foo");
    assert_eq!((queue.snapshot().adds, queue.snapshot().depth), (1, 1));
    advance(50 * US).await;
    let item = queue.get().await.unwrap();
    let snapshot = queue.snapshot();
    assert_eq!((snapshot.adds, snapshot.depth, snapshot.running), (1, 0, 1));
    assert_eq!(snapshot.queue_duration.count(), 1);
    assert_eq!(snapshot.queue_duration.sum_seconds(), 5e-05);
    advance(25 * US).await;
    drop(item);
    let snapshot = queue.snapshot();
    assert_eq!(snapshot.work_duration.count(), 1);
    assert_eq!(snapshot.work_duration.sum_seconds(), 2.5e-05);
}

#[tokio::test(start_paused = true)]
async fn duplicate_add_is_not_counted() {
    let queue = queue();
    queue.add("foo");
    queue.add("foo");
    assert_eq!((queue.snapshot().adds, queue.snapshot().depth), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn add_during_processing_is_counted_and_timed_from_then() {
    let queue = queue();
    queue.add("foo");
    let item = queue.get().await.unwrap();
    advance(50 * US).await;
    queue.add("foo");
    assert_eq!((queue.snapshot().adds, queue.snapshot().depth), (2, 1));
    advance(25 * US).await;
    drop(item);
    assert_eq!(queue.snapshot().depth, 1);
    let _item = queue.get().await.unwrap();
    let snapshot = queue.snapshot();
    assert_eq!(snapshot.depth, 0);
    assert_eq!(snapshot.queue_duration.sum_seconds(), 2.5e-05);
    assert_eq!(snapshot.work_duration.sum_seconds(), 7.5e-05);
}

#[tokio::test(start_paused = true)]
async fn running_work_is_aged_until_done() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    let foo = queue.get().await.unwrap();
    advance(1000 * US).await;
    assert_eq!(queue.snapshot().unfinished_work, 1000 * US);
    let bar = queue.get().await.unwrap();
    advance(1000 * US).await;
    let snapshot = queue.snapshot();
    assert_eq!(
        (snapshot.unfinished_work, snapshot.longest_running),
        (3000 * US, 2000 * US)
    );
    drop(foo);
    assert_eq!(queue.snapshot().longest_running, 1000 * US);
    drop(bar);
    let snapshot = queue.snapshot();
    assert_eq!(snapshot.unfinished_work, Duration::ZERO);
    assert_eq!(snapshot.longest_running, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_counted_as_added_after_shutdown() {
    let queue = queue();
    queue.shut_down();
    queue.add("foo");
    queue.add_after("foo", US);
    assert_eq!(queue.snapshot(), Snapshot::default());
}

#[tokio::test(start_paused = true)]
async fn delayed_key_is_timed_from_the_end_of_its_delay() {
    let queue = queue();
    queue.add_after("foo", 100 * US);
    advance(150 * US).await;
    let _item = queue.get().await.unwrap();
    assert_eq!(queue.snapshot().queue_duration.sum_seconds(), 5e-05);
    assert_eq!(queue.snapshot().retries, 1);
}

#[tokio::test(start_paused = true)]
async fn durations_fall_into_buckets_by_powers_of_ten() {
    let queue = queue();
    for wait in [
        US / 100,
        US,
        2 * US,
        Duration::from_secs(10),
        Duration::from_secs(11),
    ] {
        queue.add("foo");
        advance(wait).await;
        queue.get().await.unwrap().done();
    }
    let histogram = queue.snapshot().queue_duration;
    let used: Vec<_> = histogram
        .buckets()
        .filter(|&(_, count)| count > 0)
        .collect();
    assert_eq!(
        used,
        [
            (1e-8, 1),
            (1e-6, 1),
            (1e-5, 1),
            (10.0, 1),
            (f64::INFINITY, 1)
        ]
    );
    assert_eq!(histogram.buckets().count(), 11);
}

#[tokio::test(start_paused = true)]
async fn queue_without_a_name_counts_nothing() {
    let queue = WorkQueue::new();
    queue.add("foo");
    assert_eq!(queue.name(), None);
    assert_eq!(queue.snapshot(), Snapshot::default());
}

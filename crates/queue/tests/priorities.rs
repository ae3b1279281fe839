//! The order of keys with priorities.

use std::time::Duration;

use tokio::time::advance;
use windlass_queue::{AddOptions, PRIORITY_LOW, PRIORITY_NORMAL, WorkQueue};

const MS: Duration = Duration::from_millis(1);

fn at(priority: i32) -> AddOptions {
    AddOptions {
        priority,
        ..AddOptions::default()
    }
}

async fn drain<K: Clone + Eq + std::hash::Hash + Send + 'static>(queue: &WorkQueue<K>) -> Vec<K> {
    let mut keys = Vec::new();
    while !queue.is_empty() {
        keys.extend(queue.get().await.map(|item| item.key().clone()));
    }
    keys
}

#[tokio::test(start_paused = true)]
async fn higher_priorities_are_handed_out_first() {
    let queue = WorkQueue::new();
    queue.add_with("normal", at(PRIORITY_NORMAL));
    queue.add_with("high", at(5));
    queue.add_with("low", at(PRIORITY_LOW));
    let item = queue.get().await.unwrap();
    assert_eq!((*item.key(), item.priority()), ("high", 5));
    drop(item);
    assert_eq!(drain(&queue).await, ["normal", "low"]);
}

#[tokio::test(start_paused = true)]
async fn key_with_a_worker_is_not_handed_out_whatever_its_priority() {
    let queue = WorkQueue::new();
    queue.add("x");
    let item = queue.get().await.unwrap();
    queue.add_with("x", at(5));
    queue.add("y");
    assert_eq!(queue.len(), 1);
    drop(item);
    assert_eq!(drain(&queue).await, ["x", "y"]);
}

#[tokio::test(start_paused = true)]
async fn higher_priority_moves_a_queued_key_to_the_tail_of_its_new_level() {
    let queue = WorkQueue::builder().name("test").build();
    queue.add("a");
    queue.add("b");
    queue.add_with("c", at(5));
    queue.add_with("a", at(5));
    queue.add_with("c", at(PRIORITY_LOW));
    let snapshot = queue.snapshot();
    assert_eq!(snapshot.adds, 3, "raising a priority is no new add");
    assert_eq!(snapshot.depth_by_priority, [(5, 2), (0, 1)]);
    assert_eq!(drain(&queue).await, ["c", "a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_do_not_count_until_they_are_ready() {
    let queue = WorkQueue::builder().name("test").build();
    queue.add_after("x", 20 * MS);
    queue.add_after("x", 10 * MS);
    assert_eq!((queue.len(), queue.snapshot().depth), (0, 0));
    queue.add("x");
    queue.add("x");
    assert_eq!((queue.len(), queue.snapshot().depth), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn delayed_key_of_high_priority_overtakes_queued_ones_when_ready() {
    let queue = WorkQueue::new();
    queue.add_with(
        "high",
        AddOptions {
            priority: 5,
            after: Some(MS),
            rate_limited: false,
        },
    );
    queue.add("a");
    queue.add("b");
    assert_eq!(*queue.get().await.unwrap().key(), "a");
    advance(MS).await;
    assert_eq!(drain(&queue).await, ["high", "b"]);
}

#[tokio::test(start_paused = true)]
async fn delay_and_rate_limit_together_take_the_shorter() {
    let queue = WorkQueue::new();
    let options = AddOptions {
        after: Some(MS),
        rate_limited: true,
        ..AddOptions::default()
    };
    queue.add_with("x", options);
    assert_eq!(queue.num_requeues(&"x"), 1);
    advance(MS).await;
    assert_eq!(drain(&queue).await, ["x"]);
}

#[tokio::test(start_paused = true)]
async fn background_keys_are_not_starved_by_a_steady_stream() {
    let queue = WorkQueue::new();
    queue.add_with(-1, at(PRIORITY_LOW));
    queue.add_with(-2, at(PRIORITY_LOW + 1));
    let mut order = Vec::new();
    for fresh in 0..30 {
        queue.add(fresh);
        order.extend(queue.get().await.map(|item| *item.key()));
    }
    let position = |key| order.iter().position(|&got| got == key);
    assert_eq!(position(-1), Some(8), "it has waited longest");
    assert_eq!(position(-2), Some(17));
}

#[tokio::test(start_paused = true)]
async fn keys_of_many_producers_are_handed_out_once_in_order_of_arrival() {
    let queue = WorkQueue::new();
    let tasks: Vec<_> = (0..20)
        .map(|task| {
            let queue = queue.clone();
            tokio::spawn(async move { (0..10).for_each(|item| queue.add((task, item))) })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let got = drain(&queue).await;
    let all: Vec<_> = (0..20)
        .flat_map(|task| (0..10).map(move |item| (task, item)))
        .collect();
    assert_eq!(got, all);
}

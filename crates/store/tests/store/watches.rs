//! What a watcher may rely on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windlass_core::Env;
use windlass_store::{RevisionError, Store, StoreOptions, WatchError};

use crate::support::{delete, drain, memory, nodes, pods, put, value};

fn with_history(limit: usize) -> Store {
    let options = StoreOptions {
        history_limit: limit,
        ..StoreOptions::memory(Env::seeded(1))
    };
    Store::open(options).unwrap()
}

#[tokio::test]
async fn a_watch_delivers_what_came_after_its_revision_in_order() {
    let store = memory();
    put(&store, &pods(), "a", 1).await;
    put(&store, &pods(), "b", 1).await;
    put(&store, &nodes(), "n", 1).await;
    let mut watch = store.watch(&pods(), 2).unwrap();
    put(&store, &pods(), "a", 2).await;
    delete(&store, &pods(), "b").await;
    let expected = [(3, "b", Some(1)), (5, "a", Some(2)), (6, "b", None)];
    assert_eq!(
        drain(&mut watch),
        expected.map(|(rv, name, value)| (rv, name.to_owned(), value))
    );
}

#[tokio::test]
async fn an_event_tells_the_state_before() {
    let store = memory();
    let mut watch = store.watch(&pods(), 1).unwrap();
    put(&store, &pods(), "a", 1).await;
    put(&store, &pods(), "a", 2).await;
    delete(&store, &pods(), "a").await;
    assert!(watch.next().await.unwrap().previous.is_none());
    for before in [1, 2] {
        let event = watch.next().await.unwrap();
        assert_eq!(value(event.previous.as_ref().unwrap().doc()), before);
    }
}

#[tokio::test]
async fn a_waiting_watch_wakes_for_a_write() {
    let store = memory();
    let mut watch = store.watch(&pods(), 1).unwrap();
    let waiting = tokio::spawn(async move { watch.next().await.unwrap().revision() });
    tokio::task::yield_now().await;
    put(&store, &pods(), "a", 1).await;
    assert_eq!(waiting.await.unwrap(), 2);
}

#[tokio::test]
async fn a_watch_from_the_future_passes_over_what_comes_before() {
    let store = memory();
    let mut watch = store.watch(&pods(), 3).unwrap();
    for value in 0..3 {
        put(&store, &pods(), "a", value).await;
    }
    assert_eq!(watch.next().await.unwrap().revision(), 4);
}

#[tokio::test]
async fn a_watch_from_before_the_history_is_refused() {
    let store = with_history(2);
    for value in 0..4 {
        put(&store, &pods(), "a", value).await;
    }
    let refused = store.watch(&pods(), 2).unwrap_err();
    assert_eq!(
        refused,
        RevisionError::Expired {
            asked: 2,
            oldest: 3
        }
    );
    assert_eq!(drain(&mut store.watch(&pods(), 3).unwrap()).len(), 2);
}

#[tokio::test]
async fn a_watcher_that_falls_behind_ends_and_others_do_not_notice() {
    let store = with_history(100);
    let mut slow = store.watch(&pods(), 1).unwrap();
    let mut quick = store.watch(&pods(), 1).unwrap();
    for value in 0..150 {
        put(&store, &pods(), "a", value).await;
        assert_eq!(quick.next().await.unwrap().revision(), store.revision());
    }
    assert_eq!(slow.try_next().unwrap_err(), WatchError::Lagged { at: 1 });
    assert_eq!(slow.next().await.unwrap_err(), WatchError::Lagged { at: 1 });
    put(&store, &pods(), "a", 150).await;
    assert_eq!(quick.next().await.unwrap().revision(), store.revision());
}

#[tokio::test]
async fn a_watch_that_lags_has_delivered_a_run_without_gaps_before() {
    let store = with_history(100);
    let mut watch = store.watch(&pods(), 1).unwrap();
    for value in 0..100 {
        put(&store, &pods(), "a", value).await;
    }
    assert_eq!(watch.next().await.unwrap().revision(), 2);
    for value in 100..300 {
        put(&store, &pods(), "a", value).await;
    }
    let mut last = 2;
    let end = loop {
        match watch.next().await {
            Ok(event) => {
                assert_eq!(event.revision(), last + 1);
                last = event.revision();
            }
            Err(end) => break end,
        }
    };
    assert_eq!(end, WatchError::Lagged { at: last });
}

#[tokio::test]
async fn the_revision_of_a_watch_covers_exactly_what_was_delivered() {
    let store = memory();
    let mut watch = store.watch(&pods(), 1).unwrap();
    put(&store, &nodes(), "n", 1).await;
    assert_eq!(watch.revision(), 2);
    put(&store, &pods(), "a", 1).await;
    put(&store, &pods(), "a", 2).await;
    put(&store, &nodes(), "n", 2).await;
    assert_eq!(watch.revision(), 1);
    watch.next().await.unwrap();
    assert_eq!(watch.revision(), 3);
    watch.next().await.unwrap();
    assert_eq!(watch.revision(), 5);
}

#[derive(Default)]
struct Encoded(AtomicUsize);

#[tokio::test]
async fn watchers_of_a_new_event_share_an_attachment_and_old_events_forget_it() {
    let store = memory();
    let mut watch = store.watch(&pods(), 1).unwrap();
    put(&store, &pods(), "a", 0).await;
    let event = watch.next().await.unwrap();
    let mut other = store.watch(&pods(), 1).unwrap();
    let same = other.next().await.unwrap();
    event.attachment::<Encoded>().0.store(7, Ordering::Relaxed);
    assert_eq!(same.attachment::<Encoded>().0.load(Ordering::Relaxed), 7);
    let weak = Arc::downgrade(&event.attachment::<Encoded>());
    for value in 1..=256 {
        put(&store, &pods(), "a", value).await;
    }
    assert!(weak.upgrade().is_none());
    assert_eq!(event.attachment::<Encoded>().0.load(Ordering::Relaxed), 0);
}

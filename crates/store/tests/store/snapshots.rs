//! What a list may rely on.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::{Env, Key, ManualClock};
use windlass_store::{Change, RevisionError, Store, StoreOptions};

use crate::support::{content, delete, memory, nodes, object, pods, put};

#[tokio::test]
async fn a_snapshot_does_not_change() {
    let store = memory();
    put(&store, &pods(), "a", 1).await;
    let before = store.snapshot(&pods());
    put(&store, &pods(), "a", 2).await;
    put(&store, &pods(), "b", 1).await;
    assert_eq!(before.revision(), 2);
    assert_eq!(content(&before), [("a".to_owned(), 1)]);
    assert_eq!(store.snapshot(&pods()).len(), 2);
}

#[tokio::test]
async fn a_past_revision_can_be_had_again() {
    let store = memory();
    put(&store, &pods(), "a", 1).await;
    put(&store, &nodes(), "n", 1).await;
    put(&store, &pods(), "b", 1).await;
    delete(&store, &pods(), "a").await;
    let at = |revision| content(&store.snapshot_at(&pods(), revision).unwrap());
    assert_eq!(at(1), []);
    assert_eq!(at(2), [("a".to_owned(), 1)]);
    assert_eq!(at(3), [("a".to_owned(), 1)]);
    assert_eq!(at(4), [("a".to_owned(), 1), ("b".to_owned(), 1)]);
    assert_eq!(at(5), [("b".to_owned(), 1)]);
    assert_eq!(store.snapshot_at(&pods(), 3).unwrap().revision(), 3);
}

#[tokio::test]
async fn a_future_revision_is_refused() {
    let store = memory();
    let refused = store.snapshot_at(&pods(), 2).unwrap_err();
    assert_eq!(
        refused,
        RevisionError::Future {
            asked: 2,
            newest: 1
        }
    );
}

#[tokio::test]
async fn a_kept_snapshot_outlives_the_history_until_it_is_old() {
    let clock = Arc::new(ManualClock::new());
    let env = Env::seeded_with(1, clock.clone());
    let options = StoreOptions {
        history_limit: 2,
        ..StoreOptions::memory(env)
    };
    let age = options.history_age;
    let store = Store::open(options).unwrap();
    put(&store, &pods(), "a", 0).await;
    store.keep(&pods(), &store.snapshot(&pods()));
    for value in 1..5 {
        put(&store, &pods(), "a", value).await;
    }
    assert_eq!(
        content(&store.snapshot_at(&pods(), 2).unwrap()),
        [("a".to_owned(), 0)]
    );
    let expired = RevisionError::Expired {
        asked: 3,
        oldest: 4,
    };
    assert_eq!(store.snapshot_at(&pods(), 3).unwrap_err(), expired);
    // Neither reading it nor keeping it again makes it younger.
    clock.advance(age / 2);
    store.sweep().await;
    let read = store.snapshot_at(&pods(), 2).unwrap();
    store.keep(&pods(), &read);
    clock.advance(age / 2 + Duration::from_secs(1));
    store.sweep().await;
    assert!(store.snapshot_at(&pods(), 2).is_err());
}

#[tokio::test]
async fn kept_snapshots_are_bounded() {
    let store = memory();
    for value in 0..100 {
        put(&store, &pods(), "a", value).await;
        let past = store.snapshot_at(&pods(), store.revision() - 1).unwrap();
        store.keep(&pods(), &past);
    }
    assert_eq!(store.stats().resources[0].snapshots, 16);
}

#[tokio::test]
async fn pages_of_a_namespace_continue_behind_the_last_key() {
    let store = memory();
    for namespace in ["a", "a-b", "b"] {
        for name in ["x", "y", "z"] {
            let put = |_: Option<&_>| Ok::<_, ()>(Change::put(object(name, 1)));
            store
                .update(&pods(), &Key::new(namespace, name), put)
                .await
                .unwrap();
        }
    }
    let snapshot = store.snapshot(&pods());
    let mut page = snapshot.namespace("a", "");
    assert_eq!(page.count_left(), 3);
    let last = page.next().unwrap();
    assert_eq!(page.count_left(), 2);
    let rest = snapshot.namespace("a", &format!("{}\0", last.key));
    assert_eq!(
        rest.map(|entry| entry.key.as_str()).collect::<Vec<_>>(),
        ["a/y", "a/z"]
    );
    assert_eq!(snapshot.namespace("c", "").count_left(), 0);
    assert_eq!(snapshot.from("a/z").count_left(), 4);
    assert_eq!(snapshot.iter().count(), 9);
}

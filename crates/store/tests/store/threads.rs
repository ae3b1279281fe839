//! Many writers and watchers at once.

use std::collections::BTreeSet;

use windlass_core::Env;
use windlass_store::{Change, Outcome, Store, StoreOptions};

use crate::support::{brief, key, object, pods, value};

const WRITERS: usize = 8;
const WATCHERS: usize = 4;
const WRITES: usize = 150;
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Counts up objects that all writers share; returns the revisions of its writes.
async fn count_up(store: Store, writer: usize) -> Vec<u64> {
    let mut revisions = Vec::new();
    for write in 0..WRITES {
        let name = NAMES[(writer + write) % NAMES.len()];
        let next = |current: Option<&std::sync::Arc<windlass_store::Entry>>| {
            let before = current.map_or(0, |entry| value(entry.doc()));
            Ok::<_, ()>(Change::put(object(name, before + 1)))
        };
        let outcome = store.update(&pods(), &key(name), next).await.unwrap();
        let entry = outcome.entry().unwrap();
        // Its own write is visible to the writer.
        assert!(store.get(&pods(), &key(name)).unwrap().revision >= entry.revision);
        assert!(matches!(
            outcome,
            Outcome::Created(_) | Outcome::Updated { .. }
        ));
        revisions.push(entry.revision);
    }
    revisions
}

async fn check(store: Store) {
    let total = WRITERS * WRITES;
    let watchers: Vec<_> = (0..WATCHERS)
        .map(|_| {
            let mut watch = store.watch(&pods(), 1).unwrap();
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while seen.len() < total {
                    seen.push(brief(&watch.next().await.unwrap()));
                }
                seen
            })
        })
        .collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(count_up(store.clone(), writer)))
        .collect();
    let mut revisions = BTreeSet::new();
    for writer in writers {
        let written = writer.await.unwrap();
        assert!(written.is_sorted());
        revisions.extend(written);
    }
    assert!(
        revisions.into_iter().eq(2..2 + total as u64),
        "each revision was given out once"
    );
    let mut views = Vec::new();
    for watcher in watchers {
        views.push(watcher.await.unwrap());
    }
    assert!(
        views.iter().all(|seen| *seen == views[0]),
        "all watchers saw the same"
    );
    assert!(
        views[0]
            .iter()
            .map(|(revision, ..)| *revision)
            .eq(2..2 + total as u64)
    );
    let sum: i64 = store
        .snapshot(&pods())
        .iter()
        .map(|entry| value(entry.doc()))
        .sum();
    assert_eq!(sum, total as i64, "no update was lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_write_or_event_is_lost_in_memory() {
    check(Store::open(StoreOptions::memory(Env::seeded(1))).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_write_or_event_is_lost_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    check(Store::open(StoreOptions::directory(Env::seeded(1), dir.path())).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_wait_when_there_is_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::directory(Env::seeded(1), dir.path());
    check(
        Store::open(StoreOptions {
            pending_limit: 2,
            ..options
        })
        .unwrap(),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_list_and_the_watch_from_its_revision_miss_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(StoreOptions::directory(Env::seeded(1), dir.path())).unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(count_up(store.clone(), writer)))
        .collect();
    let end = 1 + (WRITERS * WRITES) as u64;
    while store.revision() < end {
        let snapshot = store.snapshot(&pods());
        let newest = snapshot.iter().map(|entry| entry.revision).max();
        assert!(newest.is_none_or(|newest| newest <= snapshot.revision()));
        let mut watch = store.watch(&pods(), snapshot.revision()).unwrap();
        if snapshot.revision() < end {
            assert_eq!(
                watch.next().await.unwrap().revision(),
                snapshot.revision() + 1
            );
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
}

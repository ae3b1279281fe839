//! Who may use a data directory, and how a store ends.

use std::sync::Arc;

use windlass_core::{Env, doc};
use windlass_store::{
    Change, Commit, Durability, OpenError, Place, Store, StoreOptions, WatchError, WriteError,
};

use crate::sim_disk::SimDisk;
use crate::support::{content, delete, drain, key, memory, object, pods, put};

#[tokio::test]
async fn a_directory_in_use_is_refused_with_the_id_of_its_user() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::directory(Env::seeded(1), dir.path());
    let store = Store::open(options.clone()).unwrap();
    let refused = Store::open(options.clone()).unwrap_err();
    let OpenError::Locked { holder, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(holder, std::process::id().to_string());
    drop(store);
    assert!(Store::open(options).is_ok());
}

#[tokio::test]
async fn a_reopened_store_continues_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::directory(Env::seeded(1), dir.path().join("new/deep"));
    let store = Store::open(options.clone()).unwrap();
    put(&store, &pods(), "a", 1).await;
    put(&store, &pods(), "b", 1).await;
    put(&store, &pods(), "a", 2).await;
    delete(&store, &pods(), "b").await;
    let uid = store.uid().clone();
    drop(store);
    let store = Store::open(options).unwrap();
    assert_eq!((store.revision(), store.uid()), (5, &uid));
    assert_eq!(content(&store.snapshot(&pods())), [("a".to_owned(), 2)]);
    let events = drain(&mut store.watch(&pods(), 1).unwrap());
    let expected = [
        (2, "a", Some(1)),
        (3, "b", Some(1)),
        (4, "a", Some(2)),
        (5, "b", None),
    ];
    assert_eq!(
        events,
        expected.map(|(rv, name, value)| (rv, name.to_owned(), value))
    );
    assert_eq!(put(&store, &pods(), "c", 1).await.revision, 6);
    assert!(store.stats().disk_bytes > 0);
}

#[tokio::test]
async fn a_closed_store_refuses_writes_ends_watches_and_still_reads() {
    let store = memory();
    let mut watch = store.watch(&pods(), 1).unwrap();
    put(&store, &pods(), "a", 1).await;
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { store.reached(99).await })
    };
    tokio::task::yield_now().await;
    store.close();
    assert_eq!(watch.next().await.unwrap().revision(), 2);
    assert_eq!(watch.next().await.unwrap_err(), WatchError::Closed);
    waiting.await.unwrap();
    let put = |_: Option<&_>| Ok::<_, ()>(Change::put(object("b", 1)));
    let write = store.update(&pods(), &key("b"), put).await;
    assert!(matches!(write, Err(WriteError::Closed)));
    assert!(store.get(&pods(), &key("a")).is_some());
}

#[tokio::test]
async fn a_watch_ends_when_the_last_handle_is_dropped() {
    let store = memory();
    let mut watch = store.watch(&pods(), 1).unwrap();
    let waiting = tokio::spawn(async move { watch.next().await.unwrap_err() });
    tokio::task::yield_now().await;
    drop(store);
    assert_eq!(waiting.await.unwrap(), WatchError::Closed);
}

#[tokio::test]
async fn waiting_for_a_revision_ends_when_it_is_reached() {
    let store = memory();
    store.reached(1).await;
    let other = store.clone();
    let waiting = tokio::spawn(async move {
        other.reached(3).await;
        other.revision()
    });
    tokio::task::yield_now().await;
    put(&store, &pods(), "a", 1).await;
    put(&store, &pods(), "a", 2).await;
    assert_eq!(waiting.await.unwrap(), 3);
}

#[tokio::test]
async fn a_store_that_did_not_wait_for_the_disk_never_repeats_a_revision_after_a_crash() {
    let disk = SimDisk::default();
    let options = |disk: &SimDisk| StoreOptions {
        place: Place::Disk(Arc::new(disk.clone())),
        commit: Commit::Inline,
        durability: Durability::None,
        ..StoreOptions::memory(Env::seeded(1))
    };
    let store = Store::open(options(&disk)).unwrap();
    let last = put(&store, &pods(), "a", 1).await.revision;
    let crashed = disk.after_power_loss();
    drop(store);

    let store = Store::open(options(&crashed)).unwrap();
    assert!(store.revision() > last);
    assert!(store.watch(&pods(), last).is_err());
    let next = put(&store, &pods(), "a", 2).await.revision;
    drop(store);

    // A clean end gives the reserved revisions back.
    let store = Store::open(options(&crashed)).unwrap();
    assert_eq!(store.revision(), next);
    assert_eq!(content(&store.snapshot(&pods())), [("a".to_owned(), 2)]);
}

#[tokio::test]
async fn a_file_that_is_mostly_empty_is_made_smaller_when_it_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        log_bytes_limit: 1 << 20,
        durability: Durability::None,
        ..StoreOptions::directory(Env::seeded(1), dir.path())
    };
    let store = Store::open(options.clone()).unwrap();
    // Texts that differ, since what is the same is kept once.
    let large =
        |index: u8| doc!({ "text": (char::from(b'0' + index).to_string().repeat(1 << 20)) });
    for index in 0..40 {
        let put = |_: Option<&_>| Ok::<_, ()>(Change::put(large(index)));
        store
            .update(&pods(), &key(&format!("object-{index}")), put)
            .await
            .unwrap();
    }
    // What is left lies at the end of the file.
    for index in 0..39 {
        delete(&store, &pods(), &format!("object-{index}")).await;
    }
    store.close();
    let before = std::fs::metadata(dir.path().join("store.redb"))
        .unwrap()
        .len();
    let store = Store::open(options).unwrap();
    let after = store.stats().disk_bytes;
    assert!(after < before / 4, "{before} bytes became {after}");
    let left = store.get(&pods(), &key("object-39")).unwrap();
    assert_eq!(*left.doc(), large(39));
}

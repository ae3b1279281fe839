//! Objects with a time to live, and history that grows old.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::{Env, ManualClock};
use windlass_store::{Change, Commit, Place, RevisionError, Store, StoreOptions};

use crate::sim_disk::SimDisk;
use crate::support::{delete, drain, key, memory, object, pods, put};

const HOUR: Duration = Duration::from_secs(3600);

async fn put_for(store: &Store, name: &str, value: i64, ttl: Duration) {
    let put = |_: Option<&_>| Ok::<_, ()>(Change::put_for(object(name, value), ttl));
    store.update(&pods(), &key(name), put).await.unwrap();
}

fn on_clock(clock: &Arc<ManualClock>) -> StoreOptions {
    StoreOptions::memory(Env::seeded_with(1, clock.clone()))
}

#[tokio::test]
async fn an_expired_object_is_deleted_with_an_event() {
    let clock = Arc::new(ManualClock::new());
    let store = Store::open(on_clock(&clock)).unwrap();
    put_for(&store, "a", 1, HOUR).await;
    clock.advance(HOUR - Duration::from_secs(1));
    assert_eq!(store.sweep().await.expired, 0);
    clock.advance(Duration::from_secs(1));
    let mut watch = store.watch(&pods(), store.revision()).unwrap();
    assert_eq!(store.sweep().await.expired, 1);
    assert_eq!(drain(&mut watch), [(3, "a".to_owned(), None)]);
    assert_eq!(store.sweep().await.expired, 0);
}

#[tokio::test]
async fn a_later_write_replaces_the_time_to_live() {
    let clock = Arc::new(ManualClock::new());
    let store = Store::open(on_clock(&clock)).unwrap();
    put_for(&store, "longer", 1, HOUR).await;
    put_for(&store, "for-ever", 1, HOUR).await;
    clock.advance(HOUR / 2);
    put_for(&store, "longer", 2, HOUR).await;
    put(&store, &pods(), "for-ever", 2).await;
    clock.advance(HOUR / 2);
    assert_eq!(store.sweep().await.expired, 0);
    clock.advance(HOUR / 2);
    assert_eq!(store.sweep().await.expired, 1);
    assert!(store.get(&pods(), &key("for-ever")).is_some());
}

#[tokio::test]
async fn objects_that_are_replaced_or_deleted_leave_no_lease_behind() {
    let clock = Arc::new(ManualClock::new());
    let store = Store::open(on_clock(&clock)).unwrap();
    for index in 0..1_000 {
        let name = format!("object-{index}");
        put_for(&store, &name, 1, HOUR).await;
        put_for(&store, &name, 2, HOUR).await;
        assert_eq!(store.stats().leases, 1);
        delete(&store, &pods(), &name).await;
        assert_eq!(store.stats().leases, 0);
    }
    clock.advance(HOUR);
    assert_eq!(store.sweep().await.expired, 0);
}

#[tokio::test]
async fn a_time_to_live_survives_a_restart() {
    let clock = Arc::new(ManualClock::new());
    let place = Place::Disk(Arc::new(SimDisk::default()));
    let options = StoreOptions {
        place,
        commit: Commit::Inline,
        ..on_clock(&clock)
    };
    let store = Store::open(options.clone()).unwrap();
    put_for(&store, "a", 1, HOUR).await;
    drop(store);
    clock.advance(HOUR / 2);
    let store = Store::open(options).unwrap();
    assert_eq!(store.sweep().await.expired, 0);
    clock.advance(HOUR / 2);
    assert_eq!(store.sweep().await.expired, 1);
}

#[tokio::test]
async fn many_objects_that_expire_together_all_go() {
    let clock = Arc::new(ManualClock::new());
    let store = Store::open(on_clock(&clock)).unwrap();
    for index in 0..1_000 {
        put_for(&store, &format!("object-{index}"), 1, HOUR).await;
    }
    clock.advance(HOUR);
    assert_eq!(store.sweep().await.expired, 1_000);
    assert!(store.snapshot(&pods()).is_empty());
}

#[tokio::test]
async fn history_is_forgotten_when_it_is_old_and_not_before() {
    let clock = Arc::new(ManualClock::new());
    let options = on_clock(&clock);
    let age = options.history_age;
    let store = Store::open(options).unwrap();
    put(&store, &pods(), "a", 1).await;
    store.sweep().await;
    clock.advance(age / 2);
    put(&store, &pods(), "a", 2).await;
    assert_eq!(store.sweep().await.compacted, None);
    clock.advance(age / 2);
    assert_eq!(store.sweep().await.compacted, Some(2));
    assert!(store.watch(&pods(), 2).is_ok());
    let refused = RevisionError::Expired {
        asked: 1,
        oldest: 2,
    };
    assert_eq!(store.watch(&pods(), 1).unwrap_err(), refused);
    assert_eq!(store.snapshot_at(&pods(), 1).unwrap_err(), refused);
}

#[tokio::test]
async fn a_watcher_behind_the_compacted_history_ends() {
    let clock = Arc::new(ManualClock::new());
    let options = on_clock(&clock);
    let age = options.history_age;
    let store = Store::open(options).unwrap();
    let mut behind = store.watch(&pods(), 1).unwrap();
    put(&store, &pods(), "a", 1).await;
    let mut current = store.watch(&pods(), 2).unwrap();
    store.sweep().await;
    clock.advance(age);
    store.sweep().await;
    assert!(behind.try_next().is_err());
    put(&store, &pods(), "a", 2).await;
    assert_eq!(drain(&mut current).len(), 1);
}

#[tokio::test]
async fn a_resource_that_is_new_after_compaction_starts_from_there() {
    let store = memory();
    assert!(store.watch(&pods(), 0).is_err());
    assert!(store.watch(&pods(), 1).is_ok());
}

//! Disks without space, and quotas that are reached.

use std::convert::Infallible;
use std::sync::Arc;

use windlass_core::{Doc, Env, doc};
use windlass_store::{Change, Commit, Outcome, Place, Resource, Store, StoreOptions, WriteError};

use crate::sim_disk::SimDisk;
use crate::support::{content, delete, key, object, pods, put};

fn on(disk: &SimDisk, commit: Commit) -> StoreOptions {
    let place = Place::Disk(Arc::new(disk.clone()));
    StoreOptions {
        place,
        commit,
        ..StoreOptions::memory(Env::seeded(1))
    }
}

/// An object that holds so many bytes.
fn large(name: &str, value: i64, bytes: usize) -> Doc {
    let text = "x".repeat(bytes);
    object(name, value)
        .with("/text", format!("{name}{text}"))
        .unwrap()
}

async fn try_put(
    store: &Store,
    name: &str,
    object: Doc,
) -> Result<Outcome, WriteError<Infallible>> {
    let change = |_: Option<&_>| Ok::<_, Infallible>(Change::put(object));
    store.update(&pods(), &key(name), change).await
}

/// Writes large objects until one is refused, and returns the refusal and how many were taken.
async fn fill(store: &Store) -> (WriteError<Infallible>, usize) {
    for number in 0..100 {
        let name = format!("large-{number}");
        if let Err(error) = try_put(store, &name, large(&name, 1, 50_000)).await {
            return (error, number);
        }
    }
    panic!("the disk takes anything");
}

#[tokio::test]
async fn a_full_disk_refuses_objects_takes_deletions_and_goes_on_when_there_is_space() {
    for commit in [Commit::Inline, Commit::Thread] {
        let disk = SimDisk::default();
        let store = Store::open(on(&disk, commit)).unwrap();
        put(&store, &pods(), "a", 1).await;
        disk.fill_after(0);
        let (error, taken) = fill(&store).await;
        assert!(matches!(error, WriteError::Full(_)), "{error:?}");
        assert!(store.health().is_ok(), "it is not read-only");
        assert!(store.space().unwrap_err().is_full());
        let before = content(&store.snapshot(&pods()));
        assert_eq!(before.len(), taken + 1);
        let again = try_put(&store, "b", object("b", 1)).await;
        assert!(matches!(again, Err(WriteError::Full(_))), "{again:?}");

        // Whatever was answered is there after a crash, and nothing else.
        let crashed = disk.after_power_loss();
        let reopened = Store::open(on(&crashed, commit)).unwrap();
        assert_eq!(content(&reopened.snapshot(&pods())), before);
        assert_eq!(reopened.revision(), store.revision());

        for number in 0..taken {
            delete(&store, &pods(), &format!("large-{number}")).await;
        }
        store.sweep().await;
        assert!(matches!(fill(&store).await, (WriteError::Full(_), 0)));

        disk.free_space();
        store.sweep().await;
        // The answer of a deletion comes after the look for space.
        delete(&store, &pods(), "a").await;
        assert!(store.space().is_ok());
        let revision = store.revision();
        // Refused objects had parts that are new now.
        for name in ["a", "large-0", "large-99"] {
            try_put(&store, name, large(name, 2, 50_000)).await.unwrap();
        }
        assert_eq!(
            store.revision(),
            revision + 3,
            "refused writes take no revision"
        );
        let all = content(&store.snapshot(&pods()));
        drop(store);
        let store = Store::open(on(&disk, commit)).unwrap();
        assert_eq!(content(&store.snapshot(&pods())), all);
        let text = |name: &str| {
            store
                .get(&pods(), &key(name))
                .unwrap()
                .doc()
                .str_at("/text")
                .len()
        };
        assert_eq!((text("a"), text("large-0")), (50_001, 50_007));
    }
}

#[tokio::test]
async fn nothing_that_was_answered_is_lost_wherever_the_disk_fills_up() {
    let mut rounds = 0;
    for operations in (0..32).step_by(2) {
        let disk = SimDisk::default();
        let options = StoreOptions {
            segment_bytes: 100_000,
            ..on(&disk, Commit::Inline)
        };
        let store = Store::open(options.clone()).unwrap();
        disk.fill_after(operations);
        let mut answered = Vec::new();
        for number in 0..15 {
            let name = format!("large-{number:02}");
            if try_put(&store, &name, large(&name, 1, 30_000))
                .await
                .is_ok()
            {
                answered.push((name, 1));
            }
        }
        rounds += usize::from(answered.len() < 15);
        assert_eq!(content(&store.snapshot(&pods())), answered);
        let crashed = disk.after_power_loss();
        drop(store);
        for disk in [disk, crashed] {
            disk.fill_after(0);
            let place = Place::Disk(Arc::new(disk.clone()));
            let options = StoreOptions {
                place,
                ..options.clone()
            };
            let store = Store::open(options.clone()).unwrap();
            let seen = content(&store.snapshot(&pods()));
            assert!(answered.iter().all(|object| seen.contains(object)));
            drop(store);
            disk.free_space();
            let store = Store::open(options).unwrap();
            assert_eq!(content(&store.snapshot(&pods())), seen);
            put(&store, &pods(), "new", 1).await;
        }
    }
    assert!(rounds >= 8, "the disk was full in {rounds} rounds");
}

#[tokio::test]
async fn a_restart_on_a_full_disk_serves_read_only_and_says_why() {
    let disk = SimDisk::default();
    let store = Store::open(on(&disk, Commit::Thread)).unwrap();
    for number in 0..40 {
        let name = format!("large-{number:02}");
        try_put(&store, &name, large(&name, 1, 50_000))
            .await
            .unwrap();
    }
    let (all, revision) = (content(&store.snapshot(&pods())), store.revision());
    // The commits in the log do not fit into the tables.
    let crashed = disk.after_power_loss();
    crashed.fill_after(0);
    let store = Store::open(on(&crashed, Commit::Thread)).unwrap();
    assert_eq!(content(&store.snapshot(&pods())), all);
    assert_eq!(store.revision(), revision);
    let reason = store.health().unwrap_err();
    assert!(reason.is_full(), "{reason}");
    assert!(store.space().is_err());
    let refused = try_put(&store, "a", object("a", 1)).await;
    assert!(
        matches!(refused, Err(WriteError::ReadOnly(_))),
        "{refused:?}"
    );
    drop(store);
    crashed.free_space();
    let store = Store::open(on(&crashed, Commit::Thread)).unwrap();
    assert_eq!(content(&store.snapshot(&pods())), all);
    put(&store, &pods(), "a", 1).await;
}

fn with_quota(disk: &SimDisk, quota_bytes: u64) -> StoreOptions {
    StoreOptions {
        quota_bytes,
        log_bytes_limit: 10_000,
        segment_bytes: 10_000,
        ..on(disk, Commit::Inline)
    }
}

#[tokio::test]
async fn a_reached_quota_refuses_objects_and_deletions_make_room() {
    let disk = SimDisk::default();
    let store = Store::open(with_quota(&disk, 1_000_000)).unwrap();
    let (error, taken) = fill(&store).await;
    let WriteError::Quota { used, quota } = error else {
        panic!("{error:?}")
    };
    assert!(used >= quota && quota == 1_000_000);
    assert!((15..25).contains(&taken), "{taken}");
    assert_eq!(store.stats().used_bytes, used);
    let update = try_put(&store, "large-0", large("large-0", 2, 50_000)).await;
    assert!(
        matches!(update, Err(WriteError::Quota { .. })),
        "{update:?}"
    );
    assert!(store.health().is_ok() && store.space().is_ok());

    // It holds after a restart, and what is free in the files does not count.
    drop(store);
    let store = Store::open(with_quota(&disk, 1_000_000)).unwrap();
    let (error, known) = fill(&store).await;
    assert!(matches!(error, WriteError::Quota { .. }), "{error:?}");
    assert!((taken..=taken + 1).contains(&known), "{known}");
    for number in 0..known {
        delete(&store, &pods(), &format!("large-{number}")).await;
    }
    store.sweep().await;
    let (_, again) = fill(&store).await;
    assert!(again >= taken - 3, "{again} instead of {taken}");
}

#[tokio::test]
async fn an_object_on_its_way_out_can_be_changed_beyond_the_quota() {
    let disk = SimDisk::default();
    let store = Store::open(with_quota(&disk, 1_000_000)).unwrap();
    fill(&store).await;
    let going =
        doc!({ "metadata": { "name": "large-0", "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    try_put(&store, "large-0", going.clone()).await.unwrap();
    // Not without an end.
    let mut refused = false;
    for number in 0..20 {
        let grown = going
            .with("/text", format!("{number:08}").repeat(5_000))
            .unwrap();
        refused |= try_put(&store, "large-0", grown).await.is_err();
    }
    assert!(refused || store.stats().used_bytes < 1_125_000);
    let resource = Resource::new("", "pods");
    assert!(matches!(
        delete(&store, &resource, "large-0").await,
        Outcome::Deleted(_)
    ));
}

//! The past is bounded in bytes, not in events alone.

use std::convert::Infallible;

use windlass_core::{Doc, Env, Footprint, doc};
use windlass_store::{Change, Resource, RevisionError, Store, StoreOptions, WatchError};

use crate::support::{key, nodes, pods};

/// Bytes for the past of one resource, and of all.
const LIMIT: u64 = 1 << 20;
const TOTAL_LIMIT: u64 = 3 << 19;

fn store() -> Store {
    let options = StoreOptions {
        history_bytes_limit: LIMIT,
        history_total_bytes_limit: TOTAL_LIMIT,
        ..StoreOptions::memory(Env::seeded(1))
    };
    Store::open(options).unwrap()
}

/// An object with a text of this many bytes that no other shares.
fn large(number: usize, bytes: usize) -> Doc {
    let text = format!("{number:08}").repeat(bytes / 8);
    doc!({ "metadata": { "name": "large" }, "data": { "text": text } })
}

async fn put(store: &Store, resource: &Resource, name: &str, object: Doc) -> u64 {
    let change = |_: Option<&_>| Ok::<_, Infallible>(Change::put(object));
    let outcome = store.update(resource, &key(name), change).await.unwrap();
    outcome.entry().unwrap().revision
}

/// Bytes that the events of a resource hold beyond its objects.
fn held(store: &Store, resource: &Resource) -> usize {
    let mut footprint = Footprint::default();
    for entry in &store.snapshot(resource) {
        footprint.add(entry.doc());
    }
    let live = footprint.bytes();
    let oldest = store
        .stats()
        .resources
        .iter()
        .find(|stats| stats.resource == *resource)
        .unwrap()
        .oldest;
    let mut watch = store.watch(resource, oldest).unwrap();
    while let Some(event) = watch.try_next().unwrap() {
        footprint.add(event.entry.doc());
        if let Some(previous) = &event.previous {
            footprint.add(previous.doc());
        }
    }
    footprint.bytes() - live
}

#[tokio::test]
async fn updates_of_a_large_object_hold_no_more_than_the_budget_of_bytes() {
    let store = store();
    let mut slow = store.watch(&pods(), 1).unwrap();
    let mut last = 1;
    for number in 0..600 {
        last = put(&store, &pods(), "large", large(number, 100_000)).await;
    }
    let stats = store.stats();
    let events = stats.resources[0].events;
    assert!((5..=10).contains(&events), "{events} events");
    assert!(stats.history_bytes <= LIMIT && stats.resources[0].history_bytes <= LIMIT);
    assert!(held(&store, &pods()) <= usize::try_from(LIMIT).unwrap());
    // What is gone is told as usual.
    assert!(matches!(slow.try_next(), Err(WatchError::Lagged { at: 1 })));
    let oldest = stats.resources[0].oldest;
    assert!(matches!(
        store.watch(&pods(), oldest - 1),
        Err(RevisionError::Expired { .. })
    ));
    let mut watch = store.watch(&pods(), oldest).unwrap();
    for revision in oldest + 1..=last {
        assert_eq!(watch.try_next().unwrap().unwrap().revision(), revision);
    }
}

#[tokio::test]
async fn a_small_change_of_a_large_object_costs_what_it_changes() {
    let store = store();
    let object = large(1, 500_000);
    for number in 0..100 {
        let changed = object.with("/data/number", number.to_string()).unwrap();
        put(&store, &pods(), "large", changed).await;
    }
    let stats = &store.stats().resources[0];
    assert_eq!(stats.events, 100);
    assert!(stats.history_bytes < 100_000, "{}", stats.history_bytes);
}

#[tokio::test]
async fn deleted_objects_count_with_all_they_hold() {
    let store = store();
    for number in 0..100 {
        put(&store, &pods(), "large", large(number, 100_000)).await;
        let delete = |_: Option<&_>| Ok::<_, Infallible>(Change::Delete);
        store.update(&pods(), &key("large"), delete).await.unwrap();
    }
    assert!(held(&store, &pods()) <= usize::try_from(LIMIT).unwrap());
    assert!(store.stats().resources[0].events < 25);
}

#[tokio::test]
async fn resources_share_one_budget_and_the_largest_gives_way() {
    let store = store();
    for number in 0..20 {
        put(&store, &nodes(), "small", large(number, 1_000)).await;
    }
    for name in ["a", "b", "c"] {
        let resource = Resource::new("example.com", name);
        for number in 0..30 {
            put(&store, &resource, "large", large(number, 100_000)).await;
        }
    }
    let stats = store.stats();
    assert!(
        stats.history_bytes <= TOTAL_LIMIT,
        "{}",
        stats.history_bytes
    );
    let sum: u64 = stats
        .resources
        .iter()
        .map(|stats| stats.history_bytes)
        .sum();
    assert_eq!(sum, stats.history_bytes);
    let small = stats
        .resources
        .iter()
        .find(|stats| stats.resource == nodes());
    assert_eq!(small.unwrap().events, 20, "a quiet resource keeps its past");
}

#[tokio::test]
async fn a_past_snapshot_goes_when_more_was_replaced_than_the_budget() {
    let store = store();
    for number in 0..8 {
        put(&store, &pods(), &number.to_string(), large(number, 100_000)).await;
    }
    let snapshot = store.snapshot(&pods());
    store.keep(&pods(), &snapshot);
    put(&store, &pods(), "0", large(100, 100_000)).await;
    assert!(store.snapshot_at(&pods(), snapshot.revision()).is_ok());
    for number in 0..20 {
        put(&store, &pods(), "1", large(200 + number, 100_000)).await;
    }
    assert_eq!(store.stats().resources[0].snapshots, 0);
    assert!(matches!(
        store.snapshot_at(&pods(), snapshot.revision()),
        Err(RevisionError::Expired { .. })
    ));
}

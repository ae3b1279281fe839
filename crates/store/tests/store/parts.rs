//! What objects share on the disk.

use std::convert::Infallible;
use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use windlass_core::{Env, doc};
use windlass_store::{Change, Durability, Store, StoreOptions};

use crate::support::{content, delete, key, pods, put};

const OBJECTS: i64 = 200;

/// How many rows there are of parts and of objects, and the bytes of the latter.
fn rows(dir: &Path) -> (usize, usize, usize) {
    let database = Database::open(dir.join("store.redb")).unwrap();
    let transaction = database.begin_read().unwrap();
    let parts: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("parts");
    let parts = transaction.open_table(parts).unwrap();
    let objects: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
    let objects = transaction.open_table(objects).unwrap();
    let sizes: Vec<usize> = objects
        .iter()
        .unwrap()
        .map(|row| row.unwrap().1.value().len())
        .collect();
    (
        parts.iter().unwrap().count(),
        sizes.len(),
        sizes.iter().sum(),
    )
}

async fn fill(store: &Store) {
    for value in 0..OBJECTS {
        put(store, &pods(), &format!("pod-{value}"), value).await;
    }
}

#[tokio::test]
async fn objects_share_what_they_have_in_common() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::directory(Env::seeded(1), dir.path());
    let store = Store::open(options.clone()).unwrap();
    fill(&store).await;
    let before = content(&store.snapshot(&pods()));
    let json: usize = store
        .snapshot(&pods())
        .iter()
        .map(|entry| entry.doc().to_json().len())
        .sum();
    drop(store);
    let (parts, objects, bytes) = rows(dir.path());
    assert_eq!(objects, before.len());
    assert!(parts > 0 && parts < 20, "{parts} parts");
    assert!(bytes * 2 < json, "{bytes} bytes instead of {json}");
    let store = Store::open(options).unwrap();
    assert_eq!(content(&store.snapshot(&pods())), before);
}

#[tokio::test]
async fn parts_go_with_the_last_that_uses_them() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::directory(Env::seeded(1), dir.path());
    let store = Store::open(options.clone()).unwrap();
    fill(&store).await;
    drop(store);
    // Half of the life of the parts is in a store that has read them back.
    let store = Store::open(options).unwrap();
    for value in 0..OBJECTS {
        put(&store, &pods(), &format!("pod-{value}"), value + 1).await;
        delete(&store, &pods(), &format!("pod-{value}")).await;
    }
    drop(store);
    assert!(rows(dir.path()).0 > 0, "the log still uses them");
    let mut options = StoreOptions::directory(Env::seeded(1), dir.path());
    options.history_limit = 1;
    let store = Store::open(options).unwrap();
    let alone = |_: Option<&_>| Ok::<_, Infallible>(Change::put(doc!({ "x": { "y": 1 } })));
    store.update(&pods(), &key("alone"), alone).await.unwrap();
    drop(store);
    assert_eq!(rows(dir.path()).0, 0);
}

#[tokio::test]
async fn parts_of_a_lost_history_are_swept() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = StoreOptions::directory(Env::seeded(1), dir.path());
    let store = Store::open(options.clone()).unwrap();
    fill(&store).await;
    for value in 0..OBJECTS {
        delete(&store, &pods(), &format!("pod-{value}")).await;
    }
    drop(store);
    // A store that does not wait for the disk and dies leaves its reservation behind.
    options.durability = Durability::None;
    let store = Store::open(options.clone()).unwrap();
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(
        dir.path().join("store.redb"),
        copy.path().join("store.redb"),
    )
    .unwrap();
    drop(store);
    let store = Store::open(StoreOptions::directory(Env::seeded(1), copy.path())).unwrap();
    drop(store);
    assert_eq!(rows(copy.path()).0, 0);
}

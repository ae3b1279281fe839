//! Data that is not what the store wrote.

use std::sync::Arc;

use redb::{Database, TableDefinition};
use windlass_core::Env;
use windlass_store::{Commit, OpenError, Place, Store, StoreOptions};

use crate::sim_disk::SimDisk;
use crate::support::{content, delete, drain, pods, put};

/// Flips to try, spread evenly over all bytes that are not zero.
const FLIPS: usize = 400;

fn on(disk: &SimDisk) -> StoreOptions {
    let place = Place::Disk(Arc::new(disk.clone()));
    StoreOptions {
        place,
        commit: Commit::Inline,
        ..StoreOptions::memory(Env::seeded(1))
    }
}

#[tokio::test]
async fn a_flipped_byte_is_noticed_or_changes_nothing() {
    let disk = SimDisk::default();
    let store = Store::open(on(&disk)).unwrap();
    for (value, name) in ["a", "b", "c", "a", "b"].into_iter().enumerate() {
        put(&store, &pods(), name, i64::try_from(value).unwrap()).await;
    }
    delete(&store, &pods(), "c").await;
    let all = content(&store.snapshot(&pods()));
    let events = drain(&mut store.watch(&pods(), 1).unwrap());
    drop(store);

    let bytes = disk.content();
    let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let mut noticed = 0;
    for at in used.iter().step_by(used.len().div_ceil(FLIPS)) {
        let mut damaged = bytes.clone();
        damaged[*at] ^= 0x55;
        match Store::open(on(&SimDisk::holding(damaged))) {
            Err(_) => noticed += 1,
            Ok(store) => {
                assert_eq!(content(&store.snapshot(&pods())), all, "byte {at}");
                assert_eq!(
                    drain(&mut store.watch(&pods(), 1).unwrap()),
                    events,
                    "byte {at}"
                );
                assert_eq!(store.revision(), 7, "byte {at}");
            }
        }
    }
    assert!(noticed > 0);
}

/// What a directory says whose data was marked with another format.
fn refused_with_format(format: u64) -> OpenError {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::directory(Env::seeded(1), dir.path());
    drop(Store::open(options.clone()).unwrap());
    let database = Database::open(dir.path().join("store.redb")).unwrap();
    let numbers: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(numbers).unwrap();
    table.insert("format", format).unwrap();
    drop(table);
    transaction.commit().unwrap();
    drop(database);
    Store::open(options).unwrap_err()
}

#[tokio::test]
async fn data_of_another_format_is_refused() {
    let newer = refused_with_format(3);
    assert_eq!(
        newer.to_string(),
        "data has format 3, this program reads formats up to 2"
    );
    let older = refused_with_format(1);
    assert_eq!(
        older.to_string(),
        "data has format 1, this program reads format 2 only"
    );
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("store.redb"), [7; 10_000]).unwrap();
    let options = StoreOptions::directory(Env::seeded(1), dir.path());
    assert!(Store::open(options).is_err());
}

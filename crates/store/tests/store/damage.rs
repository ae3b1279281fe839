//! Data that is not what the store wrote.

use std::path::Path;
use std::sync::Arc;

use redb::{Database, ReadableDatabase, TableDefinition};
use windlass_core::Env;
use windlass_store::{Commit, OpenError, Place, Store, StoreOptions};

use crate::sim_disk::{Files, SimDisk};
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

    let files = disk.content();
    let mut noticed = 0;
    for (file, at) in spread(&files, |_| true) {
        match Store::open(on(&flipped(&files, file, at))) {
            Err(_) => noticed += 1,
            Ok(store) => {
                assert_eq!(content(&store.snapshot(&pods())), all, "{file} at {at}");
                let seen = drain(&mut store.watch(&pods(), 1).unwrap());
                assert_eq!(seen, events, "{file} at {at}");
                assert_eq!(store.revision(), 7, "{file} at {at}");
            }
        }
    }
    assert!(noticed > 0);
}

/// After a crash the last commit may be half written, and so a damaged one passes for a lost one.
/// All before it are known to have been there.
#[tokio::test]
async fn a_flipped_byte_in_the_log_is_noticed_or_costs_the_last_commit() {
    let disk = SimDisk::default();
    let store = Store::open(on(&disk)).unwrap();
    for (value, name) in ["a", "b", "c", "a", "b"].into_iter().enumerate() {
        put(&store, &pods(), name, i64::try_from(value).unwrap()).await;
    }
    let crashed = disk.after_power_loss();
    let (last, all) = (store.revision(), content(&store.snapshot(&pods())));
    let before_last = content(&store.snapshot_at(&pods(), last - 1).unwrap());

    let files = crashed.content();
    let (mut noticed, mut unharmed, mut lost) = (0, 0, 0);
    for (file, at) in spread(&files, |file| file.starts_with("store.log")) {
        match Store::open(on(&flipped(&files, file, at))) {
            Err(_) => noticed += 1,
            Ok(store) if store.revision() == last => {
                unharmed += 1;
                assert_eq!(content(&store.snapshot(&pods())), all, "{file} at {at}");
            }
            Ok(store) => {
                lost += 1;
                assert_eq!(store.revision(), last - 1, "{file} at {at}");
                assert_eq!(content(&store.snapshot(&pods())), before_last);
            }
        }
    }
    assert!(
        noticed > 3 * lost && lost > 0,
        "{noticed} {unharmed} {lost}"
    );
}

/// Places spread evenly over all bytes of some files that are not zero.
fn spread(files: &Files, is_meant: impl Fn(&str) -> bool) -> Vec<(&'static str, usize)> {
    let meant = files.iter().filter(|(file, _)| is_meant(file));
    let used: Vec<(&'static str, usize)> = meant
        .flat_map(|(file, bytes)| {
            let used = (0..bytes.len()).filter(|at| bytes[*at] != 0);
            used.map(|at| (*file, at))
        })
        .collect();
    let step = used.len().div_ceil(FLIPS);
    used.into_iter().step_by(step).collect()
}

fn flipped(files: &Files, file: &'static str, at: usize) -> SimDisk {
    let mut files = files.clone();
    files.get_mut(file).unwrap()[at] ^= 0x55;
    SimDisk::holding(files)
}

const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

/// Marks the data of a directory with a format.
fn mark(dir: &Path, format: u64) {
    let database = Database::open(dir.join("store.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(NUMBERS).unwrap();
    table.insert("format", format).unwrap();
    drop(table);
    transaction.commit().unwrap();
}

/// What a directory says whose data was marked with another format.
fn refused_with_format(format: u64) -> OpenError {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::directory(Env::seeded(1), dir.path());
    drop(Store::open(options.clone()).unwrap());
    mark(dir.path(), format);
    Store::open(options).unwrap_err()
}

#[tokio::test]
async fn data_of_another_format_is_refused() {
    let newer = refused_with_format(5);
    assert_eq!(
        newer.to_string(),
        "data has format 5, this program reads formats up to 4"
    );
    let older = refused_with_format(1);
    assert_eq!(
        older.to_string(),
        "data has format 1, this program reads formats from 2 on"
    );
}

#[tokio::test]
async fn data_of_the_formats_before_is_taken_over() {
    for format in [2, 3] {
        take_over(format).await;
    }
}

async fn take_over(format: u64) {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions::directory(Env::seeded(1), dir.path());
    let store = Store::open(options.clone()).unwrap();
    put(&store, &pods(), "a", 1).await;
    drop(store);
    mark(dir.path(), format);
    // They had no state file.
    std::fs::remove_file(dir.path().join("store.state")).unwrap();
    drop(Store::open(options.clone()).unwrap());
    let database = Database::open(dir.path().join("store.redb")).unwrap();
    let transaction = database.begin_read().unwrap();
    let numbers = transaction.open_table(NUMBERS).unwrap();
    assert_eq!(numbers.get("format").unwrap().unwrap().value(), 4);
    drop((numbers, transaction, database));
    let store = Store::open(options).unwrap();
    assert_eq!(content(&store.snapshot(&pods())), [("a".to_owned(), 1)]);
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("store.redb"), [7; 10_000]).unwrap();
    let options = StoreOptions::directory(Env::seeded(1), dir.path());
    assert!(Store::open(options).is_err());
}

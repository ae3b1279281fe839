//! Files of a store that are gone while others of it are there.

use std::path::Path;
use std::sync::Arc;

use windlass_core::Env;
use windlass_store::{Commit, OpenError, Place, Store, StoreOptions};

use crate::sim_disk::SimDisk;
use crate::support::{content, pods, put};

fn within(dir: &Path) -> StoreOptions {
    StoreOptions {
        companions: &["sa.key"],
        ..StoreOptions::directory(Env::seeded(1), dir)
    }
}

fn on(disk: &SimDisk) -> StoreOptions {
    StoreOptions {
        place: Place::Disk(Arc::new(disk.clone())),
        commit: Commit::Inline,
        ..StoreOptions::memory(Env::seeded(1))
    }
}

/// The names in a refusal: the file that is missing, and the one that tells so.
fn refusal(opened: Result<Store, OpenError>) -> (String, String) {
    match opened.unwrap_err() {
        OpenError::MissingFile { file, beside } => (file, beside),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_missing_table_file_beside_a_log_is_an_error_and_never_a_new_store() {
    let disk = SimDisk::default();
    let store = Store::open(on(&disk)).unwrap();
    for value in 0..30 {
        put(&store, &pods(), "a", value).await;
    }
    let mut files = disk.after_power_loss().content();
    let whole = files.clone();
    files.remove("store.redb");
    let found = SimDisk::holding(files.clone());
    let (file, beside) = refusal(Store::open(on(&found)));
    assert_eq!(
        (file.as_str(), beside.as_str()),
        ("store.redb", "store.state")
    );
    assert_eq!(found.operations(), 0, "nothing was written");
    // Stores of older programs have no state file; the log tells as much.
    files.remove("store.state");
    let (_, beside) = refusal(Store::open(on(&SimDisk::holding(files))));
    assert_eq!(beside, "store.log.0");
    let store = Store::open(on(&SimDisk::holding(whole))).unwrap();
    assert_eq!(content(&store.snapshot(&pods())), [("a".to_owned(), 29)]);
}

#[tokio::test]
async fn a_missing_table_file_of_a_closed_store_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(within(dir.path())).unwrap();
    put(&store, &pods(), "a", 1).await;
    drop(store);
    let tables = dir.path().join("store.redb");
    for is_emptied in [true, false] {
        match is_emptied {
            true => drop(std::fs::File::create(&tables).unwrap()),
            false => std::fs::remove_file(&tables).unwrap(),
        }
        let error = Store::open(within(dir.path())).unwrap_err().to_string();
        assert!(error.starts_with(tables.to_str().unwrap()), "{error}");
    }
    assert!(!tables.exists(), "nothing was made in its place");
}

#[tokio::test]
async fn a_missing_table_file_beside_keys_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sa.key"), "a key").unwrap();
    let refused = within(dir.path()).prepare().unwrap_err();
    let OpenError::MissingFile { beside, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(beside, "sa.key");
    std::fs::remove_file(dir.path().join("sa.key")).unwrap();
    within(dir.path()).prepare().unwrap();
    // Keys are made from now on; a start that is cut short here can be repeated.
    std::fs::write(dir.path().join("sa.key"), "a key").unwrap();
    within(dir.path()).prepare().unwrap();
    drop(Store::open(within(dir.path())).unwrap());
}

#[tokio::test]
async fn a_missing_log_with_answered_writes_is_an_error() {
    let disk = SimDisk::default();
    let store = Store::open(on(&disk)).unwrap();
    put(&store, &pods(), "a", 1).await;
    let mut files = disk.after_power_loss().content();
    files.remove("store.log.0");
    let (file, _) = refusal(Store::open(on(&SimDisk::holding(files))));
    assert_eq!(file, "store.log.0");
    // A closed store has moved everything to its tables.
    drop(store);
    let mut files = disk.content();
    files.remove("store.log.0");
    let store = Store::open(on(&SimDisk::holding(files))).unwrap();
    assert_eq!(content(&store.snapshot(&pods())), [("a".to_owned(), 1)]);
}

#[tokio::test]
async fn tables_of_another_store_are_refused() {
    let (one, other) = (SimDisk::default(), SimDisk::default());
    drop(Store::open(on(&one)).unwrap());
    let options = StoreOptions {
        env: Env::seeded(2),
        ..on(&other)
    };
    drop(Store::open(options).unwrap());
    let mut files = one.content();
    files.insert("store.redb", other.content()["store.redb"].clone());
    let refused = Store::open(on(&SimDisk::holding(files))).unwrap_err();
    assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
}

#[cfg(unix)]
#[test]
fn a_directory_that_every_user_may_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    std::fs::create_dir(&path).unwrap();
    for mode in [0o777, 0o1777, 0o702] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let error = Store::open(within(&path)).unwrap_err().to_string();
        assert!(error.contains("chmod o-w"), "{error}");
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o770)).unwrap();
    drop(Store::open(within(&path)).unwrap());
}

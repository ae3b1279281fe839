//! Backups and what becomes of them.

use std::fs;
use std::path::Path;

use windlass_core::Env;
use windlass_store::{ArchiveError, OpenError, Store, StoreOptions, backup, restore};

use crate::support::{content, delete, pods, put};

fn within(dir: &Path) -> StoreOptions {
    StoreOptions::directory(Env::seeded(1), dir)
}

#[tokio::test]
async fn a_restored_backup_is_the_store_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file, other) = (
        dir.path().join("data"),
        dir.path().join("backup"),
        dir.path().join("other"),
    );
    let store = Store::open(within(&data)).unwrap();
    put(&store, &pods(), "a", 1).await;
    put(&store, &pods(), "b", 1).await;
    delete(&store, &pods(), "b").await;
    let in_use = backup(&data, &[], &file).unwrap_err();
    assert!(matches!(
        in_use,
        ArchiveError::Open(OpenError::Locked { .. })
    ));
    assert!(!file.exists());
    let uid = store.uid().clone();
    drop(store);
    fs::write(data.join("sa.key"), "a key").unwrap();
    fs::write(data.join("process.json"), "{}").unwrap();
    let len = backup(&data, &["sa.key"], &file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().len(), len);
    assert!(
        backup(&data, &["sa.key"], &file).is_err(),
        "nothing is written over"
    );

    restore(&file, &other, &["sa.key"]).unwrap();
    assert_eq!(fs::read_to_string(other.join("sa.key")).unwrap(), "a key");
    assert!(!other.join("process.json").exists());
    let store = Store::open(within(&other)).unwrap();
    assert_eq!(content(&store.snapshot(&pods())), [("a".to_owned(), 1)]);
    assert_eq!((store.revision(), store.uid()), (4, &uid));
    drop(store);
    let refused = restore(&file, &other, &["sa.key"]).unwrap_err();
    assert!(matches!(refused, ArchiveError::NotEmpty(_)), "{refused}");
}

#[tokio::test]
async fn a_damaged_backup_restores_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file, other) = (
        dir.path().join("data"),
        dir.path().join("backup"),
        dir.path().join("other"),
    );
    let store = Store::open(within(&data)).unwrap();
    put(&store, &pods(), "a", 1).await;
    drop(store);
    backup(&data, &[], &file).unwrap();
    let whole = fs::read(&file).unwrap();
    let step = whole.len() / 100;
    for at in (0..whole.len()).step_by(step) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&file, &bytes).unwrap();
        assert!(restore(&file, &other, &[]).is_err(), "byte {at}");
        fs::write(&file, &whole[..at]).unwrap();
        assert!(restore(&file, &other, &[]).is_err(), "{at} bytes");
        assert!(!other.exists());
    }
    let mut newer = whole;
    newer[16] = b'2';
    fs::write(&file, &newer).unwrap();
    let refused = restore(&file, &other, &[]).unwrap_err();
    assert!(matches!(refused, ArchiveError::Newer(_)), "{refused}");
}

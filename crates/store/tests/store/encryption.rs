//! Secrets on the disk.

use std::convert::Infallible;
use std::path::Path;

use windlass_core::{Env, doc};
use windlass_store::{
    Change, EncryptionKeys, OpenError, Resource, Store, StoreOptions, check, rewrite,
};

use crate::support::{delete, key};

const FIRST: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const SECOND: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";
const PASSWORD: &str = "correct-horse-battery-staple-correct-horse-battery-staple";

fn secrets() -> Resource {
    Resource::new("", "secrets")
}

fn within(dir: &Path, keys: &[&str]) -> StoreOptions {
    let keys = (!keys.is_empty()).then(|| EncryptionKeys::parse(&keys.join("\n")).unwrap());
    StoreOptions {
        encryption: keys,
        ..StoreOptions::directory(Env::seeded(1), dir)
    }
}

async fn put(store: &Store, name: &str, number: i64) {
    let secret =
        doc!({ "metadata": { "name": name }, "data": { "password": PASSWORD }, "number": number });
    let change = |_: Option<&_>| Ok::<_, Infallible>(Change::put(secret));
    store.update(&secrets(), &key(name), change).await.unwrap();
}

/// Returns true if the password can be read in any file of a directory.
fn is_readable(dir: &Path) -> bool {
    let holds = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        bytes
            .windows(PASSWORD.len())
            .any(|text| text == PASSWORD.as_bytes())
    };
    let entries = std::fs::read_dir(dir).unwrap();
    let mut files = entries.map(|entry| entry.unwrap().path());
    files.any(|path| path.is_file() && holds(&path))
}

fn passwords(store: &Store) -> Vec<String> {
    let snapshot = store.snapshot(&secrets());
    let password = |entry: &std::sync::Arc<windlass_store::Entry>| {
        entry.doc().str_at("/data/password").to_owned()
    };
    snapshot.iter().map(password).collect()
}

#[tokio::test]
async fn no_byte_of_a_secret_is_on_the_disk_while_it_lives_or_after() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    let store = Store::open(within(&plain, &[])).unwrap();
    put(&store, "a", 1).await;
    assert!(is_readable(&plain), "the test would see it");
    drop(store);

    let data = dir.path().join("data");
    let options = StoreOptions {
        segment_bytes: 1_000,
        ..within(&data, &[FIRST])
    };
    let store = Store::open(options.clone()).unwrap();
    for number in 0..20 {
        put(&store, "a", number).await;
        put(&store, "b", number).await;
    }
    delete(&store, &secrets(), "b").await;
    assert!(!is_readable(&data));
    drop(store);
    assert!(!is_readable(&data));
    let store = Store::open(options).unwrap();
    assert_eq!(passwords(&store), [PASSWORD]);
    let mut watch = store.watch(&secrets(), 30).unwrap();
    while let Some(event) = watch.try_next().unwrap() {
        assert_eq!(event.entry.doc().str_at("/data/password"), PASSWORD);
        let previous = event.previous.as_ref().unwrap();
        assert_eq!(previous.doc().str_at("/data/password"), PASSWORD);
    }
}

#[tokio::test]
async fn a_wrong_or_missing_key_is_an_error_that_names_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(within(dir.path(), &[FIRST])).unwrap();
    put(&store, "a", 1).await;
    drop(store);
    for keys in [&[][..], &[SECOND]] {
        let refused = Store::open(within(dir.path(), keys)).unwrap_err();
        let text = refused.to_string();
        assert!(
            matches!(refused, OpenError::NoEncryptionKey { .. }),
            "{text}"
        );
        assert!(text.contains("secrets default/a") && text.contains("--encryption-key"));
    }
    assert_eq!(
        passwords(&Store::open(within(dir.path(), &[FIRST])).unwrap()),
        [PASSWORD]
    );
}

#[tokio::test]
async fn keys_rotate_and_what_was_plain_is_encrypted_by_a_rewrite() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(within(dir.path(), &[])).unwrap();
    put(&store, "a", 1).await;
    put(&store, "b", 1).await;
    delete(&store, &secrets(), "b").await;
    let (uid, revision) = (store.uid().clone(), store.revision());
    drop(store);
    assert!(is_readable(dir.path()));
    assert_eq!(rewrite(&within(dir.path(), &[FIRST])).unwrap(), 1);
    assert!(!is_readable(dir.path()));

    // Both keys while the old one is in use, then the new one alone.
    let store = Store::open(within(dir.path(), &[SECOND, FIRST])).unwrap();
    assert_eq!((store.uid(), store.revision()), (&uid, revision));
    put(&store, "c", 1).await;
    drop(store);
    assert!(check(&within(dir.path(), &[SECOND])).is_err());
    rewrite(&within(dir.path(), &[SECOND, FIRST])).unwrap();
    let store = Store::open(within(dir.path(), &[SECOND])).unwrap();
    assert_eq!(passwords(&store), [PASSWORD, PASSWORD]);
}

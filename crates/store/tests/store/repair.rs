//! Saving what is sound in damaged files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use windlass_core::Env;
use windlass_store::{Store, StoreOptions, check, repair};

use crate::support::{content, delete, nodes, pods, put};

/// What the disk reads and writes in one piece.
const BLOCK: usize = 4096;
/// Objects of the store that is damaged.
const OBJECTS: i64 = 150;

fn within(dir: &Path) -> StoreOptions {
    StoreOptions::directory(Env::seeded(1), dir)
}

/// A store with objects that share parts, updates and deletions; returns its objects.
async fn fill(dir: &Path) -> BTreeMap<String, i64> {
    let store = Store::open(within(dir)).unwrap();
    for value in 0..OBJECTS {
        put(&store, &pods(), &format!("object-{value:04}"), value).await;
    }
    for value in 0..OBJECTS / 10 {
        put(
            &store,
            &pods(),
            &format!("object-{value:04}"),
            1_000 + value,
        )
        .await;
        delete(&store, &pods(), &format!("object-{:04}", value + 100)).await;
    }
    put(&store, &nodes(), "node", 1).await;
    content(&store.snapshot(&pods())).into_iter().collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for name in ["store.redb", "store.log.0", "store.log.1", "store.state"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

fn damage(path: &Path, block: usize, pattern: impl Fn(usize) -> u8) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    let end = bytes.len().min((block + 1) * BLOCK);
    let before = bytes[block * BLOCK..end].to_vec();
    for (index, byte) in bytes[block * BLOCK..end].iter_mut().enumerate() {
        *byte = pattern(index);
    }
    fs::write(path, bytes).unwrap();
    before
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn damage_to_any_block_costs_the_rows_in_it_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let origin = dir.path().join("origin");
    let all = fill(&origin).await;
    let blocks = fs::metadata(origin.join("store.redb")).unwrap().len() as usize / BLOCK;
    let bytes = fs::read(origin.join("store.redb")).unwrap();
    let used: Vec<usize> = (0..blocks)
        .filter(|block| {
            bytes[block * BLOCK..][..BLOCK]
                .iter()
                .any(|byte| *byte != 0)
        })
        .collect();
    assert!(used.len() > 10, "{} blocks", used.len());
    let mut losses = 0;
    for block in used {
        let harmed = dir.path().join(format!("block-{block}"));
        copy(&origin, &harmed);
        let lost = damage(&harmed.join("store.redb"), block, |index| (index * 7) as u8);
        let report = repair(&within(&harmed)).unwrap();
        let store = Store::open(within(&harmed)).unwrap();
        let saved: BTreeMap<String, i64> = content(&store.snapshot(&pods())).into_iter().collect();
        for (name, value) in &all {
            match saved.get(name) {
                Some(found) if found == value => {}
                // Its row was in the block. It is lost, and said so, or an older one was found.
                found => {
                    assert!(holds(&lost, name), "block {block}: {name} is {found:?}");
                    let full = format!("pods default/{name}");
                    let is_told = report.lost.iter().any(|(lost, _)| *lost == full)
                        || report.older.contains(&full);
                    assert!(is_told, "block {block}: {name} is not told: {report:?}");
                    losses += 1;
                }
            }
        }
        let mut names = saved.keys();
        let back = names.find(|name| !all.contains_key(*name));
        assert_eq!(back, None, "block {block}: it was deleted before");
        // It is a store like any other, and no revision is given out again.
        assert!(put(&store, &pods(), "new", 1).await.revision > 200);
        drop(store);
        fs::remove_dir_all(&harmed).unwrap();
    }
    assert!(losses > 0, "no row was damaged at all");
}

#[tokio::test]
async fn commits_in_the_log_are_saved_when_the_tables_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (origin, crashed) = (dir.path().join("origin"), dir.path().join("crashed"));
    let store = Store::open(within(&origin)).unwrap();
    for value in 0..30 {
        put(&store, &pods(), &format!("object-{value}"), value).await;
    }
    delete(&store, &pods(), "object-3").await;
    let all = content(&store.snapshot(&pods()));
    copy(&origin, &crashed);
    fs::write(crashed.join("store.redb"), "").unwrap();
    assert!(Store::open(within(&crashed)).is_err());
    let report = repair(&within(&crashed)).unwrap();
    assert_eq!((report.objects, report.commits), (29, 31));
    let saved = Store::open(within(&crashed)).unwrap();
    assert_eq!(content(&saved.snapshot(&pods())), all);
    assert_eq!(saved.uid(), store.uid());
    assert!(
        report.damaged.join("store.log.0").exists(),
        "the old files are kept"
    );
}

#[tokio::test]
async fn a_check_counts_what_is_there_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let origin = dir.path().join("origin");
    fill(&origin).await;
    let before = fs::read(origin.join("store.redb")).unwrap();
    let counts = check(&within(&origin)).unwrap();
    assert_eq!((counts.objects, counts.resources), (136, 2));
    assert_eq!(counts.events, 181);
    assert_eq!(fs::read(origin.join("store.redb")).unwrap(), before);
    let store = Store::open(within(&origin)).unwrap();
    let refused = check(&within(&origin)).unwrap_err().to_string();
    assert!(refused.contains("is in use by process"), "{refused}");
    drop(store);
    damage(&origin.join("store.redb"), 0, |_| 0xa5);
    assert!(check(&within(&origin)).is_err());
}

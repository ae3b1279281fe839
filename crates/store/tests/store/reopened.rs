//! A store with many objects, right after it was opened again.

use windlass_core::Env;
use windlass_store::{Durability, Event, Store, StoreOptions};

use crate::support::{brief, content, delete, nodes, pods, put, value};

/// So many that two threads read them.
const PODS: i64 = 1_200;
const READERS: usize = 4;

/// An event, and the value that it found.
type Seen = ((u64, String, Option<i64>), Option<i64>);

fn events(store: &Store) -> Vec<Seen> {
    let mut watch = store.watch(&pods(), 1).unwrap();
    let found = |event: &Event| event.previous.as_ref().map(|entry| value(entry.doc()));
    std::iter::from_fn(|| watch.try_next().unwrap())
        .map(|event| (brief(&event), found(&event)))
        .collect()
}

async fn fill(store: &Store) {
    for number in 0..PODS {
        put(store, &pods(), &format!("pod-{number:04}"), number).await;
    }
    for number in (0..PODS).step_by(7) {
        put(store, &pods(), &format!("pod-{number:04}"), -number).await;
    }
    for number in (0..PODS).step_by(11) {
        delete(store, &pods(), &format!("pod-{number:04}")).await;
    }
    put(store, &nodes(), "node", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_finds_what_was_written_however_early_they_ask() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        durability: Durability::None,
        ..StoreOptions::directory(Env::seeded(1), dir.path())
    };
    let store = Store::open(options.clone()).unwrap();
    fill(&store).await;
    let expected = (
        content(&store.snapshot(&pods())),
        content(&store.snapshot(&nodes())),
        events(&store),
    );
    drop(store);
    // Closed before anything can have been read.
    drop(Store::open(options.clone()).unwrap());
    let store = Store::open(options).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                let found = (
                    content(&store.snapshot(&pods())),
                    content(&store.snapshot(&nodes())),
                    events(&store),
                );
                assert_eq!(found, expected);
            });
        }
    });
    put(&store, &pods(), "pod-0001", 7).await;
    let (event, found) = events(&store).pop().unwrap();
    assert_eq!(
        (event.1.as_str(), event.2, found),
        ("pod-0001", Some(7), Some(1))
    );
}

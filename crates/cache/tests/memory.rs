//! An object that is kept keeps nothing else: not the page that it came with, and not the others
//! that came with it.
//!
//! The only test of its process, because it looks at what all documents of a process take.

use windlass_cache::{Indexer, Obj};
use windlass_core::{doc, interner_usage};

const OBJECTS: usize = 10_000;

fn pod(number: usize) -> Obj {
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": format!("pod-{number}"), "namespace": "default" },
        "status": { "message": format!("a text that only pod number {number} has") },
    });
    Obj::new(pod).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn one_object_of_a_large_list_does_not_keep_the_others() {
    let store = Indexer::new();
    let before = interner_usage().nodes();
    store.write(|transaction| transaction.replace((0..OBJECTS).map(pod).collect()));
    let full = interner_usage().nodes() - before;
    let kept = store.snapshot().iter().next();
    store.write(|transaction| transaction.replace(Vec::new()));
    assert!(kept.is_some());
    let left = interner_usage().nodes() - before;
    assert!(full > OBJECTS, "{full} nodes for {OBJECTS} objects");
    assert!(left < 20, "{left} nodes of {full} are left for one object");
}

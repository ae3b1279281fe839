//! The interner as a whole. One test alone in its process, because the interner is shared.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::thread;

use windlass_core::{Doc, ParseOptions, Parser, doc, interner_usage};

const THREADS: usize = 8;
const DOCUMENTS: usize = 400;

/// Documents with shared, half-shared and unique parts.
fn text(number: usize) -> Vec<u8> {
    let template = number % 7;
    doc!({
        "metadata": { "name": (format!("pod-{number}")), "labels": { "app": (format!("a{template}")) } },
        "spec": { "containers": [{ "name": "main", "image": (format!("image:{template}")) }] },
        "status": { "podIPs": [{ "ip": (format!("10.0.{}.{}", number / 256, number % 256)) }] }
    })
    .to_json()
}

fn parse_all(texts: &[Vec<u8>]) -> Vec<Doc> {
    let mut parser = Parser::new(ParseOptions::default());
    texts
        .iter()
        .map(|text| parser.parse(text).unwrap().doc)
        .collect()
}

#[test]
fn equal_documents_are_one_and_the_last_drop_frees_all() {
    let texts: Arc<Vec<_>> = Arc::new((0..DOCUMENTS).map(text).collect());
    assert_eq!(interner_usage().nodes(), 0, "nothing is alive yet");

    let spawn = |_| {
        let texts = Arc::clone(&texts);
        thread::spawn(move || parse_all(&texts))
    };
    let threads: Vec<_> = (0..THREADS).map(spawn).collect();
    let results: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    for result in &results {
        assert!(
            *result == results[0],
            "every thread holds the very same nodes"
        );
    }

    let shared = interner_usage();
    let alone = {
        let again = parse_all(&texts);
        assert_eq!(again, results[0]);
        interner_usage()
    };
    assert_eq!(alone.nodes(), shared.nodes(), "parsing again adds no node");
    // Per document: name, address, three objects around them, the array, and the root.
    assert!(shared.nodes() < DOCUMENTS * 9, "{shared:?}");

    // Threads that drop and threads that find again what is being dropped.
    let droppers = results
        .into_iter()
        .map(|docs| thread::spawn(move || drop(docs)));
    let finders = (0..THREADS).map(spawn);
    let (droppers, finders): (Vec<_>, Vec<_>) = (droppers.collect(), finders.collect());
    droppers
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    let found: Vec<_> = finders
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    for docs in &found {
        for (text, doc) in texts.iter().zip(docs) {
            assert_eq!(doc.to_json(), *text);
        }
    }

    drop(found);
    assert_eq!(interner_usage().nodes(), 0, "nothing is held any more");
}

//! How long a store with many objects takes to open.
//!
//! `cargo bench -p windlass-store --bench open -- 100000`

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on should stop"
)]

use std::convert::Infallible;
use std::sync::Arc;

use windlass_bench::corpus::Corpus;
use windlass_bench::meter;
use windlass_core::{Env, Key, ParseOptions, Parser};
use windlass_store::{Change, Durability, Entry, Resource, Store, StoreOptions};

/// How often the store is opened.
const ROUNDS: usize = 5;

fn main() {
    let pods = std::env::args().find_map(|arg| arg.parse().ok());
    let pods = pods.unwrap_or(100_000);
    let dir = tempfile::tempdir_in(".").unwrap();
    let options = StoreOptions {
        durability: Durability::None,
        ..StoreOptions::directory(Env::real(), dir.path())
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(fill(&Store::open(options.clone()).unwrap(), pods));
    for _ in 0..ROUNDS {
        let (wall, cpu) = (meter::wall(), meter::cpu());
        let store = Store::open(options.clone()).unwrap();
        let (open, open_cpu) = (meter::wall() - wall, meter::cpu() - cpu);
        let pods = store.snapshot(&Resource::new("", "pods"));
        let named = |entry: &&Arc<Entry>| !entry.doc().str_at("/metadata/name").is_empty();
        let read = pods.iter().filter(named).count();
        let (all, all_cpu) = (meter::wall() - wall, meter::cpu() - cpu);
        println!(
            "{} MB: open after {} ms ({} ms CPU), {read} pods read after {} ms ({} ms CPU)",
            store.stats().disk_bytes >> 20,
            open.as_millis(),
            open_cpu.as_millis(),
            all.as_millis(),
            all_cpu.as_millis(),
        );
    }
}

async fn fill(store: &Store, pods: usize) {
    let (corpus, mut json) = (Corpus::new(pods), Vec::new());
    let mut parser = Parser::new(ParseOptions::default());
    for index in 0..pods {
        json.clear();
        corpus.write_pod(index, &mut json);
        let doc = parser.parse(&json).unwrap().doc;
        let (namespace, name) = (
            doc.str_at("/metadata/namespace"),
            doc.str_at("/metadata/name"),
        );
        let key = Key::new(namespace, name);
        let put = |_: Option<&_>| Ok::<_, Infallible>(Change::put(doc));
        store
            .update(&Resource::new("", "pods"), &key, put)
            .await
            .unwrap();
    }
}

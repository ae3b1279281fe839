//! Creates per second, memory per object, the cost of fan-out and of a restart.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on should stop"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use windlass_bench::corpus::Corpus;
use windlass_bench::meter;
use windlass_core::{Doc, Env, Key, ParseOptions, Parser, doc, interner_usage};
use windlass_store::{Change, Durability, Resource, Store, StoreOptions};

const WRITERS: usize = 32;

fn main() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let pods = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .next()
        .unwrap_or(20_000);
    let runtime = Runtime::new().unwrap();
    map_writes(&runtime, pods);
    map_writes(&runtime, 5 * pods);
    fan_out(&runtime, 1_000);
    let corpus = parse(pods);
    creates(
        &runtime,
        "memory",
        StoreOptions::memory(Env::real()),
        &corpus,
    );
    let full = StoreOptions::directory(Env::real(), dir.path().join("full"));
    creates(&runtime, "redb, durable", full.clone(), &corpus);
    drop(corpus);
    restart(full, &dir.path().join("full"));
    let corpus = parse(pods);
    let none = StoreOptions::directory(Env::real(), dir.path().join("none"));
    let none = StoreOptions {
        durability: Durability::None,
        ..none
    };
    creates(&runtime, "redb, not waiting", none, &corpus);
}

fn parse(pods: usize) -> Arc<Vec<(Key, Doc)>> {
    let corpus = Corpus::new(pods);
    let mut parser = Parser::new(ParseOptions::default());
    let (mut json, mut docs, mut bytes) = (Vec::new(), Vec::new(), 0);
    for index in 0..pods {
        json.clear();
        corpus.write_pod(index, &mut json);
        bytes += json.len();
        let doc = parser.parse(&json).unwrap().doc;
        let key = Key::new(
            doc.str_at("/metadata/namespace"),
            doc.str_at("/metadata/name"),
        );
        docs.push((key, doc));
    }
    println!("corpus: {pods} pods of {} bytes", bytes / pods);
    Arc::new(docs)
}

fn creates(runtime: &Runtime, name: &str, options: StoreOptions, docs: &Arc<Vec<(Key, Doc)>>) {
    let store = Store::open(options).unwrap();
    let (rss, nodes) = (meter::rss_bytes().unwrap(), interner_bytes());
    let (wall, cpu) = (meter::wall(), meter::cpu());
    runtime.block_on(write_all(&store, docs));
    let (wall, cpu) = (meter::wall() - wall, meter::cpu() - cpu);
    let grown = meter::rss_bytes().unwrap() as i64 - rss as i64;
    let nodes = interner_bytes() - nodes;
    let count = docs.len();
    println!(
        "creates, {name}: {:.0}/s, {:.1} us CPU each; per object {} bytes of memory, {} of them nodes; {} MB on disk",
        count as f64 / wall.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / count as f64,
        grown / count as i64,
        nodes / count as i64,
        store.stats().disk_bytes >> 20,
    );
}

async fn write_all(store: &Store, docs: &Arc<Vec<(Key, Doc)>>) {
    let resource = Resource::new("", "pods");
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, resource, docs) = (store.clone(), resource.clone(), docs.clone());
            tokio::spawn(async move {
                for (key, doc) in docs.iter().skip(writer).step_by(WRITERS) {
                    let put = |_: Option<&_>| Ok::<_, ()>(Change::put(doc.clone()));
                    store.update(&resource, key, put).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

fn interner_bytes() -> i64 {
    let usage = interner_usage();
    (usage.strings.bytes + usage.arrays.bytes + usage.objects.bytes) as i64
}

/// The cost of one write to a map of this size, alone and with a snapshot before every write.
fn map_writes(runtime: &Runtime, objects: usize) {
    let store = Store::open(StoreOptions::memory(Env::real())).unwrap();
    let resource = Resource::new("", "configmaps");
    let keys: Vec<_> = (0..objects)
        .map(|i| Key::new("default", &format!("object-{i:06}")))
        .collect();
    let put = async |index: usize, value: usize| {
        let doc = doc!({ "value": value as i64 });
        let put = |_: Option<&_>| Ok::<_, ()>(Change::put(doc));
        store
            .update(&resource, &keys[index * 7919 % objects], put)
            .await
            .unwrap();
    };
    let rss = meter::rss_bytes().unwrap();
    runtime.block_on(async {
        for index in 0..objects {
            put(index, 0).await;
        }
    });
    let grown = meter::rss_bytes().unwrap().saturating_sub(rss);
    println!(
        "map of {objects}: {} bytes per object, with its event while in the history",
        grown / objects
    );
    for is_shared in [false, true] {
        let (rounds, start) = (20_000, meter::cpu());
        runtime.block_on(async {
            for round in 0..rounds {
                let snapshot = is_shared.then(|| store.snapshot(&resource));
                put(round, 2 * round + usize::from(is_shared) + 1).await;
                drop(snapshot);
            }
        });
        let micros = (meter::cpu() - start).as_secs_f64() * 1e6 / rounds as f64;
        println!("write to a map of {objects}, snapshot held {is_shared}: {micros:.2} us");
    }
}

/// The time from one write until the last of many watchers has its event.
fn fan_out(runtime: &Runtime, watchers: usize) {
    let store = Store::open(StoreOptions::memory(Env::real())).unwrap();
    let resource = Resource::new("", "pods");
    let rounds = 100;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..watchers {
        let mut watch = store.watch(&resource, store.revision()).unwrap();
        let sender = sender.clone();
        runtime.spawn(async move {
            while let Ok(event) = watch.next().await {
                sender.send(event.revision()).unwrap();
            }
        });
    }
    let (mut longest, mut wall, cpu) = (Duration::ZERO, Duration::ZERO, meter::cpu());
    runtime.block_on(async {
        for round in 0..rounds {
            let start = meter::wall();
            let put = |_: Option<&_>| Ok::<_, ()>(Change::put(doc!({ "round": round })));
            store
                .update(&resource, &Key::cluster("one"), put)
                .await
                .unwrap();
            for _ in 0..watchers {
                receiver.recv().await.unwrap();
            }
            let took = meter::wall() - start;
            longest = longest.max(took);
            wall += took;
        }
    });
    let cpu = (meter::cpu() - cpu).as_secs_f64() * 1e6 / f64::from(rounds as u32);
    println!(
        "fan-out to {watchers} watchers: {:.0} us per write, longest {:.0} us, {cpu:.0} us CPU",
        wall.as_secs_f64() * 1e6 / f64::from(rounds as u32),
        longest.as_secs_f64() * 1e6,
    );
}

fn restart(options: StoreOptions, dir: &Path) {
    let (wall, cpu) = (meter::wall(), meter::cpu());
    let store = Store::open(options).unwrap();
    let (wall, cpu) = (meter::wall() - wall, meter::cpu() - cpu);
    let objects = store.snapshot(&Resource::new("", "pods")).len();
    let bytes = std::fs::metadata(dir.join("store.redb")).unwrap().len();
    let (wall, cpu) = (wall.as_millis(), cpu.as_millis());
    println!(
        "open {objects} objects in {} MB: {wall} ms, {cpu} ms CPU",
        bytes >> 20
    );
}

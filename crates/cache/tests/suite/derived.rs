//! Parts on top of a cache: trackers, lazy values, whole lists, TTL stores.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::sleep;
use windlass_cache::{InformerBuilder, Lazy, Obj, SharedInformer, SyncTracker, TtlStore, Undelta};
use windlass_core::Gvr;

use crate::{script::pod, world::World};

fn object(name: &str, version: u64) -> Obj {
    Obj::new(pod(name, version)).unwrap()
}

#[test]
fn a_tracker_has_synced_when_upstream_has_and_no_key_waits() {
    let is_upstream = Arc::new(AtomicBool::new(false));
    let upstream = is_upstream.clone();
    let tracker = SyncTracker::new(move || upstream.load(SeqCst));
    assert!(!tracker.has_synced());
    tracker.start("a");
    tracker.start("b");
    is_upstream.store(true, SeqCst);
    assert!(!tracker.has_synced());
    tracker.finish(&"a");
    assert!(!tracker.has_synced());
    tracker.finish(&"b");
    tracker.finish(&"never started");
    assert!(tracker.has_synced());
}

#[test]
fn a_lazy_value_is_computed_once_per_change_and_errors_are_not_kept() {
    let computed = Arc::new(AtomicUsize::new(0));
    let count = computed.clone();
    let lazy = Lazy::new(move || match count.fetch_add(1, SeqCst) {
        1 => Err("not now"),
        n => Ok(n),
    });
    assert_eq!(computed.load(SeqCst), 0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(*lazy.get().unwrap(), 0));
        }
    });
    lazy.notify();
    assert_eq!(lazy.get(), Err("not now"));
    assert_eq!(*lazy.get().unwrap(), 2);
    assert_eq!(*lazy.get().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn every_change_pushes_the_whole_list() {
    let world = World::new();
    let informer: SharedInformer =
        InformerBuilder::new(world.source(), Gvr::constant("", "v1", "pods"))
            .build()
            .unwrap();
    let pushed = Arc::new(Mutex::new(Vec::new()));
    let sink = pushed.clone();
    let push = move |list: Vec<Obj>| {
        let names = list.iter().map(|object| object.name().to_owned());
        sink.lock().push(names.collect::<Vec<_>>().join(" "));
    };
    informer
        .add_handler(Undelta::new(informer.lister(), push))
        .unwrap();
    let runner = informer.clone();
    let running = tokio::spawn(async move { runner.run(std::future::pending()).await });
    for change in [1, 2, 3, 4] {
        let _revision = match change {
            1 => world.put("default/a", 1),
            2 => world.put("default/b", 1),
            3 => world.put("default/a", 2),
            _ => world.delete("default/a"),
        };
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(*pushed.lock(), ["a", "a b", "a b", "b"]);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_store_forgets_what_is_too_old_when_somebody_looks() {
    let minute = Duration::from_secs(60);
    let store = TtlStore::keeping(minute, |object| object.name() == "kept");
    let key = |name: &str| object(name, 1).key();
    for name in ["a", "b", "kept"] {
        store.put(object(name, 1));
    }
    sleep(minute / 2).await;
    store.put(object("b", 2));
    sleep(minute / 2).await;
    assert!(store.get(&key("a")).is_some(), "not a moment too early");
    sleep(minute / 4).await;
    assert_eq!(store.held(), 3);
    assert_eq!(store.get(&key("a")), None);
    assert_eq!(store.held(), 2);
    assert_eq!(store.get(&key("b")).unwrap().meta().resource_version(), "2");
    sleep(minute).await;
    let names: Vec<_> = store
        .list()
        .iter()
        .map(|object| object.name().to_owned())
        .collect();
    assert_eq!(names, ["kept"]);
    assert!(store.remove(&key("kept")).is_some());
    assert_eq!(store.held(), 0);
    let forever = TtlStore::new(Duration::ZERO);
    forever.put(object("a", 1));
    sleep(1000 * minute).await;
    assert!(forever.get(&key("a")).is_some());
}

//! The two delta queues.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use windlass_cache::{
    BATCH_LIMIT, Batch, ByKey, Deleted, Delta, DeltaFifo, DeltaQueue, InOrder, Indexer, Obj,
    Transform, TransformError,
};
use windlass_core::Revision;

use crate::script::pod;

fn object(name: &str, version: u64) -> Obj {
    Obj::new(pod(name, version)).unwrap()
}

fn revision(number: u64) -> Revision {
    Revision::try_from(number).unwrap()
}

fn store(objects: &[(&str, u64)]) -> Arc<Indexer> {
    let store = Arc::new(Indexer::new());
    for (name, version) in objects {
        store.put(&object(name, *version));
    }
    store
}

fn short(delta: &Delta) -> String {
    let verb = match delta {
        Delta::Added(_) => "added",
        Delta::Updated(_) => "updated",
        Delta::Deleted(Deleted::Observed(_)) => "deleted",
        Delta::Deleted(Deleted::Tombstone(_)) => "tombstone",
        Delta::Replaced(_) => "replaced",
        Delta::Sync(_) => "sync",
    };
    let object = delta.object();
    format!(
        "{verb} {}@{}",
        object.name(),
        object.meta().resource_version()
    )
}

fn by_key(known: &[(&str, u64)]) -> DeltaFifo<ByKey> {
    DeltaFifo::new(store(known), None)
}

/// Every entry that is queued, one line each.
async fn drain(fifo: &DeltaFifo<ByKey>) -> Vec<String> {
    let mut entries = Vec::new();
    while !fifo.is_empty() {
        let popped = fifo.pop().await.unwrap();
        entries.push(popped.0.iter().map(short).collect::<Vec<_>>().join(", "));
    }
    entries
}

fn replace(fifo: &DeltaFifo<impl DeltaQueue>, objects: &[(&str, u64)]) {
    let objects = objects
        .iter()
        .map(|(name, version)| object(name, *version))
        .collect();
    assert_eq!(fifo.replace(objects, Some(revision(100))), []);
}

#[tokio::test]
async fn a_list_after_a_queued_deletion_joins_its_entry() {
    let fifo = by_key(&[("foo", 1)]);
    fifo.delete(object("foo", 10)).unwrap();
    replace(&fifo, &[("foo", 15)]);
    assert_eq!(drain(&fifo).await, ["deleted foo@10, replaced foo@15"]);
}

#[tokio::test]
async fn a_list_without_a_queued_object_buries_its_newest_state() {
    let fifo = by_key(&[]);
    fifo.add(object("foo", 10)).unwrap();
    replace(&fifo, &[]);
    assert_eq!(drain(&fifo).await, ["added foo@10, tombstone foo@10"]);

    fifo.add(object("foo", 10)).unwrap();
    replace(&fifo, &[("foo", 11)]);
    replace(&fifo, &[]);
    assert_eq!(
        drain(&fifo).await,
        ["added foo@10, replaced foo@11, tombstone foo@11"]
    );

    fifo.add(object("foo", 10)).unwrap();
    fifo.delete(object("foo", 11)).unwrap();
    fifo.add(object("foo", 12)).unwrap();
    replace(&fifo, &[]);
    let expected = "added foo@10, deleted foo@11, added foo@12, tombstone foo@12";
    assert_eq!(drain(&fifo).await, [expected]);
}

#[tokio::test]
async fn a_queued_deletion_is_not_doubled_by_a_list() {
    let fifo = by_key(&[]);
    fifo.add(object("foo", 10)).unwrap();
    fifo.delete(object("foo", 11)).unwrap();
    replace(&fifo, &[]);
    assert_eq!(drain(&fifo).await, ["added foo@10, deleted foo@11"]);
}

#[tokio::test]
async fn a_tombstone_holds_the_queued_state_rather_than_the_stored_one() {
    let fifo = by_key(&[("foo", 5)]);
    fifo.update(object("foo", 10)).unwrap();
    replace(&fifo, &[]);
    assert_eq!(drain(&fifo).await, ["updated foo@10, tombstone foo@10"]);
}

#[tokio::test]
async fn a_final_state_replaces_a_tombstone_and_two_deletions_are_one() {
    let fifo = by_key(&[("foo", 5)]);
    replace(&fifo, &[]);
    fifo.delete(object("foo", 11)).unwrap();
    fifo.delete(object("foo", 12)).unwrap();
    assert_eq!(drain(&fifo).await, ["deleted foo@11"]);
}

#[tokio::test]
async fn all_changes_of_one_object_are_one_entry() {
    let fifo = by_key(&[]);
    fifo.add(object("foo", 10)).unwrap();
    fifo.update(object("foo", 12)).unwrap();
    fifo.delete(object("foo", 15)).unwrap();
    assert_eq!(
        drain(&fifo).await,
        ["added foo@10, updated foo@12, deleted foo@15"]
    );
    assert!(fifo.is_empty());
}

#[tokio::test]
async fn the_transform_sees_each_object_of_the_server_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let transform: Transform = Arc::new(move |doc| {
        counted.fetch_add(1, SeqCst);
        doc.with("/metadata/labels/seen", "yes")
            .map_err(|error| TransformError(error.to_string()))
    });
    let store = store(&[("known", 1), ("gone", 1)]);
    let fifo: DeltaFifo<ByKey> = DeltaFifo::new(store, Some(transform));
    fifo.add(object("a", 10)).unwrap();
    fifo.update(object("a", 11)).unwrap();
    fifo.delete(object("a", 12)).unwrap();
    fifo.replace(vec![object("known", 1)], None);
    assert_eq!(calls.load(SeqCst), 4);
    fifo.resync();
    assert_eq!(calls.load(SeqCst), 4);
    let mut seen = Vec::new();
    while !fifo.is_empty() {
        let popped = fifo.pop().await.unwrap();
        seen.extend(popped.0.iter().map(|delta| {
            (
                delta.object().name().to_owned(),
                delta.object().meta().label("seen").is_some(),
            )
        }));
    }
    let a = ("a".to_owned(), true);
    let (known, gone) = (("known".to_owned(), true), ("gone".to_owned(), false));
    assert_eq!(seen, [a.clone(), a.clone(), a, known, gone]);
}

#[tokio::test]
async fn an_object_that_the_transform_refuses_is_kept_as_it_was_but_deleted_when_it_is_gone() {
    let refuse: Transform = Arc::new(|_| Err(TransformError("no".to_owned())));
    let fifo: DeltaFifo = DeltaFifo::new(store(&[("a", 1)]), Some(refuse));
    let error = fifo.add(object("a", 2)).unwrap_err();
    assert_eq!(error.to_string(), "transforming: no");
    assert!(fifo.is_empty());
    assert_eq!(fifo.replace(vec![object("a", 2)], None).len(), 1);
    let Batch::ReplacedAll(listing) = &*fifo.pop().await.unwrap() else {
        panic!()
    };
    assert_eq!((listing.objects.len(), listing.kept.len()), (0, 1));
    fifo.delete(object("a", 3)).unwrap_err();
    let Batch::Deltas(deltas) = &*fifo.pop().await.unwrap() else {
        panic!()
    };
    assert_eq!(
        deltas.iter().map(short).collect::<Vec<_>>(),
        ["tombstone a@3"]
    );
}

#[tokio::test]
async fn a_deletion_counts_if_the_object_is_known_or_queued() {
    let fifo = by_key(&[]);
    fifo.delete(object("foo", 10)).unwrap();
    assert!(fifo.is_empty());
    fifo.add(object("foo", 10)).unwrap();
    fifo.delete(object("foo", 11)).unwrap();
    assert_eq!(drain(&fifo).await, ["added foo@10, deleted foo@11"]);

    let fifo = by_key(&[("foo", 5)]);
    fifo.delete(object("foo", 10)).unwrap();
    assert_eq!(drain(&fifo).await, ["deleted foo@10"]);
}

#[tokio::test]
async fn a_resync_repeats_only_objects_with_nothing_queued() {
    let fifo = by_key(&[("foo", 5)]);
    fifo.resync();
    assert_eq!(drain(&fifo).await, ["sync foo@5"]);
    fifo.update(object("foo", 20)).unwrap();
    fifo.resync();
    assert_eq!(drain(&fifo).await, ["updated foo@20"]);
    fifo.delete(object("foo", 21)).unwrap();
    fifo.resync();
    assert_eq!(drain(&fifo).await, ["deleted foo@21"]);
}

#[tokio::test]
async fn a_list_buries_what_it_lacks_after_what_it_has() {
    let known = [("bar", 6), ("baz", 7), ("foo", 5)];
    let fifo = by_key(&known);
    fifo.delete(object("baz", 10)).unwrap();
    replace(&fifo, &[("foo", 5)]);
    assert_eq!(
        drain(&fifo).await,
        ["deleted baz@10", "replaced foo@5", "tombstone bar@6"]
    );

    let fifo = by_key(&known);
    fifo.add(object("baz", 10)).unwrap();
    replace(&fifo, &[("foo", 5)]);
    let expected = [
        "added baz@10, tombstone baz@10",
        "replaced foo@5",
        "tombstone bar@6",
    ];
    assert_eq!(drain(&fifo).await, expected);
}

#[tokio::test]
async fn a_queue_has_synced_once_its_first_list_is_applied() {
    let fifo = by_key(&[]);
    assert!(!fifo.has_synced());
    fifo.add(object("a", 1)).unwrap();
    assert!(fifo.has_synced());

    let fifo = by_key(&[]);
    replace(&fifo, &[]);
    assert!(fifo.has_synced());

    let fifo = by_key(&[]);
    replace(&fifo, &[("a", 1), ("a", 2), ("b", 1)]);
    assert!(!fifo.has_synced());
    let popped = fifo.pop().await.unwrap();
    assert!(popped.1, "belongs to the first list");
    drop(popped);
    assert!(!fifo.has_synced());
    let last = fifo.pop().await.unwrap();
    assert!(!fifo.has_synced(), "handed out is not applied");
    drop(last);
    assert!(fifo.has_synced());
    fifo.add(object("c", 3)).unwrap();
    assert!(!fifo.pop().await.unwrap().1);
}

#[tokio::test]
async fn an_object_that_is_queued_again_goes_to_the_end() {
    let fifo = by_key(&[]);
    fifo.add(object("a", 1)).unwrap();
    fifo.add(object("b", 2)).unwrap();
    let first = fifo.pop().await.unwrap();
    fifo.add(object("a", 3)).unwrap();
    drop(first);
    assert_eq!(drain(&fifo).await, ["added b@2", "added a@3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_producers_keep_their_order_per_object() {
    let fifo = Arc::new(by_key(&[]));
    let producers = (0..10).map(|producer| {
        let fifo = fifo.clone();
        tokio::spawn(async move {
            for version in 1..=100 {
                fifo.add(object(&format!("p{producer}"), version)).unwrap();
                tokio::task::yield_now().await;
            }
        })
    });
    let producers: Vec<_> = producers.collect();
    let mut last = [0_u64; 10];
    let mut count = 0;
    while count < 1000 {
        let popped = fifo.pop().await.unwrap();
        for delta in &popped.0 {
            let producer: usize = delta.object().name()[1..].parse().unwrap();
            let version = delta.object().revision().unwrap().as_u64().unwrap();
            assert_eq!(version, last[producer] + 1);
            last[producer] = version;
            count += 1;
        }
    }
    for producer in producers {
        producer.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn closing_wakes_everyone_who_waits() {
    let fifo = Arc::new(by_key(&[]));
    let waiting: Vec<_> = (0..10)
        .map(|_| {
            let fifo = fifo.clone();
            tokio::spawn(async move { fifo.pop().await.is_none() })
        })
        .collect();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    fifo.close();
    for task in waiting {
        assert!(task.await.unwrap());
    }
}

#[tokio::test]
async fn what_was_queued_before_the_close_is_still_handed_out() {
    let fifo = by_key(&[]);
    fifo.add(object("a", 1)).unwrap();
    fifo.close();
    fifo.add(object("b", 2)).unwrap();
    assert_eq!(drain(&fifo).await, ["added a@1"]);
    assert!(fifo.pop().await.is_none());
}

fn in_order() -> DeltaFifo {
    DeltaFifo::new(store(&[]), None)
}

async fn batch(fifo: &DeltaFifo) -> Vec<String> {
    match &*fifo.pop().await.unwrap() {
        Batch::Deltas(deltas) => deltas.iter().map(short).collect(),
        Batch::ReplacedAll(listing) => vec![format!(
            "list {} of {}",
            listing.revision.as_ref().unwrap(),
            listing.objects.len()
        )],
        Batch::SyncAll => vec!["sync".to_owned()],
        Batch::Bookmark(revision) => vec![format!("bookmark {revision}")],
    }
}

#[tokio::test]
async fn changes_stay_separate_and_in_the_order_of_the_watch() {
    let fifo = in_order();
    fifo.add(object("foo", 10)).unwrap();
    fifo.add(object("bar", 11)).unwrap();
    fifo.update(object("foo", 15)).unwrap();
    fifo.delete(object("foo", 16)).unwrap();
    let expected = [
        "added foo@10",
        "added bar@11",
        "updated foo@15",
        "deleted foo@16",
    ];
    assert_eq!(batch(&fifo).await, expected);
}

#[tokio::test]
async fn a_deletion_is_passed_on_even_if_nobody_knows_the_object() {
    let fifo = in_order();
    fifo.delete(object("foo", 16)).unwrap();
    assert_eq!(batch(&fifo).await, ["deleted foo@16"]);
}

#[tokio::test]
async fn lists_bookmarks_and_resyncs_are_handed_out_alone_and_in_order() {
    let fifo = in_order();
    fifo.add(object("a", 1)).unwrap();
    fifo.bookmark(revision(2));
    replace(&fifo, &[("a", 1), ("b", 2)]);
    fifo.resync();
    fifo.add(object("c", 101)).unwrap();
    for expected in [
        "added a@1",
        "bookmark 2",
        "list 100 of 2",
        "sync",
        "added c@101",
    ] {
        assert_eq!(batch(&fifo).await, [expected]);
    }
}

#[tokio::test]
async fn even_an_empty_list_must_be_applied_before_the_queue_has_synced() {
    let fifo = in_order();
    replace(&fifo, &[]);
    assert!(!fifo.has_synced());
    let popped = fifo.pop().await.unwrap();
    assert!(!fifo.has_synced());
    drop(popped);
    assert!(fifo.has_synced());
}

#[tokio::test]
async fn batches_are_bounded() {
    let fifo = in_order();
    for n in 0..=BATCH_LIMIT {
        fifo.add(object(&format!("p{n}"), 1)).unwrap();
    }
    assert_eq!(batch(&fifo).await.len(), BATCH_LIMIT);
    assert_eq!(batch(&fifo).await.len(), 1);
}

#[test]
fn the_state_machines_work_without_a_runtime() {
    let known = Indexer::new().snapshot();
    let mut queue = ByKey::default();
    queue.push(Delta::Added(object("a", 1)));
    assert_eq!(queue.deltas(&object("a", 1).key()).len(), 1);
    let (deltas, is_initial) = queue.pop().unwrap();
    assert_eq!((deltas.len(), is_initial), (1, false));

    let mut queue = InOrder::default();
    queue.delete(Deleted::Observed(object("a", 1)), &known);
    assert_eq!(queue.len(), 1);
    assert!(matches!(queue.pop(), Some(Batch::Deltas(deltas)) if deltas.len() == 1));
    assert!(queue.is_empty());
}

//! Writes that are decided outside of the lock of the store.

use std::sync::Arc;

use windlass_core::Key;
use windlass_store::{Change, Entry, Outcome, Resource as Shelf, WriteError};

use super::Storage;
use super::queue::QueueGuard;
use crate::work;
use windlass_rules::status::Status;

/// How often a write is decided again because another one came first. Upstream has the same number
/// for patches. Those who try again wait in a queue, so few of them ever need the second time.
const CONFLICT_RETRIES: usize = 5;

/// A decision on one state of an object, with what the writer wants to know of it afterwards.
pub(crate) struct Decided<T> {
    /// The revision of that state; `None` if there was no object.
    seen: Option<u64>,
    verdict: Result<(Change, T), Status>,
}

/// The reason for which nothing was written.
#[derive(Debug)]
pub(crate) enum Unsettled {
    /// The writer refused.
    Status(Status),
    /// Other writes came first, each time.
    Conflict,
}

impl<T> Decided<T> {
    /// Compares the new state with the one it was decided on, so that the store need not.
    pub(crate) fn new(seen: Option<&Arc<Entry>>, verdict: Result<(Change, T), Status>) -> Self {
        Self {
            seen: revision(seen),
            verdict: verdict.map(|(change, noted)| (change.compared(seen), noted)),
        }
    }
}

impl Storage {
    /// Writes one object: `decide` is called with its newest state and says what to do. Nothing but
    /// revisions is compared under the lock of the store. If another write comes first, `decide` is
    /// called again.
    pub(crate) async fn settle<T>(
        &self,
        (shelf, key): (&Shelf, &Key),
        mut decide: impl FnMut(Option<&Arc<Entry>>) -> Result<(Change, T), Status>,
    ) -> Result<(Outcome, T), WriteError<Unsettled>> {
        let mut tries_left = CONFLICT_RETRIES;
        loop {
            let head = self.queue.enter(shelf, key).await;
            let latest = self.latest(shelf, key);
            let decided = Decided::new(latest.as_ref(), decide(latest.as_ref()));
            match self.attempt((shelf, key), decided, Some(head)).await {
                Err(WriteError::Refused(Unsettled::Conflict)) if tries_left > 0 => tries_left -= 1,
                outcome => return outcome,
            }
        }
    }

    /// As [`settle`](Self::settle), for a writer who has decided once already on a state that
    /// everybody sees.
    pub(crate) async fn settle_after<T>(
        &self,
        first: Decided<T>,
        (shelf, key): (&Shelf, &Key),
        decide: impl FnMut(Option<&Arc<Entry>>) -> Result<(Change, T), Status>,
    ) -> Result<(Outcome, T), WriteError<Unsettled>> {
        // Those who wait would lose again against whoever comes now.
        if !self.queue.has_waiters(shelf, key) {
            match self.attempt((shelf, key), first, None).await {
                Err(WriteError::Refused(Unsettled::Conflict)) => {}
                outcome => return outcome,
            }
        }
        self.settle((shelf, key), decide).await
    }

    /// Makes a decision come true that was made on the newest state; the writer decides again after
    /// a conflict.
    pub(crate) async fn settle_once<T>(
        &self,
        decided: Decided<T>,
        object: (&Shelf, &Key),
    ) -> Result<(Outcome, T), WriteError<Unsettled>> {
        self.attempt(object, decided, None).await
    }

    /// Makes a decision come true, if it was made on the newest state.
    async fn attempt<T>(
        &self,
        (shelf, key): (&Shelf, &Key),
        decided: Decided<T>,
        head: Option<QueueGuard>,
    ) -> Result<(Outcome, T), WriteError<Unsettled>> {
        let mut kept = None;
        let compare = |current: Option<&Arc<Entry>>| {
            // The next in the queue sees this write as soon as the store has taken it, not when it is
            // durable: many writes of one object share one access to the disk.
            drop(head);
            if revision(current) != decided.seen {
                return Err(Unsettled::Conflict);
            }
            work::check().map_err(Unsettled::Status)?;
            let (change, noted) = decided.verdict.map_err(Unsettled::Status)?;
            kept = Some(noted);
            Ok(change)
        };
        let outcome = self.update(shelf, key, compare).await?;
        let kept = kept.expect("invariant: a write that was made has been decided");
        Ok((outcome, kept))
    }
}

fn revision(entry: Option<&Arc<Entry>>) -> Option<u64> {
    entry.map(|entry| entry.revision)
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use windlass_core::{Doc, Env, doc};
    use windlass_store::{Store, StoreOptions};

    use super::*;

    fn open() -> (Storage, Shelf) {
        let store = Store::open(StoreOptions::memory(Env::seeded(1))).unwrap();
        (Storage::new(store), Shelf::new("", "configmaps"))
    }

    /// Writes an object at once, as another request would in the middle of a decision.
    fn write_now(storage: &Storage, shelf: &Shelf, key: &Key, count: i64) {
        let write = storage.update(shelf, key, |_| Ok::<_, Status>(Change::put(counted(count))));
        let mut context = Context::from_waker(Waker::noop());
        let polled = pin!(write).poll(&mut context);
        assert!(matches!(polled, Poll::Ready(Ok(_))), "a write has to wait");
    }

    fn counted(count: i64) -> Doc {
        doc!({ "metadata": { "name": "x" }, "count": count })
    }

    fn add_one(entry: Option<&Arc<Entry>>) -> Result<(Change, i64), Status> {
        let count = entry.map_or(0, |it| it.doc().at("/count").as_i64().unwrap_or(0));
        Ok((Change::put(counted(count + 1)), count + 1))
    }

    #[tokio::test]
    async fn slow_validation_of_one_object_does_not_delay_writes_to_another() {
        let (storage, shelf) = open();
        let (slow, other) = (Key::new("n", "slow"), Key::new("n", "other"));
        let mut decisions = 0;
        let decide = |current: Option<&Arc<Entry>>| {
            decisions += 1;
            // All of these happen while the slow one is still at work, on a conflict as well.
            write_now(&storage, &shelf, &other, decisions);
            if decisions < 3 {
                write_now(&storage, &shelf, &slow, decisions * 100);
            }
            add_one(current)
        };
        let (_, count) = storage.settle((&shelf, &slow), decide).await.unwrap();
        assert_eq!((count, decisions), (201, 3));
    }

    #[tokio::test]
    async fn a_state_that_is_the_same_is_not_written() {
        let (storage, shelf) = open();
        let object = (&shelf, &Key::new("n", "a"));
        let put = |_: Option<&Arc<Entry>>| Ok((Change::put(counted(1)), ()));
        let (made, ()) = storage.settle(object, put).await.unwrap();
        let (kept, ()) = storage.settle(object, put).await.unwrap();
        assert!(matches!(made, Outcome::Created(_)));
        assert_eq!(kept, Outcome::Unchanged(made.entry().cloned()));
        let (changed, _) = storage.settle(object, add_one).await.unwrap();
        assert!(matches!(changed, Outcome::Updated { .. }));
    }

    #[tokio::test]
    async fn a_write_that_always_comes_second_is_a_conflict() {
        let (storage, shelf) = open();
        let key = Key::new("n", "busy");
        let mut decisions = 0;
        let decide = |current: Option<&Arc<Entry>>| {
            decisions += 1;
            write_now(&storage, &shelf, &key, decisions * 100);
            add_one(current)
        };
        let refused = storage.settle((&shelf, &key), decide).await.unwrap_err();
        assert!(matches!(refused, WriteError::Refused(Unsettled::Conflict)));
        assert_eq!(decisions, 1 + CONFLICT_RETRIES as i64);
    }

    #[tokio::test]
    #[should_panic(expected = "validation runs under the lock of all writers")]
    async fn validation_under_the_lock_is_a_panic() {
        let (storage, shelf) = open();
        let decide = |_: Option<&Arc<Entry>>| {
            windlass_store::debug_assert_not_deciding("validation");
            Ok::<_, Status>(Change::Keep)
        };
        let _ = storage.update(&shelf, &Key::new("n", "a"), decide).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn many_writers_of_one_object_all_succeed_and_leave_no_queue() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(StoreOptions::directory(Env::real(), dir.path())).unwrap();
        let (storage, shelf) = (Storage::new(store), Shelf::new("", "configmaps"));
        let writers = (0..200).map(|_| {
            let (storage, shelf) = (storage.clone(), shelf.clone());
            tokio::spawn(async move {
                let key = Key::new("n", "hot");
                let seen = storage.get(&shelf, &key);
                let first = Decided::new(seen.as_ref(), add_one(seen.as_ref()));
                let settled = storage.settle_after(first, (&shelf, &key), add_one).await;
                settled.unwrap().1
            })
        });
        let mut counts = Vec::new();
        for writer in writers.collect::<Vec<_>>() {
            counts.push(writer.await.unwrap());
        }
        counts.sort_unstable();
        assert_eq!(counts, (1..=200).collect::<Vec<_>>());
        assert!(!storage.queue.has_waiters(&shelf, &Key::new("n", "hot")));
    }
}

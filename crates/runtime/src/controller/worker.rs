//! One worker: takes a key, reconciles it, and decides what becomes of it.

use std::{any::Any, borrow::Cow, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::Instant;
use tracing::Instrument;
use windlass_core::Key;
use windlass_queue::{AddOptions, Item};

use super::run::{Parts, Waiting};
use crate::{
    Action, Context, Error, Result,
    error::Retry,
    freshness::{Reached, Stale},
    journal::{Begun, Cause, Entry},
    metrics::Outcome,
    shutdown::Shutdown,
    writes::{Doubt, Doubts, WriteScope, Writes},
};

/// The result of a reconcile, for the journal.
struct Verdict {
    outcome: Cow<'static, str>,
    next: Option<Duration>,
    /// The number of failures of the key in a row.
    failures: u32,
}

impl Parts {
    /// Reconciles keys until `stop`. The key in hand is finished.
    pub(super) async fn work(self: &Arc<Self>, stop: &Shutdown, waiting: &Arc<Waiting>) {
        let mut held = None;
        loop {
            let item = tokio::select! {
                biased;
                () = stop.requested() => return,
                item = self.next(held.take()) => item,
            };
            let Some(item) = item else { return };
            if !self.is_put_off(&item, waiting) {
                self.process(&item).await;
            }
            held = Some(item);
        }
    }

    /// Puts a key off whose own writes the caches may not show. Returns true if it was.
    fn is_put_off(self: &Arc<Self>, item: &Item<'_, Key>, waiting: &Arc<Waiting>) -> bool {
        let key = item.key();
        if let Some(scope) = self.own_writes.unsettled(key) {
            tracing::debug!(controller = self.shared.name, %key, "writes are on their way");
            self.wait(waiting, key, self.clone().settle(scope, key.clone()));
            return true;
        }
        if let Err(stale) = self.check_freshness(key) {
            self.put_off(item, stale, waiting);
            return true;
        }
        // Whatever is waited for may not have been found out yet.
        if waiting.holds(key) {
            return true;
        }
        let Some(doubts) = self.own_writes.take_doubts(key) else {
            return false;
        };
        self.clear_up(item, doubts, waiting);
        true
    }

    /// Gives the key in hand back, if there is one, and takes the next.
    async fn next<'q>(&'q self, held: Option<Item<'q, Key>>) -> Option<Item<'q, Key>> {
        match held {
            Some(item) => item.next().await,
            None => self.queue.get().await,
        }
    }

    fn check_freshness(&self, key: &Key) -> Result<(), Vec<Stale>> {
        if !self.options.is_freshness_checked {
            return Ok(());
        }
        self.own_writes.freshness().check(key, |resource| {
            let kinds = self.shared.kinds.iter();
            let mut of = kinds.filter(|(kind, _)| kind.gvr().group_resource() == *resource);
            // Of several caches of one resource the one that is most behind counts.
            let Some((_, first)) = of.next() else {
                return Reached::Unknown;
            };
            let rest = of.map(|(_, informer)| informer.revision());
            Reached::Revision(rest.fold(first.revision(), Ord::min))
        })
    }

    fn put_off(self: &Arc<Self>, item: &Item<'_, Key>, stale: Vec<Stale>, waiting: &Arc<Waiting>) {
        for one in &stale {
            self.metrics.stale(&one.resource);
            tracing::debug!(controller = self.shared.name, key = %item.key(), reason = %one, "put off");
        }
        self.wait(waiting, item.key(), self.clone().reach_all(stale));
    }

    /// Puts a key off until the server has said how far the caches must come to show a write
    /// whose answer was lost.
    fn clear_up(self: &Arc<Self>, item: &Item<'_, Key>, doubts: Doubts, waiting: &Arc<Waiting>) {
        let key = item.key();
        for Doubt { resource, .. } in &doubts {
            self.metrics.stale(resource);
            tracing::debug!(controller = self.shared.name, %key, %resource, "a write is in doubt");
        }
        self.wait(waiting, key, self.clone().clear_up_all(key.clone(), doubts));
    }

    async fn process(&self, item: &Item<'_, Key>) {
        let key = item.key();
        let _active = self.metrics.begin();
        let (begun, started) = (self.journal.begin(key), Instant::now());
        let scope = self.own_writes.scope(key);
        let id = self.shared.env.uid();
        let span = tracing::info_span!(
            "reconcile",
            controller = self.shared.name,
            object = %key,
            reconcileID = %id,
        );
        let result = self.reconcile(key, &scope).instrument(span.clone()).await;
        let writes = scope.close();
        let took = started.elapsed();
        let verdict = span.in_scope(|| self.decide(item, result, took));
        self.record(key, begun, (started, took), writes, verdict);
    }

    async fn reconcile(&self, key: &Key, scope: &Arc<WriteScope>) -> Result<Action> {
        let cx = Context::new(self.shared.clone(), key.clone(), scope.clone());
        // The function itself may panic before there is a future.
        let call = async { (self.reconcile)(key.clone(), cx).await };
        let guarded = AssertUnwindSafe(call).catch_unwind();
        let ended = match self.options.timeout {
            None => guarded.await,
            Some(limit) => match tokio::time::timeout(limit, guarded).await {
                Ok(ended) => ended,
                Err(_) => {
                    self.metrics.timed_out();
                    return Err(Error::msg(format!(
                        "reconcile did not end within {limit:?}"
                    )));
                }
            },
        };
        ended.unwrap_or_else(|panic| {
            self.metrics.panicked();
            Err(Error::msg(format!(
                "panic: {} [recovered]",
                panic_text(&*panic)
            )))
        })
    }

    fn decide(&self, item: &Item<'_, Key>, result: Result<Action>, took: Duration) -> Verdict {
        match result {
            Ok(action) => self.succeeded(item, action, took),
            Err(error) => self.failed(item, &error, took),
        }
    }

    fn succeeded(&self, item: &Item<'_, Key>, action: Action, took: Duration) -> Verdict {
        let key = item.key();
        self.queue.forget(key);
        let Some(delay) = action.delay() else {
            self.metrics.reconciled(Outcome::Success, took);
            return Verdict {
                outcome: "done".into(),
                next: None,
                failures: 0,
            };
        };
        self.metrics.reconciled(Outcome::RequeueAfter, took);
        let priority = action.chosen_priority().unwrap_or(item.priority());
        self.queue.add_with(
            key.clone(),
            AddOptions {
                priority,
                after: Some(delay),
                rate_limited: false,
            },
        );
        Verdict {
            outcome: "done for now".into(),
            next: Some(delay),
            failures: 0,
        }
    }

    fn failed(&self, item: &Item<'_, Key>, error: &Error, took: Duration) -> Verdict {
        let key = item.key();
        self.metrics.reconciled(Outcome::Error, took);
        let next = match error.retry() {
            Retry::Never => {
                self.metrics.terminal();
                self.queue.forget(key);
                tracing::error!(%error, "Reconciler error, not retried");
                None
            }
            Retry::After(delay) => {
                tracing::error!(%error, ?delay, "Reconciler error");
                let (after, priority) = (Some(delay), item.priority());
                self.queue.add_with(
                    key.clone(),
                    AddOptions {
                        priority,
                        after,
                        rate_limited: false,
                    },
                );
                Some(delay)
            }
            Retry::Backoff => self.retry(item, error),
        };
        Verdict {
            outcome: format!("failed: {error}").into(),
            next,
            failures: self.queue.num_requeues(key),
        }
    }

    /// Queues a failed key again, unless it has had enough retries.
    fn retry(&self, item: &Item<'_, Key>, error: &Error) -> Option<Duration> {
        let key = item.key();
        let failures = self.queue.num_requeues(key);
        if self
            .options
            .retries_limit
            .is_some_and(|limit| failures >= limit)
        {
            self.metrics.dropped();
            self.queue.forget(key);
            tracing::error!(%error, retries = failures, "Dropping key out of the queue");
            return None;
        }
        let (priority, rate_limited) = (item.priority(), true);
        self.queue.add_with(
            key.clone(),
            AddOptions {
                priority,
                after: None,
                rate_limited,
            },
        );
        let verdict = self.verdict.lock().clone();
        let delay = verdict.filter(|(of, _)| of == key).map(|(_, delay)| delay);
        match is_conflict(error) {
            true => tracing::debug!(%error, retries = failures, ?delay, "Reconciler conflict"),
            false => tracing::error!(%error, retries = failures, ?delay, "Reconciler error"),
        }
        delay
    }

    fn record(
        &self,
        key: &Key,
        begun: Begun,
        (started, took): (Instant, Duration),
        writes: Writes,
        verdict: Verdict,
    ) {
        if verdict.next.is_some() {
            self.journal.caused(key, || Cause::Again);
        }
        self.journal.end(key, begun, |pending| Entry {
            pending,
            started,
            took,
            writes: writes.list,
            write_count: writes.count,
            outcome: verdict.outcome,
            failures: verdict.failures,
            next_due: verdict
                .next
                .and_then(|delay| started.checked_add(took.saturating_add(delay))),
            is_aged: false,
        });
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("of unknown cause")
}

/// Returns true if another write came first. The next look at the cache puts that right, so it is
/// no news to anybody.
fn is_conflict(error: &Error) -> bool {
    let request = error.downcast_ref::<windlass_client::Error>();
    request.is_some_and(windlass_client::Error::is_conflict)
}

//! Watches.

use std::{collections::VecDeque, time::Duration};

use futures_util::stream;
use http::Response;
use tokio::time::Instant;
use windlass_client::{Content, Events, WatchError, WatchEvent};
use windlass_core::{Doc, doc};

use super::{
    ModelServer,
    answer::{failure, response},
    request::{Parsed, Query},
    state::Happening,
};

/// One watch.
struct Watcher {
    server: ModelServer,
    at: Parsed,
    query: Query,
    /// How much of what has happened was looked at.
    seen: usize,
    /// What is to be sent before anything else.
    ready: VecDeque<WatchEvent>,
    until: Option<Instant>,
    /// When the next event may be sent, if it lags.
    due: Option<Instant>,
}

impl ModelServer {
    pub(super) fn watch(&self, at: &Parsed, query: &Query) -> Response<Content> {
        let state = self.shared.state.lock();
        let from: u64 = query.resource_version.parse().unwrap_or(0);
        let is_from_now = from == 0 || query.sends_initial_events;
        if !is_from_now && from < state.compacted {
            let message = format!("too old resource version: {from} ({})", state.compacted);
            return failure(410, "Expired", &message);
        }
        let mut ready = VecDeque::new();
        if is_from_now {
            ready.extend(state.selected(at, query).into_iter().map(WatchEvent::Added));
        }
        if query.sends_initial_events {
            ready.push_back(WatchEvent::Bookmark(initial_end(state.revision.max(1))));
        }
        let seen = if is_from_now {
            state.happened()
        } else {
            let old = state
                .history
                .iter()
                .take_while(|happening| happening.revision <= from);
            state.forgotten + old.count()
        };
        drop(state);
        let until = query
            .timeout_seconds
            .map(|it| Instant::now() + Duration::from_secs(it));
        let (at, query) = (at.clone(), query.clone());
        let watcher = Watcher {
            server: self.clone(),
            at,
            query,
            seen,
            ready,
            until,
            due: None,
        };
        let events = stream::unfold(watcher, |mut watcher| async move {
            let event = watcher.next().await?;
            Some((event, watcher))
        });
        response(200, Content::Events(Events::new(events)))
    }
}

impl Watcher {
    async fn next(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        let mut happened = self.server.shared.happened.subscribe();
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            self.look();
            if !self.ready.is_empty() {
                continue;
            }
            let (seen, due) = (self.seen, self.due);
            let more = happened.wait_for(|happened| *happened > seen && due.is_none());
            tokio::select! {
                biased;
                more = more => drop(more.ok()?),
                () = until(due) => {}
                () = until(self.until) => return None,
            }
        }
    }

    /// Takes up what has happened since, as far as it is due.
    fn look(&mut self) {
        let state = self.server.shared.state.lock();
        let lag = state
            .lags
            .get(self.at.resource.resource())
            .copied()
            .unwrap_or_default();
        self.due = None;
        for happening in state
            .history
            .iter()
            .skip(self.seen.saturating_sub(state.forgotten))
        {
            let due = happening.at + lag;
            if self.at.contains(&happening.place) && due > Instant::now() {
                self.due = Some(due);
                return;
            }
            self.seen += 1;
            if self.at.contains(&happening.place) {
                self.ready.extend(event(happening, &self.query));
            }
        }
        self.seen = self.seen.max(state.forgotten);
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// What a change looks like under a selector.
fn event(happening: &Happening, query: &Query) -> Option<WatchEvent> {
    let was = happening.old.as_ref().is_some_and(|old| query.selects(old));
    let is = !happening.is_deletion && query.selects(&happening.new);
    let object = happening.new.clone();
    match (was, is) {
        (false, true) => Some(WatchEvent::Added(object)),
        (true, true) => Some(WatchEvent::Modified(object)),
        (true, false) => Some(WatchEvent::Deleted(object)),
        (false, false) => None,
    }
}

fn initial_end(revision: u64) -> Doc {
    doc!({
        "metadata": {
            "resourceVersion": revision.to_string(),
            "annotations": { "k8s.io/initial-events-end": "true" }
        }
    })
}

//! A start by a watch that begins with the objects that exist.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use windlass_client::{VersionMatch, WatchEvent};

use super::{Phase, Reflector, collect::Collected, watch::is_very_short};
use crate::source::{BoxWatch, EventError, Reason, SourceError, WatchRequest};

/// After this long without an event a warning is due.
const STALL_TICK: Duration = Duration::from_secs(10);

/// After this long without an event the attempt is given up.
///
/// Upstream waits for ever: a proxy or an aggregated server that takes the request for a plain
/// watch never sends the bookmark (kubernetes/kubernetes#140890).
const STALL_LIMIT: Duration = Duration::from_secs(60);

/// The number of streams in a row that may end before the bookmark.
const STREAMS_LIMIT: usize = 2;

/// For how long a server that does not send the bookmark is listed instead.
const VERDICT_KEPT: Duration = Duration::from_secs(600);

impl Reflector {
    /// Queues the state that a watch begins with, and returns the watch, still open.
    pub(super) async fn watch_list(&mut self) -> Result<BoxWatch, SourceError> {
        let mut streams = 0;
        self.verb = "watch";
        loop {
            self.admit().await;
            let started = Instant::now();
            let outcome = match self.source.watch(self.watch_list_request()).await {
                Ok(watch) => self.collect(watch).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok((watch, objects)) => {
                    self.metrics.listed(started.elapsed(), objects);
                    return Ok(watch);
                }
                Err(error) if error.is_passing() => self.pause(error).await,
                Err(error) if error.is_version_unavailable() => self.is_version_unavailable = true,
                Err(error) if error.reason == Reason::Stalled => {
                    streams += 1;
                    if streams >= STREAMS_LIMIT || started.elapsed() >= STALL_LIMIT {
                        self.lists_until = Some(Instant::now() + VERDICT_KEPT);
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn watch_list_request(&self) -> WatchRequest {
        let is_latest = self.is_version_unavailable;
        WatchRequest {
            resource_version: if is_latest {
                String::new()
            } else {
                self.version.clone()
            },
            version_match: Some(VersionMatch::NotOlderThan),
            send_initial_events: true,
            allow_bookmarks: true,
            timeout: self.watch_timeout(),
        }
    }

    /// Reads up to the bookmark that ends the initial events. Returns the watch and how many
    /// objects there were.
    async fn collect(&mut self, mut watch: BoxWatch) -> Result<(BoxWatch, usize), SourceError> {
        let started = Instant::now();
        let (mut collected, mut kept, mut received) = (Collected::default(), Vec::new(), 0);
        self.forget_unreadable();
        loop {
            let Some(event) = self.next_initial(&mut watch, received).await? else {
                return Err(if is_very_short(started, received) {
                    SourceError::new(Reason::VeryShortWatch, "very short watch")
                } else {
                    stalled("the watch ended before the initial events did")
                });
            };
            received += 1;
            match event {
                Err(EventError::Ended(error)) => return Err(error),
                Err(EventError::Undecodable(object)) => kept.extend(self.skip(object)),
                Ok(event) if event.is_initial_events_end() => {
                    let version = event.object().meta().resource_version().to_owned();
                    self.is_version_unavailable = false;
                    let objects = collected.into_objects();
                    let count = objects.len();
                    self.replace(objects, &kept, version);
                    return Ok((watch, count));
                }
                Ok(event) => self.collect_one(event, &mut collected),
            }
        }
    }

    fn collect_one(&mut self, event: WatchEvent, collected: &mut Collected) {
        let is_deleted = matches!(event, WatchEvent::Deleted(_));
        let (WatchEvent::Added(doc) | WatchEvent::Modified(doc) | WatchEvent::Deleted(doc)) = event
        else {
            return;
        };
        match self.object(doc) {
            Some(object) if is_deleted => collected.remove(object),
            Some(object) => collected.put(object),
            None => {}
        }
    }

    /// The next initial event; warns while none comes and gives up in the end.
    async fn next_initial(
        &self,
        watch: &mut BoxWatch,
        received: usize,
    ) -> Result<Option<Result<WatchEvent, EventError>>, SourceError> {
        let since = Instant::now();
        let mut next = watch.next();
        // Events that have arrived already are taken without a change of state: observers would be
        // woken for every object.
        tokio::select! {
            biased;
            event = &mut next => return Ok(event),
            () = std::future::ready(()) => {}
        }
        self.enter(Phase::Streaming {
            received,
            is_stalled: false,
        });
        while since.elapsed() < STALL_LIMIT {
            match timeout(STALL_TICK, &mut next).await {
                Ok(event) => return Ok(event),
                Err(_) => {
                    let silent = since.elapsed();
                    tracing::warn!(
                        resource = %self.options.name, received, ?silent,
                        "waiting for the bookmark that ends the initial events"
                    );
                    self.enter(Phase::Streaming {
                        received,
                        is_stalled: true,
                    });
                }
            }
        }
        Err(stalled("no event and no bookmark for a minute"))
    }
}

fn stalled(message: &str) -> SourceError {
    SourceError::new(Reason::Stalled, message)
}

//! Following a watch.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use windlass_client::WatchEvent;
use windlass_core::Revision;

use super::{Phase, Reflector};
use crate::source::{BoxWatch, EventError, Reason, SourceError, WatchRequest};

/// A watch that ends sooner than this and without an event did not work.
const VERY_SHORT: Duration = Duration::from_secs(1);

/// The time after the agreed end of a watch at which the connection is taken for dead.
const OVERTIME: Duration = Duration::from_secs(30);

/// One open watch.
struct Session {
    watch: BoxWatch,
    started: Instant,
    /// When the connection is taken for dead.
    deadline: Instant,
    received: usize,
    /// True if the versions of events are in order. The first events of a watch from no particular
    /// version are not.
    is_ordered: bool,
}

impl Reflector {
    /// Follows the watch, and the ones after it, until a new list is needed.
    pub(super) async fn watch(&mut self, mut open: Option<BoxWatch>) -> SourceError {
        loop {
            let request = self.watch_request();
            self.verb = "watch";
            let opened = match open.take() {
                Some(watch) => Ok(watch),
                None => self.source.watch(request.clone()).await,
            };
            let watch = match opened {
                Ok(watch) => watch,
                Err(error) if error.is_passing() => {
                    self.pause(error).await;
                    continue;
                }
                Err(error) => return error,
            };
            self.enter(Phase::Watching);
            let started = Instant::now();
            let mut session = Session {
                watch,
                started,
                deadline: started + request.timeout + OVERTIME,
                received: 0,
                is_ordered: !matches!(&*request.resource_version, "" | "0"),
            };
            let end = self.follow(&mut session).await;
            self.metrics.watched(started.elapsed(), session.received);
            if let Err(error) = end
                && let Some(error) = self
                    .recover(error, is_very_short(started, session.received))
                    .await
            {
                return error;
            }
        }
    }

    fn watch_request(&self) -> WatchRequest {
        WatchRequest {
            resource_version: self.version.clone(),
            version_match: None,
            send_initial_events: false,
            allow_bookmarks: true,
            timeout: self.watch_timeout(),
        }
    }

    /// Decides whether a watch that failed is simply opened again; else gives the error back.
    async fn recover(&mut self, error: SourceError, is_very_short: bool) -> Option<SourceError> {
        match error.reason {
            Reason::TooManyRequests => {
                self.pause(error).await;
                None
            }
            // A connection that was cut is no reason to list: the version it had is still good.
            Reason::Unreachable if !is_very_short => None,
            Reason::Unreachable => {
                self.pause(error).await;
                None
            }
            Reason::Internal if self.internal_errors.allows(Instant::now()) => None,
            _ => Some(error),
        }
    }

    /// Queues events until the watch ends.
    async fn follow(&mut self, session: &mut Session) -> Result<(), SourceError> {
        loop {
            self.fifo.ready().await;
            let Ok(event) = timeout_at(session.deadline, session.watch.next()).await else {
                return Ok(());
            };
            match event {
                None if is_very_short(session.started, session.received) => {
                    self.metrics.short_watch();
                    let text = format!(
                        "very short watch: {}: no event in one second",
                        self.options.name
                    );
                    return Err(SourceError::new(Reason::VeryShortWatch, text));
                }
                None => return Ok(()),
                Some(Err(EventError::Ended(error))) => return Err(error),
                Some(Err(EventError::Undecodable(object))) => {
                    tracing::error!(resource = %self.options.name, error = %object, "object kept as it was");
                    // A list may be able to read it, or show that it is gone. If the list could
                    // not, another will not either.
                    if self.note_unreadable(object.key.as_ref()) {
                        let text = object.to_string();
                        return Err(SourceError::new(Reason::Undecodable, text));
                    }
                }
                Some(Ok(event)) => self.handle(&event, session),
            }
        }
    }

    fn handle(&mut self, event: &WatchEvent, session: &mut Session) {
        let version = event.object().meta().resource_version().to_owned();
        session.is_ordered |= !matches!(event, WatchEvent::Added(_));
        if matches!(event, WatchEvent::Bookmark(_)) {
            if let Ok(revision) = version.parse() {
                self.fifo.bookmark(revision);
            }
        } else if !self.enqueue(event) {
            return;
        }
        if session.received == 0 {
            self.state.send_modify(|state| state.last_failure = None);
        }
        session.received += 1;
        if session.is_ordered {
            self.advance(version);
        }
    }

    /// Queues a change; says whether the object was one that the cache can hold.
    fn enqueue(&mut self, event: &WatchEvent) -> bool {
        let Some(object) = self.object(event.object().clone()) else {
            return false;
        };
        let key = object.key();
        let queued = match event {
            WatchEvent::Added(_) => self.fifo.add(object),
            WatchEvent::Modified(_) => self.fifo.update(object),
            WatchEvent::Deleted(_) => self.fifo.delete(object),
            WatchEvent::Bookmark(_) => Ok(()),
        };
        if let Err(error) = queued {
            tracing::error!(resource = %self.options.name, %key, %error, "object kept as it was");
            self.note_unreadable(Some(&key));
        }
        true
    }

    /// Moves the version from which a watch is resumed. It never goes back.
    fn advance(&mut self, version: String) {
        let (old, new) = (
            self.version.parse::<Revision>(),
            version.parse::<Revision>(),
        );
        if let (Ok(old), Ok(new)) = (&old, &new)
            && new < old
        {
            tracing::warn!(resource = %self.options.name, %old, %new, "the server went back in time");
            self.state.send_modify(|state| state.regressions += 1);
            return;
        }
        self.metrics.reached(new.ok().as_ref());
        if !version.is_empty() {
            self.version = version;
        }
    }
}

pub(super) fn is_very_short(started: Instant, received: usize) -> bool {
    received == 0 && started.elapsed() < VERY_SHORT
}

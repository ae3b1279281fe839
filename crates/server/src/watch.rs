//! Watch: the events of a resource, as documents. `rest/watch.rs` makes bytes of them.

mod events;
mod filter;
mod slots;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use windlass_core::{Doc, Env, doc};
use windlass_store::{Entry, Event, EventKind, RevisionError, Watch, WatchError};
use windlass_wire::WatchEvent;

pub(crate) use filter::Filter;
pub(crate) use slots::{WatchSlot, WatchSlots};

use crate::registry::Resource;
use crate::storage::Storage;
use windlass_rules::status::Status;
use windlass_rules::table;

/// Without a timeout a watch lasts between this and twice as long.
const TIMEOUT_MIN: Duration = Duration::from_secs(1800);
/// No watch lasts longer, however long its client wants.
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How often a quiet watch says how far it has come.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// A last bookmark comes so long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// The annotation on the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What to watch, for watches in process.
#[derive(Clone, Debug, Default)]
pub struct WatchDocs {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name.
    pub resource: String,
    /// One namespace, or all if empty.
    pub namespace: String,
    /// A label selector; empty for all.
    pub labels: String,
    /// A field selector; empty for all.
    pub fields: String,
    /// Events after this revision; from now if absent.
    pub revision: Option<u64>,
    /// Whether the present objects come first, as events, and then a bookmark that says so.
    pub initial_events: bool,
    /// How long the watch lasts; half an hour to an hour if absent.
    pub timeout: Option<Duration>,
}

/// A watch that hands out shared documents. In process nothing is encoded.
#[derive(Debug)]
pub struct DocWatch {
    resource: Arc<Resource>,
    namespace: String,
    filter: Filter,
    /// Whether only the metadata of objects is handed out.
    is_metadata: bool,
    events: Watch,
    /// Objects that come before the events.
    initial: VecDeque<Arc<Entry>>,
    /// The revision to announce when those are through.
    initial_end: Option<u64>,
    /// Whether the end of the initial objects is announced, and later how far the watch is.
    bookmarks: Bookmarks,
    /// When the watch ends by itself.
    ends: Instant,
    /// When the next bookmark is due.
    next_bookmark: Instant,
    /// Whether the watch has ended.
    is_over: bool,
    /// Counts the watch of a user.
    slot: Option<WatchSlot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bookmarks {
    Never,
    /// Only the periodic ones.
    Plain,
    /// The end of the initial events too.
    WithInitialEnd,
}

/// An event and where its encoded form can be shared.
pub(crate) enum Delivery {
    /// Made for this watcher alone.
    Own(WatchEvent),
    /// Seen alike by every watcher whose filter agrees.
    Shared(WatchEvent, Arc<Event>),
    /// The watch ends, because of this.
    Refused(Status),
}

/// Which objects a watch is about.
pub(crate) struct Scope {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: String,
    pub(crate) filter: Filter,
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    /// With the present objects.
    Initial,
    /// With the next event.
    Now,
    /// With the first event after a revision.
    After(u64),
}

impl DocWatch {
    pub(crate) fn open(
        (store, env): (&Storage, &Env),
        scope: Scope,
        start: Start,
        bookmarks: Bookmarks,
        timeout: Option<Duration>,
    ) -> Result<Self, Status> {
        let Scope {
            resource,
            namespace,
            filter,
        } = scope;
        let (from, initial) = match start {
            Start::Now => (store.revision(), VecDeque::new()),
            Start::After(revision) => (revision, VecDeque::new()),
            Start::Initial => {
                let snapshot = store.snapshot(&resource.shelf);
                let entries = match namespace.as_str() {
                    "" => snapshot.iter(),
                    namespace => snapshot.namespace(namespace, ""),
                };
                let is_chosen = |entry: &&Arc<Entry>| {
                    filter.is_everything() || filter.matches(&resource.view(entry.doc()))
                };
                (
                    snapshot.revision(),
                    entries.filter(is_chosen).cloned().collect(),
                )
            }
        };
        let events = store
            .watch(&resource.shelf, from)
            .map_err(|error| expired(&error))?;
        let initial_end = matches!(start, Start::Initial).then_some(from);
        let lasts = timeout.unwrap_or_else(|| env.jitter(TIMEOUT_MIN, 1.0));
        let lasts = lasts.min(TIMEOUT_MAX);
        let now = Instant::now();
        let first_bookmark = BOOKMARK_PERIOD.min(lasts.saturating_sub(BOOKMARK_BEFORE_END));
        Ok(Self {
            ends: now + lasts,
            next_bookmark: now + first_bookmark,
            resource,
            namespace,
            filter,
            is_metadata: false,
            events,
            initial,
            initial_end,
            bookmarks,
            is_over: false,
            slot: None,
        })
    }

    /// The same watch, counted as one of a user.
    pub(crate) fn counted(mut self, slot: WatchSlot) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Waits for the next event; `None` when the watch has ended. Nothing is lost when the future
    /// is dropped before it is ready.
    ///
    /// # Errors
    /// With the reason why the watch ends before its time.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, Status>> {
        let event = match self.next_delivery().await? {
            Delivery::Own(event) | Delivery::Shared(event, _) => event,
            Delivery::Refused(status) => return Some(Err(status)),
        };
        Some(Ok(if self.is_metadata {
            event.map(|object| table::partial_metadata(&object))
        } else {
            event
        }))
    }

    /// The same watch of the metadata of objects only.
    pub(crate) fn metadata_only(mut self) -> Self {
        self.is_metadata = true;
        self
    }

    /// The next event, or a bookmark when one is due; `None` at the end.
    pub(crate) async fn next_delivery(&mut self) -> Option<Delivery> {
        if self.is_over {
            return None;
        }
        let (ends, next_bookmark) = (self.ends, self.next_bookmark);
        let wants_bookmarks = self.bookmarks != Bookmarks::Never;
        tokio::select! {
            biased;
            delivery = self.next_event() => delivery,
            () = sleep_until(ends) => {
                self.is_over = true;
                None
            }
            () = sleep_until(next_bookmark), if wants_bookmarks => {
                self.schedule_bookmark();
                let marker = self.marker(self.events.revision(), false);
                Some(Delivery::Own(WatchEvent::Bookmark(marker)))
            }
        }
    }

    fn schedule_bookmark(&mut self) {
        let now = Instant::now();
        let last = self.ends.checked_sub(BOOKMARK_BEFORE_END).unwrap_or(now);
        let next = now + BOOKMARK_PERIOD;
        // After the last one there is nothing to announce before the end.
        self.next_bookmark = if now >= last {
            self.ends + BOOKMARK_PERIOD
        } else {
            next.min(last)
        };
    }

    async fn next_event(&mut self) -> Option<Delivery> {
        if let Some(entry) = self.initial.pop_front() {
            let object = self.resource.view(entry.doc());
            return Some(Delivery::Own(WatchEvent::Added(object)));
        }
        if let Some(revision) = self.initial_end.take()
            && self.bookmarks == Bookmarks::WithInitialEnd
        {
            return Some(Delivery::Own(WatchEvent::Bookmark(
                self.marker(revision, true),
            )));
        }
        while !self.is_over {
            match self.events.next().await {
                Ok(event) => {
                    if let Some(delivery) = self.select(&event) {
                        return Some(delivery);
                    }
                }
                Err(error) => {
                    self.is_over = true;
                    return match error {
                        WatchError::Lagged { at } => Some(Delivery::Refused(too_old(at, at))),
                        _ => None,
                    };
                }
            }
        }
        None
    }

    /// The next event if it is there already.
    pub(crate) fn try_next_delivery(&mut self) -> Option<Delivery> {
        if !self.initial.is_empty() || self.initial_end.is_some() || self.is_over {
            return None;
        }
        while let Ok(Some(event)) = self.events.try_next() {
            if let Some(delivery) = self.select(&event) {
                return Some(delivery);
            }
        }
        None
    }

    /// What an event means to this watcher: whether its object was and is among the chosen.
    fn select(&self, event: &Arc<Event>) -> Option<Delivery> {
        if !self.namespace.is_empty() && event.key().namespace() != Some(&self.namespace) {
            return None;
        }
        let new = self.resource.view(event.entry.doc());
        let (was, is) = if self.filter.is_everything() {
            (event.previous.is_some(), event.kind == EventKind::Put)
        } else {
            let previous = event.previous.as_ref();
            let was =
                previous.is_some_and(|entry| self.filter.matches(&self.resource.view(entry.doc())));
            (
                was,
                event.kind == EventKind::Put && self.filter.matches(&new),
            )
        };
        let delivery = match (was, is, event.kind) {
            (false, false, _) => return None,
            (false, true, _) => Delivery::Shared(WatchEvent::Added(new), event.clone()),
            (true, true, _) => Delivery::Shared(WatchEvent::Modified(new), event.clone()),
            (true, false, EventKind::Delete) => {
                Delivery::Shared(WatchEvent::Deleted(new), event.clone())
            }
            // Out of the selection: the last state that was in it, at the revision of the event.
            (true, false, EventKind::Put) => {
                let last = event.previous.as_ref().map(|entry| {
                    windlass_store::stamp(&self.resource.view(entry.doc()), event.revision())
                });
                Delivery::Own(WatchEvent::Deleted(last.unwrap_or(new)))
            }
        };
        Some(delivery)
    }

    /// The object of a bookmark.
    fn marker(&self, revision: u64, ends_initial: bool) -> Doc {
        let mut metadata = doc!({ "resourceVersion": (revision.to_string()) });
        if ends_initial {
            let annotations = doc!({ INITIAL_EVENTS_END: "true" });
            metadata = doc!({
                "resourceVersion": (revision.to_string()), "annotations": annotations
            });
        }
        doc!({
            "kind": (self.resource.gvk.kind()),
            "apiVersion": (self.resource.gvk.api_version()),
            "metadata": metadata
        })
    }
}

fn expired(error: &RevisionError) -> Status {
    match *error {
        RevisionError::Expired { asked, oldest } => too_old(asked, oldest),
        _ => Status::internal(error),
    }
}

fn too_old(asked: u64, oldest: u64) -> Status {
    Status::expired(format!("too old resource version: {asked} ({oldest})"))
}

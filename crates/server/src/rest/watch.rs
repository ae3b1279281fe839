//! Watch: the events of a resource as documents in process and as bytes over HTTP.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use tokio::time::{Instant, sleep_until};
use windlass_core::{AtRevision, Doc, Time, doc};
use windlass_store::{Entry, Event, EventKind, RevisionError, Watch, WatchError};

use super::filter::Filter;
use super::{Call, list};
use crate::body::Body;
use crate::field::{FieldErrors, FieldPath};
use crate::negotiate::{self, Encoding, Form};
use crate::query::{self, ListOptions, Match};
use crate::registry::Resource;
use crate::respond;
use crate::server::Server;
use crate::status::Status;
use crate::table::{self, Include};

/// Without a timeout a watch lasts between this and twice as long.
const TIMEOUT_MIN: Duration = Duration::from_secs(1800);
/// How often a quiet watch says how far it has come.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// A last bookmark comes so long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// The annotation on the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
/// Events are written together up to so many bytes.
const PIECE_BYTES: usize = 64 << 10;

/// One event of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The object is new, or new to the selector.
    Added(Doc),
    /// The object changed.
    Modified(Doc),
    /// The object is gone, or gone from the selector. This is its last state.
    Deleted(Doc),
    /// Everything up to the revision in this object was delivered.
    Bookmark(Doc),
    /// The watch ends, because of this.
    Error(Status),
}

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
}

/// A watch that hands out shared documents. In process nothing is encoded.
#[derive(Debug)]
pub struct DocWatch {
    resource: Arc<Resource>,
    namespace: String,
    filter: Filter,
    events: Watch,
    /// Objects that come before the events.
    initial: VecDeque<Arc<Entry>>,
    /// The revision to announce when those are through.
    initial_end: Option<u64>,
    /// Whether the end of the initial objects is announced, and later how far the watch is.
    bookmarks: Bookmarks,
    /// Whether the watch has ended.
    is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bookmarks {
    Never,
    /// Only the periodic ones.
    Plain,
    /// The end of the initial events too.
    WithInitialEnd,
}

/// An event and where its encoded form can be shared.
enum Delivery {
    /// Made for this watcher alone.
    Own(WatchEvent),
    /// Seen alike by every watcher whose filter agrees.
    Shared(WatchEvent, Arc<Event>),
}

/// The encoded forms of one event, shared by its watchers.
#[derive(Debug, Default)]
struct Encoded {
    added: OnceLock<Bytes>,
    modified: OnceLock<Bytes>,
    deleted: OnceLock<Bytes>,
}

impl Server {
    /// Watches a resource in process, as the process itself: nobody is asked for permission.
    pub fn watch_docs(&self, watch: &WatchDocs) -> Result<DocWatch, Status> {
        let table = self.inner().registry.table();
        let resource = table
            .find(&watch.group, &watch.version, &watch.resource)
            .cloned()
            .ok_or_else(Status::no_such_path)?;
        let filter = Filter::parse(&resource, &watch.labels, &watch.fields)?;
        let start = match (watch.initial_events, watch.revision) {
            (true, _) => Start::Initial,
            (false, Some(revision)) => Start::After(revision),
            (false, None) => Start::Now,
        };
        let bookmarks = if watch.initial_events {
            Bookmarks::WithInitialEnd
        } else {
            Bookmarks::Plain
        };
        DocWatch::open(
            self,
            resource,
            watch.namespace.clone(),
            filter,
            start,
            bookmarks,
        )
    }
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// With the present objects.
    Initial,
    /// With the next event.
    Now,
    /// With the first event after a revision.
    After(u64),
}

impl DocWatch {
    fn open(
        server: &Server,
        resource: Arc<Resource>,
        namespace: String,
        filter: Filter,
        start: Start,
        bookmarks: Bookmarks,
    ) -> Result<Self, Status> {
        let store = &server.inner().storage;
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
                    filter.is_everything() || filter.matches(&resource.view(&entry.doc))
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
        Ok(Self {
            resource,
            namespace,
            filter,
            events,
            initial,
            initial_end,
            bookmarks,
            is_over: false,
        })
    }

    /// Waits for the next event; `None` when the watch has ended. Nothing is lost when the future
    /// is dropped before it is ready.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        match self.next_delivery().await? {
            Delivery::Own(event) | Delivery::Shared(event, _) => Some(event),
        }
    }

    /// How far the watch is, as a bookmark.
    #[must_use]
    pub fn bookmark(&self) -> WatchEvent {
        WatchEvent::Bookmark(self.marker(self.events.revision(), false))
    }

    async fn next_delivery(&mut self) -> Option<Delivery> {
        if let Some(entry) = self.initial.pop_front() {
            let object = self.resource.view(&entry.doc);
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
                        WatchError::Lagged { at } => {
                            Some(Delivery::Own(WatchEvent::Error(too_old(at, at))))
                        }
                        _ => None,
                    };
                }
            }
        }
        None
    }

    /// The next event if it is there already.
    fn try_next_delivery(&mut self) -> Option<Delivery> {
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
        let new = self.resource.view(&event.entry.doc);
        let (was, is) = if self.filter.is_everything() {
            (event.previous.is_some(), event.kind == EventKind::Put)
        } else {
            let previous = event.previous.as_ref();
            let was =
                previous.is_some_and(|entry| self.filter.matches(&self.resource.view(&entry.doc)));
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
                    windlass_store::stamp(&self.resource.view(&entry.doc), event.revision())
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

/// A watch over HTTP.
struct HttpWatch {
    docs: DocWatch,
    shape: Shape,
    /// When the stream ends by itself.
    ends: Instant,
    /// When the next bookmark is due.
    next_bookmark: Instant,
    is_over: bool,
}

/// How events are written.
#[derive(Debug)]
struct Shape {
    resource: Arc<Resource>,
    form: Form,
    include: Include,
    /// Whether the columns were sent.
    has_columns: bool,
    env: windlass_core::Env,
}

pub(super) async fn watch(call: &Call) -> Result<Response<Body>, Status> {
    call.query.revision().map_err(Status::plain)?;
    let options = call.query.list_options()?;
    let start = check_options(&options)?;
    let forms = [Form::Whole, Form::Table, Form::Metadata];
    let wanted = negotiate::wanted(&call.headers, &forms)?;
    if wanted.encoding != Encoding::Json {
        return Err(Status::not_acceptable(&[negotiate::JSON]));
    }
    let filter = Filter::new(call, &options)?;
    let include = Include::parse(call.query.get("includeObject"))?;
    if let (Start::Initial, AtRevision::Given(_)) = (start, &options.revision) {
        list::wait_for(call, &options.revision).await?;
    }
    let bookmarks = match (options.bookmarks, options.initial_events) {
        (false, _) => Bookmarks::Never,
        (true, Some(true)) => Bookmarks::WithInitialEnd,
        (true, _) => Bookmarks::Plain,
    };
    let (server, resource) = (&call.server, Arc::clone(&call.resource));
    let namespace = call.namespace().to_owned();
    let shape = Shape {
        resource: Arc::clone(&resource),
        form: wanted.form,
        include,
        has_columns: false,
        env: server.inner().env.clone(),
    };
    match DocWatch::open(server, resource, namespace, filter, start, bookmarks) {
        Ok(docs) => Ok(stream(docs, shape, timeout(call, &options))),
        // The stream begins and says why it ends: that is how clients expect to learn it.
        Err(status) => Ok(respond::whole(
            StatusCode::OK,
            negotiate::JSON,
            line("ERROR", &status.to_doc()),
        )),
    }
}

fn check_options(options: &ListOptions) -> Result<Start, Status> {
    let mut errors = FieldErrors::default();
    let field = FieldPath::new("resourceVersionMatch");
    let matched = options.revision_match;
    match options.initial_events {
        Some(_) if matched != Some(Match::NotOlderThan) => {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.forbidden(&field, detail);
        }
        None if matched.is_some() => {
            let detail =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.forbidden(&field, detail);
        }
        _ => {}
    }
    if !options.next.is_empty() {
        let detail = "resourceVersionMatch is forbidden when continue is provided";
        errors.forbidden(&field, detail);
    }
    if !errors.is_empty() {
        return Err(query::list_options_invalid(&errors));
    }
    Ok(match (options.initial_events, &options.revision) {
        (Some(true), _) | (None, AtRevision::Latest | AtRevision::Any) => Start::Initial,
        (Some(false), AtRevision::Latest | AtRevision::Any) => Start::Now,
        (_, AtRevision::Given(revision)) => Start::After(revision.as_u64().unwrap_or(u64::MAX)),
    })
}

fn timeout(call: &Call, options: &ListOptions) -> Duration {
    options
        .timeout
        .unwrap_or_else(|| call.server.inner().env.jitter(TIMEOUT_MIN, 1.0))
}

fn stream(docs: DocWatch, shape: Shape, timeout: Duration) -> Response<Body> {
    let now = Instant::now();
    let watch = HttpWatch {
        docs,
        shape,
        ends: now + timeout,
        next_bookmark: now + BOOKMARK_PERIOD.min(timeout.saturating_sub(BOOKMARK_BEFORE_END)),
        is_over: false,
    };
    let body = Body::steps(watch, |mut watch| async move {
        let piece = watch.next_piece().await?;
        Some((watch, piece))
    });
    let mut response = Response::new(body);
    let json = HeaderValue::from_static(negotiate::JSON);
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

impl HttpWatch {
    /// The next bytes: one event, and those that are there already with it.
    async fn next_piece(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let wants_bookmarks = self.docs.bookmarks != Bookmarks::Never;
        let delivery = tokio::select! {
            biased;
            delivery = self.docs.next_delivery() => delivery?,
            () = sleep_until(self.ends) => return None,
            () = sleep_until(self.next_bookmark), if wants_bookmarks => {
                self.schedule_bookmark();
                Delivery::Own(self.docs.bookmark())
            }
        };
        let first = self.encode(delivery);
        // A lone event is sent in the bytes that all its watchers share.
        let Some(second) = self.docs.try_next_delivery() else {
            return Some(first);
        };
        let mut piece = first.to_vec();
        let mut next = Some(second);
        while let Some(delivery) = next {
            piece.extend_from_slice(&self.encode(delivery));
            next = (piece.len() < PIECE_BYTES)
                .then(|| self.docs.try_next_delivery())
                .flatten();
        }
        Some(piece.into())
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

    fn encode(&mut self, delivery: Delivery) -> Bytes {
        match delivery {
            Delivery::Own(event) => {
                self.is_over = matches!(event, WatchEvent::Error(_));
                self.shape.line(&event)
            }
            Delivery::Shared(event, shared) if self.shape.is_shared() => {
                let encoded: Arc<Encoded> = shared.attachment();
                let slot = match event {
                    WatchEvent::Added(_) => &encoded.added,
                    WatchEvent::Deleted(_) => &encoded.deleted,
                    _ => &encoded.modified,
                };
                slot.get_or_init(|| self.shape.line(&event)).clone()
            }
            Delivery::Shared(event, _) => self.shape.line(&event),
        }
    }
}

impl Shape {
    /// Whether all watchers of a resource get the same bytes.
    fn is_shared(&self) -> bool {
        self.form == Form::Whole && self.resource.conversion.is_none()
    }

    fn line(&mut self, event: &WatchEvent) -> Bytes {
        match event {
            WatchEvent::Added(object) => line("ADDED", &self.shaped(object)),
            WatchEvent::Modified(object) => line("MODIFIED", &self.shaped(object)),
            WatchEvent::Deleted(object) => line("DELETED", &self.shaped(object)),
            WatchEvent::Bookmark(object) => line("BOOKMARK", &self.shaped(object)),
            WatchEvent::Error(status) => line("ERROR", &status.to_doc()),
        }
    }

    fn shaped(&mut self, object: &Doc) -> Doc {
        match self.form {
            Form::Whole | Form::MetadataList => object.clone(),
            Form::Metadata => table::partial_metadata(object),
            Form::Table => self.table(object, self.env.now()),
        }
    }

    fn table(&mut self, object: &Doc, now: Time) -> Doc {
        let columns = self.resource.columns;
        let row = table::row(columns, object, self.include, now);
        let is_first = !std::mem::replace(&mut self.has_columns, true);
        let definitions = if is_first {
            table::definitions(columns)
        } else {
            Doc::NULL
        };
        let metadata = doc!({ "resourceVersion": (object.at("/metadata/resourceVersion")) });
        table::table(definitions, vec![row], metadata)
    }
}

/// One event as it goes over the wire.
fn line(kind: &str, object: &Doc) -> Bytes {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    object.write_json(&mut out);
    out.extend_from_slice(b"}\n");
    out.into()
}

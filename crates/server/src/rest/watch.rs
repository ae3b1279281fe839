//! A watch as an answer: its options, its events as lines of JSON or
//! frames of protobuf, encoded once for all watchers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, StatusCode};
use windlass_atlas::{EncodeError, write_protobuf_event};
use windlass_core::{AtRevision, Doc, Env, Time, doc};

use super::{Call, list, selection};
use crate::body::{Body, Held, WatchStream};
use crate::metrics::OpenWatch;
use crate::negotiate::{self, Encoding, Form};
use crate::query::{self, ListOptions, Match};
use crate::registry::Resource;
use crate::respond;
use crate::server::Server;
use crate::watch::{Bookmarks, Delivery, DocWatch, Filter, Scope, Start, WatchDocs};
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;
use windlass_rules::table::{self, Include};
use windlass_wire::WatchEvent;

/// The media type of a watch in protobuf.
const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// Events are written together up to so many bytes.
const PIECE_BYTES: usize = 64 << 10;

/// The encoded forms of one event, shared by its watchers.
#[derive(Debug, Default)]
struct Encoded {
    json: EncodedAs,
    protobuf: EncodedAs,
}

/// The bytes of one event in one encoding, by what the event is to the watcher.
#[derive(Debug, Default)]
struct EncodedAs {
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
        let scope = Scope {
            resource,
            namespace: watch.namespace.clone(),
            filter,
        };
        DocWatch::open(
            (&self.inner().storage, &self.inner().env),
            scope,
            start,
            bookmarks,
            watch.timeout,
        )
    }
}

/// A watch as the body of an answer.
#[derive(Debug)]
pub(crate) struct WatchBody(State);

/// The watch comes back with the piece that it made.
type NextPiece = Pin<Box<dyn Future<Output = Option<(Box<HttpWatch>, Bytes)>> + Send>>;

enum State {
    /// Ready to make the next piece.
    Idle(Box<HttpWatch>),
    /// Making it.
    Running(NextPiece),
    Over,
}

/// A watch and how its events are written.
#[derive(Debug)]
struct HttpWatch {
    docs: DocWatch,
    shape: Shape,
    is_over: bool,
    /// Counts it as open.
    count: OpenWatch,
    /// Says when it has ended.
    ending: Option<Held>,
}

/// How events are written.
#[derive(Debug)]
struct Shape {
    resource: Arc<Resource>,
    form: Form,
    encoding: Encoding,
    include: Include,
    /// Whether the columns were sent.
    has_columns: bool,
    env: Env,
}

pub(crate) async fn watch(call: &Call) -> Result<Response<Body>, Status> {
    call.query.revision().map_err(Status::plain)?;
    let options = call.query.list_options()?;
    let start = check_options(&options)?;
    let wanted = call.wanted_watch()?;
    let media_type = match wanted.encoding {
        Encoding::Protobuf => PROTOBUF_WATCH,
        Encoding::Json | Encoding::Yaml => negotiate::JSON,
    };
    let filter = selection(call, &options)?;
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
        encoding: wanted.encoding,
        include,
        has_columns: false,
        env: server.inner().env.clone(),
    };
    let scope = Scope {
        resource,
        namespace,
        filter,
    };
    let slot = server.inner().watches.open(&call.user)?;
    match DocWatch::open(
        (&server.inner().storage, &server.inner().env),
        scope,
        start,
        bookmarks,
        options.timeout,
    ) {
        Ok(docs) => {
            let docs = docs.counted(slot);
            let count = server.inner().metrics.open_watch(&call.path);
            let body = Body::watch(WatchBody::new(docs, shape, count));
            Ok(respond::with_type(StatusCode::OK, media_type, body))
        }
        // The stream begins and says why it ends: that is how clients expect to learn it.
        Err(status) => Ok(respond::whole(
            StatusCode::OK,
            media_type,
            refused(&status, wanted.encoding),
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

impl WatchBody {
    fn new(docs: DocWatch, shape: Shape, count: OpenWatch) -> Self {
        Self(State::Idle(Box::new(HttpWatch {
            docs,
            shape,
            is_over: false,
            count,
            ending: None,
        })))
    }
}

impl WatchStream for WatchBody {
    fn hold(&mut self, ending: Held) {
        if let State::Idle(watch) = &mut self.0 {
            watch.ending = Some(ending);
        }
    }

    fn into_docs(self: Box<Self>) -> Result<DocWatch, Bytes> {
        match self.0 {
            State::Idle(watch) if watch.shape.form == Form::Whole => Ok(watch.docs),
            State::Idle(watch) if watch.shape.form == Form::Metadata => {
                Ok(watch.docs.metadata_only())
            }
            _ => Err(Bytes::new()),
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0 = match std::mem::replace(&mut self.0, State::Over) {
            State::Idle(mut watch) => State::Running(Box::pin(async move {
                let piece = watch.next_piece().await?;
                Some((watch, piece))
            })),
            other => other,
        };
        let State::Running(running) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let outcome = ready!(running.as_mut().poll(cx));
        let (next, piece) = match outcome {
            Some((watch, piece)) => (State::Idle(watch), Some(piece)),
            None => (State::Over, None),
        };
        self.0 = next;
        Poll::Ready(piece)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle(_) => "Idle",
            Self::Running(_) => "Running",
            Self::Over => "Over",
        })
    }
}

impl HttpWatch {
    /// The next bytes: one event, and those that are there already with it.
    async fn next_piece(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let delivery = self.docs.next_delivery().await?;
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

    fn encode(&mut self, delivery: Delivery) -> Bytes {
        self.count.sent();
        match delivery {
            Delivery::Own(event) => self.encode_event(&event),
            Delivery::Refused(status) => {
                self.is_over = true;
                refused(&status, self.shape.encoding)
            }
            Delivery::Shared(event, shared) if self.shape.is_shared() => {
                let encoded: Arc<Encoded> = shared.attachment();
                let encoded = match self.shape.encoding {
                    Encoding::Protobuf => &encoded.protobuf,
                    Encoding::Json | Encoding::Yaml => &encoded.json,
                };
                let slot = match event {
                    WatchEvent::Added(_) => &encoded.added,
                    WatchEvent::Deleted(_) => &encoded.deleted,
                    _ => &encoded.modified,
                };
                slot.get_or_init(|| self.encode_event(&event)).clone()
            }
            Delivery::Shared(event, _) => self.encode_event(&event),
        }
    }

    /// The bytes of an event. An object that cannot be encoded ends the watch.
    fn encode_event(&mut self, event: &WatchEvent) -> Bytes {
        match self.shape.line(event) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.is_over = true;
                refused(&Status::internal(error), self.shape.encoding)
            }
        }
    }
}

impl Shape {
    /// Whether all watchers of a resource get the same bytes.
    fn is_shared(&self) -> bool {
        self.form == Form::Whole && self.resource.conversion.is_none()
    }

    fn line(&mut self, event: &WatchEvent) -> Result<Bytes, EncodeError> {
        let (kind, object) = match event {
            WatchEvent::Added(object) => ("ADDED", object),
            WatchEvent::Modified(object) => ("MODIFIED", object),
            WatchEvent::Deleted(object) => ("DELETED", object),
            WatchEvent::Bookmark(object) => ("BOOKMARK", object),
        };
        let object = self.shaped(object);
        match self.encoding {
            Encoding::Protobuf => frame(kind, &object),
            Encoding::Json | Encoding::Yaml => Ok(line(kind, &object)),
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
        let columns = &self.resource.columns;
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

/// One event as a frame of protobuf.
fn frame(kind: &str, object: &Doc) -> Result<Bytes, EncodeError> {
    let object = respond::protobuf(object)?;
    let mut out = Vec::with_capacity(object.len() + 32);
    write_protobuf_event(kind, &object, &mut out);
    Ok(out.into())
}

/// The event that says why a watch ends.
fn refused(status: &Status, encoding: Encoding) -> Bytes {
    let status = status.to_doc();
    match encoding {
        Encoding::Protobuf => {
            frame("ERROR", &status).expect("invariant: a Status has a form in protobuf")
        }
        Encoding::Json | Encoding::Yaml => line("ERROR", &status),
    }
}

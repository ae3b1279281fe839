//! List.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use http::{Response, StatusCode};
use windlass_atlas::Atlas;
use windlass_core::{AtRevision, Doc, Object, doc};
use windlass_store::{Entries, Entry, RevisionError, Snapshot};

use super::Call;
use crate::body::{Body, JsonList, ListBody, ProtobufItems};
use crate::negotiate::{self, Encoding, Form, Wanted};
use crate::query::{self, ListOptions, Match};
use crate::registry::Resource;
use crate::respond;
use crate::watch::Filter;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;
use windlass_rules::table::{self, Include};

/// How long a revision is waited for that does not exist yet.
const REVISION_WAIT: Duration = Duration::from_secs(3);
/// A continue token is a key and a number; what is longer was not made here.
const TOKEN_BYTES_LIMIT: usize = 4096;
/// The revision in a token that goes on at whatever the state is by then.
const INCONSISTENT: i64 = -1;

/// Objects of one page.
struct Page {
    entries: Vec<Arc<Entry>>,
    /// Where the next page starts; `None` after the last one.
    next: Option<Next>,
}

struct Next {
    /// The key of the next page's first possible object.
    start: String,
    /// How many objects follow, where that is known without looking at them.
    remaining: Option<usize>,
}

/// Where a list goes on.
struct Token {
    revision: i64,
    start: String,
}

pub(super) async fn list(call: &Call) -> Result<Response<Body>, Status> {
    let options = call.query.list_options()?;
    check_options(&options)?;
    let wanted = call.wanted_list()?;
    let filter = super::selection(call, &options)?;
    wait_for(call, &options.revision).await?;
    let (snapshot, start) = snapshot(call, &options)?;
    let page = page(call, &filter, &options, &snapshot, &start);
    if page.next.is_some() {
        call.server
            .inner()
            .storage
            .keep(&call.resource.shelf, &snapshot);
    }
    let metadata = list_metadata(&snapshot, page.next.as_ref());
    answer_with(call, wanted, page.entries, metadata).await
}

/// An answer with a list in the form that the client wants.
pub(super) async fn answer_with(
    call: &Call,
    wanted: Wanted,
    entries: Vec<Arc<Entry>>,
    metadata: Doc,
) -> Result<Response<Body>, Status> {
    let list = match (wanted.form, wanted.encoding) {
        (Form::Table, _) => as_table(call, &entries, metadata)?,
        (form, Encoding::Protobuf) => {
            let items = in_protobuf(&call.resource, entries, metadata, form)?;
            let body = items.into_body().await.map_err(Status::internal)?;
            let media_type = negotiate::PROTOBUF;
            return Ok(respond::with_type(StatusCode::OK, media_type, body));
        }
        (Form::Whole, Encoding::Json) if !call.is_pretty() => {
            let resource = Arc::clone(&call.resource);
            let list = JsonList::new(resource, entries, metadata);
            let body = Body::list(ListBody::Json(list));
            return Ok(respond::with_type(StatusCode::OK, negotiate::JSON, body));
        }
        (form, _) => as_doc(&call.resource, &entries, metadata, form),
    };
    let pretty = call.is_pretty();
    Ok(respond::object(
        StatusCode::OK,
        &list,
        wanted.encoding,
        pretty,
    ))
}

fn check_options(options: &ListOptions) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    let field = FieldPath::new("resourceVersionMatch");
    if options.initial_events.is_some() {
        let field = FieldPath::new("sendInitialEvents");
        errors.forbidden(&field, "sendInitialEvents is forbidden for list");
    }
    if options.revision_match.is_some() {
        if options.revision_text.is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.forbidden(&field, detail);
        }
        if !options.next.is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.forbidden(&field, detail);
        }
        if options.revision_match == Some(Match::Exact) && options.revision == AtRevision::Any {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.forbidden(&field, detail);
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(query::list_options_invalid(&errors))
    }
}

/// The state that a list reads, and the key it starts at.
pub(super) fn snapshot(call: &Call, options: &ListOptions) -> Result<(Snapshot, String), Status> {
    let (store, shelf) = (&call.server.inner().storage, &call.resource.shelf);
    if !options.next.is_empty() {
        let token = Token::parse(&options.next)?;
        if matches!(options.revision, AtRevision::Given(_)) {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let snapshot = match u64::try_from(token.revision) {
            Ok(revision) => store
                .snapshot_at(shelf, revision)
                .map_err(|error| continue_failed(&error, &token.start))?,
            Err(_) => store.snapshot(shelf),
        };
        return Ok((snapshot, token.start));
    }
    let is_exact = match options.revision_match {
        Some(Match::Exact) => true,
        Some(Match::NotOlderThan) => false,
        None => options.limit > 0,
    };
    let snapshot = match &options.revision {
        AtRevision::Given(revision) if is_exact => {
            let revision = revision.as_u64().unwrap_or(u64::MAX);
            store
                .snapshot_at(shelf, revision)
                .map_err(|error| list_failed(&error))?
        }
        _ => store.snapshot(shelf),
    };
    Ok((snapshot, String::new()))
}

/// Waits a moment for a revision that does not exist yet, and then refuses it: a client may have
/// heard of it from a server that is a little ahead.
pub(super) async fn wait_for(call: &Call, revision: &AtRevision) -> Result<(), Status> {
    let AtRevision::Given(revision) = revision else {
        return Ok(());
    };
    let asked = revision.as_u64().unwrap_or(u64::MAX);
    let storage = &call.server.inner().storage;
    if asked > storage.revision() {
        let reached = tokio::time::timeout(REVISION_WAIT, storage.reached(asked)).await;
        if reached.is_err() {
            return Err(Status::revision_too_large(asked, storage.revision()));
        }
    }
    Ok(())
}

fn list_failed(error: &RevisionError) -> Status {
    match *error {
        RevisionError::Future { asked, newest } => Status::revision_too_large(asked, newest),
        _ => Status::expired("The resourceVersion for the provided list is too old."),
    }
}

fn continue_failed(error: &RevisionError, start: &str) -> Status {
    if let RevisionError::Future { .. } = error {
        return list_failed(error);
    }
    let message = "The provided continue parameter is too old to display a consistent list \
                   result. You can start a new list without the continue parameter, or use the \
                   continue token in this response to retrieve the remainder of the results. \
                   Continuing with the provided token results in an inconsistent list - objects \
                   that were created, modified, or deleted between the time the first chunk was \
                   returned and now may show up in the list.";
    let token = Token {
        revision: INCONSISTENT,
        start: start.to_owned(),
    };
    Status::expired_with_next(message, token.encode())
}

/// The objects of a snapshot that the path of a call is about, from a key on.
pub(super) fn entries<'a>(call: &Call, snapshot: &'a Snapshot, start: &str) -> Entries<'a> {
    match call.namespace() {
        "" => snapshot.from(start),
        namespace => snapshot.namespace(namespace, start),
    }
}

fn page(
    call: &Call,
    filter: &Filter,
    options: &ListOptions,
    snapshot: &Snapshot,
    start: &str,
) -> Page {
    // At `0` the limit is ignored: any state will do, and that is the whole present one.
    let limit = match (&options.revision, options.limit) {
        (_, 0) | (AtRevision::Any, _) => usize::MAX,
        (_, limit) => limit,
    };
    let mut left = narrowed(call, filter, snapshot, start);
    let mut chosen = Vec::new();
    for entry in left.by_ref() {
        if !filter.is_everything() && !filter.matches(&call.resource.view(entry.doc())) {
            continue;
        }
        chosen.push(Arc::clone(entry));
        if chosen.len() == limit {
            break;
        }
    }
    let next = (chosen.len() == limit)
        .then(|| left.count_left())
        .filter(|count| *count > 0);
    let next = next.zip(chosen.last()).map(|(count, last)| Next {
        start: format!("{}\0", last.key),
        remaining: filter.is_everything().then_some(count),
    });
    Page {
        entries: chosen,
        next,
    }
}

/// The objects that can match at all.
fn narrowed<'a>(call: &Call, filter: &Filter, snapshot: &'a Snapshot, start: &str) -> Entries<'a> {
    match filter.single_namespace() {
        Some(namespace) if call.namespace().is_empty() && call.resource.is_namespaced() => {
            snapshot.namespace(namespace, start)
        }
        _ => entries(call, snapshot, start),
    }
}

fn list_metadata(snapshot: &Snapshot, next: Option<&Next>) -> Doc {
    let revision = snapshot.revision();
    let mut metadata = Object::empty().with("resourceVersion", revision.to_string().into());
    if let Some(next) = next {
        let revision = i64::try_from(revision).unwrap_or(INCONSISTENT);
        let token = Token {
            revision,
            start: next.start.clone(),
        };
        metadata = metadata.with("continue", token.encode().into());
        if let Some(remaining) = next.remaining {
            metadata = metadata.with("remainingItemCount", remaining.into());
        }
    }
    metadata.into()
}

fn as_table(call: &Call, entries: &[Arc<Entry>], metadata: Doc) -> Result<Doc, Status> {
    let include = Include::parse(call.query.get("includeObject"))?;
    let (columns, now) = (&call.resource.columns, call.server.inner().env.now());
    let row =
        |entry: &Arc<Entry>| table::row(columns, &call.resource.view(entry.doc()), include, now);
    let mut entries: Vec<&Arc<Entry>> = entries.iter().collect();
    entries.sort_by_key(|entry| call.resource.hooks.table_rank(entry.doc()));
    let rows = entries.into_iter().map(row).collect();
    Ok(table::table(table::definitions(columns), rows, metadata))
}

/// The `apiVersion` and the kind of a list in a form.
fn list_type(resource: &Resource, form: Form) -> (String, String) {
    match form {
        Form::MetadataList => (
            "meta.k8s.io/v1".to_owned(),
            "PartialObjectMetadataList".to_owned(),
        ),
        _ => (resource.gvk.api_version(), resource.list_kind()),
    }
}

fn list_item(resource: &Resource, entry: &Entry, form: Form) -> Doc {
    let object = resource.view(entry.doc());
    match form {
        Form::MetadataList => table::partial_metadata(&object),
        _ => object,
    }
}

fn as_doc(resource: &Resource, entries: &[Arc<Entry>], metadata: Doc, form: Form) -> Doc {
    let (api_version, kind) = list_type(resource, form);
    let items = entries.iter().map(|entry| list_item(resource, entry, form));
    let items: Vec<Doc> = items.collect();
    doc!({ "kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items })
}

fn in_protobuf(
    resource: &Arc<Resource>,
    entries: Vec<Arc<Entry>>,
    metadata: Doc,
    form: Form,
) -> Result<ProtobufItems, Status> {
    let (api_version, kind) = list_type(resource, form);
    let of = match form {
        Form::MetadataList => Atlas::named("meta/v1", "PartialObjectMetadata"),
        _ => Atlas::kind(&resource.gvk),
    };
    let of = of.ok_or_else(|| Status::internal(format!("{kind} has no form in protobuf")))?;
    let resource = Arc::clone(resource);
    Ok(ProtobufItems {
        api_version,
        kind,
        metadata,
        of,
        entries,
        item: Box::new(move |entry| list_item(&resource, entry, form)),
    })
}

impl Token {
    fn encode(&self) -> String {
        let doc = doc!({ "v": "meta.k8s.io/v1", "rv": (self.revision), "start": (&self.start) });
        BASE64.encode(doc.to_json())
    }

    fn parse(text: &str) -> Result<Self, Status> {
        let refuse = |why: &str| Status::bad_request(format!("continue key is not valid: {why}"));
        if text.len() > TOKEN_BYTES_LIMIT {
            return Err(refuse("too long"));
        }
        let bytes = BASE64
            .decode(text.trim_end_matches('='))
            .map_err(|_| refuse("illegal base64 data"))?;
        let doc = Doc::parse(&bytes).map_err(|_| refuse("not a token of this server"))?;
        let (start, revision) = (doc.str_at("/start"), doc.at("/rv").as_i64().unwrap_or(0));
        if doc.str_at("/v") != "meta.k8s.io/v1" {
            return Err(refuse("server does not recognize this encoded version"));
        }
        let is_clean = !start.is_empty()
            && start
                .split('/')
                .all(|part| !matches!(part, "" | "." | ".."));
        if !is_clean {
            return Err(refuse("the start is not a key"));
        }
        if revision == 0 || revision < INCONSISTENT {
            return Err(refuse("incorrect encoded start resourceVersion"));
        }
        Ok(Self {
            revision,
            start: start.to_owned(),
        })
    }
}

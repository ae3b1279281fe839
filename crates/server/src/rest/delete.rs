//! Delete, and delete of many.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use windlass_core::{Doc, GroupResource, Key, Object, Time, doc};
use windlass_store::{Change, Entry, Outcome, WriteError};

use super::operation::Operation;
use super::write::{Part, Step};
use super::{Call, ask, list, object};
use crate::body::Body;
use crate::negotiate::{self, Content};
use crate::query;
use crate::registry::{GarbagePolicy, Resource};
use crate::respond;
use crate::server::Server;
use crate::storage::{self, Decided, Unsettled};
use windlass_access::User;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::{self, Status};

/// How often a deletion is decided again because another write came first, as for other writes.
const CONFLICT_RETRIES: usize = 5;
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// How an object is to be deleted.
#[derive(Clone, Debug, Default)]
pub(super) struct DeleteOptions {
    pub(super) grace_seconds: Option<i64>,
    pub(super) uid: Option<String>,
    pub(super) revision: Option<String>,
    pub(super) propagation: Option<Propagation>,
    pub(super) dry_run: bool,
    /// The options as admission extensions see them.
    pub(super) shown: Doc,
    /// True for one of many.
    pub(super) is_many: bool,
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// What came of a delete.
pub(super) enum Deleted {
    /// The object is gone; its last state.
    Gone(Doc),
    /// The object lingers; its present state.
    Lingers(Doc),
}

pub(super) async fn delete(call: &Call) -> Result<Response<Body>, Status> {
    call.wanted()?;
    let options = read_options(call)?;
    let deleted = delete_one(&call.operation(), &options).await?;
    let mut response = match deleted {
        Deleted::Gone(object) if !call.resource.returns_deleted => {
            let meta = object.meta();
            let status = status::success(&call.group_resource(), meta.name(), meta.uid_str());
            call.answer(StatusCode::OK, &status)?
        }
        Deleted::Gone(object) | Deleted::Lingers(object) => call.answer(StatusCode::OK, &object)?,
    };
    if options.propagation.is_none() {
        respond::warn(&mut response, &call.resource.hooks.delete_warnings());
    }
    Ok(response)
}

pub(super) async fn delete_collection(call: &Call) -> Result<Response<Body>, Status> {
    let wanted = call.wanted_list()?;
    let options = DeleteOptions {
        is_many: true,
        ..read_options(call)?
    };
    let list_options = call.query.list_options()?;
    let filter = super::selection(call, &list_options)?;
    list::wait_for(call, &list_options.revision).await?;
    let (snapshot, start) = list::snapshot(call, &list_options)?;
    let limit = if list_options.limit == 0 {
        usize::MAX
    } else {
        list_options.limit
    };
    let chosen: Vec<Arc<Entry>> = list::entries(call, &snapshot, &start)
        .filter(|entry| filter.matches(&call.resource.view(entry.doc())))
        .take(limit)
        .cloned()
        .collect();
    let mut items = Vec::new();
    for entry in chosen {
        let operation = Operation {
            namespace: entry.key.namespace().unwrap_or_default(),
            name: entry.key.name(),
            ..call.operation()
        };
        // One that is gone by now needs no deleting.
        match delete_one(&operation, &options).await {
            Ok(_) => items.push(entry),
            Err(status) if status.code() == StatusCode::NOT_FOUND => {}
            Err(status) => return Err(status),
        }
    }
    let revision = call.server.inner().storage.revision();
    let metadata = doc!({ "resourceVersion": (revision.to_string()) });
    list::answer_with(call, wanted, items, metadata).await
}

/// Deletes one object on behalf of the server itself.
pub(crate) async fn delete_for_server(
    server: &Server,
    resource: &Arc<Resource>,
    entry: &Entry,
) -> Result<(), Status> {
    let operation = Operation {
        server,
        resource,
        namespace: entry.key.namespace().unwrap_or_default(),
        name: entry.key.name(),
        subresource: "",
        user: &User::server(),
        request: None,
    };
    let options = DeleteOptions {
        uid: Some(entry.doc().meta().uid_str().to_owned()),
        ..DeleteOptions::default()
    };
    match delete_one(&operation, &options).await {
        Err(status) if !matches!(status.code(), 404 | 409) => Err(status),
        _ => Ok(()),
    }
}

/// Deletes one object, or begins to.
pub(super) async fn delete_one(
    operation: &Operation<'_>,
    options: &DeleteOptions,
) -> Result<Deleted, Status> {
    let (resource, key) = (operation.resource, operation.key());
    let (storage, now) = (operation.storage(), operation.server.inner().env.now());
    let decide = |current: Option<&Arc<Entry>>| {
        let Some(current) = current else {
            return Err(operation.not_found());
        };
        let object = resource.view(current.doc());
        let change = match decide(operation, &object, options, now)? {
            Some(marked) => Change::Put {
                doc: resource.to_storage(&marked),
                ttl: resource.ttl,
            },
            None => Change::Delete,
        };
        Ok((change, object))
    };
    if options.dry_run {
        let entry = storage.get(&resource.shelf, &key);
        let decided = decide(entry.as_ref())?;
        ask_about(operation, &decided.1, options).await?;
        return match decided {
            (Change::Put { doc, .. }, _) => Ok(Deleted::Lingers(resource.view(&doc))),
            (_, last) => Ok(Deleted::Gone(ended(resource, last, now))),
        };
    }
    let object = (&resource.shelf, &key);
    let outcome = match ask::is_asked_about_deletion(operation) {
        false => storage.settle(object, decide).await,
        true => settle_asked(operation, options, object, &decide).await?,
    };
    let modified = || Status::modified(&operation.group_resource(), operation.name);
    let (outcome, last) = outcome.map_err(|error| storage::unsettled(error, modified))?;
    match outcome {
        // Upstream answers with the state before the deletion, at the revision it had.
        Outcome::Deleted(_) => Ok(Deleted::Gone(ended(resource, last, now))),
        outcome => match outcome.entry() {
            Some(entry) => Ok(Deleted::Lingers(resource.view(entry.doc()))),
            None => Err(operation.not_found()),
        },
    }
}

/// Says what becomes of the present state of an object, and gives that state.
type Decide<'a> = dyn Fn(Option<&Arc<Entry>>) -> Result<(Change, Doc), Status> + Sync + 'a;

/// Deletes an object about which extensions are asked. They are asked again if another write comes
/// first.
async fn settle_asked(
    operation: &Operation<'_>,
    options: &DeleteOptions,
    (shelf, key): (&windlass_store::Resource, &Key),
    decide: &Decide<'_>,
) -> Result<Result<(Outcome, Doc), WriteError<Unsettled>>, Status> {
    let storage = operation.storage();
    let mut tries_left = CONFLICT_RETRIES;
    loop {
        let latest = storage.latest(shelf, key);
        let decided = decide(latest.as_ref())?;
        ask_about(operation, &decided.1, options).await?;
        let decided = Decided::new(latest.as_ref(), Ok(decided));
        match storage.settle_once(decided, (shelf, key)).await {
            Err(WriteError::Refused(Unsettled::Conflict)) if tries_left > 0 => tries_left -= 1,
            outcome => return Ok(outcome),
        }
    }
}

/// Asks extensions about a deletion, unless a graceful one is under way that it does not shorten.
async fn ask_about(
    operation: &Operation<'_>,
    object: &Doc,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let pending = object.at("/metadata/deletionGracePeriodSeconds").as_i64();
    let asked = options.grace_seconds;
    let is_graceful = operation
        .resource
        .hooks
        .grace_seconds(object, asked)
        .is_some();
    let is_shorter = |pending| asked.is_some_and(|asked| asked < pending);
    if is_graceful && object.meta().is_deleting() && pending.is_some_and(|it| !is_shorter(it)) {
        return Ok(());
    }
    let how = (options.is_many, options.dry_run);
    ask::about_deletion(operation, object, &options.shown, how).await
}

/// The last state as the answer shows it: what ends gracefully is marked even when it goes at
/// once.
fn ended(resource: &Resource, object: Doc, now: Time) -> Doc {
    match resource.hooks.grace_seconds(&object, Some(0)) {
        Some(_) => mark(resource, &object, now, 0),
        None => object,
    }
}

/// The state in which a deleted object lingers; `None` if it goes at once.
fn decide(
    operation: &Operation<'_>,
    object: &Doc,
    options: &DeleteOptions,
    now: Time,
) -> Result<Option<Doc>, Status> {
    let resource = operation.resource;
    let mut lingering = None;
    for step in Part::Deletion.steps() {
        match step {
            Step::Admit => crate::admission::delete(&operation.admission(), object)?,
            Step::CheckPreconditions => check_preconditions(resource, object, options)?,
            Step::Prepare => lingering = prepared(resource, object, options, now),
            Step::Validate => resource.hooks.check_delete(object)?,
            // The rest comes before and after the decision.
            _ => {}
        }
    }
    Ok(lingering)
}

/// The state in which an object lingers as its kind has it.
fn prepared(resource: &Resource, object: &Doc, options: &DeleteOptions, now: Time) -> Option<Doc> {
    if let Some(grace) = resource.hooks.grace_seconds(object, options.grace_seconds) {
        return graceful(resource, object, options, grace, now);
    }
    let marked = with_garbage_finalizers(resource, object, options);
    if marked.meta().finalizers().next().is_none() && !resource.hooks.is_held(&marked) {
        return None;
    }
    Some(mark(resource, &marked, now, 0))
}

/// Graceful deletion: the object stays until somebody confirms its end with a grace of zero.
fn graceful(
    resource: &Resource,
    object: &Doc,
    options: &DeleteOptions,
    grace: i64,
    now: Time,
) -> Option<Doc> {
    let pending = object.at("/metadata/deletionGracePeriodSeconds").as_i64();
    if let (true, Some(pending)) = (object.meta().is_deleting(), pending) {
        // Once it has begun, a deletion may only be made faster.
        if pending == 0 || grace >= pending {
            let keeps = object.meta().finalizers().next().is_some();
            return (pending != 0 || keeps).then(|| object.clone());
        }
        if grace > 0 {
            return Some(shorten(object, pending, grace, now));
        }
        let has_finalizers = object.meta().finalizers().next().is_some();
        return has_finalizers.then(|| shorten(object, pending, 0, now));
    }
    let marked = with_garbage_finalizers(resource, object, options);
    if grace == 0 && marked.meta().finalizers().next().is_none() {
        return None;
    }
    Some(mark(resource, &marked, now, grace))
}

/// A deletion that is under way, with less time. It never ends in the past.
fn shorten(object: &Doc, pending: i64, grace: i64, now: Time) -> Doc {
    let deadline = object.meta().deletion_timestamp().unwrap_or(now);
    let begun = deadline.unix().saturating_sub(pending);
    let end = begun.saturating_add(grace);
    let (end, grace) = if end < now.unix() {
        (now.unix(), grace.min(1))
    } else {
        (end, grace)
    };
    object::edit_metadata(object, |metadata| {
        metadata
            .with("deletionTimestamp", Time::from_unix(end).to_string().into())
            .with("deletionGracePeriodSeconds", grace.into())
    })
}

/// Marks an object as being deleted.
fn mark(resource: &Resource, object: &Doc, now: Time, grace: i64) -> Doc {
    let is_first = !object.meta().is_deleting();
    let end = now + Duration::from_secs(u64::try_from(grace).unwrap_or(0));
    let generation = object.meta().generation();
    let marked = object::edit_metadata(object, |metadata| {
        let is_later = object
            .meta()
            .deletion_timestamp()
            .is_none_or(|known| known > end);
        let metadata = metadata.with("deletionGracePeriodSeconds", grace.into());
        let metadata = match is_later {
            true => metadata.with("deletionTimestamp", end.to_string().into()),
            false => metadata,
        };
        match is_first && generation > 0 {
            true => metadata.with("generation", generation.saturating_add(1).into()),
            false => metadata,
        }
    });
    resource.hooks.begin_delete(marked)
}

/// The finalizers with which the garbage collector is asked to look after dependents first.
fn with_garbage_finalizers(resource: &Resource, object: &Doc, options: &DeleteOptions) -> Doc {
    if resource.garbage == GarbagePolicy::Unsupported {
        return object.clone();
    }
    let has = |finalizer| object.meta().has_finalizer(finalizer);
    let wanted = match options.propagation {
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) => None,
        None if has(ORPHAN) => Some(ORPHAN),
        None if has(FOREGROUND) => Some(FOREGROUND),
        None if resource.garbage == GarbagePolicy::Orphan => Some(ORPHAN),
        None => None,
    };
    let mut object = object.clone();
    for finalizer in [ORPHAN, FOREGROUND] {
        object = if wanted == Some(finalizer) {
            object.with_finalizer(finalizer)
        } else {
            object.without_finalizer(finalizer)
        };
    }
    object
}

pub(super) fn check_preconditions(
    resource: &Resource,
    object: &Doc,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let meta = object.meta();
    // Upstream names the kind here, not the resource.
    let kind = &resource.gvk;
    let named = GroupResource::new(kind.group().to_owned(), kind.kind().to_owned());
    let refuse = |what: &str, wanted: &str, found: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record \
             ({found}). The object might have been deleted and then recreated"
        );
        Err(Status::conflict(&named, meta.name(), &why))
    };
    match (&options.uid, &options.revision) {
        (Some(uid), _) if uid != meta.uid_str() => refuse("UID", uid, meta.uid_str()),
        (_, Some(revision)) if revision != meta.resource_version() => {
            let why = format!(
                "the ResourceVersion in the precondition ({revision}) does not match the \
                 ResourceVersion in record ({}). The object might have been modified",
                meta.resource_version()
            );
            Err(Status::conflict(&named, meta.name(), &why))
        }
        _ => Ok(()),
    }
}

/// The options in the body, or in the query if there is none.
fn read_options(call: &Call) -> Result<DeleteOptions, Status> {
    let mut errors = FieldErrors::default();
    let body = if call.is_bare() {
        from_query(call)?
    } else {
        from_body(call)?
    };
    let mut options = options_in(&body, &mut errors);
    options.dry_run |= call.query.dry_run(&mut errors);
    options.shown = ask::delete_options(call, &body);
    if errors.is_empty() {
        return Ok(options);
    }
    Err(query::options_invalid("DeleteOptions", &errors))
}

/// The options in a document, and what is wrong with them.
pub(super) fn options_in(body: &Doc, errors: &mut FieldErrors) -> DeleteOptions {
    let text = |pointer| body.at(pointer).as_str().map(str::to_owned);
    let in_body = body.at("/dryRun").items();
    let options = DeleteOptions {
        grace_seconds: body
            .at("/gracePeriodSeconds")
            .as_i64()
            .map(|grace| if grace < 0 { 1 } else { grace }),
        uid: text("/preconditions/uid"),
        revision: text("/preconditions/resourceVersion"),
        propagation: propagation(body, errors),
        dry_run: !in_body.is_empty(),
        shown: Doc::NULL,
        is_many: false,
    };
    query::check_dry_run(in_body.to_vec(), errors);
    options
}

fn propagation(body: &Doc, errors: &mut FieldErrors) -> Option<Propagation> {
    let field = FieldPath::new("propagationPolicy");
    let orphan = body.at("/orphanDependents").as_bool();
    let policy = match body.str_at("/propagationPolicy") {
        "" => None,
        "Orphan" => Some(Propagation::Orphan),
        "Background" => Some(Propagation::Background),
        "Foreground" => Some(Propagation::Foreground),
        other => {
            let known = ["Foreground", "Background", "Orphan", "nil"];
            errors.not_supported(&field, other, &known);
            None
        }
    };
    if let (Some(_), Some(_)) = (orphan, policy) {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        errors.invalid(&field, body.at("/propagationPolicy"), detail);
    }
    match orphan {
        Some(true) => Some(Propagation::Orphan),
        Some(false) => Some(Propagation::Background),
        None => policy,
    }
}

fn from_body(call: &Call) -> Result<Doc, Status> {
    let gvk = windlass_core::Gvk::constant("", "v1", "DeleteOptions");
    let doc = match negotiate::content(&call.headers)? {
        Content::Json => {
            call.parse_json()
                .map_err(|error| {
                    Status::bad_request(format!(
                        "couldn't get version/kind; json parse error: {error}"
                    ))
                })?
                .doc
        }
        Content::Yaml => object::parse_yaml(&call.body, &gvk)?.0,
        Content::Protobuf => object::parse_protobuf(&call.body, &gvk)?,
    };
    match (doc.as_object(), doc.str_at("/kind")) {
        (Some(_), "" | "DeleteOptions") => Ok(object::clean(&doc)),
        _ => Err(Status::bad_request(
            "the body of a delete must be DeleteOptions",
        )),
    }
}

fn from_query(call: &Call) -> Result<Doc, Status> {
    let query = &call.query;
    let mut fields = Vec::new();
    let grace = query.get("gracePeriodSeconds");
    if !grace.is_empty() {
        let grace: i64 = grace
            .parse()
            .map_err(|_| Status::bad_request(format!("invalid gracePeriodSeconds: {grace:?}")))?;
        fields.push(("gracePeriodSeconds".into(), grace.into()));
    }
    if let Some(policy) = query.find("propagationPolicy") {
        fields.push(("propagationPolicy".into(), policy.into()));
    }
    if let Some(orphan) = query.flag("orphanDependents") {
        fields.push(("orphanDependents".into(), orphan.into()));
    }
    Ok(Object::new(fields).into())
}

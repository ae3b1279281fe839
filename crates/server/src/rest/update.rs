//! Update, and what patch and the subresources share with it.

use std::sync::Arc;

use http::{Response, StatusCode};
use windlass_core::{Doc, GroupKind, Object};
use windlass_store::{Change, Entry, Outcome, WriteError};

use super::fields::{self, Author};
use super::size::{self, Growth};
use super::{Call, admission, create, metadata, object};
use crate::admission::Charged;
use crate::body::Body;
use crate::field::{FieldErrors, FieldPath};
use crate::query::WriteOptions;
use crate::registry::{Generation, Resource};
use crate::request::Verb;
use crate::respond;
use crate::status::Status;
use crate::storage::{self, Decided, Unsettled};
use crate::work;

/// Which part of an object a request writes. The rest stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All but the status.
    Main,
    /// The status, and metadata where the kind allows it.
    Status,
    /// The finalizers in the spec of a namespace.
    Finalize,
    /// Everything, for changes that the server makes itself.
    Whole,
    /// The values at these pointers.
    Only(&'static [&'static str]),
}

/// A state that somebody proposes for an object.
pub(super) enum Proposal {
    /// The change belongs to the author of the request.
    Change(Doc),
    /// The author of each field is already noted.
    Attributed(Doc),
}

/// How a proposal is written.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    pub(super) part: Part,
    /// Whether nothing is to be stored.
    pub(super) dry_run: bool,
    pub(super) author: Author,
}

/// What becomes of an object.
enum Decision {
    Put(Doc),
    /// The last thing that kept a deleted object is gone. This is what the client sent last.
    Remove(Doc),
}

pub(super) async fn update(call: &Call, part: Part) -> Result<Response<Body>, Status> {
    let options = call.query.write_options("UpdateOptions")?;
    let mut warnings = Vec::new();
    let body = object::decode(call, &call.resource.gvk, options.validation, &mut warnings)?;
    check_identity(call, &body)?;
    let body = place(call, &body);
    let body = create::dedupe_owners(body, &mut warnings);
    warnings.extend(call.resource.hooks.warnings(&body));
    let writing = Writing {
        part,
        dry_run: options.dry_run,
        author: Author::of(call, &options.manager),
    };
    let propose = |_: &Doc| Ok(Proposal::Change(body.clone()));
    let outcome = write(call, &writing, propose).await;
    let (code, object) = match outcome {
        Err(status) if status.code() == StatusCode::NOT_FOUND && may_create(call, part) => {
            create_instead(call, &body, &options, &mut warnings).await?
        }
        outcome => (StatusCode::OK, outcome?),
    };
    let mut response = call.answer(code, &object)?;
    respond::warn(&mut response, &warnings);
    Ok(response)
}

fn may_create(call: &Call, part: Part) -> bool {
    part == Part::Main && call.resource.create_on_update
}

async fn create_instead(
    call: &Call,
    body: &Doc,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<(StatusCode, Doc), Status> {
    call.check_also(Verb::Create)?;
    if !body.meta().uid_str().is_empty() {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: ",
            body.meta().uid_str()
        );
        return Err(Status::conflict(
            &call.group_resource(),
            &call.path.name,
            &why,
        ));
    }
    if !body.meta().resource_version().is_empty() {
        return Err(call.not_found());
    }
    // Creating warns of the same things again.
    warnings.clear();
    let author = Author::of(call, &options.manager);
    let object = create::attributed(call, body.clone(), &author, warnings);
    let created = create::insert(call, object, options.dry_run, warnings).await?;
    Ok((StatusCode::CREATED, created))
}

/// The name and namespace in a body must be those of the path, or absent.
pub(super) fn check_identity(call: &Call, body: &Doc) -> Result<(), Status> {
    let (name, namespace) = (body.meta().name(), body.meta().namespace());
    let url_name = &call.path.name;
    if name.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({url_name} based on URL) was undeterminable: name must be \
             provided"
        )));
    }
    if name != url_name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({url_name})"
        )));
    }
    if call.resource.is_namespaced() && !namespace.is_empty() && namespace != call.namespace() {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// A body with the namespace of the path.
fn place(call: &Call, body: &Doc) -> Doc {
    object::edit_metadata(body, |metadata| match call.namespace() {
        "" => metadata.without("namespace"),
        namespace => metadata.with("namespace", namespace.into()),
    })
}

/// Writes what `propose` makes of the present object.
///
/// The decision is made on the state that everybody sees, outside of the lock of the store. If
/// another write comes first it is made again, on the newest state, outside as well.
pub(super) async fn write(
    call: &Call,
    writing: &Writing,
    propose: impl Fn(&Doc) -> Result<Proposal, Status>,
) -> Result<Doc, Status> {
    let resource = &call.resource;
    let store = &call.server.inner().storage;
    let key = storage::key(call.namespace(), &call.path.name);
    let turn = call.turn().await;
    let Some(seen) = store.get(&resource.shelf, &key) else {
        return Err(call.not_found());
    };
    let decide = |entry: &Entry| {
        let current = resource.view(entry.doc());
        let proposed = propose(&current)?;
        work::check()?;
        match (decide(call, writing, &current, proposed)?, &turn) {
            (Decision::Put(object), Some(turn)) => turn.assign(object).map(Decision::Put),
            (decision, _) => Ok(decision),
        }
    };
    let decision = decide(&seen)?;
    let charged = charge(call, writing, seen.doc(), &decision).await?;
    if writing.dry_run {
        return Ok(match decision {
            Decision::Put(object) | Decision::Remove(object) => object,
        });
    }
    let first = Decided::new(Some(&seen), Ok(change(resource, decision)));
    let again = |current: Option<&Arc<Entry>>| match current {
        Some(current) => Ok(change(resource, decide(current)?)),
        None => Err(call.not_found()),
    };
    let object = (&resource.shelf, &key);
    let outcome = store.settle_after(first, object, again).await;
    if let Err(WriteError::Refused(_)) = outcome {
        charged.refund(store).await;
    }
    written(call, outcome)
}

/// The object after a write, or what was sent with its last breath.
fn written(
    call: &Call,
    outcome: Result<(Outcome, Option<Doc>), WriteError<Unsettled>>,
) -> Result<Doc, Status> {
    let modified = || Status::modified(&call.group_resource(), &call.path.name);
    let (outcome, removed) = outcome.map_err(|error| storage::unsettled(error, modified))?;
    match (removed, outcome.entry()) {
        (Some(object), _) => Ok(object),
        (None, Some(entry)) => Ok(call.resource.view(entry.doc())),
        (None, None) => Err(call.not_found()),
    }
}

/// The change that a decision asks the store for, and what was sent with the last breath of an
/// object.
fn change(resource: &Resource, decision: Decision) -> (Change, Option<Doc>) {
    match decision {
        Decision::Put(object) => {
            let doc = resource.to_storage(&object);
            let ttl = resource.ttl;
            (Change::Put { doc, ttl }, None)
        }
        Decision::Remove(object) => (Change::Delete, Some(object)),
    }
}

/// Charges quotas for what an object has more than before, which is given in its stored form. A
/// write that is faster than this one may change that; the next count then sets it right.
async fn charge(
    call: &Call,
    writing: &Writing,
    old: &Doc,
    decision: &Decision,
) -> Result<Charged, Status> {
    let is_main = writing.part == Part::Main;
    let is_resize = call.path.subresource == "resize";
    let request = admission::request(call);
    match decision {
        Decision::Put(new) if is_main || is_resize => {
            if !crate::admission::is_charged_for(&request, is_main, new, old) {
                return Ok(Charged::default());
            }
            crate::admission::charge(&request, new, Some(old), writing.dry_run).await
        }
        _ => Ok(Charged::default()),
    }
}

/// What becomes of an object for which somebody proposes another state.
fn decide(
    call: &Call,
    writing: &Writing,
    old: &Doc,
    proposed: Proposal,
) -> Result<Decision, Status> {
    windlass_store::debug_assert_not_deciding("validation");
    let resource = &call.resource;
    let part = writing.part;
    let growth = match proposed {
        Proposal::Change(_) => Growth::Plain,
        Proposal::Attributed(_) => Growth::Applied,
    };
    let tracked = match proposed {
        Proposal::Attributed(new) => {
            check_preconditions(call, old, &new)?;
            resource.hooks.default(new)
        }
        Proposal::Change(new) => {
            check_preconditions(call, old, &new)?;
            attribute(call, writing, old, resource.hooks.default(new))
        }
    };
    let request = admission::request(call);
    let tracked = match part {
        Part::Main => crate::admission::update(&request, tracked, old)?,
        Part::Status | Part::Only(_) => crate::admission::update_part(&request, tracked, old)?,
        Part::Finalize | Part::Whole => tracked,
    };
    work::check()?;
    let new = prepare(resource, part, &tracked, old);
    let new = fields::with_managers_of(new, &tracked);
    let new = fields::without_new_times(resource.canonical(new), old);
    work::check()?;
    check(call, part, old, &new)?;
    if is_free_to_go(resource, &new) {
        return Ok(Decision::Remove(new));
    }
    // What is not stored may have any size.
    if writing.dry_run {
        return Ok(Decision::Put(new));
    }
    size::checked(resource, new, growth).map(Decision::Put)
}

/// A proposed object with the author of the change noted.
fn attribute(call: &Call, writing: &Writing, old: &Doc, new: Doc) -> Doc {
    match writing.part {
        // What the server does on behalf of somebody has no author.
        Part::Whole => fields::with_managers_of(new, old),
        // Only what these paths write counts.
        Part::Only(pointers) => {
            let changed = only(pointers, &new, old);
            fields::updated(call, writing.part, old, &changed, &writing.author)
        }
        part => fields::updated(call, part, old, &new, &writing.author),
    }
}

/// The old object with the values that the new one has at some places.
fn only(pointers: &[&str], new: &Doc, old: &Doc) -> Doc {
    pointers
        .iter()
        .fold(old.clone(), |object, pointer| match new.at(pointer) {
            none if none.is_null() => object::cut(object, pointer),
            value => object::put(object, pointer, value),
        })
}

/// The new state of an object, without what this part of it may not change.
fn prepare(resource: &Resource, part: Part, new: &Doc, old: &Doc) -> Doc {
    let new = keep_system_metadata(new, old);
    let new = match part {
        Part::Main => prepare_main(resource, new, old),
        Part::Whole => new,
        Part::Status => prepare_status(resource, &new, old),
        Part::Finalize => object::keep_field(&new, "status", old),
        Part::Only(pointers) => only(pointers, &new, old),
    };
    match part {
        Part::Main | Part::Only(_) => count_generation(resource, new, old),
        Part::Whole | Part::Status | Part::Finalize => new,
    }
}

/// Refuses a new state that is not valid.
fn check(call: &Call, part: Part, old: &Doc, new: &Doc) -> Result<(), Status> {
    let resource = &call.resource;
    if part == Part::Main && new != old {
        admission::check_rights(call, new, Some(old))?;
    }
    let mut errors = FieldErrors::default();
    metadata::validate(resource, new, &mut errors);
    metadata::validate_update(new, old, &mut errors);
    if part == Part::Status {
        resource.hooks.validate_status(new, old, &mut errors);
    } else if part == Part::Main {
        resource.hooks.validate_change(new, old, &mut errors);
    } else if part != Part::Whole {
        // A part with its own path is there to change what the main path may not.
        resource.hooks.validate(new, &mut errors);
    }
    if let Part::Only(_) = part {
        resource.hooks.validate_part(new, old, &mut errors);
    }
    // What was not evaluated to its end is not known to be wrong.
    work::check()?;
    if !errors.is_empty() {
        return Err(Status::invalid(
            &resource.group_kind(),
            old.meta().name(),
            &errors,
        ));
    }
    if matches!(part, Part::Status | Part::Only(_)) {
        crate::admission::validate_status(&admission::request(call), new, old)?;
    }
    if part == Part::Main && new != old {
        crate::admission::validate(&admission::request(call), new, Some(old))?;
    }
    Ok(())
}

/// Whether nothing keeps an object any more whose deletion began.
fn is_free_to_go(resource: &Resource, object: &Doc) -> bool {
    let grace = object
        .at("/metadata/deletionGracePeriodSeconds")
        .as_i64()
        .unwrap_or(0);
    object.meta().is_deleting()
        && grace == 0
        && object.meta().finalizers().next().is_none()
        && !resource.hooks.is_held(object)
}

/// The uid and the revision in a body are conditions.
fn check_preconditions(call: &Call, old: &Doc, proposed: &Doc) -> Result<(), Status> {
    let (wanted, found) = (proposed.meta(), old.meta());
    if !wanted.uid_str().is_empty() && wanted.uid_str() != found.uid_str() {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            wanted.uid_str(),
            found.uid_str()
        );
        return Err(Status::conflict(&call.group_resource(), found.name(), &why));
    }
    match wanted.resource_version() {
        "" | "0" if !call.resource.unconditional_update => {
            let mut errors = FieldErrors::default();
            let field = FieldPath::new("metadata.resourceVersion");
            errors.invalid(&field, 0, "must be specified for an update");
            // Upstream names the resource here, not the kind.
            let group = call.resource.gvk.group().to_owned();
            let named = GroupKind::new(group, call.resource.plural.to_string());
            Err(Status::invalid(&named, found.name(), &errors))
        }
        "" | "0" => Ok(()),
        given if given == found.resource_version() => Ok(()),
        given if given.parse::<u64>().is_err() => Err(Status::plain(format!(
            "strconv.ParseUint: parsing {given:?}: invalid syntax"
        ))),
        _ => Err(Status::modified(&call.group_resource(), found.name())),
    }
}

/// Metadata that clients cannot change, put back.
fn keep_system_metadata(new: &Doc, old: &Doc) -> Doc {
    const KEPT: &[&str] = &[
        "creationTimestamp",
        "generation",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    /// Kept if the client leaves them out. Other values are refused, not ignored.
    const IMPLIED: &[&str] = &[
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "namespace",
    ];
    object::edit_metadata(new, |metadata| {
        let implied = IMPLIED.iter().filter(|key| metadata.get(key).is_none());
        let kept: Vec<&str> = KEPT.iter().chain(implied).copied().collect();
        kept.iter().fold(metadata, |metadata, key| {
            object::keep_metadata(&metadata, key, old)
        })
    })
}

fn prepare_main(resource: &Resource, new: Doc, old: &Doc) -> Doc {
    let new = if resource.has_status() {
        object::keep_field(&new, "status", old)
    } else {
        new
    };
    resource.hooks.prepare_update(new, old)
}

/// The old object with the new status and the new metadata; the kind may take back the latter.
fn prepare_status(resource: &Resource, new: &Doc, old: &Doc) -> Doc {
    resource
        .hooks
        .prepare_status(keep_all_but(new, old, &["metadata", "status"]), old)
}

/// The old object with some fields of the new one.
fn keep_all_but(new: &Doc, old: &Doc, changed: &[&str]) -> Doc {
    let mut object = old.as_object().cloned().unwrap_or_else(Object::empty);
    for key in changed {
        object = match new.get(key) {
            Some(value) => object.with(key, value.clone()),
            None => object.without(key),
        };
    }
    object.into()
}

/// Counts a change of what the generation stands for.
fn count_generation(resource: &Resource, new: Doc, old: &Doc) -> Doc {
    let spec_differs = || new.get("spec") != old.get("spec");
    let is_counted = match resource.generation {
        Generation::Absent => return new,
        Generation::Spec => spec_differs(),
        Generation::SpecOrAnnotations => {
            spec_differs() || new.at("/metadata/annotations") != old.at("/metadata/annotations")
        }
        Generation::AllButStatus => strip(&new) != strip(old),
        Generation::Content => strip(&new) != strip(old) || new.get("status") != old.get("status"),
        Generation::ContentOrLabels => {
            strip(&new) != strip(old) || new.at("/metadata/labels") != old.at("/metadata/labels")
        }
    };
    if !is_counted {
        return new;
    }
    let next = old.meta().generation().saturating_add(1);
    object::edit_metadata(&new, |metadata| metadata.with("generation", next.into()))
}

/// An object without metadata and status.
fn strip(object: &Doc) -> Option<Object> {
    Some(object.as_object()?.without("metadata").without("status"))
}

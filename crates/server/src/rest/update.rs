//! Update, and what changes of objects share with it.

use http::{Response, StatusCode};
use windlass_core::{Doc, GroupKind, Object};

use super::fields::{self, Author};
use super::operation::Operation;
use super::size::Measure;
use super::write::{Part, Proposal, Write};
use super::{Call, create, metadata, object};
use crate::body::Body;
use crate::registry::{Generation, Resource};
use crate::request::Verb;
use crate::respond;
use crate::work;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;

pub(super) async fn update(call: &Call, part: Part) -> Result<Response<Body>, Status> {
    let options = call.query.write_options("UpdateOptions")?;
    let mut warnings = Vec::new();
    let body = object::decode(call, &call.resource.gvk, options.validation, &mut warnings)?;
    check_identity(&call.operation(), &body)?;
    let body = place(call, &body);
    let body = create::dedupe_owners(body, &mut warnings);
    warnings.extend(call.resource.hooks.warnings(&body));
    let write = Write {
        operation: call.operation(),
        part,
        dry_run: options.dry_run,
        author: Author::of(call, &options.manager),
        measure: Measure::Any,
        shown: None,
    };
    let propose = |_: &Doc| Ok(Proposal::Change(body.clone()));
    let outcome = write.change(propose).await;
    let (code, object) = match outcome {
        Err(status) if status.code() == StatusCode::NOT_FOUND && may_create(call, part) => {
            create_instead(call, write, &body, &mut warnings).await?
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
    write: Write<'_>,
    body: &Doc,
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
        return Err(call.operation().not_found());
    }
    // Creating warns of the same things again.
    warnings.clear();
    let object = create::proposed(body.clone(), warnings);
    let part = Part::New;
    let created = Write { part, ..write };
    let proposal = Proposal::Change(object);
    let created = created.create(&proposal, warnings).await?;
    Ok((StatusCode::CREATED, created))
}

/// The name and namespace in a body must be those of the path, or absent.
pub(super) fn check_identity(operation: &Operation<'_>, body: &Doc) -> Result<(), Status> {
    let (name, namespace) = (body.meta().name(), body.meta().namespace());
    let url_name = operation.name;
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
    if operation.resource.is_namespaced()
        && !namespace.is_empty()
        && namespace != operation.namespace
    {
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

/// A proposed object with the author of the change noted.
pub(super) fn attributed(write: &Write<'_>, new: &Doc, old: &Doc) -> Doc {
    match write.part.pointers() {
        // Only what these paths write counts.
        Some(pointers) => fields::updated(write, old, &only(pointers, new, old)),
        None => fields::updated(write, old, new),
    }
}

/// A proposed object with what follows from other objects.
pub(super) fn admitted(write: &Write<'_>, new: Doc, old: &Doc) -> Result<Doc, Status> {
    let request = write.operation.admission();
    match write.part {
        Part::Main => crate::admission::update(&request, new, old),
        _ => crate::admission::update_part(&request, new, old),
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

/// The new state of an object, without what this part of it may not change. What the server does on
/// behalf of somebody has no author.
pub(super) fn prepared(write: &Write<'_>, tracked: &Doc, old: &Doc) -> Doc {
    let resource = write.operation.resource;
    let new = keep_system_metadata(tracked, old);
    let new = match write.part {
        Part::Main => count_generation(resource, prepare_main(resource, new, old), old),
        Part::Status => prepare_status(resource, &new, old),
        Part::Finalize => object::keep_field(&new, "status", old),
        Part::Only(pointers) => count_generation(resource, only(pointers, &new, old), old),
        Part::Counted(pointers) => {
            let new = resource
                .hooks
                .prepare_resize(only(pointers, &new, old), old);
            count_generation(resource, new, old)
        }
        Part::Whole => return fields::with_managers_of(new, old),
        Part::New | Part::First | Part::Deletion => new,
    };
    fields::with_managers_of(new, tracked)
}

/// A changed object that is valid by itself and beside others.
pub(super) fn validated(write: &Write<'_>, new: Doc, old: &Doc) -> Result<Doc, Status> {
    let resource = write.operation.resource;
    let request = write.operation.admission();
    let mut errors = FieldErrors::default();
    metadata::validate(resource, &new, &mut errors);
    metadata::validate_update(&new, old, &mut errors);
    match write.part {
        Part::Main => resource.hooks.validate_change(&new, old, &mut errors),
        Part::Status => resource.hooks.validate_status(&new, old, &mut errors),
        // A part with its own path is there to change what the main path may not.
        Part::Finalize => resource.hooks.validate(&new, &mut errors),
        Part::Only(_) | Part::Counted(_) => {
            resource.hooks.validate(&new, &mut errors);
            resource.hooks.validate_part(&new, old, &mut errors);
        }
        Part::Whole | Part::New | Part::First | Part::Deletion => {}
    }
    // What was not evaluated to its end is not known to be wrong.
    work::check()?;
    if !errors.is_empty() {
        let (kind, name) = (resource.group_kind(), old.meta().name());
        return Err(Status::invalid(&kind, name, &errors));
    }
    match write.part {
        Part::Main if new != *old => crate::admission::validate(&request, &new, Some(old))?,
        Part::Status | Part::Only(_) | Part::Counted(_) => {
            crate::admission::validate_status(&request, &new, old)?;
        }
        _ => {}
    }
    Ok(new)
}

/// Whether nothing keeps an object any more whose deletion began.
pub(super) fn is_free_to_go(resource: &Resource, object: &Doc) -> bool {
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
pub(super) fn check_preconditions(
    operation: &Operation<'_>,
    old: &Doc,
    proposed: &Doc,
) -> Result<(), Status> {
    let (wanted, found) = (proposed.meta(), old.meta());
    if !wanted.uid_str().is_empty() && wanted.uid_str() != found.uid_str() {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            wanted.uid_str(),
            found.uid_str()
        );
        return Err(Status::conflict(
            &operation.group_resource(),
            found.name(),
            &why,
        ));
    }
    match wanted.resource_version() {
        "" | "0" if !operation.resource.unconditional_update => {
            let mut errors = FieldErrors::default();
            let field = FieldPath::new("metadata.resourceVersion");
            errors.invalid(&field, 0, "must be specified for an update");
            // Upstream names the resource here, not the kind.
            let group = operation.resource.gvk.group().to_owned();
            let named = GroupKind::new(group, operation.resource.plural.to_string());
            Err(Status::invalid(&named, found.name(), &errors))
        }
        "" | "0" => Ok(()),
        given if given == found.resource_version() => Ok(()),
        given if given.parse::<u64>().is_err() => Err(Status::plain(format!(
            "strconv.ParseUint: parsing {given:?}: invalid syntax"
        ))),
        _ => Err(Status::modified(&operation.group_resource(), found.name())),
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

/// Counts a change of what the generation stands for. The objects are compared as they are stored,
/// where an empty list is `null`.
fn count_generation(resource: &Resource, new: Doc, old: &Doc) -> Doc {
    if resource.generation == Generation::Absent {
        return new;
    }
    let stored = resource.canonical(new.clone());
    let differs = |key: &str| stored.get(key) != old.get(key);
    let differs_in = |pointer: &str| stored.at(pointer) != old.at(pointer);
    let is_counted = match resource.generation {
        Generation::Absent => false,
        Generation::Spec => differs("spec"),
        Generation::SpecOrAnnotations => differs("spec") || differs_in("/metadata/annotations"),
        Generation::AllButStatus => strip(&stored) != strip(old),
        Generation::Content => strip(&stored) != strip(old) || differs("status"),
        Generation::ContentOrLabels => {
            strip(&stored) != strip(old) || differs_in("/metadata/labels")
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

//! Create, and what only new objects need.

use std::collections::HashSet;
use std::sync::Arc;

use http::{Response, StatusCode};
use windlass_core::{Doc, Object, names};
use windlass_store::{Change, Entry};

use super::ask::Question;
use super::fields::{self, Author};
use super::operation::Operation;
use super::size::Measure;
use super::write::{Part, Proposal, Write};
use super::{Call, metadata, object, pod};
use crate::body::Body;
use crate::registry::{Creation, Generation, Resource};
use crate::respond;
use crate::server::Server;
use crate::storage::{self, write_failed};
use crate::work;
use windlass_access::User;
use windlass_access::matching::OperationType;
use windlass_rules::edit::edit;
use windlass_rules::field::FieldErrors;
use windlass_rules::status::Status;

/// Metadata that only the server sets, dropped from what clients send.
const SYSTEM_METADATA: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "selfLink",
    "uid",
];

pub(super) async fn create(call: &Call) -> Result<Response<Body>, Status> {
    let options = call.query.write_options("CreateOptions")?;
    let mut warnings = Vec::new();
    let object = object::decode(call, &call.resource.gvk, options.validation, &mut warnings)?;
    match call.resource.needs.creation {
        Creation::Stored => {}
        Creation::Binding => return pod::bind_named(call, &object).await,
        Creation::Review(review) => {
            let question = Question {
                operation: call.operation(),
                sort: OperationType::Create,
                kind: call.resource.gvk.clone(),
                object,
                dry_run: options.dry_run,
            };
            let object = question.ask().await?;
            let answer = call.operation().reviewer().answer(review, &object)?;
            return call.answer(StatusCode::CREATED, &answer);
        }
    }
    let object = place(call, &object)?;
    let object = proposed(object, &mut warnings);
    let write = Write {
        operation: call.operation(),
        part: Part::New,
        dry_run: options.dry_run,
        author: Author::of(call, &options.manager),
        measure: Measure::of_create(call),
        shown: None,
    };
    let proposal = Proposal::Change(object);
    let created = write.create(&proposal, &mut warnings).await?;
    let mut response = call.answer(StatusCode::CREATED, &created)?;
    respond::warn(&mut response, &warnings);
    Ok(response)
}

/// The object with its namespace, which the path and the body must agree on.
pub(super) fn place(call: &Call, object: &Doc) -> Result<Doc, Status> {
    let given = object.meta().namespace();
    let namespace = call.namespace();
    if !call.resource.is_namespaced() {
        return Ok(object::edit_metadata(object, |metadata| {
            metadata.without("namespace")
        }));
    }
    if !given.is_empty() && given != namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(object::edit_metadata(object, |metadata| {
        metadata.with("namespace", namespace.into())
    }))
}

/// A new object as a client proposes it, without what clients cannot set.
pub(super) fn proposed(object: Doc, warnings: &mut Vec<String>) -> Doc {
    without_system_metadata(&dedupe_owners(object, warnings))
}

fn without_system_metadata(object: &Doc) -> Doc {
    object::edit_metadata(object, |metadata| {
        let given = SYSTEM_METADATA
            .iter()
            .filter(|key| metadata.get(key).is_some());
        let given: Vec<&str> = given.copied().collect();
        given
            .iter()
            .fold(metadata, |metadata, key| metadata.without(key))
    })
}

/// Owners that are named twice count once.
pub(super) fn dedupe_owners(object: Doc, warnings: &mut Vec<String>) -> Doc {
    let owners = object.at("/metadata/ownerReferences").items();
    let mut seen = HashSet::with_capacity(owners.len());
    let kept = owners.iter().filter(|owner| seen.insert(*owner));
    let kept: Vec<Doc> = kept.cloned().collect();
    if kept.len() == owners.len() {
        return object;
    }
    warnings.push(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references \
         in 1.20+, and may reject such requests as early as 1.24; please fix your requests"
            .to_owned(),
    );
    object::put(object, "/metadata/ownerReferences", kept)
}

/// A new object with its author noted for all of it.
pub(super) fn attributed(write: &Write<'_>, object: &Doc) -> Doc {
    let Operation {
        server, resource, ..
    } = write.operation;
    fields::created(server, resource, object, &write.author)
}

/// A new object with what follows from other objects.
pub(super) fn admitted(write: &Write<'_>, object: Doc) -> Result<Doc, Status> {
    let operation = &write.operation;
    let object = crate::admission::create(&operation.admission(), object)?;
    operation.resource.hooks.admit(object, operation.storage())
}

/// A new object has nothing to compare with. That it names a revision is for the store to refuse:
/// see [`validated`].
pub(super) fn check_preconditions(object: Doc) -> Result<Doc, Status> {
    Ok(object)
}

/// A new object with everything in it that the server sets.
pub(super) fn prepared(write: &Write<'_>, object: &Doc) -> Doc {
    let resource = write.operation.resource;
    let env = &write.operation.server.inner().env;
    let object = object::edit_metadata(object, |metadata| {
        let metadata = edit(&metadata.into(), |metadata| {
            let base = metadata.text("generateName");
            if metadata.text("name").is_empty() && !base.is_empty() {
                let name = names::generate_name(base, env);
                metadata.set("name", name);
            }
            if resource.generation != Generation::Absent {
                metadata.set("generation", 1);
            }
            metadata.set("creationTimestamp", env.now().to_string());
            metadata.set("uid", env.uid().as_str());
        });
        metadata.as_object().cloned().unwrap_or_else(Object::empty)
    });
    let object = if resource.has_status() && !resource.hooks.creates_with_status() {
        reset_status(resource, &object)
    } else {
        object
    };
    resource.hooks.prepare_create(object, env)
}

/// A new object that is valid by itself and beside others.
pub(super) fn validated(write: &Write<'_>, object: Doc) -> Result<Doc, Status> {
    let resource = write.operation.resource;
    let mut errors = FieldErrors::default();
    metadata::validate(resource, &object, &mut errors);
    resource.hooks.validate(&object, &mut errors);
    resource.hooks.validate_create(&object, &mut errors);
    // What was not evaluated to its end is not known to be wrong.
    work::check()?;
    if !errors.is_empty() {
        let name = object.meta().name();
        return Err(Status::invalid(&resource.group_kind(), name, &errors));
    }
    if write.part == Part::New {
        crate::admission::validate(&write.operation.admission(), &object, None)?;
    }
    // Upstream's store refuses this, which a dry run does not reach.
    if !write.dry_run && !object.meta().resource_version().is_empty() {
        return Err(Status::plain(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    Ok(object)
}

/// A new object begins without a status, whatever its author thinks of it.
fn reset_status(resource: &Resource, object: &Doc) -> Doc {
    let fields = object.as_object().cloned().unwrap_or_else(Object::empty);
    fields
        .with("status", resource.hooks.initial_status())
        .into()
}

/// Makes an object that has to exist from the start, unless it is there.
pub(crate) async fn create_at_start(
    server: &Server,
    group: &str,
    version: &str,
    plural: &str,
    object: Doc,
) -> Result<(), Status> {
    set_at_start(server, group, version, plural, object, &[]).await
}

/// Makes an object that has to exist from the start. If it is there, some of its fields are set
/// anew.
pub(crate) async fn set_at_start(
    server: &Server,
    group: &str,
    version: &str,
    plural: &str,
    object: Doc,
    fields: &[&str],
) -> Result<(), Status> {
    let table = server.inner().registry.table();
    let Some(resource) = table.find(group, version, plural) else {
        return Err(Status::no_such_path());
    };
    let write = Write {
        operation: Operation {
            server,
            resource,
            namespace: object.meta().namespace(),
            name: object.meta().name(),
            subresource: "",
            user: &User::server(),
            request: None,
        },
        part: Part::First,
        dry_run: false,
        author: Author::at_start(server, resource),
        measure: Measure::Any,
        shown: None,
    };
    let key = write.operation.key();
    let object = write.decide_new(Proposal::Change(object.clone()), None)?;
    let put = |current: Option<&Arc<Entry>>| match current {
        Some(_) if fields.is_empty() => Ok((Change::Keep, ())),
        Some(current) => {
            let set = |known: Doc, field: &&str| object::keep_field(&known, field, &object);
            let known = resource.view(current.doc());
            let known = fields.iter().fold(known, set);
            Ok((Change::put(resource.to_storage(&known)), ()))
        }
        None => Ok((Change::put(resource.to_storage(&object)), ())),
    };
    let storage = &server.inner().storage;
    let modified = || Status::modified(&resource.group_resource(), object.meta().name());
    match storage.settle((&resource.shelf, &key), put).await {
        Ok(_) => Ok(()),
        Err(error) => Err(storage::unsettled(error, modified)),
    }
}

/// Stores an object as it is.
pub(crate) async fn import(server: &Server, object: &Doc) -> Result<(), Status> {
    let table = server.inner().registry.table();
    let kind = object.gvk().ok_or_else(Status::no_such_path)?;
    let version = table.version(kind.group(), kind.version());
    let mut rows = version.into_iter().flat_map(|it| it.resources.values());
    let resource = rows
        .find(|row| row.gvk == kind)
        .ok_or_else(Status::no_such_path)?;
    let key = storage::key(object.meta().namespace(), object.meta().name());
    let change = Change::put(resource.to_storage(object));
    let storage = &server.inner().storage;
    let outcome = storage.update(&resource.shelf, &key, |_| Ok(change)).await;
    outcome.map(drop).map_err(write_failed)
}

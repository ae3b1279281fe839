//! Create.

use http::{Response, StatusCode};
use std::collections::HashSet;
use std::sync::Arc;
use windlass_core::{Doc, Object, names};
use windlass_store::{Change, Entry};

use super::fields::{self, Author};
use super::size::{self, Growth};
use super::{Call, admission, metadata, object, pod, write_failed};
use crate::auth;
use crate::body::Body;
use crate::field::FieldErrors;
use crate::kinds::edit;
use crate::registry::{Generation, Resource};
use crate::respond;
use crate::server::Server;
use crate::status::Status;
use crate::storage;
use crate::work;

/// How often a new random name is tried when one is taken.
const NAME_ATTEMPTS: usize = 8;

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
    if !call.resource.allows(crate::request::Verb::Get) {
        return unstored(call, &object).await;
    }
    let object = place(call, &object)?;
    let author = Author::of(call, &options.manager);
    let object = attributed(call, object, &author, &mut warnings);
    let created = insert(call, object, options.dry_run, &mut warnings).await?;
    let mut response = call.answer(StatusCode::CREATED, &created)?;
    respond::warn(&mut response, &warnings);
    Ok(response)
}

/// Kinds that are answered, not stored.
async fn unstored(call: &Call, object: &Doc) -> Result<Response<Body>, Status> {
    if call.resource.plural == "bindings" {
        return pod::bind_named(call, object).await;
    }
    let answer = auth::review(
        &call.server,
        &call.user,
        &call.resource,
        call.namespace(),
        object,
    )?;
    call.answer(StatusCode::CREATED, &answer)
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

/// What a client sent, with its defaults, and with the client as the author of all of it. What
/// the server adds from here on belongs to nobody.
pub(super) fn attributed(
    call: &Call,
    object: Doc,
    author: &Author,
    warnings: &mut Vec<String>,
) -> Doc {
    let object = dedupe_owners(object, warnings);
    let object = call
        .resource
        .hooks
        .default(without_system_metadata(&object));
    fields::created(&call.server, &call.resource, &object, author)
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

/// Makes a new object of what a client sent, which has its defaults and its author.
pub(super) async fn insert(
    call: &Call,
    object: Doc,
    dry_run: bool,
    warnings: &mut Vec<String>,
) -> Result<Doc, Status> {
    if !object.meta().resource_version().is_empty() {
        return Err(Status::plain(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    work::check()?;
    let storage = &call.server.inner().storage;
    let request = admission::request(call);
    let object = crate::admission::create(&request, object).await?;
    let object = call.resource.hooks.admit(object, storage)?;
    admission::check_rights(call, &object, None)?;
    let generated = object.meta().name().is_empty() && !object.meta().generate_name().is_empty();
    let attempts = if generated { NAME_ATTEMPTS } else { 1 };
    let mut taken = String::new();
    let turn = call.turn().await;
    for _ in 0..attempts {
        let object = prepare(&call.server, &call.resource, &object)?;
        let object = match &turn {
            Some(turn) => turn.assign(object)?,
            None => object,
        };
        crate::admission::validate(&request, &object, None)?;
        work::check()?;
        let charged = crate::admission::charge(&request, &object, None, dry_run).await?;
        warnings.extend(call.resource.hooks.warnings(&object));
        let outcome = store(call, &object, dry_run).await;
        if outcome
            .as_ref()
            .is_err_and(|it| it.code().is_client_error())
        {
            // After any other error the object may be there.
            charged.refund(storage).await;
        }
        match outcome {
            Err(status) if status.reason() == "AlreadyExists" && generated => {
                object.meta().name().clone_into(&mut taken);
                warnings.clear();
            }
            outcome => return outcome,
        }
    }
    Err(Status::no_free_name(&call.group_resource(), &taken))
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

/// A valid new object with everything in it that the server sets.
fn prepare(server: &Server, resource: &Resource, object: &Doc) -> Result<Doc, Status> {
    windlass_store::debug_assert_not_deciding("validation");
    let env = &server.inner().env;
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
    let object = resource.canonical(resource.hooks.prepare_create(object, env));
    work::check()?;
    let mut errors = FieldErrors::default();
    metadata::validate(resource, &object, &mut errors);
    resource.hooks.validate(&object, &mut errors);
    resource.hooks.validate_create(&object, &mut errors);
    // What was not evaluated to its end is not known to be wrong.
    work::check()?;
    if errors.is_empty() {
        return Ok(object);
    }
    Err(Status::invalid(
        &resource.group_kind(),
        object.meta().name(),
        &errors,
    ))
}

/// A new object begins without a status, whatever its author thinks of it.
fn reset_status(resource: &Resource, object: &Doc) -> Doc {
    let fields = object.as_object().cloned().unwrap_or_else(Object::empty);
    fields
        .with("status", resource.hooks.initial_status())
        .into()
}

async fn store(call: &Call, object: &Doc, dry_run: bool) -> Result<Doc, Status> {
    let resource = &call.resource;
    let key = storage::key(call.namespace(), object.meta().name());
    let refuse = |existing: &Arc<Entry>| {
        let (resource, name) = (call.group_resource(), object.meta().name());
        if existing.doc().meta().is_deleting() {
            return Status::being_deleted(&resource, name);
        }
        Status::already_exists(&resource, name)
    };
    let store = &call.server.inner().storage;
    if dry_run {
        return match store.get(&resource.shelf, &key) {
            Some(existing) => Err(refuse(&existing)),
            None => Ok(object.clone()),
        };
    }
    let doc = resource.to_storage(object);
    let doc = match size::is_small_create(call) {
        true => doc,
        false => size::checked(resource, doc, Growth::Plain)?,
    };
    let change = Change::Put {
        doc,
        ttl: resource.ttl,
    };
    let outcome = store
        .update(&resource.shelf, &key, |current| match current {
            Some(existing) => Err(Some(existing.clone())),
            // Nobody waits for the answer.
            None if work::is_cancelled() => Err(None),
            None => Ok(change),
        })
        .await;
    let refused = |existing: Option<Arc<Entry>>| match existing {
        Some(existing) => refuse(&existing),
        None => work::timed_out(),
    };
    let outcome = outcome.map_err(|error| write_failed(error.map_refusal(refused)))?;
    match outcome.entry() {
        Some(entry) => Ok(resource.view(entry.doc())),
        None => Err(Status::internal("the new object is not there")),
    }
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
    let object = resource.hooks.default(object);
    let object = fields::created_at_start(server, resource, &object);
    let object = prepare(server, resource, &object)?;
    let key = storage::key(object.meta().namespace(), object.meta().name());
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

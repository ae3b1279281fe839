//! The scale subresource: the number of replicas, apart from everything else.

use http::{Response, StatusCode};
use windlass_atlas::Atlas;
use windlass_atlas::apply::{self as merging, AtlasSchema, Deduced, ScalePaths};
use windlass_core::{Doc, Gvk, LabelSelector, Selector, doc};

use super::fields::{self, Author};
use super::size::Measure;
use super::write::{Part, Proposal, Shown, Write};
use super::{Call, apply, object, patch};
use crate::body::Body;
use crate::respond;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;
use windlass_rules::table;
use windlass_schema::custom::Scale;

const SCALE: Gvk = Gvk::constant("autoscaling", "v1", "Scale");

pub(super) fn get(call: &Call) -> Result<Response<Body>, Status> {
    answer(call, &call.find()?)
}

/// The scale of an object in the form that the client wants.
fn answer(call: &Call, object: &Doc) -> Result<Response<Body>, Status> {
    call.answer_with(StatusCode::OK, &scale_of(call, object), table::SCALE)
}

pub(super) async fn update(call: &Call) -> Result<Response<Body>, Status> {
    let options = call.query.write_options("UpdateOptions")?;
    let mut warnings = Vec::new();
    let scale = object::decode(call, &SCALE, options.validation, &mut warnings)?;
    let author = Author::of(call, &options.manager);
    let propose = |current: &Doc| {
        let shown = with_managers(call, current)?;
        scaled(call, current, &track(call, &shown, &scale, &author))
    };
    let write = write(call, options.dry_run, &author);
    let object = write.change(propose).await?;
    let mut response = answer(call, &object)?;
    respond::warn(&mut response, &warnings);
    Ok(response)
}

pub(super) async fn patch(call: &Call) -> Result<Response<Body>, Status> {
    if apply::is_asked_for(call) {
        return apply(call).await;
    }
    let patch = patch::read(call, &SCALE)?;
    let propose = |current: &Doc| {
        let shown = with_managers(call, current)?;
        let (scale, _) = patch.apply(&shown)?;
        scaled(call, current, &track(call, &shown, &scale, &patch.author))
    };
    let write = write(call, patch.dry_run, &patch.author);
    let object = write.change(propose).await?;
    answer(call, &object)
}

async fn apply(call: &Call) -> Result<Response<Body>, Status> {
    let configuration = apply::read(call)?;
    let author = &configuration.author;
    let propose = |current: &Doc| {
        let shown = with_managers(call, current)?;
        let scale = configuration.apply_to(&call.operation(), &SCALE, |config, force| {
            with_write(call, author, |write| match Atlas::kind(&SCALE) {
                Some(kind) => {
                    merging::apply(AtlasSchema::of(kind), Some(&shown), config, write, force)
                }
                None => merging::apply(Deduced, Some(&shown), config, write, force),
            })
        })?;
        scaled(call, current, &scale)
    };
    let write = write(call, configuration.dry_run, author);
    let object = write.change(propose).await?;
    answer(call, &object)
}

fn write<'a>(call: &'a Call, dry_run: bool, author: &Author) -> Write<'a> {
    Write {
        operation: call.operation(),
        part: Part::Main,
        dry_run,
        author: author.clone(),
        measure: Measure::Any,
        shown: Some(call),
    }
}

/// Extensions see the scale.
impl Shown for Call {
    fn kind(&self) -> Gvk {
        SCALE
    }

    fn show(&self, object: &Doc) -> Doc {
        scale_of(self, object)
    }

    fn put_back(&self, object: &Doc, shown: &Doc) -> Doc {
        let pointer = scale_paths(self).map_or("/spec/replicas", |scale| &scale.spec_replicas);
        let replicas = shown.at("/spec/replicas").as_i64().unwrap_or(0);
        object::put(object.clone(), pointer, replicas)
    }
}

/// Where a custom resource keeps its replicas.
fn scale_paths(call: &Call) -> Option<&Scale> {
    call.resource.custom.as_ref()?.scale.as_ref()
}

/// Where the replicas of a kind are.
fn with_paths<T>(call: &Call, work: impl FnOnce(&ScalePaths<'_>) -> T) -> T {
    let api_version = call.resource.gvk.api_version();
    let pointer = scale_paths(call).map_or("/spec/replicas", |scale| &scale.spec_replicas);
    let path: Vec<&str> = pointer.split('/').skip(1).collect();
    work(&ScalePaths {
        api_version: &api_version,
        replicas: &[(&api_version, &path)],
    })
}

fn with_write<T>(call: &Call, author: &Author, work: impl FnOnce(&merging::Write<'_>) -> T) -> T {
    let operation = call.operation();
    fields::with_write(&operation, Part::Whole, &SCALE.api_version(), author, work)
}

/// The scale of an object with those who set the replicas.
fn with_managers(call: &Call, object: &Doc) -> Result<Doc, Status> {
    let entries = object.at("/metadata/managedFields").items();
    let entries = with_paths(call, |paths| merging::scale_entries(entries, paths));
    let entries = entries.map_err(|error| Status::plain(error.to_string()))?;
    Ok(match entries.is_empty() {
        true => scale_of(call, object),
        false => object::put(scale_of(call, object), "/metadata/managedFields", entries),
    })
}

/// A new scale with its author noted.
fn track(call: &Call, shown: &Doc, scale: &Doc, author: &Author) -> Doc {
    with_write(call, author, |write| match Atlas::kind(&SCALE) {
        Some(kind) => merging::track(AtlasSchema::of(kind), Some(shown), scale, write),
        None => merging::track(Deduced, Some(shown), scale, write),
    })
}

/// The scale of an object.
fn scale_of(call: &Call, object: &Doc) -> Doc {
    let custom = scale_paths(call);
    let field = |key: &str| object.at("/metadata").get(key).cloned().unwrap_or_default();
    let metadata = doc!({
        "name": (field("name")), "namespace": (field("namespace")), "uid": (field("uid")),
        "resourceVersion": (field("resourceVersion")),
        "creationTimestamp": (field("creationTimestamp"))
    });
    let spec_pointer = custom.map_or("/spec/replicas", |scale| &scale.spec_replicas);
    let status_pointer = custom.map_or("/status/replicas", |scale| &scale.status_replicas);
    let mut status = doc!({ "replicas": (object.at(status_pointer).as_i64().unwrap_or(0)) });
    let selector = match custom {
        None => selector_text(object.at("/spec/selector")),
        Some(scale) => {
            let pointer = scale.selector.as_deref();
            pointer
                .map_or("", |pointer| object.str_at(pointer))
                .to_owned()
        }
    };
    if !selector.is_empty() {
        status = object::put(status, "/selector", selector);
    }
    let replicas = object.at(spec_pointer).as_i64().unwrap_or(0);
    // Upstream leaves out a zero.
    let spec = if replicas == 0 {
        Doc::empty_object()
    } else {
        doc!({ "replicas": replicas })
    };
    doc!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec,
        "status": status
    })
}

/// A selector in its text form, from either of its two shapes.
fn selector_text(selector: &Doc) -> String {
    let is_structured =
        selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some();
    let structured = if is_structured {
        selector.decode::<LabelSelector>().ok()
    } else {
        doc!({ "matchLabels": selector })
            .decode::<LabelSelector>()
            .ok()
    };
    let selector = structured.and_then(|selector| Selector::try_from(&selector).ok());
    selector
        .map(|selector| selector.to_string())
        .unwrap_or_default()
}

/// The object with the replicas of a scale, whose uid and revision are conditions.
fn scaled(call: &Call, current: &Doc, scale: &Doc) -> Result<Proposal, Status> {
    let replicas = match scale.at("/spec/replicas") {
        found if found.is_null() => 0,
        found => found.as_i64().unwrap_or(-1),
    };
    let name = scale.meta().name();
    if !name.is_empty() && name != call.path.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.path.name
        )));
    }
    if replicas < 0 {
        let mut errors = FieldErrors::default();
        let detail = "must be greater than or equal to 0";
        errors.invalid(&FieldPath::new("spec.replicas"), replicas, detail);
        return Err(Status::invalid(
            &SCALE.group_kind(),
            &call.path.name,
            &errors,
        ));
    }
    let conditions = scale.meta();
    let pointer = scale_paths(call).map_or("/spec/replicas", |scale| &scale.spec_replicas);
    let object = object::put(current.clone(), pointer, replicas);
    let object = object::edit_metadata(&object, |metadata| {
        let metadata = metadata.with("resourceVersion", conditions.resource_version().into());
        metadata.with("uid", conditions.uid_str().into())
    });
    let pointer = "/metadata/managedFields";
    let (parent, scale) = (current.at(pointer).items(), scale.at(pointer).items());
    let entries = with_paths(call, |paths| merging::parent_entries(parent, scale, paths));
    let entries = entries.map_err(|error| Status::plain(error.to_string()))?;
    Ok(Proposal::Attributed(match entries.is_empty() {
        true => object::cut(object, pointer),
        false => object::put(object, pointer, entries),
    }))
}

//! The scale subresource: the number of replicas, apart from everything else.

use http::{Response, StatusCode};
use windlass_core::{Doc, Gvk, LabelSelector, Selector, doc};

use super::update::{self, Part};
use super::{Call, object, patch};
use crate::body::Body;
use crate::field::{FieldErrors, FieldPath};
use crate::respond;
use crate::status::Status;

const SCALE: Gvk = Gvk::constant("autoscaling", "v1", "Scale");

pub(super) fn get(call: &Call) -> Result<Response<Body>, Status> {
    call.answer(StatusCode::OK, &scale_of(&call.find()?))
}

pub(super) async fn update(call: &Call) -> Result<Response<Body>, Status> {
    let options = call.query.write_options("UpdateOptions")?;
    let mut warnings = Vec::new();
    let scale = object::decode(call, &SCALE, options.validation, &mut warnings)?;
    let propose = |current: &Doc| scaled(call, current, &scale);
    let object = update::write(call, Part::Main, options.dry_run, propose).await?;
    let mut response = call.answer(StatusCode::OK, &scale_of(&object))?;
    respond::warn(&mut response, &warnings);
    Ok(response)
}

pub(super) async fn patch(call: &Call) -> Result<Response<Body>, Status> {
    let patch = patch::read(call, &SCALE)?;
    let propose = |current: &Doc| {
        let (scale, _) = patch.apply(&scale_of(current))?;
        scaled(call, current, &scale)
    };
    let object = update::write(call, Part::Main, patch.dry_run, propose).await?;
    call.answer(StatusCode::OK, &scale_of(&object))
}

/// The scale of an object.
fn scale_of(object: &Doc) -> Doc {
    let field = |key: &str| object.at("/metadata").get(key).cloned().unwrap_or_default();
    let metadata = doc!({
        "name": (field("name")), "namespace": (field("namespace")), "uid": (field("uid")),
        "resourceVersion": (field("resourceVersion")),
        "creationTimestamp": (field("creationTimestamp"))
    });
    let mut status = doc!({ "replicas": (object.at("/status/replicas").as_i64().unwrap_or(0)) });
    let selector = selector_text(object.at("/spec/selector"));
    if !selector.is_empty() {
        status = object::put(status, "/selector", selector);
    }
    let replicas = object.at("/spec/replicas").as_i64().unwrap_or(0);
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
fn scaled(call: &Call, current: &Doc, scale: &Doc) -> Result<Doc, Status> {
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
    let object = object::put(current.clone(), "/spec/replicas", replicas);
    Ok(object::edit_metadata(&object, |metadata| {
        let metadata = metadata.with("resourceVersion", conditions.resource_version().into());
        metadata.with("uid", conditions.uid_str().into())
    }))
}

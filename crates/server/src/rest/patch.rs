//! Patch: JSON patch and JSON merge patch.

use http::Response;
use http::StatusCode;
use windlass_core::{Doc, GroupKind, Gvk, JsonPatch, OPERATIONS_LIMIT, PatchError, merge_patch};

use super::update::{self, Part};
use super::{Call, object};
use crate::body::Body;
use crate::field::{FieldErrors, FieldPath};
use crate::negotiate;
use crate::query;
use crate::status::Status;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// A change that can be made to any state of an object.
pub(super) enum Patch {
    Json(JsonPatch),
    Merge(Doc),
}

pub(super) async fn patch(call: &Call, part: Part) -> Result<Response<Body>, Status> {
    let (patch, dry_run) = read(call)?;
    let propose = |current: &Doc| {
        let patched = object::clean(&patch.apply(current)?);
        let patched = check_patched(&patched, &call.resource.gvk)?;
        update::check_identity(call, &patched)?;
        check_uid(call, current, &patched)?;
        Ok(patched)
    };
    let object = update::write(call, part, dry_run, propose).await?;
    call.answer(StatusCode::OK, &object)
}

/// A patched object that still is of its kind.
pub(super) fn check_patched(patched: &Doc, gvk: &Gvk) -> Result<Doc, Status> {
    object::check_type(patched, gvk).map_err(|status| {
        let mut errors = FieldErrors::default();
        errors.invalid(
            &FieldPath::new("patch"),
            patched.to_string(),
            status.message(),
        );
        Status::invalid(&GroupKind::new("", ""), "", &errors)
    })
}

/// In an update the uid is a condition; a patch that names another one wants to change it.
fn check_uid(call: &Call, current: &Doc, patched: &Doc) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    let uid = |object: &Doc| object.at("/metadata/uid").clone();
    errors.immutable(
        &FieldPath::new("metadata.uid"),
        &uid(patched),
        &uid(current),
    );
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(
        &call.resource.group_kind(),
        &call.path.name,
        &errors,
    ))
}

/// The patch of a request, and whether nothing is to be stored.
pub(super) fn read(call: &Call) -> Result<(Patch, bool), Status> {
    let options = call.query.write_options("PatchOptions")?;
    if options.force.is_some() {
        let mut errors = FieldErrors::default();
        errors.forbidden(
            &FieldPath::new("force"),
            "may not be specified for non-apply patch",
        );
        return Err(query::options_invalid("PatchOptions", &errors));
    }
    let media_type = negotiate::media_type(&call.headers);
    if ![JSON_PATCH, MERGE_PATCH].contains(&media_type.as_str()) {
        return Err(Status::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH]));
    }
    let doc = Doc::parse(&call.body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    let patch = match media_type.as_str() {
        JSON_PATCH => Patch::Json(json_patch(&doc)?),
        _ if doc.as_object().is_none() => {
            let found = doc.kind().name();
            return Err(Status::bad_request(format!(
                "error decoding patch: expected an object, found {found}"
            )));
        }
        _ => Patch::Merge(doc),
    };
    Ok((patch, options.dry_run))
}

fn json_patch(doc: &Doc) -> Result<JsonPatch, Status> {
    let count = doc.items().len();
    if count > OPERATIONS_LIMIT {
        return Err(Status::too_large(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_LIMIT}, got {count}"
        )));
    }
    if doc.as_array().is_none() {
        let found = doc.kind().name();
        return Err(Status::bad_request(format!(
            "error decoding patch: expected an array, found {found}"
        )));
    }
    JsonPatch::from_doc(doc).map_err(|error| rejected(&error))
}

/// Upstream does not say why; the reason is worth a line in the log.
fn rejected(error: &PatchError) -> Status {
    tracing::debug!(%error, "a JSON patch failed");
    Status::unprocessable("the server rejected our request due to an error in our request")
}

impl Patch {
    /// The changed state.
    pub(super) fn apply(&self, current: &Doc) -> Result<Doc, Status> {
        match self {
            Self::Merge(patch) => Ok(merge_patch(current, patch)),
            Self::Json(patch) => patch.apply(current).map_err(|error| rejected(&error)),
        }
    }
}

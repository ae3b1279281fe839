//! Patch: JSON patch, JSON merge patch and strategic merge patch.

use std::sync::Arc;

use http::Response;
use http::StatusCode;
use parking_lot::Mutex;
use windlass_atlas::apply::go_text;
use windlass_atlas::{Atlas, StrategicError, Type, strategic_merge};
use windlass_core::{Doc, GroupKind, Gvk, JsonPatch, OPERATIONS_LIMIT, PatchError, merge_patch};

use super::fields::Author;
use super::object::{self, Strictness};
use super::operation::Operation;
use super::size::Measure;
use super::update;
use super::write::{Part, Proposal, Write};
use super::{Call, apply};
use crate::body::Body;
use crate::negotiate;
use crate::query::{self, FieldValidation};
use crate::respond;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;
use windlass_schema::custom;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// A change that can be made to any state of an object.
enum Change {
    Json(JsonPatch),
    Merge(Doc),
    Strategic(&'static Type, Doc),
}

/// A patch as a request asks for it.
pub(super) struct Patch {
    change: Change,
    /// The kind that is patched, which may be that of a part.
    gvk: Gvk,
    /// The schema of a custom resource.
    custom: Option<Arc<custom::Version>>,
    validation: FieldValidation,
    /// Whether nothing is to be stored.
    pub(super) dry_run: bool,
    pub(super) author: Author,
}

pub(super) async fn patch(call: &Call, part: Part) -> Result<Response<Body>, Status> {
    if apply::is_asked_for(call) {
        return apply::apply(call, part).await;
    }
    let patch = read(call, &call.resource.gvk)?;
    // A patch may be tried twice; the warnings of the last time count.
    let warnings = Mutex::new(Vec::new());
    let propose = |current: &Doc| {
        let (patched, complaints) = patch.apply(current)?;
        *warnings.lock() = complaints;
        update::check_identity(&call.operation(), &patched)?;
        check_uid(&call.operation(), current, &patched)?;
        Ok(Proposal::Change(patched))
    };
    let write = Write {
        operation: call.operation(),
        part,
        dry_run: patch.dry_run,
        author: patch.author.clone(),
        measure: Measure::Any,
        shown: None,
    };
    let object = write.change(propose).await?;
    let mut response = call.answer(StatusCode::OK, &object)?;
    respond::warn(&mut response, &warnings.into_inner());
    Ok(response)
}

/// The refusal of a patch that leads to something which is not of the kind.
fn unfit(shown: String, why: &str) -> Status {
    let mut errors = FieldErrors::default();
    errors.invalid(&FieldPath::new("patch"), shown, why);
    Status::invalid(&GroupKind::new("", ""), "", &errors)
}

/// A complaint of the decoder in the words of the converter that strategic patches go through.
fn converter_words(why: &str) -> String {
    let Some((found, wanted)) = why
        .strip_prefix("json: cannot unmarshal ")
        .and_then(|rest| rest.split_once(" into Go struct field "))
    else {
        return why.to_owned();
    };
    let wanted = wanted.rsplit(" of type ").next().unwrap_or_default();
    let found = found.split(' ').next().unwrap_or_default();
    match wanted {
        list if list.starts_with("[]") => format!("cannot restore slice from {found}"),
        map if map.starts_with("map[") => format!("cannot restore map from {found}"),
        message if message.contains('.') => format!("cannot restore struct from: {found}"),
        plain => format!("unrecognized type: {plain}"),
    }
}

/// In an update the uid is a condition; a patch that names another one wants to change it.
pub(super) fn check_uid(
    operation: &Operation<'_>,
    current: &Doc,
    patched: &Doc,
) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    let uid = patched.at("/metadata/uid");
    // A patch that removes it means nothing by that.
    if !uid.is_null() {
        let path = FieldPath::new("metadata.uid");
        errors.immutable(&path, uid, current.at("/metadata/uid"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    let kind = operation.resource.group_kind();
    Err(Status::invalid(&kind, operation.name, &errors))
}

/// The patch of a request to an object of a kind.
pub(super) fn read(call: &Call, gvk: &Gvk) -> Result<Patch, Status> {
    let options = call.query.write_options("PatchOptions")?;
    if options.force.is_some() {
        let mut errors = FieldErrors::default();
        errors.forbidden(
            &FieldPath::new("force"),
            "may not be specified for non-apply patch",
        );
        return Err(query::options_invalid("PatchOptions", &errors));
    }
    Ok(Patch {
        change: read_change(call, gvk)?,
        gvk: gvk.clone(),
        custom: call
            .resource
            .custom
            .clone()
            .filter(|_| *gvk == call.resource.gvk),
        validation: options.validation,
        dry_run: options.dry_run,
        author: Author::of(call, &options.manager),
    })
}

fn read_change(call: &Call, gvk: &Gvk) -> Result<Change, Status> {
    let media_type = negotiate::media_type(&call.headers);
    let kind = Atlas::kind(gvk);
    let accepted: &[&str] = match kind {
        Some(_) => &[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH],
        // How lists are merged is known of built-in kinds alone.
        None => &[JSON_PATCH, MERGE_PATCH],
    };
    if !accepted.contains(&media_type.as_str()) {
        if call.resource.is_custom {
            let accepted = [JSON_PATCH, MERGE_PATCH, apply::APPLY_PATCH];
            return Err(Status::unsupported_media_type(&accepted));
        }
        return Err(Status::no_such_patch());
    }
    let is_strategic = media_type == STRATEGIC_PATCH;
    let parsed = match &call.given {
        Some(doc) => Ok(doc.clone()),
        None => Doc::parse(&call.body),
    };
    let doc = parsed.map_err(|error| {
        let error = error.to_string();
        let is_cut = error.ends_with("unexpected end of text");
        Status::bad_request(match (is_strategic, is_cut) {
            (true, true) => "unexpected end of JSON input".to_owned(),
            (true, false) => error,
            (false, _) => format!("error decoding patch: {error}"),
        })
    })?;
    if media_type == JSON_PATCH {
        return json_patch(&doc).map(Change::Json);
    }
    if doc.as_object().is_none() {
        let found = doc.kind().name();
        let where_found = if is_strategic {
            ""
        } else {
            "error decoding patch: "
        };
        return Err(Status::bad_request(format!(
            "{where_found}json: cannot unmarshal {found} into Go value of type \
             map[string]interface {{}}"
        )));
    }
    Ok(match kind {
        Some(kind) if media_type == STRATEGIC_PATCH => Change::Strategic(kind, doc),
        _ => Change::Merge(doc),
    })
}

fn json_patch(doc: &Doc) -> Result<JsonPatch, Status> {
    let count = doc.items().len();
    if count > OPERATIONS_LIMIT {
        return Err(Status::too_large(format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {OPERATIONS_LIMIT}, got {count}"
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

fn strategic_failed(error: &StrategicError) -> Status {
    match error.status() {
        400 => Status::bad_request(error.to_string()),
        422 => Status::unprocessable(error.to_string()),
        _ => Status::plain(error.to_string()),
    }
}

impl Patch {
    /// The changed state, which is of the kind, and warnings about it.
    pub(super) fn apply(&self, current: &Doc) -> Result<(Doc, Vec<String>), Status> {
        windlass_store::debug_assert_not_deciding("a patch");
        let patched = self.change.apply(current)?;
        let patched = self.typed(&patched, current)?;
        let mut strictness = Strictness {
            json: None,
            validation: self.validation,
            complaints: Vec::new(),
        };
        let conforming =
            object::conform(&patched, &self.gvk, self.custom.as_deref(), &mut strictness).map_err(
                |why| match &self.change {
                    Change::Strategic(_, patch) => unfit(go_text(patch), &converter_words(&why)),
                    _ => unfit(patched.to_string(), &why),
                },
            )?;
        Ok((conforming, strictness.complaints))
    }

    /// A state that says it is of the kind. A strategic patch cannot say anything else.
    fn typed(&self, patched: &Doc, current: &Doc) -> Result<Doc, Status> {
        if matches!(self.change, Change::Strategic(..)) {
            let keep = |patched: &Doc, key| object::keep_field(patched, key, current);
            return Ok(keep(&keep(patched, "kind"), "apiVersion"));
        }
        object::check_type(patched, &self.gvk)
            .map_err(|status| unfit(patched.to_string(), status.message()))
    }
}

impl Change {
    fn apply(&self, current: &Doc) -> Result<Doc, Status> {
        match self {
            Self::Merge(patch) => Ok(merge_patch(current, patch)),
            Self::Json(patch) => patch.apply(current).map_err(|error| rejected(&error)),
            Self::Strategic(kind, patch) => {
                strategic_merge(kind, current, patch).map_err(|error| strategic_failed(&error))
            }
        }
    }
}

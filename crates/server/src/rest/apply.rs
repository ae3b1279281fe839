//! Server-side apply: a patch that says what its author wants, not what to do.

use http::{Response, StatusCode};
use parking_lot::Mutex;
use windlass_atlas::apply::{ApplyError, Conflict};
use windlass_core::{Doc, Gvk, quote};

use super::fields::{self, Author};
use super::object::{self, Strictness};
use super::operation::Operation;
use super::size::Measure;
use super::write::{Part, Proposal, Write};
use super::{Call, create, patch, update};
use crate::body::Body;
use crate::negotiate;
use crate::query::{self, FieldValidation};
use crate::request::Verb;
use crate::respond;
use windlass_rules::field::Cause;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;

pub(super) const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// What is to be applied.
pub(super) struct Configuration {
    doc: Doc,
    /// A complaint for each field that is there twice.
    duplicates: Vec<String>,
    validation: FieldValidation,
    force: bool,
    pub(super) dry_run: bool,
    pub(super) author: Author,
}

/// Whether a patch is an apply.
pub(super) fn is_asked_for(call: &Call) -> bool {
    negotiate::media_type(&call.headers) == APPLY_PATCH
}

pub(super) async fn apply(call: &Call, part: Part) -> Result<Response<Body>, Status> {
    let configuration = read(call)?;
    let operation = call.operation();
    let (outcome, mut warnings) = change(operation, part, &configuration).await;
    let (code, object) = match outcome {
        Err(status) if status.code() == StatusCode::NOT_FOUND && part == Part::Main => {
            let created = create_by(call, &configuration, &mut warnings).await?;
            (StatusCode::CREATED, created)
        }
        outcome => (StatusCode::OK, outcome?),
    };
    let mut response = call.answer(code, &object)?;
    respond::warn(&mut response, &warnings);
    Ok(response)
}

/// Applies a configuration that the server makes to the status of an object, in the name of a
/// manager. Other managers give way.
pub(crate) async fn apply_status(
    operation: Operation<'_>,
    manager: &str,
    doc: Doc,
) -> Result<(), Status> {
    let configuration = Configuration {
        doc,
        duplicates: Vec::new(),
        validation: FieldValidation::Ignore,
        force: true,
        dry_run: false,
        author: Author {
            manager: manager.to_owned(),
            time: operation.server.inner().env.now(),
        },
    };
    let (outcome, _) = change(operation, Part::Status, &configuration).await;
    outcome.map(drop)
}

/// Applies a configuration to an object that is there. Gives warnings about it, too.
async fn change(
    operation: Operation<'_>,
    part: Part,
    configuration: &Configuration,
) -> (Result<Doc, Status>, Vec<String>) {
    // An apply may be tried twice; the warnings of the last time count.
    let warnings = Mutex::new(Vec::new());
    let propose = |current: &Doc| {
        let (merged, complaints) = merge(&operation, part, Some(current), configuration)?;
        *warnings.lock() = complaints;
        patch::check_uid(&operation, current, &merged)?;
        Ok(Proposal::Attributed(merged))
    };
    let write = configuration.write(operation, part);
    let outcome = write.change(propose).await;
    (outcome, warnings.into_inner())
}

/// Makes the object that a configuration describes.
async fn create_by(
    call: &Call,
    configuration: &Configuration,
    warnings: &mut Vec<String>,
) -> Result<Doc, Status> {
    let operation = call.operation();
    let (object, complaints) = merge(&operation, Part::New, None, configuration)?;
    let uid = object.meta().uid_str();
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was \
             found"
        );
        let (resource, name) = (operation.group_resource(), operation.name);
        return Err(Status::conflict(&resource, name, &why));
    }
    call.check_also(Verb::Create)?;
    *warnings = complaints;
    let object = object::edit_metadata(&object, |metadata| metadata.without("resourceVersion"));
    let object = create::dedupe_owners(object, warnings);
    let write = configuration.write(operation, Part::New);
    let proposal = Proposal::Attributed(object);
    write.create(&proposal, warnings).await
}

/// The configuration in a request.
pub(super) fn read(call: &Call) -> Result<Configuration, Status> {
    let options = call.query.write_options("PatchOptions")?;
    if options.manager.is_empty() {
        let mut errors = FieldErrors::default();
        let field = FieldPath::new("fieldManager");
        errors.required(&field, "is required for apply patch");
        return Err(query::options_invalid("PatchOptions", &errors));
    }
    let (doc, duplicates) = parse(call)?;
    Ok(Configuration {
        doc,
        duplicates,
        validation: options.validation,
        force: options.force.unwrap_or(false),
        dry_run: options.dry_run,
        author: Author::of(call, &options.manager),
    })
}

/// YAML, of which JSON is a part and the more frequent.
fn parse(call: &Call) -> Result<(Doc, Vec<String>), Status> {
    let refuse = |why: &str| Status::bad_request(format!("error decoding YAML: {why}"));
    let text = std::str::from_utf8(&call.body).map_err(|error| refuse(&error.to_string()))?;
    let (doc, duplicates) = match call.parse_json() {
        Ok(parsed) => {
            let paths = parsed.duplicates.iter().map(ToString::to_string);
            let complaints = paths.map(|path| duplicate(text, &path));
            (parsed.doc, complaints.collect())
        }
        Err(_) => {
            let parsed = Doc::parse_yaml_with_duplicates(text);
            let (docs, duplicates) = parsed.map_err(|error| {
                let error = error.to_string();
                let why = error.lines().next().unwrap_or_default();
                refuse(&format!("error converting YAML to JSON: yaml: {why}"))
            })?;
            let doc = docs.into_iter().next().unwrap_or_default();
            (doc, object::yaml_complaints(&duplicates))
        }
    };
    if doc.is_null() {
        return Ok((Doc::empty_object(), duplicates));
    }
    if doc.as_object().is_none() {
        let found = doc.kind().name();
        return Err(refuse(&format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go \
             value of type map[string]interface {{}}"
        )));
    }
    Ok((doc, duplicates))
}

/// The complaint about a key that comes a second time.
fn duplicate(text: &str, path: &str) -> String {
    let key = quote(path.rsplit(['.', ']']).next().unwrap_or(path));
    let before = text.rfind(&key).map_or("", |at| &text[..at]);
    let line = before.matches('\n').count() + 1;
    format!("line {line}: key {key} already set in map")
}

/// The live object with a configuration in it, and warnings about that.
fn merge(
    operation: &Operation<'_>,
    part: Part,
    live: Option<&Doc>,
    configuration: &Configuration,
) -> Result<(Doc, Vec<String>), Status> {
    let gvk = &operation.resource.gvk;
    check_type(gvk, &configuration.doc)?;
    let api_version = gvk.api_version();
    let author = &configuration.author;
    let merged = fields::with_write(operation, part, &api_version, author, |write| {
        fields::with_merging(operation.resource, |merging| {
            merging.apply(live, &configuration.doc, write, configuration.force)
        })
    });
    let merged = merged.map_err(|error| refused(gvk, &configuration.doc, &error))?;
    let complaints = configuration.complaints()?;
    let merged = named(operation, &merged)?;
    let mut strictness = Strictness {
        json: None,
        validation: FieldValidation::Ignore,
        complaints: Vec::new(),
    };
    let merged = object::check_type(&merged, gvk)?;
    let merged = object::conform(
        &merged,
        gvk,
        operation.resource.custom_schema(gvk),
        &mut strictness,
    )
    .map_err(|why| {
        let why = format!("failed to convert new object to proper version: {why}");
        Status::plain(why)
    })?;
    Ok((merged, complaints))
}

impl Configuration {
    /// The write of an object that a configuration is merged into, which notes its author.
    pub(super) fn write<'a>(&self, operation: Operation<'a>, part: Part) -> Write<'a> {
        Write {
            operation,
            part,
            dry_run: self.dry_run,
            author: self.author.clone(),
            measure: Measure::Any,
            shown: None,
        }
    }

    /// What is to be said about fields that come twice.
    fn complaints(&self) -> Result<Vec<String>, Status> {
        match self.validation {
            FieldValidation::Strict if !self.duplicates.is_empty() => {
                let all = self.duplicates.join("\n  ");
                Err(Status::bad_request(format!(
                    "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal \
                     errors:\n  {all}"
                )))
            }
            FieldValidation::Ignore => Ok(Vec::new()),
            _ => Ok(self.duplicates.clone()),
        }
    }

    /// Applies to something that is shown in another kind than it is stored in.
    pub(super) fn apply_to(
        &self,
        operation: &Operation<'_>,
        gvk: &Gvk,
        work: impl FnOnce(&Doc, bool) -> Result<Doc, ApplyError>,
    ) -> Result<Doc, Status> {
        check_type(gvk, &self.doc)?;
        let merged = work(&self.doc, self.force);
        let merged = merged.map_err(|error| refused(gvk, &self.doc, &error))?;
        self.complaints()?;
        named(operation, &merged)
    }
}

/// A configuration must say what it is of.
fn check_type(gvk: &Gvk, doc: &Doc) -> Result<(), Status> {
    let (api_version, kind) = (doc.str_at("/apiVersion"), doc.str_at("/kind"));
    if api_version == gvk.api_version() && kind == gvk.kind() {
        return Ok(());
    }
    let slash = match (api_version.contains('/'), api_version) {
        (_, "") => "/".to_owned(),
        (true, version) => version.to_owned(),
        (false, version) => format!("/{version}"),
    };
    Err(Status::bad_request(format!(
        "invalid object type: {slash}, Kind={kind}"
    )))
}

/// An object that has the name and the namespace of the path, or did not say.
fn named(operation: &Operation<'_>, merged: &Doc) -> Result<Doc, Status> {
    let merged = match operation.namespace {
        namespace if merged.meta().namespace().is_empty() && !namespace.is_empty() => {
            object::put(merged.clone(), "/metadata/namespace", namespace)
        }
        _ => merged.clone(),
    };
    update::check_identity(operation, &merged)?;
    Ok(merged)
}

fn refused(gvk: &Gvk, configuration: &Doc, error: &ApplyError) -> Status {
    match error {
        ApplyError::Conflicts(conflicts) | ApplyError::TooManyConflicts(conflicts) => {
            Status::fields_conflict(error.to_string(), conflicts.iter().map(cause).collect())
        }
        ApplyError::ManagedFields => Status::bad_request(error.to_string()),
        ApplyError::Unreadable(_) => {
            Status::plain(format!("failed to decode managed fields: {error}"))
        }
        _ => {
            let meta = configuration.meta();
            let (namespace, name) = (meta.namespace(), meta.name());
            let version = gvk.api_version();
            let slash = if version.contains('/') { "" } else { "/" };
            let kind = gvk.kind();
            Status::plain(format!(
                "failed to create typed patch object ({namespace}/{name}; {slash}{version}, \
                 Kind={kind}): {error}"
            ))
        }
    }
}

fn cause(conflict: &Conflict) -> Cause {
    Cause {
        reason: "FieldManagerConflict",
        message: format!("conflict with {}", conflict.manager),
        field: conflict.field.clone(),
    }
}

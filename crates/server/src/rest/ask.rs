//! Questions to admission extensions about requests that are no plain writes, and what all
//! questions share.

use windlass_access::matching::OperationType;
use windlass_core::{Doc, Gvk, Object};
use windlass_rules::status::Status;
use windlass_schema::custom;

use super::Call;
use super::object::{self, Strictness};
use super::operation::Operation;
use crate::extension::{self, Attributes, Mutating, Panel, Review, Surroundings};
use crate::query::FieldValidation;
use crate::registry::Table;

/// An operation as extensions see it, apart from its options.
pub(super) fn attributes<'a>(
    operation: &Operation<'a>,
    sort: OperationType,
    object: &Doc,
) -> Attributes<'a> {
    let resource = operation.resource;
    let name = match operation.name {
        "" => object.meta().name(),
        name => name,
    };
    let namespace = match resource.needs.is_namespace {
        true => name,
        false => operation.namespace,
    };
    let sub = resource.subresource(operation.subresource);
    Attributes {
        operation: sort,
        resource,
        kind: sub.map_or_else(|| resource.gvk.clone(), |sub| sub.gvk.clone()),
        subresource: operation.subresource,
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        user: operation.user,
        dry_run: false,
        options: Doc::NULL,
    }
}

/// The options of a write as extensions see them.
pub(super) fn write_options(operation: &Operation<'_>, kind: &str) -> Doc {
    let mut options = Object::empty()
        .with("kind", kind.into())
        .with("apiVersion", "meta.k8s.io/v1".into());
    let Some(request) = operation.request else {
        return options.into();
    };
    let dry_run: Vec<Doc> = request.query.all("dryRun").map(Doc::from).collect();
    if !dry_run.is_empty() {
        options = options.with("dryRun", dry_run.into());
    }
    for key in ["fieldManager", "fieldValidation"] {
        let value = request.query.get(key);
        if !value.is_empty() {
            options = options.with(key, value.into());
        }
    }
    options.into()
}

/// The rest of the server as extensions see it; `None` if the server itself acts.
pub(super) fn surroundings<'a>(
    operation: &Operation<'a>,
    table: &'a Table,
) -> Option<Surroundings<'a>> {
    let inner = operation.server.inner();
    let request = operation.request?;
    Some(Surroundings {
        storage: &inner.storage,
        table,
        env: &inner.env,
        metrics: &inner.metrics,
        callouts: &inner.callouts,
        notes: request.notes,
        fit,
    })
}

/// Reads an object that an extension changed.
fn fit(doc: &Doc, gvk: &Gvk, custom: Option<&custom::Version>) -> Result<Doc, String> {
    let typed = object::check_type(doc, gvk).map_err(|status| status.message().to_owned())?;
    let mut strictness = Strictness {
        json: None,
        validation: FieldValidation::Ignore,
        complaints: Vec::new(),
    };
    object::conform(&typed, gvk, custom, &mut strictness)
}

/// A question about something that is not stored: a connection, a binding, an eviction, a token, a
/// review.
#[derive(Debug)]
pub(super) struct Question<'a> {
    pub(super) operation: Operation<'a>,
    pub(super) sort: OperationType,
    /// The kind of the object.
    pub(super) kind: Gvk,
    pub(super) object: Doc,
    pub(super) dry_run: bool,
}

impl Question<'_> {
    /// Asks all extensions, and gives the object as they changed it.
    pub(super) async fn ask(self) -> Result<Doc, Status> {
        let inner = self.operation.server.inner();
        let object = self.object;
        if !self.operation.has_extensions() {
            return Ok(object);
        }
        let options = match self.sort {
            OperationType::Connect => Doc::NULL,
            _ => write_options(&self.operation, "CreateOptions"),
        };
        let attributes = Attributes {
            kind: self.kind,
            options,
            dry_run: self.dry_run,
            ..attributes(&self.operation, self.sort, &object)
        };
        let panel = inner.extensions.panel(&inner.storage, &attributes);
        ask_all(&self.operation, &attributes, &panel, object).await
    }
}

async fn ask_all(
    operation: &Operation<'_>,
    attributes: &Attributes<'_>,
    panel: &Panel,
    object: Doc,
) -> Result<Doc, Status> {
    let table = operation.server.inner().registry.table();
    let Some(surroundings) = surroundings(operation, &table).filter(|_| !panel.is_empty()) else {
        return Ok(object);
    };
    let review = Review {
        attributes,
        surroundings,
        object: Some(object.clone()),
        old: None,
    };
    let mut mutating = Mutating {
        review,
        round: 0,
        reinvoke: false,
    };
    extension::mutate(panel, &mut mutating, &Ok).await?;
    for extension in panel {
        extension.validate(&mutating.review).await?;
    }
    Ok(mutating.review.object.unwrap_or(object))
}

/// Returns true if an extension may have to be asked about the deletion of an object.
pub(super) fn is_asked_about_deletion(operation: &Operation<'_>) -> bool {
    if !operation.has_extensions() {
        return false;
    }
    let inner = operation.server.inner();
    let attributes = attributes(operation, OperationType::Delete, &Doc::NULL);
    let panel = inner.extensions.panel(&inner.storage, &attributes);
    !panel.is_empty()
}

/// Asks about the deletion of an object. Nothing can be changed in it.
pub(super) async fn about_deletion(
    operation: &Operation<'_>,
    old: &Doc,
    options: &Doc,
    (is_many, dry_run): (bool, bool),
) -> Result<(), Status> {
    let inner = operation.server.inner();
    if !operation.has_extensions() {
        return Ok(());
    }
    let attributes = attributes(operation, OperationType::Delete, old);
    let attributes = Attributes {
        // A deletion of many names none of them, as upstream has it.
        name: if is_many {
            String::new()
        } else {
            attributes.name
        },
        options: options.clone(),
        dry_run,
        ..attributes
    };
    let panel = inner.extensions.panel(&inner.storage, &attributes);
    let table = inner.registry.table();
    let Some(surroundings) = surroundings(operation, &table).filter(|_| !panel.is_empty()) else {
        return Ok(());
    };
    let review = Review {
        attributes: &attributes,
        surroundings,
        object: None,
        old: Some(old.clone()),
    };
    let mut mutating = Mutating {
        review,
        round: 0,
        reinvoke: false,
    };
    extension::mutate(&panel, &mut mutating, &Ok).await?;
    for extension in &panel {
        extension.validate(&mutating.review).await?;
    }
    Ok(())
}

/// `DeleteOptions` as extensions see them.
pub(super) fn delete_options(call: &Call, body: &Doc) -> Doc {
    let given = body.as_object().cloned().unwrap_or_else(Object::empty);
    let mut options = given
        .with("kind", "DeleteOptions".into())
        .with("apiVersion", "meta.k8s.io/v1".into());
    let dry_run: Vec<Doc> = call.query.all("dryRun").map(Doc::from).collect();
    if !dry_run.is_empty() {
        options = options.with("dryRun", dry_run.into());
    }
    options.into()
}

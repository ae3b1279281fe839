//! One version of a custom resource: its schema, and what its objects must fulfil.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use windlass_atlas::apply::{ApplyError, Creations, Merging, Write};
use windlass_cel::Budget;
use windlass_core::{Doc, Env, GroupResource, Kind, Object};

use super::merge::Place;
use super::rules::Evaluation;
use super::schema::Node;
use super::validate::Validation;
use super::values::{self, Pruning};
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::hooks::Hooks;
use windlass_rules::reader::Reader;
use windlass_rules::status::Status;

/// One version of a custom resource.
#[derive(Debug)]
pub struct Version {
    pub(crate) schema: Arc<Node>,
    /// The schema as its author wrote it, for publishing.
    pub source: Doc,
    pub(crate) api_version: String,
    /// The version objects are stored in.
    pub(crate) storage_version: String,
    pub(crate) list_kind: String,
    /// The schemas of all versions, by their `apiVersion`.
    pub(crate) siblings: Arc<BTreeMap<String, Arc<Node>>>,
    pub(crate) has_status: bool,
    /// The paths of the scale subresource, if there is one.
    pub scale: Option<Scale>,
    /// What is said to everybody who uses a deprecated version.
    pub deprecation: Option<String>,
    /// Objects written since this revision of the store are as the schema wants them.
    pub since: u64,
    /// Set while the definition is being deleted.
    pub is_terminating: bool,
    /// The resource, as messages name it.
    pub(crate) resource: GroupResource,
    /// Returns true if nobody waits any more for the work of this thread.
    pub(crate) is_cancelled: fn() -> bool,
}

/// Where the numbers of the scale subresource are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The number of replicas that are wanted; all are JSON pointers.
    pub spec_replicas: String,
    /// The number of replicas there are.
    pub status_replicas: String,
    /// The selector of the pods, as text.
    pub selector: Option<String>,
}

impl Version {
    /// An object without fields that the schema does not name, and where those were.
    #[must_use]
    pub fn prune(&self, object: &Doc) -> (Doc, Vec<String>) {
        let mut pruning = Pruning::new();
        let pruned = pruning.run(&self.schema, object, true);
        (pruned.unwrap_or_else(|| object.clone()), pruning.unknown)
    }

    /// The metadata of whole objects inside, as `fix` makes it.
    pub fn map_metadata(
        &self,
        object: &Doc,
        fix: &mut dyn FnMut(&Doc, &str) -> Result<Doc, String>,
    ) -> Result<Doc, String> {
        let mapped = values::map_metadata(&self.schema, object, &FieldPath::new(""), fix)?;
        Ok(mapped.unwrap_or_else(|| object.clone()))
    }

    /// An object with its defaults and without nulls that mean nothing.
    fn settle(&self, object: Doc) -> Doc {
        values::settle(&self.schema, &object).unwrap_or(object)
    }

    /// A stored object in this version, with the defaults and without the unknown fields of the
    /// version it is stored in.
    #[must_use]
    pub fn view(&self, stored: &Doc) -> Doc {
        let revision = stored.meta().resource_version().parse::<u64>();
        let is_fresh = revision.is_ok_and(|revision| revision > self.since);
        let version = stored.str_at("/apiVersion");
        if is_fresh && version == self.api_version {
            return stored.clone();
        }
        let object = match self.siblings.get(version) {
            Some(schema) => fit(schema, stored),
            None => stored.clone(),
        };
        object
            .with("/apiVersion", self.api_version.as_str())
            .unwrap_or(object)
    }

    /// An object in the version it is stored in, which is all that is kept of it.
    #[must_use]
    pub fn to_storage(&self, object: &Doc) -> Doc {
        if self.api_version == self.storage_version {
            return object.clone();
        }
        let object = object
            .with("/apiVersion", self.storage_version.as_str())
            .unwrap_or_else(|_| object.clone());
        match self.siblings.get(&self.storage_version) {
            Some(schema) => fit(schema, &object),
            None => object,
        }
    }

    fn check(&self, new: &Doc, old: Option<&Doc>, errors: &mut FieldErrors) {
        let root = FieldPath::new("");
        let mut validation = Validation {
            errors,
            base: root.clone(),
        };
        validation.run(&self.schema, new, old, &root);
        self.check_scale(new, true, errors);
        let mut validation = Validation {
            errors,
            base: root.clone(),
        };
        validation.embedded(&self.schema, new, &root);
        let was_unique = old.is_none_or(|old| {
            let mut found = FieldErrors::default();
            let mut validation = Validation {
                errors: &mut found,
                base: root.clone(),
            };
            validation.uniqueness(&self.schema, old, &root);
            found.is_empty()
        });
        if was_unique {
            validation.uniqueness(&self.schema, new, &root);
        }
        self.evaluate(&self.schema, new, old, &root, errors);
    }

    /// Evaluates rules, unless something stands in their way.
    fn evaluate(
        &self,
        node: &Node,
        new: &Doc,
        old: Option<&Doc>,
        path: &FieldPath,
        errors: &mut FieldErrors,
    ) {
        if !self.schema.has_rules {
            return;
        }
        if errors.is_blocking() {
            let why = "some validation rules were not checked because the object was invalid; correct the existing errors \
                       to complete validation";
            errors.invalid(&FieldPath::new("<nil>"), Doc::NULL, why);
            return;
        }
        let mut evaluation = Evaluation {
            errors,
            budget: Budget::default().with_cancellation(&self.is_cancelled),
        };
        // Once the budget is gone, that is the last error.
        let _ = evaluation.run(node, new, old, path);
    }

    /// Returns true if objects are validated by expressions.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.schema.has_rules
    }

    fn check_scale(&self, object: &Doc, with_spec: bool, errors: &mut FieldErrors) {
        let Some(scale) = &self.scale else {
            return;
        };
        if with_spec {
            check_count(object, &scale.spec_replicas, errors);
        }
        check_count(object, &scale.status_replicas, errors);
    }
}

/// An object with the defaults of a schema and without what the schema does not know.
fn fit(schema: &Node, object: &Doc) -> Doc {
    let settled = values::settle(schema, object).unwrap_or_else(|| object.clone());
    let pruned = Pruning::new().run(schema, &settled, true);
    pruned.unwrap_or(settled)
}

/// A count of replicas must be a whole number that is not negative.
fn check_count(object: &Doc, pointer: &str, errors: &mut FieldErrors) {
    let path = pointer.replace('/', ".");
    let field = FieldPath::new(&path);
    let mut place = object;
    for name in pointer.split('/').skip(1) {
        match place.kind() {
            Kind::Object(_) => {}
            Kind::Null => return,
            _ => {
                let why = format!(
                    "{path} accessor error: {place} is of the type {}, expected map[string]interface{{}}",
                    go_type(place)
                );
                return errors.invalid(&field, 0, why);
            }
        }
        match place.get(name) {
            Some(value) => place = value,
            None => return,
        }
    }
    match place.as_i64() {
        None => {
            let shown = place
                .as_str()
                .map_or_else(|| place.to_string(), str::to_owned);
            let why = format!(
                "{path} accessor error: {shown} is of the type {}, expected int64",
                go_type(place)
            );
            errors.invalid(&field, 0, why);
        }
        Some(count) if count < 0 => {
            errors.invalid(&field, count, "should be a non-negative integer")
        }
        Some(count) if i32::try_from(count).is_err() => {
            errors.invalid(
                &field,
                count,
                format!("should be less than or equal to {}", i32::MAX),
            );
        }
        Some(_) => {}
    }
}

fn go_type(value: &Doc) -> &'static str {
    match value.kind() {
        Kind::Null => "<nil>",
        Kind::Bool(_) => "bool",
        Kind::Int(_) | Kind::UInt(_) => "int64",
        Kind::Float(_) => "float64",
        Kind::Str(_) => "string",
        Kind::Array(_) => "[]interface {}",
        Kind::Object(_) => "map[string]interface {}",
    }
}

/// What objects of a custom resource do.
pub(crate) struct CustomHooks(pub(crate) Arc<Version>);

impl fmt::Debug for CustomHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomHooks")
    }
}

impl Hooks for CustomHooks {
    fn admit(&self, object: Doc, _objects: &dyn Reader) -> Result<Doc, Status> {
        if self.0.is_terminating {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(
                &self.0.resource,
                object.meta().name(),
                why,
            ));
        }
        Ok(object)
    }

    fn default(&self, object: Doc) -> Doc {
        self.0.settle(object)
    }

    fn prepare_create(&self, object: Doc, _env: &Env) -> Doc {
        if !self.0.has_status {
            return object;
        }
        let fields = object.as_object().cloned().unwrap_or_else(Object::empty);
        fields.without("status").into()
    }

    fn prepare_status(&self, new: Doc, old: &Doc) -> Doc {
        let fields = old.as_object().cloned().unwrap_or_else(Object::empty);
        match new.get("status") {
            Some(status) => fields.with("status", status.clone()).into(),
            None => fields.without("status").into(),
        }
    }

    fn validate(&self, object: &Doc, errors: &mut FieldErrors) {
        self.0.check(object, None, errors);
    }

    fn validate_change(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        self.0.check(new, Some(old), errors);
    }

    fn validate_status(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let status = FieldPath::new("status");
        let Some(node) = self.0.schema.property("status") else {
            return;
        };
        if let Some(value) = new.get("status") {
            let mut validation = Validation {
                errors,
                base: status.clone(),
            };
            validation.run(node, value, old.get("status"), &FieldPath::new(""));
            validation.uniqueness(node, value, &status);
        }
        self.0.check_scale(new, false, errors);
        self.0
            .evaluate(&self.0.schema, new, Some(old), &FieldPath::new(""), errors);
    }

    fn status_resets(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"], &["metadata"]]
    }

    fn merging(&self) -> Option<&dyn Merging> {
        Some(&*self.0)
    }

    fn warnings(&self, object: &Doc) -> Vec<String> {
        finalizer_warnings(object)
    }
}

/// Finalizers that other writers may take for their own.
fn finalizer_warnings(object: &Doc) -> Vec<String> {
    let is_plain = |name: &&str| {
        !name.contains('/') && !matches!(*name, "kubernetes" | "orphan" | "foregroundDeletion")
    };
    let warn = |name: &str| {
        let with = if name.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{with} to avoid accidental conflicts \
             with other finalizer writers"
        )
    };
    object
        .meta()
        .finalizers()
        .filter(is_plain)
        .map(warn)
        .collect()
}

impl Merging for Version {
    fn apply(
        &self,
        live: Option<&Doc>,
        config: &Doc,
        write: &Write<'_>,
        force: bool,
    ) -> Result<Doc, ApplyError> {
        Merging::apply(&Place::root(&self.schema), live, config, write, force)
    }

    fn track(&self, live: Option<&Doc>, new: &Doc, write: &Write<'_>) -> Doc {
        Merging::track(&Place::root(&self.schema), live, new, write)
    }

    fn create(&self, new: &Doc, write: &Write<'_>, memory: &Creations) -> Doc {
        Merging::create(&Place::root(&self.schema), new, write, memory)
    }

    fn overlay(&self, whole: &Doc, partial: &Doc) -> Result<Doc, String> {
        Merging::overlay(&Place::root(&self.schema), whole, partial)
    }
}

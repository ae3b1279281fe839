//! What the server knows about one kind.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_atlas::apply::Merging;
use windlass_atlas::{Atlas, canonical};
use windlass_core::{Doc, Env, GroupKind, GroupResource, Gvk};
use windlass_store::Resource as Shelf;

use super::needs::Needs;
use crate::crd;
use crate::field::FieldErrors;
use crate::request::Verb;
use crate::status::Status;
use crate::storage::Storage;
use crate::table::Column;

/// One row of the registry.
#[derive(Debug)]
pub(crate) struct Resource {
    /// The kind in the version of this row.
    pub(crate) gvk: Gvk,
    /// The name in paths.
    pub(crate) plural: Cow<'static, str>,
    /// The name in discovery for one object.
    pub(crate) singular: Cow<'static, str>,
    /// Short names for people.
    pub(crate) short_names: Vec<Cow<'static, str>>,
    /// Groups of kinds that people list together.
    pub(crate) categories: Vec<Cow<'static, str>>,
    /// Whether objects live in namespaces.
    pub(crate) scope: Scope,
    /// What can be done to the kind, in alphabetical order.
    pub(crate) verbs: Vec<Verb>,
    /// Parts of an object with their own path.
    pub(crate) subresources: Vec<Subresource>,
    /// What `kubectl get` shows after the name; the age alone if empty.
    pub(crate) columns: Cow<'static, [Column]>,
    /// Fields that a field selector may name besides the name and the namespace.
    pub(crate) fields: Vec<SelectableField>,
    /// What a name must look like.
    pub(crate) names: NameRule,
    /// When the generation goes up.
    pub(crate) generation: Generation,
    /// Whether an update without a resource version is taken.
    pub(crate) unconditional_update: bool,
    /// Whether an update of an absent object creates it.
    pub(crate) create_on_update: bool,
    /// Whether a delete answers with the object instead of a `Status`.
    pub(crate) returns_deleted: bool,
    /// What happens to dependents when a delete does not say.
    pub(crate) garbage: GarbagePolicy,
    /// Whether list items carry their own kind, as those of custom resources do.
    pub(crate) is_custom: bool,
    /// Under which name the objects are stored. Rows of several versions share one.
    pub(crate) shelf: Shelf,
    /// The way to the stored form and back, for rows that are not the stored version.
    pub(crate) conversion: Option<Conversion>,
    /// How long an object lives after its last write; for ever if absent.
    pub(crate) ttl: Option<Duration>,
    /// What the rest of the server does for the kind.
    pub(crate) needs: Needs,
    /// What the kind does beyond the rules above.
    pub(crate) hooks: Arc<dyn Hooks>,
    /// The schema of a custom resource.
    pub(crate) custom: Option<Arc<crd::Version>>,
}

/// A field that a field selector may name.
#[derive(Clone, Debug)]
pub(crate) struct SelectableField {
    /// The name in selectors.
    pub(crate) label: Cow<'static, str>,
    /// Where the value stands.
    pub(crate) pointer: Cow<'static, str>,
    /// The value of an object that has none.
    pub(crate) absent: &'static str,
}

/// Whether objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
}

/// A part of an object with its own path.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    pub(crate) name: &'static str,
    /// The kind that is read and written there.
    pub(crate) gvk: Gvk,
    /// In alphabetical order.
    pub(crate) verbs: &'static [Verb],
    pub(crate) sort: Sub,
}

/// What a subresource does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sub {
    /// The status, written apart from the rest.
    Status,
    /// The number of replicas.
    Scale,
    /// Assigns a pod to a node.
    Binding,
    /// Deletes a pod if its disruption budget allows.
    Eviction,
    /// Issues a token for a service account.
    Token,
    /// The finalizers of a namespace's spec.
    Finalize,
    /// A restricted write to the main object.
    Part(&'static [&'static str]),
    /// A restricted write to the main object that counts against quotas: the resize of a pod.
    Resize(&'static [&'static str]),
    /// The log of a pod, of which there is none without a node.
    Log,
}

/// What a name must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    Subdomain,
    Label,
    PathSegment,
}

/// When the generation of an object goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Never: the kind has none.
    Absent,
    /// With the spec.
    Spec,
    /// With the spec or the annotations.
    SpecOrAnnotations,
    /// With anything outside the metadata and the status.
    AllButStatus,
    /// With anything outside the metadata.
    Content,
    /// With anything outside the metadata, or the labels.
    ContentOrLabels,
}

/// What happens to dependents when a delete does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GarbagePolicy {
    /// They are deleted in the background.
    Background,
    /// They are left alone.
    Orphan,
    /// The kind can have none.
    Unsupported,
}

/// The way from the version of a row to the stored form, and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    /// The version of the stored form.
    pub(crate) api_version: &'static str,
    pub(crate) to_storage: fn(&Doc) -> Doc,
    pub(crate) from_storage: fn(&Doc) -> Doc,
}

/// What a kind does beyond the rules of its row. Every method has a default that does nothing.
///
/// `rest/write.rs` lists the steps of a write, and so the order in which these are called.
pub(crate) trait Hooks: Send + Sync {
    /// Fills in what follows from other objects, or refuses a new object because of them.
    fn admit(&self, object: Doc, _storage: &Storage) -> Result<Doc, Status> {
        Ok(object)
    }

    /// The reason for which a body cannot be read, although its fields have the right types.
    fn unreadable(&self, _object: &Doc) -> Option<String> {
        None
    }

    /// Fills in what the client left out.
    fn default(&self, object: Doc) -> Doc {
        object
    }

    /// Sets what only the server sets, before a new object is validated.
    fn prepare_create(&self, object: Doc, _env: &Env) -> Doc {
        object
    }

    /// Whether a new object may come with a status, as nodes do, which describe themselves.
    fn creates_with_status(&self) -> bool {
        false
    }

    /// Puts back what a plain update may not change.
    fn prepare_update(&self, new: Doc, _old: &Doc) -> Doc {
        new
    }

    /// Puts back what a status update may not change. The spec is already back.
    fn prepare_status(&self, new: Doc, _old: &Doc) -> Doc {
        new
    }

    /// Finds what is wrong with an object, new or changed.
    fn validate(&self, _object: &Doc, _errors: &mut FieldErrors) {}

    /// Finds what is wrong with an object only while it is new.
    fn validate_create(&self, _object: &Doc, _errors: &mut FieldErrors) {}

    /// Finds what may not change.
    fn validate_update(&self, _new: &Doc, _old: &Doc, _errors: &mut FieldErrors) {}

    /// Finds what a part with its own path may not change.
    fn validate_part(&self, _new: &Doc, _old: &Doc, _errors: &mut FieldErrors) {}

    /// Finds what is wrong with an object that was another one before.
    fn validate_change(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        self.validate(new, errors);
        self.validate_update(new, old, errors);
    }

    /// Finds what is wrong with a new status.
    fn validate_status(&self, _new: &Doc, _old: &Doc, _errors: &mut FieldErrors) {}

    /// Refuses a deletion.
    fn check_delete(&self, _object: &Doc) -> Result<(), Status> {
        Ok(())
    }

    /// How long an object lingers after a delete, for kinds that end gracefully. `asked` is what
    /// the client wants.
    fn grace_seconds(&self, _object: &Doc, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// Changes an object as its deletion begins.
    fn begin_delete(&self, object: Doc) -> Doc {
        object
    }

    /// Whether something besides finalizers keeps an object whose deletion began.
    fn is_held(&self, _object: &Doc) -> bool {
        false
    }

    /// A word of caution to who deletes an object without saying what becomes of its dependents.
    fn delete_warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// The status of a new object.
    fn initial_status(&self) -> Doc {
        Doc::empty_object()
    }

    /// The fields that an update of the status leaves as they are, and with them who set them.
    fn status_resets(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"]]
    }

    /// How the fields of objects merge, for kinds that are not built in.
    fn merging(&self) -> Option<&dyn Merging> {
        None
    }

    /// Who makes the objects that are there from the start.
    fn first_manager(&self) -> &'static str {
        "kube-apiserver"
    }

    /// The objects of a kind that is not stored, made when they are asked for.
    fn made(&self) -> Option<Vec<Doc>> {
        None
    }

    /// Where an object comes in a table, before its name counts.
    fn table_rank(&self, _object: &Doc) -> i64 {
        0
    }

    /// What is said to everybody who uses a kind that will go.
    fn deprecation(&self) -> Option<&'static str> {
        None
    }

    /// A word of caution to the author of an object.
    fn warnings(&self, _object: &Doc) -> Vec<String> {
        Vec::new()
    }
}

/// For kinds that need nothing more.
#[derive(Debug)]
pub(crate) struct NoHooks;

impl Hooks for NoHooks {}

impl fmt::Debug for dyn Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

impl Resource {
    /// The group and plural, as messages name the resource.
    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.gvk.group().to_owned(), self.plural.to_string())
    }

    /// The group and kind, as messages about fields name it.
    pub(crate) fn group_kind(&self) -> GroupKind {
        self.gvk.group_kind()
    }

    /// Returns true if objects are validated by expressions.
    pub(crate) fn has_rules(&self) -> bool {
        self.custom
            .as_ref()
            .is_some_and(|version| version.has_rules())
    }

    /// The schema by which objects of a kind are read, if it is that of a custom resource.
    pub(crate) fn custom_schema(&self, gvk: &Gvk) -> Option<&crd::Version> {
        self.custom.as_deref().filter(|_| *gvk == self.gvk)
    }

    /// Whether objects live in namespaces.
    pub(crate) fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// What is said to everybody who uses the kind, if it will go.
    pub(crate) fn deprecation(&self) -> Option<String> {
        match &self.custom {
            Some(custom) => custom.deprecation.clone(),
            None => self.hooks.deprecation().map(str::to_owned),
        }
    }

    /// Whether a verb is served.
    pub(crate) fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// A part with its own path.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether the status is written apart from the rest.
    pub(crate) fn has_status(&self) -> bool {
        self.subresources.iter().any(|sub| sub.sort == Sub::Status)
    }

    /// An object with exactly the empty fields that upstream writes.
    pub(crate) fn canonical(&self, object: Doc) -> Doc {
        match Atlas::kind(&self.gvk) {
            Some(kind) => canonical(kind, &object),
            None => object,
        }
    }

    /// The form in which an object is stored.
    pub(crate) fn to_storage(&self, object: &Doc) -> Doc {
        match (&self.custom, self.conversion) {
            (Some(custom), _) => custom.to_storage(object),
            (None, Some(conversion)) => (conversion.to_storage)(object),
            (None, None) => object.clone(),
        }
    }

    /// An object in the version of this row.
    pub(crate) fn view(&self, object: &Doc) -> Doc {
        match (&self.custom, self.conversion) {
            (Some(custom), _) => custom.view(object),
            (None, Some(conversion)) => (conversion.from_storage)(object),
            (None, None) => object.clone(),
        }
    }

    /// The version in which objects are stored, with its group.
    pub(crate) fn stored_version(&self) -> String {
        match (&self.custom, self.conversion) {
            (Some(custom), _) => custom.storage_version.clone(),
            (None, Some(conversion)) => conversion.api_version.to_owned(),
            (None, None) => self.gvk.api_version(),
        }
    }

    /// The kind of a list.
    pub(crate) fn list_kind(&self) -> String {
        match &self.custom {
            Some(custom) => custom.list_kind.clone(),
            None => format!("{}List", self.gvk.kind()),
        }
    }
}

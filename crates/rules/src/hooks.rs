//! Hooks: what a kind does beyond the rules of its row in the registry.

use std::fmt;

use windlass_atlas::apply::Merging;
use windlass_core::{Doc, Env, Time};

use crate::field::FieldErrors;
use crate::reader::Reader;
use crate::status::Status;

/// The way from the version of a row to the stored form, and back.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// The version of the stored form.
    pub api_version: &'static str,
    /// From the version of the row to the stored form.
    pub to_storage: fn(&Doc) -> Doc,
    /// From the stored form to the version of the row.
    pub from_storage: fn(&Doc) -> Doc,
}

/// The function that lists the objects of a group, a resource and a namespace (empty for all).
type ListObjects<'a> = dyn Fn(&str, &str, &str) -> Vec<Doc> + 'a;

/// The state of a cluster from which objects of kinds that are not stored are made.
pub struct MadeFrom<'a> {
    /// The time of the request.
    pub now: Time,
    /// The namespace of the request; empty for all.
    pub namespace: &'a str,
    list: &'a ListObjects<'a>,
}

impl<'a> MadeFrom<'a> {
    /// The state at a time, as a request for a namespace sees it.
    pub fn new(now: Time, namespace: &'a str, list: &'a ListObjects<'a>) -> Self {
        Self {
            now,
            namespace,
            list,
        }
    }

    /// The stored objects of a resource, of one namespace or of all (empty).
    #[must_use]
    pub fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Doc> {
        (self.list)(group, resource, namespace)
    }
}

impl fmt::Debug for MadeFrom<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MadeFrom({})", self.now)
    }
}

/// What a kind does beyond the rules of its row. Every method has a default that does nothing.
///
/// The server calls them in the order of the steps of a write (`rest/write.rs` of the server).
pub trait Hooks: Send + Sync {
    /// Fills in what follows from other objects, or refuses a new object because of them.
    fn admit(&self, object: Doc, _objects: &dyn Reader) -> Result<Doc, Status> {
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

    /// Puts back what a resize may not change. Only containers differ.
    fn prepare_resize(&self, new: Doc, _old: &Doc) -> Doc {
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
    fn made(&self, _from: &MadeFrom<'_>) -> Option<Vec<Doc>> {
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
pub struct NoHooks;

impl Hooks for NoHooks {}

impl fmt::Debug for dyn Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

//! Namespaces.

use windlass_core::{Doc, Env, GroupResource, doc};

use crate::edit::edit;
use crate::edit::{cut, put};
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;
use crate::status::Status;

const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// Held by the namespace controller until everything inside is gone.
const FINALIZER: &str = "kubernetes";
/// Names of finalizers without a domain.
const STANDARD_FINALIZERS: &[&str] = &[FINALIZER, "orphan", "foregroundDeletion"];
/// Namespaces that a cluster cannot be without.
const PROTECTED: &[&str] = &["default", "kube-system", "kube-public"];

/// Hooks of namespaces.
#[derive(Debug)]
pub struct Namespaces;

impl Hooks for Namespaces {
    fn default(&self, namespace: Doc) -> Doc {
        let namespace = edit(&namespace, |namespace| {
            namespace.default("spec", Doc::empty_object());
            namespace.default("status", doc!({ "phase": "Active" }));
        });
        with_name_label(namespace)
    }

    fn prepare_create(&self, namespace: Doc, _env: &Env) -> Doc {
        let namespace = put(namespace, "/status", doc!({ "phase": "Active" }));
        let known = namespace.at("/spec/finalizers").items();
        let mut finalizers = known.to_vec();
        if !known.iter().any(|finalizer| *finalizer == FINALIZER) {
            finalizers.push(FINALIZER.into());
        }
        with_name_label(put(namespace, "/spec/finalizers", finalizers))
    }

    fn prepare_update(&self, new: Doc, old: &Doc) -> Doc {
        put(new, "/spec", old.at("/spec"))
    }

    fn validate(&self, namespace: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec").child("finalizers");
        for name in namespace.at("/spec/finalizers").items() {
            let name = name.as_str().unwrap_or_default();
            errors.invalid_each(&path, name, windlass_core::names::qualified_name(name));
            if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
                let detail = "name is neither a standard finalizer name nor is it fully qualified";
                errors.invalid(&path, name, detail);
            }
        }
    }

    fn validate_status(&self, new: &Doc, _old: &Doc, errors: &mut FieldErrors) {
        let phase = new.str_at("/status/phase");
        let (wanted, emptiness) = match new.meta().is_deleting() {
            true => ("Terminating", "is not empty"),
            false => ("Active", "is empty"),
        };
        if phase != wanted {
            let detail = format!("may only be '{wanted}' if `deletionTimestamp` {emptiness}");
            errors.invalid(&FieldPath::new("status").child("Phase"), phase, detail);
        }
    }

    fn check_delete(&self, namespace: &Doc) -> Result<(), Status> {
        let name = namespace.meta().name();
        if PROTECTED.contains(&name) {
            let namespaces = GroupResource::new("", "namespaces");
            return Err(Status::forbidden(
                &namespaces,
                name,
                "this namespace may not be deleted",
            ));
        }
        Ok(())
    }

    fn begin_delete(&self, namespace: Doc) -> Doc {
        // Namespaces do not say how long they take.
        let namespace = cut(namespace, "/metadata/deletionGracePeriodSeconds");
        put(namespace, "/status/phase", "Terminating")
    }

    fn is_held(&self, namespace: &Doc) -> bool {
        !namespace.at("/spec/finalizers").items().is_empty()
    }
}

/// The label by which selectors find a namespace by its name.
fn with_name_label(namespace: Doc) -> Doc {
    let name = namespace.meta().name().to_owned();
    if name.is_empty() {
        return namespace;
    }
    crate::edit::edit_metadata(&namespace, |metadata| {
        let labels = metadata.get("labels").and_then(Doc::as_object).cloned();
        let labels = labels.unwrap_or_else(windlass_core::Object::empty);
        metadata.with("labels", labels.with(NAME_LABEL, name.into()).into())
    })
}

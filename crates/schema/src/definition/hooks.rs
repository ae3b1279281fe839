//! What CustomResourceDefinitions do as objects.

use windlass_core::{Doc, Env, Object, doc};

use super::CLEANUP;
use crate::custom::formats::Format;
use windlass_rules::edit::{edit_metadata, put};
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::hooks::Hooks;

/// The hooks of definitions.
#[derive(Debug)]
pub struct DefinitionHooks;

impl Hooks for DefinitionHooks {
    fn default(&self, crd: Doc) -> Doc {
        let names = crd.at("/spec/names");
        let kind = names.str_at("/kind").to_owned();
        let mut filled = crd.clone();
        if names.str_at("/singular").is_empty() && !kind.is_empty() {
            filled = put(filled, "/spec/names/singular", kind.to_lowercase());
        }
        if names.str_at("/listKind").is_empty() && !kind.is_empty() {
            filled = put(filled, "/spec/names/listKind", format!("{kind}List"));
        }
        if crd.at("/spec/conversion").is_null() && crd.at("/spec").as_object().is_some() {
            filled = put(filled, "/spec/conversion", doc!({ "strategy": "None" }));
        }
        filled
    }

    fn prepare_create(&self, crd: Doc, _env: &Env) -> Doc {
        let stored: Vec<Doc> = storage_version(&crd).into_iter().collect();
        let stored = if stored.is_empty() {
            Doc::NULL
        } else {
            stored.into()
        };
        let status = doc!({
            "conditions": (Doc::NULL), "acceptedNames": { "plural": "", "kind": "" }, "storedVersions": stored
        });
        put(crd, "/status", status)
    }

    fn prepare_update(&self, new: Doc, _old: &Doc) -> Doc {
        let Some(version) = storage_version(&new) else {
            return new;
        };
        let stored = new.at("/status/storedVersions").items();
        if stored.contains(&version) {
            return new;
        }
        let stored: Vec<Doc> = stored.iter().cloned().chain([version]).collect();
        put(new, "/status/storedVersions", stored)
    }

    fn prepare_status(&self, new: Doc, old: &Doc) -> Doc {
        let fields = old.as_object().cloned().unwrap_or_else(Object::empty);
        fields.with("status", new.at("/status").clone()).into()
    }

    fn validate(&self, crd: &Doc, errors: &mut FieldErrors) {
        super::validate(crd, errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        super::validate_update(new, old, errors);
    }

    fn validate_status(&self, new: &Doc, _old: &Doc, errors: &mut FieldErrors) {
        if new.at("/status").as_object().is_none() {
            errors.required(&FieldPath::new("status"), "");
        }
    }

    /// A definition goes only after its objects.
    fn is_held(&self, crd: &Doc) -> bool {
        !crd.meta().is_deleting()
    }

    fn begin_delete(&self, crd: Doc) -> Doc {
        if crd.meta().has_finalizer(CLEANUP) {
            return crd;
        }
        let generation = crd.meta().generation();
        let crd = edit_metadata(&crd, |metadata| {
            let metadata = metadata.without("deletionGracePeriodSeconds");
            metadata.with("generation", generation.saturating_sub(1).into())
        });
        let since = crd.at("/metadata/deletionTimestamp").clone();
        let message =
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        super::with_condition(
            crd.with_finalizer(CLEANUP),
            "Terminating",
            "True",
            "InstanceDeletionPending",
            message,
            since,
        )
    }

    fn warnings(&self, crd: &Doc) -> Vec<String> {
        let mut unknown = Vec::new();
        for version in crd.at("/spec/versions").items() {
            formats(version.at("/schema/openAPIV3Schema"), &mut unknown);
        }
        unknown.sort_unstable();
        unknown.dedup();
        unknown
            .iter()
            .map(|format| format!("unrecognized format {format:?}"))
            .collect()
    }
}

/// The version in which objects are to be stored.
fn storage_version(crd: &Doc) -> Option<Doc> {
    let mut versions = crd.at("/spec/versions").items().iter();
    let version = versions.find(|version| *version.at("/storage") == true)?;
    Some(version.at("/name").clone())
}

/// The formats in a schema that nobody knows.
fn formats(schema: &Doc, unknown: &mut Vec<String>) {
    let Some(object) = schema.as_object() else {
        return;
    };
    if let Some(format) = object.get("format").and_then(Doc::as_str)
        && !Format::is_known(format)
    {
        unknown.push(format.to_owned());
    }
    for (key, value) in object.iter() {
        match key.as_str() {
            "properties" => value
                .as_object()
                .into_iter()
                .flat_map(Object::values)
                .for_each(|part| formats(part, unknown)),
            "items" | "additionalProperties" | "not" => formats(value, unknown),
            "allOf" | "anyOf" | "oneOf" => {
                value.items().iter().for_each(|part| formats(part, unknown))
            }
            _ => {}
        }
    }
}

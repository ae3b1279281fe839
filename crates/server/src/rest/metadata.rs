//! Validation of the metadata that all kinds have.

use std::collections::HashSet;

use windlass_core::{Doc, GroupVersion, names};

use crate::registry::{NameRule, Resource};
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::labels::{annotations, labels};

/// Finalizers without a domain that are known to everybody.
const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

/// Finds what is wrong with the metadata of an object.
pub(super) fn validate(resource: &Resource, object: &Doc, errors: &mut FieldErrors) {
    let meta = object.meta();
    let path = FieldPath::new("metadata");
    if !meta.generate_name().is_empty() {
        let base = names::mask_trailing_dash(meta.generate_name());
        let messages = name_messages(resource.names, &base);
        errors.invalid_each(&path.child("generateName"), meta.generate_name(), messages);
    }
    match meta.name() {
        "" => errors.required(&path.child("name"), "name or generateName is required"),
        name => {
            errors.invalid_each(
                &path.child("name"),
                name,
                name_messages(resource.names, name),
            );
        }
    }
    let namespace = path.child("namespace");
    match (resource.is_namespaced(), meta.namespace()) {
        (true, "") => errors.required(&namespace, ""),
        (true, name) => errors.invalid_each(&namespace, name, names::dns1123_label(name)),
        (false, "") => {}
        (false, _) => errors.forbidden(&namespace, "not allowed on this type"),
    }
    labels(&path.child("labels"), object.at("/metadata/labels"), errors);
    annotations(
        &path.child("annotations"),
        object.at("/metadata/annotations"),
        errors,
    );
    owners(
        &path.child("ownerReferences"),
        object.at("/metadata/ownerReferences"),
        errors,
    );
    finalizers(
        resource,
        &path.child("finalizers"),
        object.at("/metadata/finalizers"),
        errors,
    );
}

/// Finds what may not change in the metadata of an object.
pub(super) fn validate_update(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    let path = FieldPath::new("metadata");
    for key in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let pointer = format!("/metadata/{key}");
        errors.immutable(&path.child(key), new.at(&pointer), old.at(&pointer));
    }
    if !old.meta().is_deleting() {
        return;
    }
    let known: HashSet<&str> = old.meta().finalizers().collect();
    let added: Vec<String> = new
        .meta()
        .finalizers()
        .filter(|finalizer| !known.contains(finalizer))
        .map(|finalizer| format!("{finalizer:?}"))
        .collect();
    if !added.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers \
             []string{{{}}}",
            added.join(", ")
        );
        errors.forbidden(&path.child("finalizers"), detail);
    }
}

fn name_messages(rule: NameRule, name: &str) -> Vec<String> {
    match rule {
        NameRule::Subdomain => names::dns1123_subdomain(name),
        NameRule::Label => names::dns1123_label(name),
        NameRule::PathSegment => names::path_segment(name),
        NameRule::IpAddress => windlass_rules::kinds::address_fault(name)
            .into_iter()
            .collect(),
    }
}

fn owners(path: &FieldPath, owners: &Doc, errors: &mut FieldErrors) {
    let mut controller: Option<String> = None;
    for owner in owners.items() {
        // Upstream names the list, not the item.
        let item = path.clone();
        let version = owner.str_at("/apiVersion").parse::<GroupVersion>();
        if !version.is_ok_and(|version| !version.version().is_empty()) {
            errors.invalid(
                &item.child("apiVersion"),
                owner.at("/apiVersion"),
                "version must not be empty",
            );
        }
        for key in ["kind", "name", "uid"] {
            let value = owner.str_at(&format!("/{key}"));
            if value.is_empty() {
                errors.invalid(&item.child(key), value, "must not be empty");
            }
        }
        if owner.str_at("/kind") == "Event" && owner.str_at("/apiVersion") == "v1" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.invalid(path, owner, detail);
        }
        if *owner.at("/controller") != true {
            continue;
        }
        let name = format!("{}/{}", owner.str_at("/kind"), owner.str_at("/name"));
        match &controller {
            None => controller = Some(name),
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {name}"
                );
                errors.invalid(path, owners, detail);
            }
        }
    }
}

fn finalizers(resource: &Resource, path: &FieldPath, finalizers: &Doc, errors: &mut FieldErrors) {
    let texts: Vec<&str> = finalizers.items().iter().filter_map(Doc::as_str).collect();
    for &text in &texts {
        errors.invalid_each(path, text, names::qualified_name(text));
    }
    for (index, &text) in texts.iter().enumerate() {
        let is_known = text.contains('/') || STANDARD_FINALIZERS.contains(&text);
        if !resource.is_custom && !is_known {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid(&path.index(index), text, detail);
        }
    }
    if texts.contains(&"orphan") && texts.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.invalid(path, finalizers, detail);
    }
}

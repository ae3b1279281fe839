//! The way from kubectl's client-side apply to server-side apply.
//!
//! Client-side apply leaves its configuration in an annotation. What that says and the live object
//! still has is kubectl's own, so kubectl does not conflict with it.

use std::collections::HashSet;

use windlass_core::Doc;

use super::collect::fields_of;
use super::compare::Comparison;
use super::encode::escaped;
use super::error::Conflict;
use super::manage::without_managed_fields;
use super::schema::Schema;
use super::validate::faults_of;

/// The manager this is for.
pub(super) const MANAGER: &str = "kubectl";

const POINTER: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
/// The size limit of all annotations of an object together.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// The conflicts that are not about kubectl's own fields.
pub(super) fn without_own<S: Schema>(
    schema: S,
    live: &Doc,
    api_version: &str,
    conflicts: Vec<Conflict>,
) -> Vec<Conflict> {
    let Some(own) = own_fields(schema, live, api_version) else {
        return conflicts;
    };
    let is_foreign = |conflict: &Conflict| !own.contains(&conflict.field);
    conflicts.into_iter().filter(is_foreign).collect()
}

/// The fields of the last configuration that the live object still has as they were.
fn own_fields<S: Schema>(schema: S, live: &Doc, api_version: &str) -> Option<HashSet<String>> {
    let last = Doc::parse(live.str_at(POINTER).as_bytes()).ok()?;
    let is_sound = last.str_at("/apiVersion") == api_version && faults_of(schema, &last).is_empty();
    if !is_sound {
        return None;
    }
    let live = schema.canonical(&without_managed_fields(live));
    let changes = Comparison::of(schema, &last, &live);
    let own = fields_of(schema, &last)
        .difference(&changes.modified)
        .difference(&changes.added)
        .difference(&changes.removed);
    Some(own.paths().into_iter().collect())
}

/// The object with the annotation brought up to date, if it has one.
pub(super) fn refresh(object: &Doc, config: &Doc) -> Doc {
    if object.str_at(POINTER).is_empty() {
        return object.clone();
    }
    let config = config.without(POINTER).unwrap_or_else(|_| config.clone());
    let text = format!("{}\n", escaped(&config));
    let fresh = object
        .with(POINTER, text)
        .unwrap_or_else(|_| object.clone());
    let annotations = fresh.at("/metadata/annotations").as_object();
    let size: usize = annotations.map_or(0, |all| {
        let sizes = all
            .iter()
            .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len));
        sizes.sum()
    });
    if size <= ANNOTATIONS_LIMIT {
        return fresh;
    }
    fresh.without(POINTER).unwrap_or(fresh)
}

#[test]
fn the_pointer_leads_to_the_annotation() {
    let object = windlass_core::doc!({ "metadata": { "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "text" } } });
    assert_eq!(object.str_at(POINTER), "text");
}

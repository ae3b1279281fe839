//! Events, in their old and their new form. The old one is stored.

use windlass_core::{Doc, Object};

use crate::field::{FieldErrors, FieldPath};
use crate::hooks::{Conversion, Hooks};

const NEW_API_VERSION: &str = "events.k8s.io/v1";

/// Fields that a field selector may name, in the old form.
pub const FIELDS: &[(&str, &str)] = &[
    ("involvedObject.kind", "/involvedObject/kind"),
    ("involvedObject.namespace", "/involvedObject/namespace"),
    ("involvedObject.name", "/involvedObject/name"),
    ("involvedObject.uid", "/involvedObject/uid"),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    (
        "involvedObject.resourceVersion",
        "/involvedObject/resourceVersion",
    ),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    ("reason", "/reason"),
    ("reportingComponent", "/reportingComponent"),
    ("type", "/type"),
];

/// Fields that a field selector may name, in the new form.
pub const NEW_FIELDS: &[(&str, &str)] = &[
    ("regarding.kind", "/regarding/kind"),
    ("regarding.namespace", "/regarding/namespace"),
    ("regarding.name", "/regarding/name"),
    ("regarding.uid", "/regarding/uid"),
    ("regarding.apiVersion", "/regarding/apiVersion"),
    ("regarding.resourceVersion", "/regarding/resourceVersion"),
    ("regarding.fieldPath", "/regarding/fieldPath"),
    ("reason", "/reason"),
    ("reportingController", "/reportingController"),
    ("type", "/type"),
];

/// Names in the old form and in the new form.
const NAMES: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// The way between the two forms.
pub const CONVERSION: Conversion = Conversion {
    api_version: "v1",
    to_storage: to_old,
    from_storage: to_new,
};

/// Hooks of events.
#[derive(Debug)]
pub struct Events;

fn to_old(event: &Doc) -> Doc {
    renamed(event, "v1", |name| {
        NAMES
            .iter()
            .find(|(_, new)| *new == name)
            .map(|(old, _)| *old)
    })
}

fn to_new(event: &Doc) -> Doc {
    renamed(event, NEW_API_VERSION, |name| {
        NAMES
            .iter()
            .find(|(old, _)| *old == name)
            .map(|(_, new)| *new)
    })
}

fn renamed(event: &Doc, api_version: &str, name: impl Fn(&str) -> Option<&'static str>) -> Doc {
    let Some(fields) = event.as_object() else {
        return event.clone();
    };
    let renamed: Object = fields
        .iter()
        .map(|(key, value)| match (name(key), &**key) {
            (_, "apiVersion") => (key.clone(), Doc::from(api_version)),
            (Some(name), _) => (name.into(), value.clone()),
            (None, _) => (key.clone(), value.clone()),
        })
        .collect();
    renamed.into()
}

/// The new form asks more of those who make events.
fn validate_new(event: &Doc, errors: &mut FieldErrors) {
    if event.at("/eventTime").is_null() {
        errors.required(&FieldPath::new("eventTime"), "");
    }
    let found = event.str_at("/type");
    if !matches!(found, "Normal" | "Warning") {
        let detail = format!("has invalid value: {found}");
        errors.invalid(&FieldPath::new("type"), "", detail);
    }
}

impl Hooks for Events {
    fn validate(&self, event: &Doc, errors: &mut FieldErrors) {
        let (name, object) = match event.get("regarding") {
            Some(object) => ("regarding", object),
            None => ("involvedObject", event.at("/involvedObject")),
        };
        let path = FieldPath::new(name).child("namespace");
        let namespace = event.meta().namespace();
        let wanted = object.str_at("/namespace");
        // Events about what is in no namespace are kept in the default one.
        let fits = wanted == namespace
            || wanted.is_empty() && matches!(namespace, "default" | "kube-system");
        if !fits {
            errors.invalid(&path, wanted, "does not match event.namespace");
        }
        // An event without a revision is a new one; what is there already is taken as it is.
        let is_made_here = event.str_at("/apiVersion") == NEW_API_VERSION
            && event.meta().resource_version().is_empty();
        if is_made_here {
            validate_new(event, errors);
        }
        if event.at("/eventTime").is_null() {
            return;
        }
        let controller = match event.str_at("/reportingController") {
            "" => event.str_at("/reportingComponent"),
            controller => controller,
        };
        if controller.is_empty() {
            errors.required(&FieldPath::new("reportingController"), "");
        }
        for key in ["reportingInstance", "action", "reason"] {
            let value = event.str_at(&format!("/{key}"));
            if value.is_empty() {
                errors.required(&FieldPath::new(key), "");
            } else if value.len() > 128 {
                errors.invalid(&FieldPath::new(key), "", "can have at most 128 characters");
            }
        }
    }
}

//! Who set which field, as cases compare it.

use windlass_core::{Doc, doc};

use crate::edit::Edit;

/// What stands for every time.
const NOW: &str = "now";

/// The `managedFields` of an object, its times all alike.
#[must_use]
pub fn managers(object: &Doc) -> Doc {
    let entries = object.at("/metadata/managedFields").items().iter();
    let entries = entries.map(|entry| match entry.at("/time").is_null() {
        true => entry.clone(),
        false => entry.set("/time", NOW),
    });
    entries.collect::<Vec<Doc>>().into()
}

/// The entry of a manager that applied.
#[must_use]
pub fn applier(name: &str, api_version: &str, fields: Doc) -> Doc {
    entry(name, "Apply", api_version, fields)
}

/// The entry of a manager that wrote in any other way.
#[must_use]
pub fn updater(name: &str, api_version: &str, fields: Doc) -> Doc {
    entry(name, "Update", api_version, fields)
}

fn entry(name: &str, operation: &str, api_version: &str, fields: Doc) -> Doc {
    doc!({
        "manager": name, "operation": operation, "apiVersion": api_version, "time": NOW,
        "fieldsType": "FieldsV1", "fieldsV1": fields
    })
}

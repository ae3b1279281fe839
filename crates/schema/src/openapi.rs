//! OpenAPI documents, as functions of rows: v3 here, v2 in [`swagger`].
//!
//! Built-in kinds are described from the atlas, which knows names, types and merge rules but no
//! prose, which is added if it was built in; custom resources by their own schemas.

mod built_in;
mod custom;
mod descriptions;
mod operations;
pub mod swagger;

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::{Doc, Object, Str, doc};

pub use self::descriptions::Descriptions;
use crate::resource::Resource;

/// The schemas of a document, and what is said about them.
struct Schemas<'a> {
    by_name: BTreeMap<String, Doc>,
    descriptions: &'a Descriptions,
}

/// The document of the rows of one group version.
#[must_use]
pub fn build(rows: &[Arc<Resource>], descriptions: &Descriptions) -> Doc {
    let mut schemas = Schemas {
        by_name: BTreeMap::new(),
        descriptions,
    };
    let mut paths: Vec<(Str, Doc)> = Vec::new();
    for row in rows {
        let names = match &row.custom {
            Some(custom) => custom::add(row, custom, &mut schemas),
            None => built_in::add_kind(&row.gvk, &mut schemas),
        };
        for sub in &row.subresources {
            built_in::add_kind(&sub.gvk, &mut schemas);
        }
        paths.extend(operations::paths(row, names.as_deref()));
    }
    let schemas: Vec<(Str, Doc)> = schemas
        .by_name
        .into_iter()
        .map(|(name, schema)| (Str::new(&name), schema))
        .collect();
    doc!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "1.36" },
        "paths": (Object::new(paths)),
        "components": { "schemas": (Object::new(schemas)) }
    })
}

/// A reference to a schema.
fn reference(name: &str) -> Doc {
    doc!({ "$ref": (format!("#/components/schemas/{name}")) })
}

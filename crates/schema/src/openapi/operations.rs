//! What can be done at which path.

use windlass_core::{Doc, Gvk, Object, Str, doc};

use super::built_in::kind_doc;
use super::reference;
use crate::resource::Resource;
use crate::resource::Verb;

const WRITE_PARAMETERS: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const PATCH_PARAMETERS: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];

/// The paths of a resource and of its parts.
pub(super) fn paths(row: &Resource, schema: Option<&str>) -> Vec<(Str, Doc)> {
    let (group, version) = (row.gvk.group(), row.gvk.version());
    let prefix = match group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    let place = if row.is_namespaced() {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let plural = &row.plural;
    let collection = format!("{prefix}{place}/{plural}");
    let item = format!("{collection}/{{name}}");
    let mut paths = Vec::new();
    let mut add = |path: &str, verbs: &[Verb], gvk: &Gvk, schema: Option<&str>| {
        let operations = operations(verbs, gvk, row, schema);
        if !operations.is_empty() {
            paths.push((Str::new(path), operations.into()));
        }
    };
    let among = |wanted: &[Verb]| -> Vec<Verb> {
        row.verbs
            .iter()
            .copied()
            .filter(|verb| wanted.contains(verb))
            .collect()
    };
    add(
        &collection,
        &among(&[Verb::List, Verb::Create, Verb::DeleteCollection]),
        &row.gvk,
        schema,
    );
    add(
        &item,
        &among(&[Verb::Get, Verb::Update, Verb::Patch, Verb::Delete]),
        &row.gvk,
        schema,
    );
    if row.is_namespaced() {
        add(
            &format!("{prefix}/{plural}"),
            &among(&[Verb::List]),
            &row.gvk,
            schema,
        );
    }
    for sub in &row.subresources {
        let schema = schema.filter(|_| sub.gvk == row.gvk);
        add(&format!("{item}/{}", sub.name), sub.verbs, &sub.gvk, schema);
    }
    paths
}

fn operations(verbs: &[Verb], gvk: &Gvk, row: &Resource, schema: Option<&str>) -> Object {
    let operations = verbs.iter().filter_map(|verb| {
        let (method, action, is_write) = match verb {
            Verb::Get => ("get", "get", false),
            Verb::List => ("get", "list", false),
            Verb::Create => ("post", "post", true),
            Verb::Update => ("put", "put", true),
            Verb::Patch => ("patch", "patch", true),
            Verb::Delete => ("delete", "delete", false),
            Verb::DeleteCollection => ("delete", "deletecollection", false),
            Verb::Watch => return None,
        };
        let mut operation = doc!({
            "operationId": (format!("{action}{}{}", gvk.version(), gvk.kind())),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": (kind_doc(gvk)),
            "responses": { "200": { "description": "OK" } }
        });
        if is_write {
            let contents = match verb {
                Verb::Patch => patch_contents(row),
                _ => body_contents(schema),
            };
            let parameters: &[&str] = match verb {
                Verb::Patch => &PATCH_PARAMETERS,
                _ => &WRITE_PARAMETERS,
            };
            operation = operation
                .with(
                    "/requestBody",
                    doc!({ "content": contents, "required": true }),
                )
                .ok()?;
            operation = operation
                .with(
                    "/parameters",
                    parameters
                        .iter()
                        .map(|name| parameter(name))
                        .collect::<Vec<_>>(),
                )
                .ok()?;
        }
        Some((Str::new(method), operation))
    });
    Object::new(operations.collect())
}

fn parameter(name: &str) -> Doc {
    let sort = if name == "force" { "boolean" } else { "string" };
    doc!({ "name": name, "in": "query", "schema": { "type": sort, "uniqueItems": true } })
}

fn body_contents(schema: Option<&str>) -> Doc {
    let schema = schema.map_or_else(|| doc!({ "type": "object" }), reference);
    doc!({ "application/json": { "schema": (schema.clone()) }, "application/yaml": { "schema": schema } })
}

/// The ways to patch; lists of custom resources have no strategic merge.
fn patch_contents(row: &Resource) -> Doc {
    let mut contents = Object::empty();
    for media_type in [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ] {
        let is_strategic = media_type.contains("strategic");
        if !(row.is_custom && is_strategic) {
            contents = contents.with(media_type, doc!({ "schema": { "type": "object" } }));
        }
    }
    contents.into()
}

//! The least OpenAPI v3 that clients need: which kinds can be patched, and that fields are checked.
//!
//! Without it kubectl refuses to create or apply anything.

use http::{HeaderMap, Response, StatusCode};
use windlass_core::{Doc, Object, doc};

use crate::body::Body;
use crate::discovery;
use crate::query::Query;
use crate::registry::{Resource, Table, Version};
use crate::request::Verb;
use crate::respond;

const JSON: &str = "application/json";

/// The page at a path, if it is one of these.
pub(crate) fn page(
    table: &Table,
    path: &str,
    _query: &Query,
    headers: &HeaderMap,
) -> Option<Response<Body>> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, version) = match parts[..] {
        ["openapi", "v3"] => return Some(respond::json(StatusCode::OK, &index(table), false)),
        ["openapi", "v3", "api", version] => ("", version),
        ["openapi", "v3", "apis", group, version] => (group, version),
        _ => return None,
    };
    let document = document(group, table.version(group, version)?);
    Some(discovery::tagged(headers, JSON, document.to_json()))
}

fn index(table: &Table) -> Doc {
    let mut paths = Vec::new();
    for group in table.groups() {
        for version in &group.versions {
            let path = match group.name.as_str() {
                "" => format!("api/{}", version.name),
                name => format!("apis/{name}/{}", version.name),
            };
            let hash = discovery::content_hash(&document(&group.name, version).to_json());
            let url = format!("/openapi/v3/{path}?hash={hash}");
            paths.push((path.into(), doc!({ "serverRelativeURL": url })));
        }
    }
    doc!({ "paths": (Object::new(paths)) })
}

fn document(group: &str, version: &Version) -> Doc {
    let paths: Object = version
        .resources
        .values()
        .filter(|resource| resource.allows(Verb::Patch))
        .map(|resource| (item_path(group, &version.name, resource), item(resource)))
        .collect();
    doc!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "v1.36.4" },
        "paths": paths,
        "components": { "schemas": {} }
    })
}

fn item_path(group: &str, version: &str, resource: &Resource) -> String {
    let prefix = match group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    let place = if resource.is_namespaced() {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    format!("{prefix}{place}/{}/{{name}}", resource.plural)
}

fn item(resource: &Resource) -> Doc {
    let kind = doc!({
        "group": (resource.gvk.group()), "version": (resource.gvk.version()),
        "kind": (resource.gvk.kind())
    });
    let mut contents = Object::empty();
    for media_type in [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ] {
        contents = contents.with(media_type, doc!({ "schema": { "type": "object" } }));
    }
    doc!({
        "patch": {
            "operationId": (format!("patch{}", resource.gvk.kind())),
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": kind,
            "parameters": [{
                "name": "fieldValidation", "in": "query",
                "schema": { "type": "string", "uniqueItems": true }
            }],
            "requestBody": { "content": contents },
            "responses": { "200": { "description": "OK" } }
        }
    })
}

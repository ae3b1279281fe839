//! Reading kinds whose objects are made when they are asked for.

use http::{Response, StatusCode};
use windlass_core::{Doc, GroupResource, doc};

use super::Call;
use crate::body::Body;
use crate::negotiate::Form;
use crate::respond;
use windlass_access::Objects;
use windlass_rules::hooks::MadeFrom;
use windlass_rules::status::Status;
use windlass_rules::table::{self, Include};

/// The objects of the requested kind, if they are made and not stored.
pub(super) fn objects(call: &Call) -> Option<Vec<Doc>> {
    let inner = call.server.inner();
    let list = |group: &str, resource: &str, namespace: &str| {
        Objects::list(&inner.storage, group, resource, namespace)
    };
    let from = MadeFrom::new(inner.env.now(), &call.path.namespace, &list);
    call.resource.hooks.made(&from)
}

/// Answers a read of one object or of all of them.
pub(super) fn answer(call: &Call, objects: &[Doc]) -> Result<Response<Body>, Status> {
    let name = call.path.name.as_str();
    if name.is_empty() {
        return list(call, objects);
    }
    let found = objects.iter().find(|object| object.meta().name() == name);
    let object = found.and_then(Doc::as_object).ok_or_else(|| {
        // Upstream names these by what one of them is called.
        let singular = call.resource.singular.to_string();
        Status::not_found(&GroupResource::new(call.path.group.clone(), singular), name)
    })?;
    let gvk = &call.resource.gvk;
    let object = object.with("kind", gvk.kind().into());
    let object = object.with("apiVersion", gvk.api_version().into());
    call.answer(StatusCode::OK, &object.into())
}

fn list(call: &Call, objects: &[Doc]) -> Result<Response<Body>, Status> {
    let wanted = call.wanted_list()?;
    let filter = super::selection(call, &call.query.list_options()?)?;
    let chosen = objects.iter().filter(|object| filter.matches(object));
    let resource = &call.resource;
    let list = match wanted.form {
        Form::Table => {
            let include = Include::parse(call.query.get("includeObject"))?;
            let now = call.server.inner().env.now();
            let rows = chosen.map(|one| table::row(&resource.columns, one, include, now));
            let definitions = table::definitions(&resource.columns);
            table::table(definitions, rows.collect(), Doc::empty_object())
        }
        Form::MetadataList => {
            let items: Vec<Doc> = chosen.map(table::partial_metadata).collect();
            doc!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": {}, "items": items
            })
        }
        _ => {
            let items: Vec<Doc> = chosen.cloned().collect();
            doc!({
                "kind": (resource.list_kind()), "apiVersion": (resource.gvk.api_version()),
                "metadata": {}, "items": items
            })
        }
    };
    let pretty = call.is_pretty();
    Ok(respond::object(
        StatusCode::OK,
        &list,
        wanted.encoding,
        pretty,
    ))
}

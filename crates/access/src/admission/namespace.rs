//! Nothing is created in a namespace that is not there or on its way out.

use windlass_core::{Doc, GroupResource};

use super::Request;
use super::plugin::Admit;
use windlass_rules::field::Cause;
use windlass_rules::status::Status;

/// Refuses new objects in namespaces that are absent or on their way out.
pub(super) struct NamespaceLifecycle;

impl Admit for NamespaceLifecycle {
    fn create(&self, request: &Request<'_>, object: Doc) -> Result<Doc, Status> {
        check(request, &object)?;
        Ok(object)
    }
}

pub(super) fn check(request: &Request<'_>, object: &Doc) -> Result<(), Status> {
    let namespace = request.namespace;
    if namespace.is_empty() {
        return Ok(());
    }
    let found = request.objects.find("", "namespaces", "", namespace);
    let Some(found) = found else {
        let namespaces = GroupResource::new("", "namespaces");
        return Err(Status::not_found(&namespaces, namespace));
    };
    if !found.meta().is_deleting() {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    Err(request.forbid(object, &why).with_cause(Cause {
        reason: "NamespaceTerminating",
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    }))
}

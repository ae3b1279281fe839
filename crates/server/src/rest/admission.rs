//! What is checked about a new object beyond its own validity.

use windlass_core::Doc;

use super::Call;
use crate::auth;
use crate::status::{Cause, Status};

/// Refuses to create in a namespace that is not there or on its way out.
pub(super) fn check_namespace(call: &Call, name: &str) -> Result<(), Status> {
    let namespace = call.namespace();
    if namespace.is_empty() {
        return Ok(());
    }
    let found = call
        .server
        .inner()
        .storage
        .find("", "namespaces", "", namespace);
    let Some(found) = found else {
        let namespaces = windlass_core::GroupResource::new("", "namespaces");
        return Err(Status::not_found(&namespaces, namespace));
    };
    if !found.meta().is_deleting() {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    Err(
        Status::forbidden(&call.group_resource(), name, &why).with_cause(Cause {
            reason: "NamespaceTerminating",
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        }),
    )
}

/// Refuses a role or binding that would give more than its author has.
pub(super) fn check_rights(call: &Call, object: &Doc) -> Result<(), Status> {
    let storage = &call.server.inner().storage;
    auth::check_escalation(&call.user, &call.group_resource(), object, storage)
}

//! How a request asks to be admitted.

use windlass_core::Doc;

use super::Call;
use crate::admission::Request;
use crate::auth;
use crate::status::Status;

/// A write that asks to be admitted.
pub(super) fn request(call: &Call) -> Request<'_> {
    let inner = call.server.inner();
    Request {
        rules: inner.admission,
        resource: &call.resource,
        user: &call.user,
        namespace: call.namespace(),
        subresource: &call.path.subresource,
        storage: &inner.storage,
        env: &inner.env,
    }
}

/// Refuses a role or binding that would give more than its author has; `old` is absent for a new
/// object.
pub(super) fn check_rights(call: &Call, object: &Doc, old: Option<&Doc>) -> Result<(), Status> {
    let resource = call.group_resource();
    let write = auth::GrantWrite {
        user: &call.user,
        resource: &resource,
        namespace: call.namespace(),
        name: &call.path.name,
        new: object,
        old,
    };
    auth::check_escalation(&write, &call.server.inner().storage)
}

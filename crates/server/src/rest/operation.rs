//! One operation on one object, on behalf of a user: all that the write path knows of a request.
//!
//! The server makes operations of its own, too. They need no request.

use std::sync::Arc;

use windlass_core::{Doc, GroupResource, Gvk, Key};

use crate::admission;
use crate::allocate::Turn;
use crate::extension::RequestNotes;
use crate::query::Query;
use crate::registry::Resource;
use crate::server::Server;
use crate::storage::{self, Storage};
use windlass_access::admission::policy;
use windlass_access::{self as auth, User};
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;
use windlass_schema::needs::GrantSort;

/// An operation on an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation<'a> {
    pub(crate) server: &'a Server,
    pub(crate) resource: &'a Arc<Resource>,
    /// Empty at cluster scope.
    pub(crate) namespace: &'a str,
    /// Empty for an object that is yet to get its name.
    pub(crate) name: &'a str,
    /// The part of the object; empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) user: &'a User,
    /// The request behind it; absent if the server acts on its own, which no extension is asked
    /// about.
    pub(crate) request: Option<RequestPart<'a>>,
}

/// The part of a request that extensions are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestPart<'a> {
    pub(crate) query: &'a Query,
    pub(crate) notes: &'a RequestNotes,
}

impl<'a> Operation<'a> {
    /// The objects that are stored.
    pub(super) fn storage(&self) -> &'a Storage {
        &self.server.inner().storage
    }

    /// The resource as messages name it.
    pub(super) fn group_resource(&self) -> GroupResource {
        self.resource.group_resource()
    }

    /// The key of the object.
    pub(super) fn key(&self) -> Key {
        storage::key(self.namespace, self.name)
    }

    /// The object as it is now.
    pub(super) fn find(&self) -> Result<Doc, Status> {
        let entry = self.storage().get(&self.resource.shelf, &self.key());
        let entry = entry.ok_or_else(|| self.not_found())?;
        Ok(self.resource.view(entry.doc()))
    }

    pub(super) fn not_found(&self) -> Status {
        Status::not_found(&self.group_resource(), self.name)
    }

    /// Returns true if extensions may have to be asked.
    pub(super) fn has_extensions(&self) -> bool {
        let inner = self.server.inner();
        self.request.is_some() && !inner.extensions.is_idle(&inner.storage)
    }

    /// Waits until it may be decided what addresses the object gets, if it gets any.
    pub(super) async fn turn(&self) -> Option<Turn<'a>> {
        let inner = self.server.inner();
        let (allocator, storage) = (&inner.allocator, &inner.storage);
        allocator.turn(self.resource, storage, &inner.env).await
    }

    /// The operation as admission sees it.
    pub(super) fn admission(&self) -> admission::Request<'a> {
        let inner = self.server.inner();
        admission::Request {
            rules: inner.admission,
            resource: self.resource,
            user: self.user,
            namespace: self.namespace,
            subresource: self.subresource,
            objects: &inner.storage,
            env: &inner.env,
        }
    }

    /// The operation as reviews see it.
    pub(super) fn reviewer(&self) -> auth::Reviewer<'a> {
        let inner = self.server.inner();
        auth::Reviewer {
            authenticator: &inner.authenticator,
            objects: &inner.storage,
            user: self.user,
            namespace: self.namespace,
            now: inner.env.now(),
        }
    }

    /// Refuses a role or binding that would give more than its author has; `old` is absent for a
    /// new object.
    pub(super) fn check_grants(&self, object: &Doc, old: Option<&Doc>) -> Result<(), Status> {
        let Some(grant) = self.resource.needs.grant else {
            return Ok(());
        };
        self.check_params(grant, object, old)?;
        let resource = self.group_resource();
        let write = auth::GrantWrite {
            user: self.user,
            grant,
            resource: &resource,
            namespace: self.namespace,
            name: self.name,
            new: object,
            old,
        };
        auth::check_escalation(&write, self.storage())
    }

    /// Refuses a policy or a policy binding whose author may not read its parameters.
    fn check_params(
        &self,
        grant: GrantSort,
        object: &Doc,
        old: Option<&Doc>,
    ) -> Result<(), Status> {
        let (user, storage) = (self.user, self.storage());
        let table = self.server.inner().registry.table();
        let resource_of = |kind: &Doc| {
            let kind = Gvk::parse(kind.str_at("/apiVersion"), kind.str_at("/kind")).ok()?;
            let version = table.version(kind.group(), kind.version())?;
            let mut rows = version.resources.values();
            let row = rows.find(|row| row.gvk == kind)?;
            Some(row.plural.to_string())
        };
        let (field, why) = match grant {
            GrantSort::Role | GrantSort::Binding => return Ok(()),
            GrantSort::PolicyParams => {
                let resource = resource_of(object.at("/spec/paramKind"));
                let resource = resource.as_deref();
                let why = policy::refuse_param_kind(user, object, old, resource, storage);
                ("paramKind", why)
            }
            GrantSort::PolicyParamRef(policies) => {
                let group = self.resource.gvk.group();
                let policy = storage.find(group, policies, "", object.str_at("/spec/policyName"));
                let kind = policy.as_ref().map(|policy| policy.at("/spec/paramKind"));
                let resource = kind.and_then(resource_of);
                let (policy, resource) = (policy.as_ref(), resource.as_deref());
                let why = policy::refuse_param_ref(user, (object, old), policy, resource, storage);
                ("paramRef", why)
            }
        };
        let Some(why) = why else { return Ok(()) };
        let mut errors = FieldErrors::default();
        errors.forbidden(&FieldPath::new("spec").child(field), why);
        let name = object.meta().name();
        Err(Status::invalid(&self.resource.group_kind(), name, &errors))
    }
}
